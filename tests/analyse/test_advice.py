from __future__ import annotations

import numpy as np
import pytest

from lab.analyse.advice import Advice, advise, grid
from lab.analyse.drafters.replay import PARAMETERS, Setting, replay
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.speculation import predict
from lab.analyse.step_overhead import StepOverhead
from lab.analyse.verify_cost_curve import VerifyCostCurve, curve_from_ratios
from lab.errors import InputError

CHEAP = curve_from_ratios("cheap", {2: 1.05, 64: 2}, source="made up")
DEAR = curve_from_ratios("dear", {2: 2.2, 64: 70}, source="made up")
FEW = (
    Setting.of("ngram-simple"),
    Setting.of("ngram-simple", size_n=2, size_m=4),
    Setting.of("ngram-mod", n_match=2, n_min=1, n_max=16),
    Setting.of("ngram-mod", n_match=2, n_min=1, n_max=2),
    Setting.of("ngram-mod"),
    Setting.of("ngram-mod", n_match=24, n_min=16, n_max=64),
)


def novel(number):
    tokens = list(range(1000 * number, 1000 * number + 200))
    return RecordedText(str(number), tokens[:40], tokens[40:], 160)


def looping(number):
    tokens = [number * 10 + place for place in range(5 + number)] * 40
    return RecordedText(str(number), tokens[:40], tokens[40:200], 160)


def random_text(number):
    tokens = np.random.default_rng(number).integers(0, 12, 90).tolist()
    return RecordedText(str(number), tokens[:30], tokens[30:], 60)


def texts(kind, n=6):
    return [kind(number) for number in range(n)]


def noisy(curve, seed=1, draws=50):
    """The same curve with draws around it."""
    scatter = np.exp(np.random.default_rng(seed).normal(0, 0.03, (draws, *curve.times.shape[1:])))
    scatter[0] = 1
    return VerifyCostCurve("noisy", curve.widths, curve.depths, curve.times * scatter)


def test_every_row_is_what_the_prediction_says_and_rows_are_ranked():
    several, curve = texts(looping), noisy(CHEAP)
    found = advise(several, curve, settings=FEW)
    for row, setting in zip(found.table.itertuples(), found.settings, strict=True):
        expected = predict(several, replay(setting, several), curve)[1]
        assert row.setting == setting.label
        assert (row.speedup, row.low, row.high) == pytest.approx(
            (expected.value, expected.low, expected.high)
        )
    assert found.table["speedup"].is_monotonic_decreasing
    assert found.table["rank"].tolist() == list(range(1, len(FEW) + 1))
    first = found.table[found.table["rank_in_drafter"] == 1]
    assert first["drafter"].is_unique


def test_on_loops_long_drafts_win_and_the_gain_is_held_up_by_other_answers():
    found = advise(texts(looping), noisy(CHEAP), settings=FEW)
    assert found.best[0] == Setting.of("ngram-mod")
    assert not found.off_is_best
    assert found.held_out.low > 2
    assert found.table["verdict"][0] == "faster"


@pytest.mark.parametrize(("kind", "curve"), [(novel, CHEAP), (looping, DEAR), (random_text, DEAR)])
def test_off_is_best_where_nothing_is_drafted_or_drafts_do_not_pay(kind, curve):
    found = advise(texts(kind), curve, settings=FEW)
    assert found.off_is_best
    assert found.held_out.value == pytest.approx(1, abs=0.02)


def test_settings_that_come_to_the_same_are_named_once():
    found = advise(texts(novel), CHEAP, settings=FEW)
    assert found.best == (Setting.of("ngram-mod", n_match=2, n_min=1, n_max=2),)
    assert (found.table["texts_drafted"] == 0).all()
    assert found.table["acceptance_length"].isna().all()


def test_the_best_of_many_looks_better_than_what_choosing_it_is_worth():
    """On text without a pattern luck is all there is to choose."""
    curve = curve_from_ratios("even", {2: 1.05, 8: 1.2}, source="made up")
    eager = [Setting.of("ngram-mod", n_match=1, n_min=1, n_max=n) for n in range(1, 8)]
    eager += [Setting.of("ngram-simple", size_n=1, size_m=n) for n in range(1, 8)]
    eager += [Setting.of("ngram-map-k", size_n=1, size_m=n) for n in range(1, 8)]
    gaps = []
    for seed in range(8):
        several = [random_text(100 * seed + number) for number in range(10)]
        found = advise(several, curve, seed=seed, settings=eager)
        gaps.append(found.table["speedup"][0] - found.held_out.value)
    assert np.mean(gaps) > 0


def test_asking_a_drafter_costs_even_where_nothing_is_drafted():
    besides = StepOverhead(asked_ms=0.1)
    curve = VerifyCostCurve("asked", CHEAP.widths, CHEAP.depths, CHEAP.times, besides=besides)
    found = advise(texts(novel), curve, settings=FEW)
    assert found.table["speedup"].tolist() == pytest.approx([1 / 1.1] * len(FEW))
    assert found.off_is_best
    assert found.held_out.value == 1


def test_one_answer_gives_a_ranking_but_no_advice_to_draft():
    found = advise(texts(looping, 1), CHEAP, settings=FEW)
    assert found.table["speedup"][0] > 2
    assert found.off_is_best


def test_the_grid_holds_each_setting_once_and_the_defaults():
    settings = grid()
    assert len(set(settings)) == len(settings) > 400
    for kind in set(PARAMETERS) - {"prompt-lookup"}:
        assert Setting.of(kind) in settings
    mods = [one for one in settings if one.kind == "ngram-mod"]
    assert all(one["n-min"] <= one["n-max"] for one in mods)


@pytest.mark.parametrize(
    ("several", "settings", "field"), [([], FEW, "texts"), ([novel(1)], [], "settings")]
)
def test_nothing_to_choose_from_is_said(several, settings, field):
    with pytest.raises(InputError, match=field):
        advise(several, CHEAP, settings=settings)


def test_advice_is_the_same_every_time():
    one, two = (advise(texts(random_text), noisy(CHEAP), settings=FEW) for _ in range(2))
    assert isinstance(one, Advice)
    assert one.table.equals(two.table)
    assert one.held_out == two.held_out
