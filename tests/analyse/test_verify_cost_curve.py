from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse.curve_from_passes import curve_from
from lab.analyse.verify_cost_curve import VerifyCostCurve, curve_from_ratios
from lab.errors import InputError


def timed(cost=float, *, change=1.0, rounds=5, depths=(10, 100), spread=0.0):
    """Passes of 4 cost(w) ms, every round on a machine that is a little slower or faster."""
    rng = np.random.default_rng(1)
    rows = []
    for number in range(rounds):
        pace = np.exp(rng.normal(0, 0.1))
        for depth in depths:
            for mode, place in (("alternating", 0), ("repeated", 0), ("repeated", 1)):
                for width in (1, 2, 4, 8, 9):
                    ms = 4 * cost(width) * pace * (change if place == 0 else 1)
                    ms *= np.exp(rng.normal(0, spread))
                    rows.append(("m", depth, mode, number, width, place, ms, 0.5 * width, 0.25))
    names = ["model", "depth", "mode", "round", "width", "place", "ms", "sample_ms", "trim_ms"]
    frame = pd.DataFrame(rows, columns=names)
    one = frame[(frame["width"] == 1) & (frame["place"] == 1)]
    steady = one.groupby(["depth", "round"])["ms"].median().rename("one")
    frame = frame.join(steady, on=["depth", "round"])
    return frame.assign(over_steady_one=frame["ms"] / frame.pop("one"), verify_cost=np.nan)


def test_a_machine_that_changes_pace_between_rounds_leaves_the_ratios_exact():
    found = curve_from(timed())
    assert found.ratio(8, 50).value == pytest.approx(8)
    assert found.ratio(8, 50).low == pytest.approx(8)
    assert found.rounds == 5
    assert found.label == "m"


def test_a_change_of_width_is_a_price_of_its_own():
    found = curve_from(timed(change=1.25))
    assert found.ratio(1, 50).value == pytest.approx(1.25)
    assert found.ratio(1, 50, changed=False).value == pytest.approx(1)
    assert found.frame().query("width == 4")["verify_cost"].tolist() == pytest.approx([5, 5])
    assert found.frame().query("width == 4")["steady"].tolist() == pytest.approx([4, 4])


def test_what_was_timed_beside_the_passes_is_kept_apart():
    found = curve_from(timed(), server_ms=0.75)
    besides = found.besides
    assert (besides.token_ms, besides.drafted_ms, besides.step_ms) == (0.5, 0.25, 0.75)
    bare = found.at(1, [10, 50])[0]
    assert found.plain_ms([10, 50]) == pytest.approx(bare + 0.5 + 0.75)


def test_more_rounds_narrow_the_interval_and_too_few_have_none():
    def width(rounds):
        one = curve_from(timed(rounds=rounds, spread=0.1)).ratio(8, 50)
        return None if one.low is None else one.high - one.low

    assert width(2) is None
    assert width(40) < width(4)


def test_between_the_points_the_curve_is_straight_and_beyond_them_it_goes_on():
    found = curve_from_ratios("a", {2: 1.5, 4: 2.5}, source="s", depths=(0, 100))
    assert found.at([1, 2, 3, 4, 6], 50)[0].tolist() == [1, 1.5, 2, 2.5, 3.5]
    assert found.at(4, [-5, 0, 100, 900])[0].tolist() == [2.5] * 4
    assert found.unit == "one-token pass"


@given(st.floats(10, 100), st.floats(1, 9))
def test_a_curve_that_is_straight_in_both_is_met_everywhere(depth, width):
    depths, widths = np.array([10.0, 40, 100]), np.array([1.0, 3, 9])
    plane = depths[:, None] / 10 + 2 * widths
    times = np.broadcast_to(plane, (1, 2, 3, 3)).copy()
    found = VerifyCostCurve("a", widths, depths, times)
    assert found.at(width, depth)[0, 0] == pytest.approx(depth / 10 + 2 * width)


def test_a_jump_at_every_depth_is_a_switch_of_kernels():
    def cost(width):
        return 0.9 + 0.1 * width + (2.0 if width > 8 else 0.0)

    found = curve_from(timed(cost)).switch_points()
    assert found["width"].tolist() == [9]
    assert found["jump"].tolist() == pytest.approx([2.1])
    assert curve_from(timed(lambda w: 0.9 + 0.1 * w)).switch_points().empty


@pytest.mark.parametrize(
    ("left_out", "says"),
    [("repeated", "whatever the width of the one before"), ("alternating", "first pass of a run")],
)
def test_a_mode_that_was_not_measured_is_an_assumption(left_out, says):
    passes = timed()
    passes = passes[passes["mode"] != left_out].assign(verify_cost=passes["ms"] / 4)
    found = curve_from(passes)
    assert says in found.assumptions[0]
    assert found.ratio(4, 50).value == pytest.approx(4, rel=0.3)


def test_a_round_that_was_cut_short_does_not_count():
    passes = timed(rounds=4)
    cut = passes[(passes["round"] < 3) | (passes["depth"] == 10)]
    assert curve_from(cut).rounds == 3


def test_what_cannot_be_a_curve_is_refused():
    passes = timed()
    with pytest.raises(InputError, match="no pass was timed"):
        curve_from(passes[:0])
    with pytest.raises(InputError, match="no round holds every width"):
        curve_from(passes[(passes["width"] != 4) | (passes["depth"] != 10)])
    with pytest.raises(InputError, match="do not fit"):
        VerifyCostCurve("a", np.array([1.0, 2]), np.array([0.0]), np.ones((1, 2, 1, 3)))
    with pytest.raises(InputError, match="ascend from 1"):
        VerifyCostCurve("a", np.array([2.0, 4]), np.array([0.0]), np.ones((1, 2, 1, 2)))
