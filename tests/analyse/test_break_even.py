from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse.break_even import (
    acceptance_for,
    best_length,
    break_even,
    break_even_map,
    by_length,
    coverage_for,
    draft_model_cost,
    step_cost,
    step_cost_for,
    what_would_have_to_be_true,
)
from lab.analyse.step_overhead import StepOverhead
from lab.analyse.verify_cost_curve import VerifyCostCurve, curve_from_ratios


def curve(cost, *, change=1.0, **besides):
    widths = np.array([1.0, 2, 3, 4, 8, 16])
    times = np.stack([[[5.0 * cost(w) for w in widths]]] * 2)[None]
    times[:, 1] *= change
    return VerifyCostCurve(
        "made", widths, np.array([50.0]), times, besides=StepOverhead(**besides), rounds=5
    )


def test_break_even_is_the_cost_and_some_widths_cannot_win():
    table = break_even(curve(lambda w: 3.0 if w > 1 else 1.0), (2, 4, 8), 50).set_index("width")
    assert table["break_even_acceptance"].tolist() == pytest.approx([3.0] * 3)
    assert table["possible"].tolist() == [False, True, True]
    assert table["low"].isna().all()


def test_a_lone_draft_pays_for_the_change_of_width_twice_and_a_steady_one_never():
    dear = curve(lambda _: 1.0, change=1.5)
    assert step_cost(dear, [4], 50)[0, 0] == pytest.approx(1.5 + 0.5)
    assert step_cost(dear, [4], 50, always=True)[0, 0] == pytest.approx(1.0)


@given(st.floats(0, 2), st.floats(0, 2), st.floats(0, 2), st.booleans())
def test_on_the_line_of_break_even_the_map_says_one(token_ms, step_ms, drafted_ms, always):
    one = curve(
        lambda w: 0.7 + 0.3 * w,
        change=1.2,
        token_ms=token_ms,
        step_ms=step_ms,
        drafted_ms=drafted_ms,
    )
    line = break_even(one, (4, 8, 16), 50, always=always)
    for row in line.itertuples():
        if not row.possible:
            continue
        reached = [row.break_even_acceptance]
        cell = break_even_map(one, [row.width], reached, 50, always=always)
        assert cell["speedup"][0] == pytest.approx(1.0)


def test_more_cannot_be_accepted_than_is_in_the_pass():
    cells = break_even_map(curve(lambda _: 1.0), [2, 4], [1, 2, 3, 4], 50)
    known = cells.dropna()
    assert (known["acceptance_length"] <= known["width"]).all()
    assert len(known) == 2 + 4


def test_the_best_length_weighs_tokens_against_cost():
    free, dear = curve(lambda _: 1.0), curve(lambda w: w)
    shares = [0.9, 0.8, 0.1]
    assert best_length(shares, free, 50).length == 3
    assert best_length(shares, free, 50).speedup == pytest.approx(2.8)
    assert best_length(shares, dear, 50) == best_length([], free, 50)
    assert best_length(shares, dear, 50).length == 0


def test_a_draft_model_s_own_passes_shorten_the_best_draft():
    target, draft = curve(lambda _: 1.0), curve(lambda w: 0.2 + 0.02 * w)
    shares = [0.8, 0.6, 0.4, 0.2, 0.1, 0.05]
    spent = draft_model_cost(draft, target, range(1, 7), 50)
    assert spent[0] == pytest.approx(0.22 + 0.24)
    assert best_length(shares, target, 50, drafting_cost=spent).length < 6
    table = by_length(shares, target, 50, drafting_cost=spent)
    assert table["step_cost"].tolist() == pytest.approx([1 + one for one in spent])
    assert table["best"].sum() == 1


@given(st.floats(0.05, 1), st.floats(1, 6), st.floats(1, 8), st.floats(0.5, 3))
def test_what_would_have_to_be_true_is_the_model_turned_round(coverage, cost, length, wanted):
    def speedup(share, tokens, price):
        return (1 + share * (tokens - 1)) / (1 + share * (price - 1))

    needed = acceptance_for(wanted, coverage, cost)
    assert speedup(coverage, needed, cost) == pytest.approx(wanted)
    allowed = step_cost_for(wanted, coverage, length)
    assert 1 + coverage * (length - 1) == pytest.approx(wanted * (1 + coverage * (allowed - 1)))
    share = coverage_for(wanted, length, cost)
    if share is not None:
        assert 1 + share * (length - 1) == pytest.approx(wanted * (1 + share * (cost - 1)))


def test_a_goal_is_told_apart_from_what_can_be():
    now = {"coverage": 0.1, "acceptance_length": 3.0, "width": 5, "step_cost": 1.3}
    share, length, cost = what_would_have_to_be_true(1.5, **now)
    assert share.possible
    assert share.needed == pytest.approx(0.5 / (2 - 1.5 * 0.3))
    assert not length.possible  # more tokens than the pass has rows
    assert not cost.possible  # a drafted pass for less than nothing
    assert "which cannot be" in str(length)
    nothing = what_would_have_to_be_true(1.5, **(now | {"coverage": 0.0}))
    assert [one.needed is None for one in nothing] == [False, True, True]
    assert "no step_cost would be enough" in str(nothing[2])


def test_published_ratios_are_a_curve_without_uncertainty():
    table = break_even(curve_from_ratios("a", {2: 1.2, 4: 1.6}, source="s"), [2, 3], 0)
    assert table["break_even_acceptance"].tolist() == pytest.approx([1.2, 1.4])
    assert table[["low", "high"]].isna().all(axis=None)
