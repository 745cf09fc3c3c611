from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.analyse.drafters.replay import Setting, replay, summary
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.speculation import counted_steps, interval, passes_of, predict, price
from lab.analyse.step_overhead import StepOverhead
from lab.analyse.verify_cost_curve import VerifyCostCurve
from lab.errors import InputError

WIDTHS = (1, 2, 4, 8, 16)
DEPTHS = (10, 100)


def curve(cost=lambda width: 1.0, *, change=1.0, draws=4, noise=0.0, **besides):
    """Steady passes of 5 cost(w) ms, ``change`` times that after another width."""
    row = np.array([5.0 * cost(width) for width in WIDTHS])
    times = np.broadcast_to(row, (draws, 2, len(DEPTHS), len(WIDTHS))).copy()
    times[:, 1] *= change
    times[1:] *= np.exp(np.random.default_rng(1).normal(0, noise, times[1:].shape))
    return VerifyCostCurve(
        "made",
        np.array(WIDTHS, float),
        np.array(DEPTHS, float),
        times,
        besides=StepOverhead(**besides),
        rounds=9,
    )


texts = st.builds(
    lambda prompt, answer: RecordedText("k", prompt, answer, len(answer)),
    st.lists(st.integers(0, 2), min_size=8, max_size=30),
    st.lists(st.integers(0, 2), min_size=2, max_size=60),
)
SETTING = Setting.of("ngram-mod", n_match=2, n_min=1, n_max=6)


@settings(deadline=None)
@given(texts)
def test_where_every_pass_costs_the_same_the_speed_up_is_tokens_per_step(text):
    steps = replay(SETTING, [text])
    expected = summary([text], steps)["tokens_per_step"][0]
    assert math.exp(price(text, steps[0], curve()).log_speedup) == pytest.approx(expected)


@settings(deadline=None)
@given(texts, st.floats(0, 3))
def test_speed_up_is_tokens_per_step_over_the_mean_cost_of_a_step(text, slope):
    (steps,) = replay(SETTING, [text])
    line = curve(lambda width: 1 + slope * (width - 1))
    row = summary([text], [steps]).iloc[0]
    passes = [1 + slope * drafted for _, drafted, _ in steps]
    plain = row["target_steps"] - len(steps)
    mean_cost = (sum(passes) + plain) / row["target_steps"]
    found = price(text, steps, line)
    assert math.exp(found.log_speedup) == pytest.approx(row["tokens_per_step"] / mean_cost)


@settings(deadline=None)
@given(texts)
def test_passes_and_tokens_are_those_of_the_steps(text):
    (steps,) = replay(SETTING, [text])
    row = summary([text], [steps]).iloc[0]
    found = passes_of(text, steps)
    assert found.taken == pytest.approx(row["target_steps"])
    assert found.drafted == row["drafted_steps"]
    assert found.tokens == len(text.answer) - 1
    assert found.times.sum() == pytest.approx(row["target_steps"])


SIX = RecordedText("k", [1, 2, 3], [4, 5, 6, 7, 8, 9], 6)


def ms(steps, one):
    return price(SIX, np.array(steps, np.int32), one).arm_ms


def test_a_drafted_pass_and_the_plain_one_after_it_pay_for_the_change_of_width():
    # A step of three tokens at twice a plain one, a plain one after it, two in a run.
    assert ms([[4, 2, 1]], curve(lambda w: 1 + (w > 1))) == pytest.approx(5 * (2 + 3))
    assert ms([[4, 2, 1]], curve(lambda w: 1 + (w > 1), change=1.5)) == pytest.approx(
        5 * (1.5 * 2 + 1.5 + 2)
    )


def test_drafts_of_one_width_in_a_row_pay_for_the_change_once():
    alike = ms([[3, 1, 1], [5, 1, 1]], curve(change=2.0))
    assert alike == pytest.approx(5 * (2 + 1 + 2))
    differing = ms([[3, 1, 1], [5, 2, 1]], curve(change=2.0))
    assert differing == pytest.approx(5 * (2 + 2 + 2))


def test_no_plain_pass_comes_after_a_draft_that_ends_the_answer():
    assert ms([[6, 1, 1]], curve(change=2.0)) == pytest.approx(5 * (3 + 2))


def test_what_a_step_costs_besides_is_paid_by_step_draft_or_token():
    bare = ms([[4, 2, 1]], curve())
    assert ms([[4, 2, 1]], curve(step_ms=1)) == pytest.approx(bare + 4)
    assert ms([[4, 2, 1]], curve(asked_ms=1)) == pytest.approx(bare + 4)
    assert ms([[4, 2, 1]], curve(drafted_ms=1)) == pytest.approx(bare + 1)
    assert ms([[4, 2, 1]], curve(token_ms=1)) == pytest.approx(bare + 5)
    plain = price(SIX, np.zeros((0, 3), np.int32), curve(token_ms=1, step_ms=2, asked_ms=4))
    assert plain.baseline_ms == pytest.approx(5 * 8)


def test_a_draft_model_adds_a_pass_a_drafted_token_and_one_over_all_that_is_verified():
    steps, target = np.array([[3, 4, 4]], np.int32), curve()
    alone = price(SIX, steps, target).arm_ms
    small = curve(lambda width: 0.1 * width)
    assert price(SIX, steps, target, draft=small).arm_ms == pytest.approx(alone + 4 * 0.5 + 5 * 0.5)


def test_nothing_drafted_is_predicted_to_change_nothing():
    text = RecordedText("k", list(range(20)), list(range(20, 60)), 40)
    logs, overall = predict([text] * 2, replay(SETTING, [text]) * 2, curve(noise=0.05))
    assert logs.tolist() == [0, 0]
    assert (overall.value, overall.low, overall.high) == (1, 1, 1)


def looping(n):
    loop = [1, 2, 3, 4] * 30
    return [RecordedText(str(i), loop[:20], loop[20 : 60 + 8 * i], 40 + 8 * i) for i in range(n)]


def test_both_uncertainties_widen_the_interval():
    some = looping(6)
    steps = replay(SETTING, some)

    def width(one):
        _, estimate = predict(some, steps, one)
        return math.log(estimate.high / estimate.low)

    quiet = curve(lambda w: 1 + w / 9, draws=50)
    loud = curve(lambda w: 1 + w / 9, draws=50, noise=0.2)
    assert 0 < width(quiet) < width(loud)


def test_what_one_text_or_one_draw_cannot_say_is_not_said():
    (one,) = looping(1)
    steps = replay(SETTING, [one])
    _, estimate = predict([one], steps, curve())
    assert estimate.value > 1
    assert (estimate.low, estimate.high) == (None, None)
    assert interval(price(one, steps[0], curve(draws=1))) is None
    low, high = interval(price(one, steps[0], curve(noise=0.1, draws=99)))
    assert low < estimate.value < high
    assert predict([], [], curve())[1].value is None
    with pytest.raises(InputError, match="one token"):
        price(RecordedText("k", [1], [2], 1), steps[0], curve())


@settings(deadline=None)
@given(st.integers(2, 80), st.data())
def test_counters_alone_give_the_same_number_of_passes(answered, data):
    text = RecordedText("k", [1] * 10, [2] * answered, answered)
    accepted = data.draw(st.integers(0, answered - 2))
    drafted = data.draw(st.integers(1, answered - 1 - accepted))
    counts = {"draft_n": drafted * 6, "draft_n_accepted": accepted}
    steps = counted_steps(text, drafted_steps=drafted, **counts)
    found = passes_of(text, steps)
    assert found.taken == pytest.approx(answered - 1 - accepted)
    assert found.drafted == drafted
    assert set(steps[:, 1]) == {6}


def test_replayed_and_counted_steps_cost_about_the_same():
    some = looping(6)
    line = curve(lambda w: 0.8 + w / 5, change=1.1)
    for text, steps in zip(some, replay(SETTING, some), strict=True):
        row = summary([text], [steps]).iloc[0]
        names = ("drafted_steps", "draft_n", "draft_n_accepted")
        counted = counted_steps(text, **{name: int(row[name]) for name in names})
        exact, mean = price(text, steps, line), price(text, counted, line)
        assert mean.log_speedup == pytest.approx(exact.log_speedup, abs=0.05)
