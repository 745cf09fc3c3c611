"""Fixtures shared by all tests: small values that stand for a plan, a prompt and a server."""

from __future__ import annotations

import os
import re

import matplotlib as mpl
import pytest
from hypothesis import settings

from lab.inputs.gguf_file import read_gguf
from lab.setup.models import embedded_model
from lab.setup.standins.gguf_copy import Copied, NewTensor, write_gguf

mpl.use("agg")

# Nothing here asserts a time: what else runs on the machine must not fail a property.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Tests share the machine: threads that spin while they wait would stall each other.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.fixture(autouse=True)
def _no_stray_results(tmp_path, monkeypatch):
    """No test writes into the checkout's results."""
    monkeypatch.setattr("lab.paths.RESULTS", tmp_path / "results")


@pytest.fixture(scope="session")
def shallow_model(tmp_path_factory):
    """The first two blocks of the embedded model: real tensors and vocabulary, run in a moment."""
    file = read_gguf(embedded_model())
    deeper = re.compile(r"blk\.([2-9]|\d\d)\.")
    kept = [one for one in file.tensors if not deeper.match(one.name)]
    target = tmp_path_factory.mktemp("model") / "shallow.gguf"
    write_gguf(
        target,
        file,
        [NewTensor(one.name, one.type, one.shape, Copied(one)) for one in kept],
        texts={"general.name": "shallow"},
        counts={"llama.block_count": 2},
    )
    return target
