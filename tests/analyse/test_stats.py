from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse import simulate
from lab.analyse.simulate import WORLDS, coverage, drift_bias, equivalences, false_positives
from lab.analyse.stats import (
    CLAIM_N,
    compare,
    holm,
    judge,
    judge_interval,
    margin_above,
    mean_log,
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


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
@pytest.mark.parametrize("n", [8, 24])
def test_the_interval_covers_what_it_promises(world, n):
    assert 0.92 <= coverage(world, n, times=600) <= 0.985


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_equal_arms_are_rarely_told_apart(world):
    assert false_positives(world, 24, times=600, margin=0.02) <= 0.07


def test_equivalence_has_its_size_and_its_power():
    quiet = simulate.World("quiet", lambda rng, shape: rng.normal(0, 0.02, shape))
    at_margin = equivalences(quiet, 24, times=800, margin=0.02, truth=math.log(1.02))
    at_zero = equivalences(quiet, 24, times=800, margin=0.02, truth=0.0)
    assert at_margin <= 0.07
    assert at_zero >= 0.95


def test_drift_biases_sequential_arms_and_not_interleaved_ones():
    bias = drift_bias(0.06, 24, times=400)
    assert bias.sequential == pytest.approx(-0.03, abs=0.005)
    assert abs(bias.interleaved) < 0.003


def test_more_prompts_show_smaller_effects():
    few = simulate.power(0.03, 8, noise=0.08, times=400)
    many = simulate.power(0.03, 96, noise=0.08, times=400)
    assert few < 0.5
    assert many > 0.9
