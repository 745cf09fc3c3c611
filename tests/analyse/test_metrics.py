from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse.metrics import REGISTRY, fork_index, with_metrics

COUNTS = ("predicted_n", "prompt_n", "cache_n", "draft_n", "draft_n_accepted", "drafted_steps")
TIMES = ("predicted_ms", "prompt_ms", "e2e_ms", "ttft_ms")
NUMBERS = (*COUNTS, *TIMES)


def frame(**values):
    row = dict.fromkeys(NUMBERS, np.nan) | {"status": "ok", "speculation_active": None} | values
    return pd.DataFrame([row])


def metrics(**values):
    return with_metrics(frame(**values)).iloc[0]


steps = st.lists(
    st.none() | st.tuples(st.integers(1, 8), st.integers(0, 8)), min_size=1, max_size=40
)


@given(steps, st.floats(0.5, 30), st.floats(0.5, 30))
def test_the_identities_of_the_vocabulary_hold(drafts, baseline_ms, arm_ms_per_step):
    drafts = [None if one is None else (one[0], min(one)) for one in drafts]
    drafted = [one for one in drafts if one is not None]
    accepted = sum(taken for _, taken in drafted)
    predicted_n = 1 + len(drafts) + accepted
    row = metrics(
        predicted_n=predicted_n,
        predicted_ms=arm_ms_per_step * len(drafts),
        draft_n=sum(width for width, _ in drafted),
        draft_n_accepted=accepted,
        drafted_steps=len(drafted),
    )
    assert row["target_steps"] == len(drafts)
    length = row["acceptance_length"] if drafted else 1.0
    expected = 1 + row["draft_coverage"] * (length - 1)
    assert row["tokens_per_step"] == pytest.approx(expected)
    step_cost = row["ms_per_step"] / baseline_ms
    speedup = baseline_ms / row["ms_per_token"]
    assert speedup == pytest.approx(row["tokens_per_step"] / step_cost)


def test_n_tokens_are_n_minus_one_steps():
    row = metrics(predicted_n=101, predicted_ms=1000.0)
    assert row["decode_tok_s"] == 100
    assert row["ms_per_token"] == 10


@pytest.mark.parametrize("values", [{"predicted_n": 0}, {"predicted_n": 1}, {"predicted_n": 9}])
def test_case_11_a_rate_of_nothing_is_missing(values):
    row = metrics(predicted_ms=0.0, **values)
    for name in ("decode_tok_s", "ms_per_token", "ms_per_step"):
        assert np.isnan(row[name])


def test_case_07_nothing_drafted_has_no_acceptance_but_a_coverage_of_zero():
    row = metrics(
        predicted_n=11, predicted_ms=100.0, draft_n=0, draft_n_accepted=0, drafted_steps=0
    )
    assert row["draft_coverage"] == 0
    assert np.isnan(row["acceptance_rate"])
    assert np.isnan(row["acceptance_length"])
    assert row["tokens_per_step"] == 1


def test_case_10_more_accepted_than_predicted_is_shown_without_dividing():
    row = metrics(predicted_n=5, predicted_ms=10.0, draft_n=8, draft_n_accepted=8, drafted_steps=1)
    assert np.isnan(row["tokens_per_step"])
    assert row["acceptance_rate"] == 1


def test_case_12_prefill_of_a_cached_prompt_is_missing():
    assert metrics(prompt_n=50, prompt_ms=100.0, cache_n=0)["prefill_tok_s"] == 500
    assert np.isnan(metrics(prompt_n=50, prompt_ms=100.0, cache_n=20)["prefill_tok_s"])


def test_steps_of_an_unknown_drafter_are_unknown_and_without_one_are_tokens():
    known = metrics(predicted_n=11, predicted_ms=100.0, speculation_active=False)
    assert known["target_steps"] == 10
    assert known["tokens_per_step"] == 1
    unknown = metrics(predicted_n=11, predicted_ms=100.0)
    assert unknown["decode_tok_s"] == 100
    for name in ("target_steps", "tokens_per_step", "ms_per_step", "draft_coverage"):
        assert np.isnan(unknown[name])


def test_the_first_token_belongs_to_the_prompt_not_to_the_pace():
    assert metrics(predicted_n=11, e2e_ms=150.0, ttft_ms=50.0)["tpot_ms"] == 10


def test_energy_is_counted_once_though_several_counters_are_recorded():
    counters = {"machine_energy_j": 20.0, "machine_gpu_energy_j": 20.0, "machine_cpu_energy_j": 5.0}
    assert metrics(predicted_n=10, **counters)["tokens_per_joule"] == 0.5
    assert np.isnan(metrics(predicted_n=10)["tokens_per_joule"])
    assert np.isnan(metrics(predicted_n=10, machine_energy_j=np.nan)["tokens_per_joule"])


def test_a_failed_row_has_no_metrics():
    row = metrics(status="timeout", predicted_n=11, predicted_ms=100.0)
    assert all(pd.isna(row[one.name]) for one in REGISTRY)


fields = dict.fromkeys(COUNTS, st.none() | st.integers(0, 9)) | dict.fromkeys(
    TIMES, st.none() | st.floats(0, 1e4).map(lambda ms: round(ms, 3))
)


@given(st.fixed_dictionaries(fields))
def test_no_metric_is_infinite_and_missing_stays_missing(values):
    given_values = {name: np.nan if value is None else value for name, value in values.items()}
    row = metrics(**given_values)
    for one in REGISTRY:
        assert not np.isinf(row[one.name])
    if values["predicted_ms"] is None:
        assert np.isnan(row["decode_tok_s"])


@pytest.mark.parametrize(
    ("mine", "other", "at"),
    [
        ((1, 2, 3), (1, 2, 3), None),
        ((1, 2), (1, 2, 3), 2),
        ((1, 9, 3), (1, 2, 3), 1),
        ((), (), None),
    ],
)
def test_a_prefix_is_no_equal_text(mine, other, at):
    assert fork_index(mine, other) == at
