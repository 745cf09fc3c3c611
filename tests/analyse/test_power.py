from __future__ import annotations

import math

import numpy as np
import pytest

from lab.analyse.location import locate, verdicts
from lab.analyse.power import Design, designs, power_of_difference, power_of_equivalence
from lab.analyse.spread import Spread


@pytest.mark.parametrize("prompts", [8, 40])
def test_the_formulas_of_power_agree_with_simulated_experiments(prompts):
    spread, effect, margin = Spread(prompt=0.05, request=0.04), 0.04, 0.05
    sd = math.hypot(spread.prompt, spread.request)
    rng = np.random.default_rng(5)
    shown = locate(rng.normal(effect, sd, (4000, prompts))).p_no_difference() < 0.05
    expected = power_of_difference(effect, Design(prompts), spread)
    assert shown.mean() == pytest.approx(expected, abs=0.03)
    equal = locate(rng.normal(0, sd, (4000, prompts)))
    given = verdicts(equal, margin=margin, level=0.95)
    expected = power_of_equivalence(margin, Design(prompts), spread)
    assert (given == "equivalent").mean() == pytest.approx(expected, abs=0.03)


def test_more_of_anything_gives_more_power():
    spread = Spread(0.05, 0.08, 0.02)
    small = power_of_difference(0.04, Design(12, 1, 2), spread)
    for larger in (Design(24, 1, 2), Design(12, 3, 2), Design(12, 1, 4)):
        assert power_of_difference(0.04, larger, spread) > small


def test_designs_reach_what_is_wanted_with_the_fewest_prompts():
    spread = Spread(0.05, 0.06, 0.001)
    table = designs(spread, effect=0.03, wanted=0.8)
    assert (table["power"] >= 0.8).all()
    assert table["requests"].is_monotonic_increasing
    for row in table.itertuples():
        fewer = Design(row.prompts - 1, row.repeats, row.sessions)
        assert power_of_difference(math.log1p(0.03), fewer, spread) < 0.8


def test_what_no_number_of_prompts_can_show_is_said():
    table = designs(Spread(0.05, 0.05, 0.2), effect=0.02, sessions=[2], repeats=[1])
    assert table["prompts"].isna().all()
    assert "sessions differ" in table["why"].iloc[0]


def test_an_unknown_spread_between_sessions_is_not_planned_with():
    table = designs(Spread(0.05, 0.05))
    assert set(table["sessions"]) == {1}
