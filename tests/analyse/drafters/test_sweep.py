from __future__ import annotations

import numpy as np
import pandas as pd

from lab.analyse.drafters.replay import Setting, replay, summary
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.drafters.sweep import accepted_per_position, sweep, widths

LOOP = list(range(6)) * 30
TEXTS = [RecordedText(str(n), LOOP[: 30 + n], LOOP[30 + n : 120], 90 - n) for n in range(3)]
SETTINGS = (Setting.of("ngram-mod", n_match=3, n_min=1, n_max=7), Setting.of("ngram-cache"))


def test_a_sweep_is_the_summaries_one_under_another():
    found = sweep(SETTINGS, TEXTS, state="warm-other")
    assert found.groupby("setting", sort=False).size().to_dict() == {
        "ngram-mod 3/1/7": 3,
        "ngram-cache": 3,
    }
    for setting, rows in zip(SETTINGS, (found[:3], found[3:]), strict=True):
        expected = summary(TEXTS, replay(setting, TEXTS, state="warm-other"))
        rest = rows.drop(columns=["drafter", "setting"]).reset_index(drop=True)
        pd.testing.assert_frame_equal(rest, expected)


def test_positions_and_widths_count_the_steps_in_their_own_way():
    steps = np.array([[5, 3, 2], [9, 3, 0], [11, 1, 1]], np.int32)
    assert accepted_per_position(steps) == (2, 1)
    assert widths(steps) == {2: 1, 4: 2}
    assert accepted_per_position(steps[:0]) == ()
    assert widths(steps[:0]) == {}
    assert sum(accepted_per_position(steps)) == steps[:, 2].sum()
