from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.show import marks
from lab.show.axes import sheet
from lab.show.style import BLUE, LIGHT, Look

DOT = Look(BLUE, "o")


@pytest.fixture
def ax():
    return sheet("?", theme=LIGHT, height_in=3)[1][0, 0]


def labels_of(ax):
    return [artist.get_label() for artist in (*ax.collections, *ax.lines)]


def test_an_estimate_without_interval_has_no_bar(ax):
    marks.estimate(ax, 1.2, 0, DOT, LIGHT)
    assert labels_of(ax) == ["_estimate"]
    marks.estimate(ax, 1.2, 1, DOT, LIGHT, interval=(1.1, 1.3))
    assert labels_of(ax).count("_interval") == 1


def test_a_strip_keeps_every_value_and_leaves_nothing_to_chance(ax):
    values = [1.0, 1.1, 0.9]
    marks.strip(ax, values, 2, DOT)
    marks.strip(ax, values, 2, DOT)
    first, second = (np.asarray(cloud.get_offsets()) for cloud in ax.collections)
    np.testing.assert_array_equal(first[:, 0], values)
    np.testing.assert_array_equal(first, second)
    assert (np.abs(first[:, 1] - 2) <= 0.1 + 1e-12).all()


def test_many_points_become_an_image(ax):
    few = marks.points(ax, [1, 2], [1, 2], DOT)
    many = marks.points(ax, np.ones(marks.RASTER_ABOVE + 1), np.ones(marks.RASTER_ABOVE + 1), DOT)
    assert not few.get_rasterized()
    assert many.get_rasterized()


def test_a_line_has_no_band_where_one_unit_was_measured(ax):
    frame = pd.DataFrame({"x": [2, 1], "y": [3.0, 4.0], "low": 2.0, "high": 5.0, "n": [1, 1]})
    marks.line_and_band(ax, frame, DOT, LIGHT, x="x", y="y")
    assert "_band" not in labels_of(ax)
    marks.line_and_band(ax, frame.assign(n=2), DOT, LIGHT, x="x", y="y")
    assert "_band" in labels_of(ax)


def test_a_line_passes_through_the_estimates_and_nothing_else(ax):
    frame = pd.DataFrame({"x": [3, 1, 2], "y": [3.0, 1.0, math.nan], "low": 0, "high": 9, "n": 5})
    marks.line_and_band(ax, frame, DOT, LIGHT, x="x", y="y")
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[1, 1], [3, 3]])


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.01, 0.08))
def test_names_at_line_ends_keep_apart_and_in_order(heights, gap):
    placed = marks._apart(sorted(heights), gap)
    assert placed == sorted(placed)
    assert all(height <= 1 + 1e-9 for height in placed)
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(placed))
