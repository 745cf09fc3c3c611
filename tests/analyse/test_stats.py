from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse.location import merge_singles
from lab.analyse.stats import (
    CLAIM_N,
    compare,
    holm,
    judge,
    judge_interval,
    margin_above,
    mean_log,
    median_log,
    noise_floor,
    pairs,
    summarise,
)


def rows(paces, *, category="c"):
    """Measured rows from {(arm, prompt, repeat): ms per token}."""
    return pd.DataFrame(
        [
            {
                "arm": arm,
                "prompt_id": prompt,
                "repeat": repeat,
                "category": category,
                "ms_per_token": pace,
            }
            for (arm, prompt, repeat), pace in paces.items()
        ]
    )


paces = st.dictionaries(
    st.tuples(st.sampled_from(["baseline", "x"]), st.sampled_from("abcdefgh"), st.integers(0, 2)),
    st.floats(0.5, 50),
    min_size=1,
)


@given(paces, st.floats(0.1, 10))
def test_a_ratio_does_not_depend_on_the_unit_or_the_order(found, scale):
    one = pairs(rows(found), "x")
    scaled = pairs(rows({key: pace * scale for key, pace in found.items()}), "x")
    shuffled = pairs(rows(found).sample(frac=1, random_state=1), "x")
    np.testing.assert_allclose(one["ratio"], scaled["ratio"])
    pd.testing.assert_frame_equal(one, shuffled)


@given(paces)
def test_swapping_the_arms_turns_every_ratio_round(found):
    there = pairs(rows(found), "x", "baseline")
    back = pairs(rows(found), "baseline", "x")
    np.testing.assert_allclose(there["log_ratio"], -back["log_ratio"])


def test_repeats_are_reduced_to_their_median_before_they_are_paired():
    found = {("baseline", "a", n): pace for n, pace in enumerate([10, 10, 99])}
    found |= {("x", "a", n): pace for n, pace in enumerate([5, 5, 500])}
    assert pairs(rows(found), "x")["ratio"].tolist() == [2.0]


def test_a_missing_value_makes_no_pair_and_no_zero():
    found = {("baseline", "a", 0): 10.0, ("x", "a", 0): float("nan"), ("x", "b", 0): 5.0}
    assert pairs(rows(found), "x").empty


def test_the_centre_is_geometric_and_never_mean_over_mean():
    one = mean_log(np.log([2.0, 0.5, 1.0]))
    assert one.value == pytest.approx(1.0)


def test_too_few_pairs_give_a_value_without_interval_or_verdict():
    one = mean_log(np.log([1.2, 1.3]))
    assert (one.low, one.high) == (None, None)
    assert mean_log(np.array([])).value is None
    assert judge(np.log([2.0] * (CLAIM_N - 1)), margin=0.02) == "inconclusive"


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([1.5, 1.6, 1.4, 1.5, 1.55, 1.45], "faster"),
        ([0.6, 0.7, 0.65, 0.6, 0.66, 0.7], "slower"),
        ([1.0, 1.001, 0.999, 1.0, 1.002, 0.998], "equivalent"),
        ([1.004, 1.005, 1.006, 1.005, 1.004, 1.006], "equivalent"),
        ([0.5, 2.0, 1.0, 1.9, 0.6, 1.1], "inconclusive"),
    ],
)
def test_the_four_verdicts(ratios, verdict):
    assert judge(np.log(ratios), margin=0.02) == verdict


def test_a_failed_test_of_difference_is_no_proof_of_equality():
    wide = np.log([0.5, 2.0, 0.7, 1.5, 0.9, 1.2])
    assert judge(wide, margin=0.02) == "inconclusive"
    assert judge_interval(mean_log(wide), 0.02) == "inconclusive"


@given(st.lists(st.none() | st.floats(0, 1), max_size=8))
def test_holm_never_makes_a_p_value_smaller_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    known = [(p, q) for p, q in zip(p_values, adjusted, strict=True) if p is not None]
    assert [q is None for q in adjusted] == [p is None for p in p_values]
    assert all(p <= q <= 1 for p, q in known)
    ordered = [q for _, q in sorted(known)]
    assert ordered == sorted(ordered)


def test_many_arms_of_nothing_do_not_bring_forth_a_winner():
    rng = np.random.default_rng(3)
    found = {}
    for prompt in range(24):
        found["baseline", f"p{prompt}", 0] = 10 * math.exp(rng.normal(0, 0.05))
        for arm in range(20):
            found[f"x{arm}", f"p{prompt}", 0] = 10 * math.exp(rng.normal(0, 0.05))
    compared = compare(rows(found), [f"x{arm}" for arm in range(20)], margin=0.02)
    assert {one.verdict for one in compared} <= {"equivalent", "inconclusive"}


def test_the_noise_floor_raises_the_margin_and_never_lowers_it():
    found = {}
    for prompt in range(24):
        found["baseline", f"p{prompt}", 0] = 10.0
        found["again", f"p{prompt}", 0] = 10.5
    floor = noise_floor(rows(found), "baseline", "again")
    assert floor.value == pytest.approx(math.log(1.05))
    assert margin_above(floor, 0.02) == pytest.approx(0.05)
    assert margin_above(floor, 0.10) == 0.10


def test_groups_are_summarised_with_missing_intervals_as_nan():
    points = pd.DataFrame({"arm": ["a"] * 4 + ["b"], "log_ratio": [0.1, 0.2, 0.1, 0.2, 0.3]})
    table = summarise(points, ["arm"], 0.95).set_index("arm")
    assert table.loc["a", "low"] < table.loc["a", "speedup"] < table.loc["a", "high"]
    assert np.isnan(table.loc["b", "low"])
    assert table.loc["b", "n"] == 1


def test_the_median_has_an_interval_only_where_the_level_allows_one():
    few = median_log(np.log([1.0, 1.1, 1.2, 1.3, 1.4]))
    assert few.value == pytest.approx(1.2)
    assert few.low is None
    enough = median_log(np.log(np.arange(1, 26)))
    assert enough.low < enough.value < enough.high
    assert median_log(np.array([])).value is None


def test_kinds_of_text_that_gain_differently_do_not_widen_the_interval_within_them():
    logs = np.array([0.0, 0.01, 0.5, 0.51, 1.0, 1.01])
    kinds = ["a", "a", "b", "b", "c", "c"]
    within, overall = mean_log(logs, kinds), mean_log(logs)
    assert within.value == overall.value
    assert within.high / within.low < 1.1 < overall.high / overall.low


def test_kinds_of_one_prompt_count_as_one_kind():
    logs = np.log([1.1, 1.3, 0.9, 1.2, 1.0])
    alone = mean_log(logs, ["a", "b", "c", "d", "e"])
    overall = mean_log(logs)
    assert (alone.low, alone.high) == pytest.approx((overall.low, overall.high))
    assert merge_singles(["a", "a", "b"]).tolist() == [0, 0, 0]
    assert merge_singles(["a", "a", "b", "c", "d", "d"]).tolist() == [1, 1, 0, 0, 2, 2]


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.sampled_from("abc")), min_size=3, max_size=20),
    st.randoms(use_true_random=False),
)
def test_an_interval_does_not_depend_on_the_order_of_the_prompts(found, shuffle):
    mixed = found.copy()
    shuffle.shuffle(mixed)
    one, other = (
        mean_log(np.array([x for x, _ in some]), [kind for _, kind in some])
        for some in (found, mixed)
    )
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    assert one.low <= one.value * (1 + 1e-12)
    assert one.value <= one.high * (1 + 1e-12)


def test_the_noise_floor_of_too_few_pairs_is_unknown():
    found = {(arm, f"p{n}", 0): 10.0 for arm in ("baseline", "again") for n in range(5)}
    floor = noise_floor(rows(found), "baseline", "again")
    assert floor.value is None
    assert margin_above(floor, 0.02) == 0.02
