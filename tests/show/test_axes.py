from __future__ import annotations

import math
from itertools import pairwise

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.show.axes import count_axis, ratio_axis, ratio_ticks, sheet, thinned
from lab.show.style import LIGHT, WIDTH_IN


@given(st.floats(0.002, 0.98), st.floats(1.02, 500))
def test_ratio_ticks_lie_within_the_limits_and_are_few(low, high):
    ticks = ratio_ticks(low, high)
    assert ticks == sorted(set(ticks))
    assert all(low <= tick <= high for tick in ticks)
    assert 1 <= len(ticks) <= 10
    assert any(math.isclose(tick, 1, abs_tol=1e-6) for tick in ticks)


def test_a_ratio_axis_is_logarithmic_and_shows_one():
    picture, axes = sheet("Is it faster?", theme=LIGHT, height_in=3)
    ax = axes[0, 0]
    ax.plot([1.2, 4.75], [0, 1])
    ratio_axis(ax, "x")
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[0] < 1
    texts = [text.get_text() for text in ax.get_xticklabels()]
    assert texts == ["1×", "1.5×", "2×", "3×", "5×"]
    assert picture.get_size_inches().tolist() == [WIDTH_IN, 3]


def test_a_narrow_ratio_axis_has_as_many_digits_as_it_needs():
    _, axes = sheet("Is it faster?", theme=LIGHT, height_in=3)
    ax = axes[0, 0]
    ax.plot([0.97, 1.03], [0, 1])
    ratio_axis(ax, "x")
    assert "1.00×" in [text.get_text() for text in ax.get_xticklabels()]


@pytest.mark.parametrize("values", [[0, 0], [-1, 2], []])
def test_a_ratio_axis_survives_values_without_a_logarithm(values):
    _, axes = sheet("Is it faster?", theme=LIGHT, height_in=3)
    ax = axes[0, 0]
    ax.plot(values, values)
    ratio_axis(ax, "x")
    assert ax.get_xlim()[0] > 0


def test_counts_are_ticked_where_they_were_measured():
    _, axes = sheet("How wide?", theme=LIGHT, height_in=3)
    count_axis(axes[0, 0], "x", [1, 2, 8, 9, 16])
    assert [text.get_text() for text in axes[0, 0].get_xticklabels()] == ["1", "2", "8", "16"]


@given(st.lists(st.floats(0.1, 1e6), min_size=1, unique=True))
def test_thinned_ticks_are_apart_and_start_with_the_first(values):
    ticks = thinned(sorted(values))
    assert ticks[0] == min(values)
    assert all(after >= 1.3 * before for before, after in pairwise(ticks))


def test_the_title_is_the_question_at_the_left_edge():
    with mpl.rc_context(LIGHT.rc()):
        picture, _ = sheet("Does it help? " * 8, theme=LIGHT, height_in=3)
    title = picture._suptitle
    assert title.get_ha() == "left"
    assert max(map(len, title.get_text().splitlines())) <= 70
