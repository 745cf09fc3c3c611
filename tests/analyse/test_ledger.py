from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.analyse.drafters.replay import Setting, replay, summary
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.ledger import Ledger, geometric_mean
from lab.analyse.speculation import predict, price
from lab.analyse.step_overhead import StepOverhead
from lab.analyse.verify_cost_curve import VerifyCostCurve

WIDTHS = np.array([1.0, 2, 4, 8])
SETTINGS = (
    Setting.of("ngram-mod", n_match=2, n_min=1, n_max=12),
    Setting.of("ngram-simple", size_n=1, size_m=3),
    Setting.of("ngram-cache"),
)

texts = st.builds(
    lambda prompt, answer: RecordedText("k", prompt, answer, len(answer)),
    st.lists(st.integers(0, 2), min_size=8, max_size=30),
    st.lists(st.integers(0, 2), min_size=2, max_size=60),
)


def rough_curve(seed, draws=3, depths=(5.0, 20.0, 60.0)):
    """A curve with no pattern, so that a price taken from the wrong point shows."""
    rng = np.random.default_rng(seed)
    # Rising with width, since the last slope goes on beyond the last point.
    times = np.sort(rng.uniform(1, 50, (draws, 2, len(depths), len(WIDTHS))))
    besides = StepOverhead(*rng.uniform(0, 2, 4))
    return VerifyCostCurve("rough", WIDTHS, np.array(depths), times, besides=besides)


@settings(deadline=None)
@given(
    st.lists(texts, min_size=1, max_size=4),
    st.integers(0, 1000),
    st.sampled_from(SETTINGS),
    st.sampled_from([(5.0, 20.0, 60.0), (30.0,)]),
)
def test_bills_cost_what_the_passes_cost_one_by_one(several, seed, setting, depths):
    curve = rough_curve(seed, depths=depths)
    steps = replay(setting, several, state="warm-other")
    ledger = Ledger(several, curve)
    found = ledger.log_speedups(ledger.bills(steps))
    for place, (text, taken) in enumerate(zip(several, steps, strict=True)):
        assert found[:, place] == pytest.approx(price(text, taken, curve).logs)


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.sampled_from(SETTINGS))
def test_bills_know_what_the_summary_knows(several, setting):
    steps = replay(setting, several)
    bills = Ledger(several, rough_curve(1)).bills(steps)
    table = summary(several, steps)
    assert bills.taken.tolist() == table["target_steps"].tolist()
    assert bills.drafted.tolist() == table["drafted_steps"].tolist()
    assert bills.tokens_per_step == pytest.approx(table["tokens_per_step"].to_numpy())


def test_the_mean_and_its_interval_are_those_of_a_prediction():
    loop = [1, 2, 3, 4] * 30
    several = [RecordedText(str(n), loop[:20], loop[20 : 60 + 8 * n], 40 + 8 * n) for n in range(6)]
    steps, curve = replay(SETTINGS[0], several), rough_curve(3, draws=40)
    ledger = Ledger(several, curve)
    logs = ledger.log_speedups(ledger.bills(steps))
    expected = predict(several, steps, curve)[1]
    found = geometric_mean(logs)
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )


def test_nothing_drafted_is_no_change_but_for_asking():
    text = RecordedText("k", list(range(20)), list(range(20, 60)), 40)
    steps = replay(SETTINGS[0], [text])
    curve = rough_curve(2)
    ledger = Ledger([text], curve)
    asked = curve.besides.asked_ms
    plain = curve.plain_ms(np.arange(20, 59)).mean()
    found = ledger.log_speedups(ledger.bills(steps))[0, 0]
    assert np.exp(-found) == pytest.approx(1 + asked / plain)


def test_an_answer_of_one_token_takes_no_pass():
    text = RecordedText("k", [1, 2, 3], [4], 1)
    ledger = Ledger([text], rough_curve(1))
    bills = ledger.bills(replay(SETTINGS[0], [text]))
    assert ledger.log_speedups(bills).tolist() == [[0], [0], [0]]
    assert bills.tokens_per_step.tolist() == [1]


def test_few_texts_get_no_interval_and_none_no_value():
    assert geometric_mean(np.zeros((3, 0))).value is None
    one = geometric_mean(np.full((3, 1), 0.5))
    assert (one.low, one.reason) == (None, "one text says nothing about others")
