from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.show.labels import label, number, times, times_with_interval


@given(st.text(), st.integers(2, 60))
def test_a_label_is_one_printable_line_within_its_limit(text, limit):
    shown = label(text, limit)
    assert len(shown) <= limit
    assert not any(unicodedata.category(char) in {"Cc", "Cs"} for char in shown)


def test_a_label_says_that_it_was_cut():
    assert label("a" * 50, 10) == "a" * 9 + "…"
    assert label("ngram-mod", 10) == "ngram-mod"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(88.31, "88.3"), (1234.5, "1,230"), (0.00123, "0.00123"), (19.4, "19.4"), (99.96, "100")],
)
def test_a_number_has_three_digits(value, shown):
    assert number(value) == shown


def test_what_is_unknown_is_not_written_as_a_number():
    assert number(math.nan) == times(math.nan) == "n/a"
    assert times_with_interval(1.0, math.nan, 1.1) == "1.00×"
    assert times_with_interval(1.0, 0.98, 1.02) == "1.00× [0.98, 1.02]"
