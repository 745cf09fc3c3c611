"""One row a request, written once and never changed.

Numbers go to ``records.jsonl``; token ids and text, which are large, go to
``outputs.jsonl`` beside it, written first so that a record never lacks its output.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

# Record format history:
# 1: first format (2026-12)
SCHEMA_VERSION = 1


@frozen
class RequestRecord:
    """What was asked of one arm for one prompt, and what came of it.

    Counts are tokens, times milliseconds, clocks monotonic unless named otherwise.
    A field that is not known is None.

    Attributes
    ----------
    key : identity of the planned request, unique within a run; see measure.plan.
    experiment, arm, model, prompt_id, category : what was measured.
    state : "cold", "warm-other" or "warm-same": what the drafter had seen before.
    role : "measure", "warmup" (pool-neutral), "filler" (planned, to bring about a state),
        or "restore" (repeats earlier requests of a series after an interruption).
    block : index of the interleaving block. series : name of the server's life.
    ordinal : place of the request in that server's life, from 0.
    repeat : how often this (arm, prompt) had been measured before, from 0.
    started_utc : wall clock, ISO 8601; for reading only.
    status : "ok" or the kind of failure (RequestError.kind, or "launch", "invalid", "discarded").
    problem : what went wrong, in words; None when ok.
    labels : why this row stays out of headlines ("busy", "cache-hit", "inactive", ...).
    n_predict, temperature, seed, ignore_eos, stream : what was asked.
    prompt_tokens_n : length of the prompt after the template; None where unknown.
    output_sha256 : digest of the output token ids (of the text where there are none).
    machine : summary of the sampler over the request (see machine.sampler), flat numbers.
    """

    key: str
    run_id: str
    experiment: str
    arm: str
    model: str
    prompt_id: str
    category: str
    state: str
    role: str
    block: int
    series: str
    ordinal: int
    repeat: int
    started_utc: str
    status: str
    n_predict: int
    temperature: float
    seed: int
    ignore_eos: bool
    stream: bool
    schema_version: int = SCHEMA_VERSION
    problem: str | None = None
    labels: tuple[str, ...] = ()
    prompt_tokens_n: int | None = None
    cache_n: int | None = None
    prompt_n: int | None = None
    prompt_ms: float | None = None
    predicted_n: int | None = None
    predicted_ms: float | None = None
    draft_n: int | None = None
    draft_n_accepted: int | None = None
    drafted_steps: int | None = None
    accepted_per_position: tuple[int, ...] | None = None
    decode_calls: int | None = None
    speculation_active: bool | None = None
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    max_chunk_gap_ms: float | None = None
    reasoning_n: int | None = None
    stop: str | None = None
    output_sha256: str | None = None
    machine: Mapping[str, float | None] = field(factory=dict)


@frozen
class Output:
    """Tokens and text of one request, kept beside its record under the same key."""

    key: str
    prompt_tokens: tuple[int, ...] | None
    tokens: tuple[int, ...] | None
    text: str
