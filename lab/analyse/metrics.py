"""The vocabulary: one name, one unit, one formula for every quantity of a request.

Metrics are values in a registry, each a function over a frame of records. What is not
known stays missing: no metric turns a missing input into 0 or infinity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from attrs import frozen

Frame = pd.DataFrame
Column = pd.Series


@frozen
class Metric:
    """One derived quantity.

    Attributes
    ----------
    name, unit : as in the vocabulary. formula : in words of recorded fields, with the trap
        that it avoids where other tools count otherwise.
    better : "higher", "lower" or "" where neither is.
    of : the function that computes it from a frame of records.
    """

    name: str
    unit: str
    formula: str
    better: str
    of: Callable[[Frame], Column]


def _ratio(top: Column, bottom: Column) -> Column:
    """Quotient where the divisor is positive, missing elsewhere."""
    return top / bottom.where(bottom > 0)


def _decode_tok_s(f: Frame) -> Column:
    # The first token comes out of the prompt pass, so N tokens are N - 1 decode steps.
    return 1000 * _ratio((f["predicted_n"] - 1).where(f["predicted_n"] > 1), f["predicted_ms"])


def _ms_per_token(f: Frame) -> Column:
    return _decode_ms(f) / (f["predicted_n"] - 1).where(f["predicted_n"] > 1)


def _decode_ms(f: Frame) -> Column:
    """Decoding time; a time of 0 is a clock that did not tick, not a speed."""
    return f["predicted_ms"].where(f["predicted_ms"] > 0)


def _prefill_tok_s(f: Frame) -> Column:
    return (1000 * _ratio(f["prompt_n"], f["prompt_ms"])).where(f["cache_n"] == 0)


def _tpot_ms(f: Frame) -> Column:
    return _ratio(f["e2e_ms"] - f["ttft_ms"], f["predicted_n"] - 1)


def _target_steps(f: Frame) -> Column:
    # High by at most one: the cap on the answer's length can cut an accepted run.
    off = f["speculation_active"].eq(False)  # noqa: FBT003 - neither on nor unknown
    accepted = f["draft_n_accepted"].mask(off & f["draft_n_accepted"].isna(), 0)
    return (f["predicted_n"] - 1 - accepted).where(f["predicted_n"] > 1)


def _draft_coverage(f: Frame) -> Column:
    return _ratio(f["drafted_steps"], _target_steps(f))


def _acceptance_rate(f: Frame) -> Column:
    return _ratio(f["draft_n_accepted"], f["draft_n"])


def _acceptance_length(f: Frame) -> Column:
    return 1 + _ratio(f["draft_n_accepted"], f["drafted_steps"])


def _tokens_per_step(f: Frame) -> Column:
    return _ratio(f["predicted_n"] - 1, _target_steps(f))


def _ms_per_step(f: Frame) -> Column:
    return _ratio(_decode_ms(f), _target_steps(f))


def _client_overhead(f: Frame) -> Column:
    return _ratio(f["e2e_ms"] - f["prompt_ms"] - f["predicted_ms"], f["e2e_ms"])


def _tokens_per_joule(f: Frame) -> Column:
    # The cards' counters where there are any, else the processor's (machine.window).
    joules = f.get("machine_energy_j", pd.Series(np.nan, f.index))
    return _ratio(f["predicted_n"], joules)


REGISTRY: tuple[Metric, ...] = (
    Metric(
        "decode_tok_s", "tok/s", "1000 (predicted_n - 1) / predicted_ms", "higher", _decode_tok_s
    ),
    Metric("ms_per_token", "ms/token", "predicted_ms / (predicted_n - 1)", "lower", _ms_per_token),
    Metric(
        "prefill_tok_s",
        "tok/s",
        "1000 prompt_n / prompt_ms; only where cache_n = 0",
        "higher",
        _prefill_tok_s,
    ),
    Metric(
        "tpot_ms",
        "ms/token",
        "(e2e_ms - ttft_ms) / (predicted_n - 1), client's clock, without the first token (vLLM's)",
        "lower",
        _tpot_ms,
    ),
    Metric(
        "target_steps",
        "count",
        "predicted_n - 1 - draft_n_accepted; missing where it is not known whether one drafted",
        "",
        _target_steps,
    ),
    Metric("draft_coverage", "fraction", "drafted_steps / target_steps", "higher", _draft_coverage),
    Metric(
        "acceptance_rate",
        "fraction",
        "draft_n_accepted / draft_n; missing if nothing was drafted",
        "higher",
        _acceptance_rate,
    ),
    Metric(
        "acceptance_length",
        "tok/step",
        "1 + draft_n_accepted / drafted_steps",
        "higher",
        _acceptance_length,
    ),
    Metric(
        "tokens_per_step",
        "tok/step",
        "(predicted_n - 1) / target_steps",
        "higher",
        _tokens_per_step,
    ),
    Metric("ms_per_step", "ms/step", "predicted_ms / target_steps", "lower", _ms_per_step),
    Metric(
        "client_overhead",
        "fraction",
        "(e2e_ms - prompt_ms - predicted_ms) / e2e_ms",
        "lower",
        _client_overhead,
    ),
    Metric(
        "tokens_per_joule",
        "tok/J",
        "predicted_n / machine_energy_j (NVML, else RAPL); missing where none is readable",
        "higher",
        _tokens_per_joule,
    ),
)
"""Every metric of one request; those of a pair (speedup, step_cost) are in stats."""


def with_metrics(frame: Frame) -> Frame:
    """The frame with one more column a metric; rows that are not "ok" get none."""
    usable = frame["status"] == "ok"
    return frame.assign(**{one.name: one.of(frame).where(usable) for one in REGISTRY})


def fork_index(tokens: tuple[int, ...], reference: tuple[int, ...]) -> int | None:
    """Index of the first token that differs, or where the shorter ends; None when equal."""
    for place, (mine, other) in enumerate(zip(tokens, reference, strict=False)):
        if mine != other:
            return place
    shorter = min(len(tokens), len(reference))
    return None if len(tokens) == len(reference) else shorter
