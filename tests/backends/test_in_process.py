"""llama-cpp-python in a process of its own, against the server and against its own traps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import evolve

from lab.backends.in_process import InProcessBackend
from lab.backends.in_process_arm import check_offload
from lab.backends.in_process_keywords import check_keywords
from lab.backends.llama_server import LlamaServerBackend
from lab.backends.protocol import Request
from lab.errors import BackendError, InputError, LaunchError, RequestError
from lab.inputs.arm import Arm, Drafting, ServerSettings
from lab.inputs.prompts import Message, Prompt
from lab.setup.engine import find_engine

SETTINGS = ServerSettings(n_ctx=1024, flash_attn="on")
BASELINE = Arm("baseline", "baseline", settings=SETTINGS)
LOOKUP = Arm("lookup", "lookup", settings=SETTINGS, drafting=Drafting(("prompt-lookup",)))
PROMPT = Prompt("p", "c", (Message("user", "Say ünïcode twice, then stop."),))


@pytest.fixture(scope="module")
def files(shallow_model):
    return {"target": shallow_model}


@pytest.fixture
def backend(files, tmp_path):
    return InProcessBackend(find_engine(), files, tmp_path / "logs")


@pytest.fixture
def session(backend):
    with backend.open(BASELINE, log="baseline") as opened:
        yield opened


def ask(tokens, **changes):
    return Request(tuple(tokens), **{"n_predict": 24, **changes})


@pytest.mark.engine
def test_text_and_tokens_are_the_servers(session, files, tmp_path):
    server = LlamaServerBackend(find_engine(), files, tmp_path / "server", ready_timeout_s=120)
    with server.open(BASELINE, log="server") as other:
        tokens = session.encode(PROMPT)
        assert tokens == other.encode(PROMPT)
        here, there = session.generate(ask(tokens)), other.generate(ask(tokens))
    assert here.tokens == there.tokens
    assert here.text == there.text
    assert here.timings.predicted_n == there.timings.predicted_n == 24
    assert here.timings.prompt_n == there.timings.prompt_n


@pytest.mark.engine
def test_times_and_counts_of_a_plain_generation_fit_together(session):
    reply = session.generate(ask(session.encode(PROMPT), stream=True))
    assert reply.timings.draft_n is None
    assert reply.counters.drafted_steps is None
    assert reply.counters.decode_calls == 23
    assert len(reply.chunk_ms) == 24
    assert reply.ttft_ms == reply.timings.prompt_ms == reply.chunk_ms[0]
    assert 0 < reply.timings.prompt_ms + reply.timings.predicted_ms <= reply.e2e_ms
    assert session.evidence.active is False
    assert session.identity.n_ctx == 1024


@pytest.mark.engine
def test_every_request_starts_from_nothing_unless_the_cache_is_wanted(session):
    tokens = session.encode(PROMPT)
    first, second = (session.generate(ask(tokens)) for _ in range(2))
    assert [one.timings.cache_n for one in (first, second)] == [0, 0]
    assert first.timings.prompt_n == second.timings.prompt_n == len(tokens)
    assert first.tokens == second.tokens
    cached = session.generate(ask(tokens, cache_prompt=True))
    assert cached.timings.cache_n == len(tokens) - 1
    assert cached.timings.prompt_n == 1


@pytest.mark.engine
def test_case_07_drafts_are_counted_around_a_drafter_that_keeps_no_count(backend):
    with backend.open(LOOKUP, log="lookup") as session:
        reply = session.generate(ask(session.encode(PROMPT), n_predict=120))
    counters, timings = reply.counters, reply.timings
    assert session.evidence.active is True
    assert timings.draft_n == counters.draft_tokens > 0
    assert (
        timings.draft_n_accepted == counters.accepted_tokens == sum(counters.accepted_per_position)
    )
    assert 0 < counters.drafted_steps <= counters.decode_calls
    assert counters.decode_calls + timings.draft_n_accepted - 119 in (0, 1)
    assert reply.raw["lookup_ms"] > 0


@pytest.mark.engine
def test_case_18_the_seed_of_a_call_decides_its_text(session):
    tokens = session.encode(PROMPT)
    texts = [session.generate(ask(tokens, temperature=1.0, seed=seed)).tokens for seed in (5, 5, 6)]
    assert texts[0] == texts[1] != texts[2]
    for seed in (0, -1):
        with pytest.raises(RequestError, match="seed other than 0"):
            session.generate(ask(tokens, seed=seed))


@pytest.mark.engine
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"flash_atn": True}, "Did you mean flash_attn"),
        ({"temperature": 0.3}, "would be ignored"),
        ({"seed": 0}, "no seed at all"),
        ({"logits_all": False}, "set by the lab"),
    ],
)
def test_case_18_keywords_are_checked_against_the_signature(backend, flags, words):
    arm = evolve(BASELINE, settings=evolve(SETTINGS, flags=flags))
    with pytest.raises(LaunchError, match=words):
        backend.open(arm, log="keywords")


def test_case_18_a_keyword_nothing_like_a_known_one_is_refused_too():
    def constructor(model_path, *, n_ctx=512, seed=1, **kwargs):
        raise NotImplementedError

    check_keywords(constructor, {"n_ctx": 5, "seed": 3})
    with pytest.raises(InputError, match="Leave it out"):
        check_keywords(constructor, {"zzz": 1})


@pytest.mark.engine
def test_case_23_prompt_lookup_goes_on_past_the_first_batch(backend):
    with backend.open(LOOKUP, log="long") as session:
        assert any("0.20 GB of logits" in note for note in session.identity.notes)
        long = (session.encode(PROMPT) * 40)[:600]
        assert session.generate(ask(long, n_predict=40)).timings.predicted_n == 40
        short = session.encode(PROMPT)
        assert session.generate(ask(short, n_predict=540)).timings.predicted_n == 540


def test_case_23_a_score_table_larger_than_free_memory_is_refused(backend, monkeypatch):
    memory = type("Memory", (), {"available": 100e6})
    monkeypatch.setattr("lab.backends.in_process_arm.psutil.virtual_memory", memory)
    with pytest.raises(InputError, match=r"0.20 GB of logits for 1024 positions.*at most 508"):
        backend.open(LOOKUP, log="memory")


@pytest.mark.engine
def test_case_24_a_cpu_build_says_so(session):
    without_card = find_engine().options["toolkit"] == "none"
    assert any("CPU build" in note for note in session.identity.notes) is without_card


def test_case_24_a_cpu_build_keeps_no_layer_on_a_card():
    arm = evolve(BASELINE, settings=evolve(SETTINGS, n_gpu_layers=99))
    with pytest.raises(InputError, match="CPU build"):
        check_offload(arm, card=False)
    check_offload(arm, card=True)
    check_offload(BASELINE, card=False)


@pytest.mark.engine
def test_case_25_memory_is_looked_at_before_loading_and_after_the_process_is_gone(files, tmp_path):
    seen = []

    def guard():
        seen.append("before")

        def released():
            seen.append(Path(f"/proc/{session._child.pid}").exists())
            raise BackendError("card memory was not given back")

        return released

    backend = InProcessBackend(find_engine(), files, tmp_path / "logs", guard=guard)
    session = backend.open(BASELINE, log="guard")
    assert Path(f"/proc/{session._child.pid}").exists()
    with pytest.raises(BackendError, match="not given back"):
        session.close()
    assert seen == ["before", False]
    assert not session.alive()
    session.close()


@pytest.mark.engine
def test_what_does_not_fit_the_context_is_a_typed_failure(session):
    with pytest.raises(RequestError) as failure:
        session.generate(ask(range(100, 1100), n_predict=100))
    assert failure.value.kind == "context"
    assert session.generate(ask(session.encode(PROMPT))).timings.predicted_n == 24


@pytest.mark.engine
def test_a_request_that_takes_too_long_ends_the_process(session):
    with pytest.raises(RequestError) as failure:
        session.generate(ask(range(100, 900), timeout_s=0.05))
    assert failure.value.kind == "timeout"
    assert not session.alive()


@pytest.mark.engine
def test_a_process_that_died_is_a_connection_that_broke(session):
    os.kill(session._child.pid, 9)
    with pytest.raises(RequestError) as failure:
        session.generate(ask(range(100, 110)))
    assert failure.value.kind == "connection"


@pytest.mark.engine
def test_a_file_that_is_no_model_does_not_start(files, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(files["target"].read_bytes()[:100_000])
    backend = InProcessBackend(find_engine(), {"target": broken}, tmp_path / "logs")
    with pytest.raises(LaunchError, match="could not load"):
        backend.open(BASELINE, log="broken")


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        (evolve(LOOKUP, drafting=Drafting(("ngram-mod",))), "prompt lookup only"),
        (evolve(LOOKUP, drafting=Drafting(("prompt-lookup",), {"n-max": 3})), "not a setting"),
        (evolve(BASELINE, settings=evolve(SETTINGS, devices=("CUDA0",))), "devices"),
        (evolve(BASELINE, settings=evolve(SETTINGS, parallel=2)), "parallel"),
        (evolve(BASELINE, model="other"), "no such model"),
    ],
)
def test_an_arm_that_cannot_run_in_process_is_refused(backend, arm, words):
    with pytest.raises(InputError, match=words):
        backend.open(arm, log="refused")
