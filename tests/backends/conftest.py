from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from attrs import evolve

from lab.backends.llama_server import LlamaServerBackend, LlamaServerSession
from lab.backends.protocol import Identity
from lab.backends.server_answers import evidence
from lab.inputs.profiles import load_profile
from lab.setup.engine import find_engine
from lab.setup.models import embedded_model


def _load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FakeLlamaServer = _load("fake_llama_server").FakeLlamaServer


class Alive:
    """Stands for a process that runs."""

    returncode = None
    pid = 1
    argv = ("fake",)
    log = type("Log", (), {"closed": True})

    def stop(self):
        self.returncode = 0

    def log_lines(self):
        return []


@pytest.fixture
def fake():
    """Make fake servers; each is a context manager."""
    return FakeLlamaServer


@pytest.fixture
def arm():
    return load_profile("embedded").arm("ngram-mod-6-2-8")


@pytest.fixture
def session_of(arm):
    """A session that talks to a fake server."""
    made = []

    def make(server, *, types=("ngram-mod",)):
        chosen = evolve(arm, drafting=evolve(arm.drafting, types=types))
        session = LlamaServerSession(Alive(), server.port, server.key or "key", chosen)
        session.identity = Identity("llama-server")
        session.evidence = evidence(types, [{"speculative": server.speculative}], [])
        made.append(session)
        return session

    yield make
    for session in made:
        session.close()


@pytest.fixture
def backend(tmp_path):
    """llama-server for real, with the embedded model."""
    return LlamaServerBackend(
        find_engine(), {"target": embedded_model()}, tmp_path / "logs", ready_timeout_s=120
    )
