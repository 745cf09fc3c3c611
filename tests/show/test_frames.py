from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from lab.errors import InputError
from lab.show.frames import column_of, interval_of, ordered, require, why_empty


def test_one_error_names_figure_frame_and_every_missing_column():
    frame = pd.DataFrame({"arm": ["a"]})
    with pytest.raises(InputError) as caught:
        require(frame, "climb", "arm", "run", "speedup", name="points")
    message = str(caught.value)
    for part in ("figure climb", "points", "run, speedup", "arm"):
        assert part in message


def test_an_empty_frame_needs_no_columns():
    require(pd.DataFrame(), "climb", "arm")
    assert why_empty(pd.DataFrame(), "speedup") == "nothing was measured"


def test_the_reason_given_in_the_frame_is_told():
    frame = pd.DataFrame({"speedup": [None, None], "reason": [None, "server ran out of memory"]})
    assert why_empty(frame, "speedup") == "server ran out of memory"
    assert why_empty(frame[["speedup"]], "speedup") == "no value of speedup is known"
    assert why_empty(pd.DataFrame({"speedup": [math.nan, 1.0]}), "speedup") is None


@pytest.mark.parametrize("n", [0, 1])
def test_case_30_no_interval_from_one_unit(n):
    row = pd.Series({"low": 0.9, "high": 1.1, "n": n})
    assert all(map(math.isnan, interval_of(row)))


def test_an_interval_with_one_end_is_none():
    assert interval_of(pd.Series({"low": 0.9, "high": 1.1, "n": 2})) == (0.9, 1.1)
    assert all(map(math.isnan, interval_of(pd.Series({"low": None, "high": 1.1}))))
    assert interval_of(pd.Series({"kl_low": 0, "kl_high": 1}), "kl_low", "kl_high") == (0, 1)


def test_columns_become_floats_and_what_is_no_number_nan():
    frame = pd.DataFrame({"a": [1, None, "x"], "b": pd.array([1, None, 3], dtype="Int64")})
    np.testing.assert_array_equal(column_of(frame, "a"), [1, math.nan, math.nan])
    np.testing.assert_array_equal(column_of(frame, "b"), [1, math.nan, 3])
    assert np.isnan(column_of(frame, "c")).all()


def test_values_keep_their_order():
    assert ordered(["b", "a", "b", 3]) == ["b", "a", "3"]
