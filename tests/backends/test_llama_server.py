"""The session against a server with a known schedule, and against the real engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
from attrs import evolve

from lab.backends.llama_server import LlamaServerBackend
from lab.backends.protocol import Request
from lab.errors import InputError, LaunchError, RequestError, StrangerError
from lab.inputs.prompts import named_set

PROMPT = named_set("article8").prompts[0]
ASK = Request((1, 2, 3), n_predict=12)
STREAM = evolve(ASK, stream=True)


@pytest.mark.parametrize("request_", [ASK, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared-chunks", "one-a-chunk"])
def test_case_14_tokens_are_counted_by_the_server_and_never_by_chunks(
    fake, session_of, request_, shared
):
    with fake(tokens_per_step=3, shared_chunks=shared) as server:
        reply = session_of(server).generate(request_)
    assert reply.timings.predicted_n == len(reply.tokens) == 12
    assert reply.text == "word " * 12
    if request_.stream:
        assert reply.ttft_ms == reply.chunk_ms[0]
        assert len(reply.chunk_ms) == (1 + 4 if shared else 12)


def test_case_14_a_stream_that_is_cut_is_a_failed_run(fake, session_of):
    with fake() as server:
        server.faults = ["cut"]
        with pytest.raises(RequestError) as caught:
            session_of(server).generate(STREAM)
    assert caught.value.kind == "truncated"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("400-context", "context"),
        ("500", "server"),
        ("503", "server"),
        ("garbage", "garbage"),
        ("die", "truncated"),
    ],
)
def test_case_15_a_failure_has_a_kind_and_the_next_request_works(fake, session_of, fault, kind):
    with fake() as server:
        server.faults = [fault]
        session = session_of(server)
        with pytest.raises(RequestError) as caught:
            session.generate(ASK)
        assert caught.value.kind == kind
        assert session.generate(ASK).timings.predicted_n == 12


def test_a_server_that_hangs_is_given_up_at_the_deadline(fake, session_of):
    with fake() as server:
        server.faults = ["hang"]
        with pytest.raises(RequestError) as caught:
            session_of(server).generate(evolve(ASK, timeout_s=0.3))
    assert caught.value.kind == "timeout"


def test_case_07_a_missing_draft_count_is_zero_only_where_speculation_is_on(fake, session_of):
    with fake(speculative=True) as server:
        on = session_of(server).generate(ASK)
    with fake(speculative=False) as server:
        off = session_of(server, types=()).generate(ASK)
    assert (on.timings.draft_n, on.timings.draft_n_accepted) == (0, 0)
    assert (off.timings.draft_n, off.timings.draft_n_accepted) == (None, None)


def test_case_09_and_10_strange_counts_are_passed_on_as_they_are(fake, session_of):
    with fake(speculative=True, draft=(4, 20)) as server:
        reply = session_of(server).generate(ASK)
    assert (reply.timings.draft_n, reply.timings.draft_n_accepted) == (4, 20)
    assert reply.raw["draft_n_accepted"] == 20
    assert reply.counters.draft_tokens == 4


def test_case_12_cached_tokens_are_reported(fake, session_of):
    with fake() as server:
        server.extra = {"cache_n": 3}
        assert session_of(server).generate(ASK).timings.cache_n == 3


def test_case_13_an_answer_without_timings_keeps_the_client_clock(fake, session_of):
    with fake() as server:
        server.timings = lambda *_: None
        reply = session_of(server).generate(ASK)
    assert reply.timings.predicted_ms is None
    assert reply.e2e_ms > 0


def test_case_05_another_server_on_the_port_is_refused(fake, session_of, tmp_path):
    with fake(model_path="/elsewhere/other.gguf") as server:
        session = session_of(server)
        with pytest.raises(StrangerError, match=r"other\.gguf"):
            session.refuse_stranger(tmp_path / "mine.gguf")


def test_case_04_a_loading_server_is_told_from_a_dead_one(fake, session_of):
    with fake() as server:
        server.loading = True
        session, waited = session_of(server), []
        with pytest.raises(LaunchError, match="still loading the model"):
            session.wait_until_ready(0.2, waited.append)
        session.process.returncode = 1
        with pytest.raises(LaunchError, match="ended before"):
            session.wait_until_ready(0.2, waited.append)
    assert waited


def test_every_request_states_what_could_vary(fake, session_of):
    with fake() as server:
        session_of(server).generate(ASK)
        (body,) = [body for path, body in server.requests if path == "/completion"]
    assert body["temperature"] == 0
    assert body["seed"] not in {0, -1}
    assert body["cache_prompt"] is False
    assert body["ignore_eos"] is True


def start_of(arm, **settings):
    return evolve(arm, settings=evolve(arm.settings, **settings))


@pytest.mark.engine
def test_case_02_the_environment_cannot_reconfigure_a_server(backend, arm, monkeypatch):
    monkeypatch.setenv("LLAMA_ARG_CTX_SIZE", "256")
    monkeypatch.setenv("LLAMA_ARG_DRAFT_MAX", "16")
    with backend.open(arm, log="x") as session:
        assert session.identity.n_ctx == 2048
        assert {"LLAMA_ARG_CTX_SIZE", "LLAMA_ARG_DRAFT_MAX"} <= set(session.identity.removed_env)


@pytest.mark.engine
def test_counters_of_the_page_are_those_of_the_timings(backend, arm):
    with backend.open(arm, log="x") as session:
        tokens = session.encode(PROMPT)
        session.generate(Request(tokens, n_predict=48))
        reply = session.generate(Request(tokens, n_predict=48))
    assert session.evidence.active is True
    assert reply.counters.draft_tokens == reply.timings.draft_n > 0
    assert reply.counters.accepted_tokens == reply.timings.draft_n_accepted
    assert sum(reply.counters.accepted_per_position) == reply.timings.draft_n_accepted
    assert len(reply.tokens) == reply.timings.predicted_n == 48


@pytest.mark.engine
def test_case_06_the_pool_outlives_a_request_but_not_the_server(backend, arm):
    def drafted(session, times):
        tokens = session.encode(PROMPT)
        ask = Request(tokens, n_predict=32)
        return [session.generate(ask).timings.draft_n for _ in range(times)]

    with backend.open(arm, log="a") as session:
        first, second = drafted(session, 2)
    with backend.open(arm, log="b") as session:
        (fresh,) = drafted(session, 1)
    assert second > first
    assert fresh == first


@pytest.mark.engine
def test_a_warm_up_leaves_nothing_in_the_pool(backend, arm):
    warmup = named_set("warmup").prompts[0]
    with backend.open(arm, log="a") as session:
        tokens = session.encode(warmup)
        assert len(tokens) < 24
        assert len(tokens) + 8 <= 32
        before = session.generate(Request(session.encode(PROMPT), n_predict=32))
    with backend.open(arm, log="b") as session:
        for one in named_set("warmup").prompts:
            session.generate(Request(session.encode(one), n_predict=8))
        after = session.generate(Request(session.encode(PROMPT), n_predict=32))
    assert after.timings.draft_n == before.timings.draft_n


@pytest.mark.engine
def test_case_08_a_baseline_has_no_drafter_at_all(backend, arm):
    baseline = evolve(arm, drafting=type(arm.drafting)())
    with backend.open(baseline, log="x") as session:
        reply = session.generate(Request(session.encode(PROMPT), n_predict=16))
        argv = " ".join(session.identity.argv)
    assert session.evidence.active is False
    assert reply.timings.draft_n is None
    assert "--spec" not in argv


@pytest.mark.engine
def test_case_01_the_articles_flags_start_todays_server(backend, arm):
    old = {"draft-max": 64, "draft-min": 48, "spec-ngram-size-n": 24, "spec-ngram-size-m": 48}
    article = evolve(arm, drafting=evolve(arm.drafting, flags=old))
    with backend.open(article, log="x") as session:
        argv = " ".join(session.identity.argv)
        notes = " ".join(session.identity.notes)
    assert "--spec-ngram-mod-n-max 64" in argv
    assert "--draft-max is --spec-ngram-mod-n-max" in notes


@pytest.mark.engine
def test_case_01_an_unknown_flag_stops_before_launch(backend, arm, tmp_path):
    wrong = evolve(arm, drafting=evolve(arm.drafting, flags={"spec-ngram-mod-nmax": 8}))
    with pytest.raises(InputError, match="spec-ngram-mod-n-max"):
        backend.open(wrong, log="x")
    assert not (tmp_path / "logs").exists()


@pytest.mark.engine
def test_case_03_a_server_that_ends_says_why(backend, arm):
    wrong = start_of(arm, flags={"rope-scaling": "nonsense"})
    with pytest.raises(LaunchError) as caught:
        backend.open(wrong, log="x")
    assert caught.value.returncode not in {None, 0}
    assert 0 < len(caught.value.log_tail) <= 30


@pytest.mark.engine
def test_case_15_a_prompt_longer_than_the_context_is_a_context_failure(backend, arm):
    with backend.open(start_of(arm, n_ctx=256), log="x") as session:
        with pytest.raises(RequestError) as caught:
            session.generate(Request(tuple([5] * 400), n_predict=8))
        assert caught.value.kind == "context"
        assert session.generate(Request((5, 6, 7), n_predict=8)).timings.predicted_n == 8


@pytest.mark.engine
def test_case_21_a_model_file_that_is_none_is_refused_before_launch(backend, arm, tmp_path):
    broken = tmp_path / "a model=with ünusual name.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 20)
    other = LlamaServerBackend(backend.engine, {"target": broken}, tmp_path / "logs")
    with pytest.raises(InputError, match="ünusual name"):
        other.open(arm, log="x")


@pytest.mark.engine
def test_case_21_an_unusual_path_is_served(backend, arm, tmp_path):
    unusual = tmp_path / "a model=with ünusual name.gguf"
    unusual.symlink_to(backend.models["target"])
    other = LlamaServerBackend(backend.engine, {"target": unusual}, tmp_path / "logs")
    with other.open(arm, log="x") as session:
        assert session.generate(Request((5, 6, 7), n_predict=4)).timings.predicted_n == 4


@pytest.mark.engine
def test_the_key_is_nowhere_to_be_read(backend, arm, tmp_path):
    with backend.open(arm, log="x") as session:
        key = session._key
        command = psutil.Process(session.process.pid).cmdline()
        assert key not in " ".join(command)
        assert key not in repr(session.identity)
        assert key not in (tmp_path / "logs" / "x.log").read_text(errors="replace")


@pytest.mark.engine
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_outlives_the_lab(tmp_path, sign):
    script = tmp_path / "owner.py"
    script.write_text(
        textwrap.dedent("""
        import sys, time, pathlib
        from lab.backends.llama_server import LlamaServerBackend
        from lab.inputs.profiles import load_profile
        from lab.setup.engine import find_engine
        from lab.setup.models import embedded_model
        backend = LlamaServerBackend(
            find_engine(), {"target": embedded_model()}, pathlib.Path(sys.argv[1]))
        session = backend.open(load_profile("embedded").baseline(), log="x")
        print(session.process.pid, flush=True)
        time.sleep(60)
        """)
    )
    with subprocess.Popen(
        [sys.executable, script, tmp_path / "logs"], stdout=subprocess.PIPE, text=True
    ) as lab:
        server = int(lab.stdout.readline())
        assert psutil.pid_exists(server)
        os.kill(lab.pid, sign)
        lab.wait()
    deadline = time.monotonic() + 10
    while psutil.pid_exists(server) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(server)
