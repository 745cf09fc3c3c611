"""The faults that make wrong numbers, each planted and each seen."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from lab.analyse.cautions import (
    blocking,
    check_comparison,
    check_drift,
    check_rows,
    check_served,
    check_states,
)
from lab.analyse.stats import Comparison, compare, mean_log
from lab.backends.protocol import Identity


def experiment(n=24, **changes):
    """A clean experiment of two arms; ``changes`` is {column: function of a row}."""
    rng = np.random.default_rng(1)
    rows = []
    for prompt in range(n):
        for arm in ("baseline", "x"):
            row = {
                "key": f"{arm}-{prompt}",
                "arm": arm,
                "prompt_id": f"p{prompt}",
                "category": "c",
                "role": "measure",
                "status": "ok",
                "labels": (),
                "series": f"{arm}-{prompt}",
                "ordinal": 0,
                "state": "cold",
                "ms_per_token": 10 * math.exp(rng.normal(0, 0.03)),
                "ms_per_step": 11.0 + prompt,
                "predicted_n": 64.0,
                "n_predict": 64,
                "ignore_eos": True,
                "stop": "limit",
                "reasoning_n": np.nan,
                "prompt_ms": 100.0,
                "predicted_ms": 640.0,
                "e2e_ms": 745.0,
                "seed": 7,
                "draft_n": 20.0 if arm == "x" else np.nan,
                "speculation_active": True if arm == "x" else None,
                "temperature": 0.0,
                "started_utc": f"2026-12-01T00:{prompt:02d}:{30 * (arm == 'x'):02d}",
            }
            rows.append(row | {column: change(row, prompt) for column, change in changes.items()})
    return pd.DataFrame(rows)


def kinds(frame):
    return {one.kind for one in (*check_rows(frame), *check_drift(frame))}


def test_a_clean_experiment_raises_nothing():
    assert kinds(experiment()) == set()


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("cache-hit", "CacheHit"),
        ("busy", "Busy"),
        ("throttled", "Throttled"),
        ("inactive", "InactiveSpeculation"),
        ("contaminated", "ContaminatedBaseline"),
        ("clock-jump", "ClockJump"),
        ("lost", "DeviceLost"),
    ],
)
def test_a_label_of_the_run_becomes_a_caution(label, kind):
    frame = experiment(labels=lambda row, n: (label,) if row["arm"] == "x" and n == 0 else ())
    assert kinds(frame) == {kind}


def test_case_08_a_drafter_in_the_baseline_blocks_the_comparison():
    frame = experiment(draft_n=lambda _row, _n: 5.0)
    found = [one for one in check_rows(frame) if one.kind == "ContaminatedBaseline"]
    assert blocking(found, "baseline") is not None
    assert blocking(found, "x") is not None
    assert blocking(found, "x", baseline="another") is None


def test_case_06_a_drafter_that_never_fired_is_no_evidence():
    frame = experiment(draft_n=lambda row, _n: 0.0 if row["arm"] == "x" else np.nan)
    (found,) = check_rows(frame)
    assert found.kind == "InactiveSpeculation"
    assert "no evidence" in found.message


@pytest.mark.parametrize(("failures", "blocks"), [(1, False), (10, True)])
def test_case_15_failures_are_said_and_many_of_them_block(failures, blocks):
    frame = experiment(
        status=lambda row, n: "timeout" if row["arm"] == "x" and n < failures else "ok"
    )
    (found,) = check_rows(frame)
    assert (found.kind, found.blocks) == ("ErrorsPresent", blocks)
    assert f"{failures} timeout" in found.message


def test_case_16_answers_that_stop_early_in_one_arm_are_seen():
    frame = experiment(predicted_n=lambda row, n: 30.0 if row["arm"] == "x" and n == 3 else 64.0)
    assert kinds(frame) == {"LengthsDiffer", "Truncated"}


def test_case_18_sampling_with_temperature_is_labelled():
    frame = experiment(temperature=lambda *_: 0.7)
    assert kinds(frame) == {"Stochastic"}
    assert len(check_rows(frame)) == 1
    assert any("seed 0" in one.message for one in check_rows(frame.assign(seed=-1)))


@pytest.mark.parametrize("plateau", [100.0, 500.0])
def test_case_35_a_constant_round_step_is_suspicious(plateau):
    frame = experiment(
        ms_per_token=lambda row, n: plateau + 0.01 * (n % 3) if row["arm"] == "x" else 10.0 + n
    )
    found = [one for one in check_rows(frame) if one.kind == "SuspiciousConstantStep"]
    assert [one.subject for one in found] == ["x"]
    assert found[0].blocks


def test_case_35_a_constant_step_is_seen_though_drafts_hide_it_in_the_token():
    frame = experiment(ms_per_step=lambda row, n: 500.2 if row["arm"] == "x" else 10.0 + n)
    assert kinds(frame) == {"SuspiciousConstantStep"}


def test_case_17_a_budget_spent_on_reasoning_is_said():
    frame = experiment(reasoning_n=lambda row, n: 63.0 if row["arm"] == "x" and n < 5 else 10.0)
    (found,) = check_rows(frame)
    assert found.kind == "Truncated"
    assert "5 of 24 answers are reasoning" in found.message


def test_answers_cut_by_the_limit_are_said_where_they_might_have_ended():
    frame = experiment(ignore_eos=lambda *_: False)
    assert {one.message.split(":")[0] for one in check_rows(frame)} == {
        "24 of 24 answers were cut by the limit"
    }


def test_case_13_answers_without_timings_are_labelled_client_timed():
    missing = experiment(
        predicted_ms=lambda *_: np.nan, ms_per_token=lambda *_: np.nan, prompt_ms=lambda *_: np.nan
    )
    assert kinds(missing) == {"ClientTimed"}


def test_case_34_a_server_that_counts_more_time_than_passed_has_a_wrong_clock():
    frame = experiment(predicted_ms=lambda row, n: 9000.0 if row["arm"] == "x" else 640.0)
    (found,) = check_rows(frame)
    assert (found.kind, found.subject, found.blocks) == ("ClockJump", "x", True)


def test_a_pool_left_warm_is_seen_and_blocks():
    shared = experiment(
        series=lambda row, n: row["arm"], ordinal=lambda row, n: n, state=lambda *_: "cold"
    )
    assert check_states(experiment(), {"x"}) == ()
    assert check_states(shared, set()) == ()
    (found,) = check_states(shared, {"x"})
    assert (found.kind, found.subject, found.blocks) == ("WarmPool", "x", True)
    assert "23 rows" in found.message
    honest = shared.assign(state=["cold" if n == 0 else "warm-other" for n in shared["ordinal"]])
    assert check_states(honest, {"x"}) == ()
    same = honest.assign(prompt_id="p0")
    assert [one.kind for one in check_states(same, {"x"})] == ["WarmPool"]


def test_a_few_repeated_prompts_do_not_hide_that_the_machine_slows_down():
    frame = experiment(
        ms_per_token=lambda row, n: 10.0 * math.exp(0.01 * n),
        prompt_id=lambda row, n: "p0" if n == 1 else f"p{n}",
    )
    assert "Drift" in {one.kind for one in check_drift(frame)}


def test_a_machine_that_slows_down_is_seen_in_the_baseline():
    frame = experiment(ms_per_token=lambda row, n: 10.0 * math.exp(0.01 * n) + 0 * len(row))
    assert "Drift" in kinds(frame)


def served(**changes):
    one = Identity("llama-server", build="b1", n_ctx=2048, offloaded_layers="33/33")
    other = {"build": "b1", "n_ctx": 2048, "offloaded_layers": "33/33"} | changes
    return {"baseline": one, "x": Identity("llama-server", **other)}


@pytest.mark.parametrize(
    "change",
    [{"n_ctx": 1024}, {"offloaded_layers": "20/33"}, {"build": "b2"}, {"model_sha256": "a"}],
)
def test_case_22_arms_served_differently_are_not_comparable(change):
    assert check_served(served()) == ()
    (found,) = check_served(served(**change))
    assert (found.kind, found.subject, found.blocks) == ("NotComparable", "x", True)


def comparison(logs):
    logs = np.array(logs)
    return Comparison("x", mean_log(logs), "faster", 0.02, 0.01, pd.DataFrame({"log_ratio": logs}))


def test_few_prompts_and_wide_or_skewed_gains_are_said():
    assert {one.kind for one in check_comparison(comparison([0.1, 0.2]))} == {"TooFewPrompts"}
    wide = check_comparison(comparison([0.5, -0.5] * 20))
    assert {one.kind for one in wide} == {"HighSpread"}
    skewed = check_comparison(comparison([0.0] * 10 + [0.9]))
    assert {one.kind for one in skewed} == {"HighSpread", "TooFewPrompts"}
    assert check_comparison(comparison([0.01, 0.02, 0.0] * 10)) == ()
    many = check_comparison(comparison(([0.0] * 19 + [0.3]) * 25))
    assert many == ()


def test_case_19_the_same_text_is_no_condition_for_a_comparison():
    frame = experiment()
    (found,) = compare(frame, ["x"], margin=0.02)
    assert found.speedup.n == 24
