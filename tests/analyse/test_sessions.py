from __future__ import annotations

import math

import numpy as np
import pandas as pd

from lab.analyse.power import Design
from lab.analyse.sessions import across_sessions
from lab.analyse.spread import Spread


def test_sessions_that_differ_show_a_spread_beside_narrow_intervals(simulated):
    truth = Spread(prompt=0.02, request=0.02, session=0.08)
    frame = simulated(np.random.default_rng(6), Design(24, 1, 6), truth, truth=0.2)
    found = across_sessions(frame, "x")
    assert len(found.within) == 6
    inner = np.log(found.within["high"] / found.within["low"]).median()
    assert math.log(found.speedup.high / found.speedup.low) > 3 * inner
    assert found.speedup.low < math.exp(0.2) < found.speedup.high
    assert found.between.low < math.expm1(0.08) < found.between.high
    assert found.speedup.unit_of_n == "session"


def test_one_session_says_that_it_knows_no_other(simulated):
    frame = simulated(np.random.default_rng(7), Design(24), Spread(0.02, 0.02))
    found = across_sessions(frame, "x")
    assert found.speedup.value is not None
    assert found.speedup.low is None
    assert "another day" in found.between.reason
    assert len(found.within) == 1


def test_sessions_without_a_common_prompt_have_no_common_number(simulated):
    frame = simulated(np.random.default_rng(8), Design(4), Spread(0.02, 0.02))
    other = frame.assign(run_id="s1", prompt_id=frame["prompt_id"] + "x")
    found = across_sessions(pd.concat([frame, other]), "x")
    assert found.speedup.value is None
    assert found.speedup.reason == "no common prompts"


def test_the_interval_over_sessions_covers_what_it_promises(simulated):
    rng = np.random.default_rng(9)
    spread = Spread(prompt=0.05, request=0.05, session=0.05)
    inside = [
        one.low <= 1.0 <= one.high
        for one in (
            across_sessions(simulated(rng, Design(8, 1, 4), spread), "x").speedup
            for _ in range(120)
        )
    ]
    assert np.mean(inside) >= 0.88
