from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from lab.errors import BackendError, SetupError
from lab.setup import child
from lab.setup.child import Child, run_in_child
from lab.setup.engine import Engine

WORKERS = """
import os, sys
from collections.abc import Iterator

def count(to: int):
    print("printed by the engine")
    for i in range(to):
        yield {"i": i}

def library():
    stray = [name for name in os.environ if name.startswith("LLAMA_ARG_")]
    policy = os.environ.get("OMP_WAIT_POLICY")
    yield {"path": os.environ["LLAMA_CPP_LIB_PATH"], "args": stray, "policy": policy}

def echo(requests: Iterator):
    for request in requests:
        yield {"heard": request}

def fail():
    yield {"first": 1}
    raise ValueError("no such thing")

def die():
    print("last words", file=sys.stderr, flush=True)
    os._exit(7)
    yield {}

def forever():
    while True:
        yield {"pid": os.getpid()}
"""


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path, tmp_path, "built", "0", tmp_path / "llama-server")


@pytest.fixture(autouse=True)
def workers(tmp_path, monkeypatch):
    (tmp_path / "child_workers.py").write_text(WORKERS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")


def test_answers_come_in_order_and_prints_are_not_among_them(engine):
    assert [a["i"] for a in run_in_child(engine, "child_workers:count", to=3)] == [0, 1, 2]


def test_the_child_gets_the_engine_and_no_stray_settings(engine, monkeypatch):
    monkeypatch.setenv("LLAMA_ARG_THREADS", "1")
    (answer,) = run_in_child(engine, "child_workers:library")
    assert answer == {"path": str(engine.lib_dir), "args": [], "policy": "passive"}


def test_threads_of_a_timed_child_wait_as_a_server_s_do(engine, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    (answer,) = run_in_child(engine, "child_workers:library", timed=True)
    assert answer["policy"] is None


def test_an_engine_without_libraries_is_refused(engine, tmp_path):
    bare = Engine(tmp_path, None, "xllamacpp", "0", tmp_path / "llama-server")
    with pytest.raises(SetupError, match="no shared libraries"):
        next(run_in_child(bare, "child_workers:count", to=1))


def test_a_dialogue_ends_with_the_pipe(engine):
    with Child(engine, "child_workers:echo", {}) as running:
        assert running.ask({"a": 1}) == {"heard": {"a": 1}}
        assert running.ask({"a": "zwei"}) == {"heard": {"a": "zwei"}}
        assert running.alive()
    assert running.popen.returncode == 0


def test_a_failure_carries_its_message_after_the_answers_before_it(engine):
    answers = run_in_child(engine, "child_workers:fail")
    assert next(answers) == {"first": 1}
    with pytest.raises(BackendError, match="ValueError: no such thing"):
        next(answers)


def test_a_death_carries_status_and_last_words(engine):
    with pytest.raises(BackendError, match=r"exit status 7(.|\n)*last words"):
        list(run_in_child(engine, "child_workers:die"))


def test_an_abandoned_child_ends(engine):
    answers = run_in_child(engine, "child_workers:forever")
    pid = next(answers)["pid"]
    answers.close()
    assert not Path(f"/proc/{pid}").exists() if sys.platform == "linux" else True


def test_a_log_file_keeps_what_the_engine_printed(engine, tmp_path):
    log = tmp_path / "engine.log"
    list(run_in_child(engine, "child_workers:count", log_file=log, to=1))
    assert "printed by the engine" in log.read_text()


def test_sending_to_a_dead_child_says_how_it_died(engine, monkeypatch):
    monkeypatch.setattr(child, "STOP_WAIT_S", 5.0)
    with Child(engine, "child_workers:die", {}) as running:
        while running.alive():
            time.sleep(0.01)
        with pytest.raises(BackendError, match="last words"):
            running.ask({"a": 1})
