from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.analyse.attribution import attribute
from lab.analyse.break_even import acceptance_for, best_length, break_even
from lab.analyse.drafters.replay import Setting, replay, summary
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.speculation import VerifyCostCurve, curve_from, predict, price
from lab.errors import InputError

WIDTHS = (1, 2, 4, 8, 16)
DEPTHS = (10, 100)


def curve(cost=lambda width: 1.0, *, first=1.0, rounds=4, noise=0.0, server_ms=0.0):
    """A curve whose steady pass takes 5 ms and whose pass of width w takes 5 cost(w) ms."""
    rng = np.random.default_rng(1)
    table = np.array([[5.0 * (cost(w) if w > 1 else first) for w in WIDTHS]] * len(DEPTHS))
    shape = (rounds, len(DEPTHS), len(WIDTHS))
    cube = table * np.exp(rng.normal(0, noise, shape))
    steady = np.full((rounds, len(DEPTHS)), 5.0)
    return VerifyCostCurve(
        np.array(DEPTHS, float), np.array(WIDTHS, float), cube, steady, server_ms
    )


texts = st.builds(
    lambda prompt, answer: RecordedText("k", prompt, answer, len(answer)),
    st.lists(st.integers(0, 2), min_size=8, max_size=30),
    st.lists(st.integers(0, 2), min_size=2, max_size=60),
)
SETTING = Setting.of("ngram-mod", n_match=2, n_min=1, n_max=6)


@settings(deadline=None)
@given(texts)
def test_where_every_pass_costs_the_same_the_speed_up_is_tokens_per_step(text):
    steps = replay(SETTING, [text])
    expected = summary([text], steps)["tokens_per_step"][0]
    found = price(text, steps[0], curve())
    assert math.exp(found.log_speedup) == pytest.approx(expected)


@settings(deadline=None)
@given(texts, st.floats(0, 3))
def test_speed_up_is_tokens_per_step_over_the_mean_cost_of_a_step(text, slope):
    (steps,) = replay(SETTING, [text])
    line = curve(lambda width: 1 + slope * (width - 1))
    row = summary([text], [steps]).iloc[0]
    passes = [1 + slope * drafted for _, drafted, _ in steps]
    plain = row["target_steps"] - len(steps)
    mean_cost = (sum(passes) + plain) / row["target_steps"]
    found = price(text, steps, line)
    assert math.exp(found.log_speedup) == pytest.approx(row["tokens_per_step"] / mean_cost)


def test_a_plain_step_after_a_drafted_one_pays_for_the_change_of_width():
    text = RecordedText("k", [1, 2, 3], [4, 5, 6, 7, 8, 9], 6)
    steps = np.array([[4, 2, 1]], np.int32)
    dear = price(text, steps, curve(lambda _: 2.0, first=1.5))
    # one step of three tokens at 2, one plain after it at 1.5, then a plain one
    assert dear.baseline_ms == pytest.approx(5 * 5)
    assert dear.arm_ms == pytest.approx(5 * (2 + 1.5 + 1 + 1))


def test_what_the_server_spends_a_step_brings_both_nearer():
    text = RecordedText("k", [1, 2, 3], [4, 5, 6, 7, 8, 9], 6)
    steps = np.array([[3, 4, 4]], np.int32)
    bare = price(text, steps, curve(lambda _: 2.0)).log_speedup
    served = price(text, steps, curve(lambda _: 2.0, server_ms=2.0)).log_speedup
    assert served > bare > 0


def test_nothing_drafted_is_predicted_to_change_nothing():
    text = RecordedText("k", list(range(20)), list(range(20, 60)), 40)
    steps = replay(SETTING, [text])
    logs, overall = predict([text, text], steps * 2, curve(noise=0.05))
    assert logs.tolist() == [0, 0]
    assert overall.value == 1


def test_both_uncertainties_widen_the_interval():
    loop = [1, 2, 3, 4] * 30
    some = [RecordedText(str(n), loop[:20], loop[20 : 60 + 8 * n], 40 + 8 * n) for n in range(6)]
    steps = replay(SETTING, some)

    def width(one):
        _, estimate = predict(some, steps, one)
        return math.log(estimate.high / estimate.low)

    quiet, loud = width(curve(lambda w: 1 + w / 9)), width(curve(lambda w: 1 + w / 9, noise=0.2))
    assert 0 < quiet < loud


def test_a_curve_comes_from_timed_passes():
    rows = [
        {
            "depth": depth,
            "mode": mode,
            "round": number,
            "width": width,
            "place": place,
            "ms": 4.0 * width,
            "sample_ms": 0.5,
            "trim_ms": 0.5,
        }
        for depth in (10, 100)
        for number in range(3)
        for mode, place in (("alternating", 0), ("repeated", 0), ("repeated", 1))
        for width in (1, 2, 4)
    ]
    found = curve_from(pd.DataFrame(rows))
    assert found.plain_ms(np.array([50.0])).tolist() == [5.0]
    assert found.step_ms(np.array([50.0, 50.0]), np.array([3.0, 8.0])).tolist() == [13.0, 33.0]
    with pytest.raises(InputError, match="too few whole rounds"):
        curve_from(pd.DataFrame(rows[:9]))


def test_break_even_is_the_cost_and_some_widths_cannot_win():
    table = break_even(curve(lambda width: 3.0), (2, 4, 8), depth=50).set_index("width")
    assert table["break_even_acceptance"].tolist() == pytest.approx([3.0] * 3)
    assert table["possible"].tolist() == [False, True, True]


def test_the_best_length_weighs_tokens_against_cost():
    cheap, dear = curve(lambda width: 1.0), curve(lambda width: width)
    shares = [0.9, 0.8, 0.1]
    assert best_length(shares, cheap, 50).length == 3
    assert best_length(shares, dear, 50).length == 0


@given(st.floats(0.05, 1), st.floats(1, 6), st.floats(0.5, 3))
def test_what_would_have_to_be_true_is_the_model_turned_round(coverage, cost, wanted):
    length = acceptance_for(wanted, coverage, cost)
    tokens = 1 + coverage * (length - 1)
    assert tokens / (1 + coverage * (cost - 1)) == pytest.approx(wanted)
    assert acceptance_for(wanted, 0.0, cost) is None


@given(st.floats(-1, 1), st.floats(0, 1), st.none() | st.floats(1, 8), st.floats(0, 1))
def test_contributions_add_up_to_what_was_measured(measured, coverage, length, cost):
    found = attribute(measured, coverage, length, cost)
    total = found.coverage + found.acceptance + found.step_cost + found.residual
    assert total == pytest.approx(measured)
