from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lab.analyse.power import Design
from lab.analyse.spread import Spread, cells, mean_squares, spread_of, variance_of_median


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_variance_of_a_median_is_the_known_one(n):
    known = {1: 1.0, 2: 0.5, 3: 0.4487, 5: 0.2868}  # order statistics of the normal distribution
    assert variance_of_median(n) == pytest.approx(known[n], rel=0.02)


def test_a_pilot_gives_back_the_spreads_it_was_made_with(simulated):
    truth = Spread(prompt=0.06, request=0.08, session=0.05)
    frame = simulated(np.random.default_rng(1), Design(120, 3, 12), truth)
    found = spread_of(frame, "x")
    assert found.request == pytest.approx(0.08, rel=0.1)
    assert found.prompt == pytest.approx(0.06, rel=0.25)
    assert found.session == pytest.approx(0.05, rel=0.6)


def test_a_second_baseline_tells_the_noise_where_nothing_was_repeated(simulated):
    truth = Spread(prompt=0.10, request=0.04)
    frame = simulated(np.random.default_rng(2), Design(300), truth, arms=("baseline", "again", "x"))
    assert spread_of(frame, "x").request is None
    found = spread_of(frame, "x", again="again")
    assert found.request == pytest.approx(0.04, rel=0.15)
    assert found.prompt == pytest.approx(0.10, rel=0.15)
    assert found.session is None


def test_what_categories_differ_by_is_no_spread_of_prompts(simulated):
    frame = simulated(np.random.default_rng(3), Design(60), Spread(0.01), categories=3)
    shift = frame["category"].map({"c0": 1.0, "c1": 1.5, "c2": 2.0}).where(frame["arm"] == "x", 1)
    frame["ms_per_token"] /= shift
    assert spread_of(frame, "x").prompt == pytest.approx(0.01, rel=0.4)


def test_one_prompt_has_no_spread(simulated):
    frame = simulated(np.random.default_rng(4), Design(1, 2), Spread(0.1, 0.1))
    assert spread_of(frame, "x") is None


def test_mean_squares_separate_sessions_from_prompts(simulated):
    table = pd.DataFrame([[0.0, 1.0], [0.5, 1.5], [0.1, 1.1]])
    found = mean_squares(table)
    assert found.rest == pytest.approx(0.0, abs=1e-12)
    assert found.between_sessions == pytest.approx(np.var([0.0, 0.5, 0.1], ddof=1))
    frame = simulated(np.random.default_rng(1), Design(3, 2, 2), Spread(0.1, 0.1))
    assert cells(frame, "x").shape == (2, 3)
