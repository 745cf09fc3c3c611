"""Fixtures shared by all tests: small values that stand for a plan, a prompt and a server."""

from __future__ import annotations

import os

import matplotlib as mpl
import pytest

mpl.use("agg")

# Tests share the machine: threads that spin while they wait would stall each other.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.fixture(autouse=True)
def _no_stray_results(tmp_path, monkeypatch):
    """No test writes into the checkout's results."""
    monkeypatch.setattr("lab.paths.RESULTS", tmp_path / "results")
