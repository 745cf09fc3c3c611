from __future__ import annotations

import numpy as np

from lab.analyse.drafters.replay import Setting, replay, summary
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.drafters.sweep import accepted_per_position, by_width, sweep

LOOP = [1, 2, 3, 4, 5] * 30
TEXTS = [
    RecordedText("loop", LOOP[:40], LOOP[40:100], 60),
    RecordedText("new", list(range(40)), list(range(40, 80)), 40),
]
SETTINGS = [
    Setting.of("ngram-mod", n_match=3, n_min=1, n_max=4),
    Setting.of("ngram-simple", size_n=2, size_m=6),
]


def test_every_setting_meets_every_text():
    table = sweep(SETTINGS, TEXTS)
    assert len(table) == 4
    assert table["setting"].unique().tolist() == [one.label for one in SETTINGS]
    one = table[table["drafter"] == "ngram-simple"].drop(columns=["setting", "drafter"])
    expected = summary(TEXTS, replay(SETTINGS[1], TEXTS))
    assert one.reset_index(drop=True).equals(expected)
    assert sweep([], TEXTS).empty


def test_steps_are_told_by_width():
    table = by_width([np.array([[9, 4, 4], [14, 4, 1], [16, 2, 2]]), np.zeros((0, 3), int)])
    assert table["width"].tolist() == [3, 5]
    assert table["steps"].tolist() == [1, 2]
    assert table["accepted"].tolist() == [2, 2.5]
    assert table["whole"].tolist() == [1, 0.5]


def test_positions_count_only_drafts_that_reach_them():
    steps = [np.array([[9, 4, 4], [14, 4, 1]]), np.array([[16, 2, 2]])]
    table = accepted_per_position(steps, 5)
    assert table["drafted"].tolist() == [3, 3, 2, 2, 0]
    assert table["accepted"].tolist() == [3, 2, 1, 1, 0]
    assert table["share"].isna().tolist() == [False] * 4 + [True]
    assert by_width([]).empty
