from __future__ import annotations

import math

import numpy as np
import pytest

from lab.analyse.drafters.replay import Setting, replay, summary
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.other_curves import card, described, idle_until_gflop_s, model_shape, published
from lab.analyse.transfer import (
    A_GAIN,
    NO_IDLE_COMPUTE,
    NOTHING_DRAFTED,
    NOTHING_RIGHT,
    UNDECIDED,
    explain,
    transfer,
)
from lab.analyse.verify_cost_curve import curve_from_ratios
from lab.errors import InputError

EAGER = Setting.of("ngram-mod", n_match=2, n_min=1, n_max=8)
ARTICLE = Setting.of("ngram-mod")
FREE = curve_from_ratios("free", {64: 1}, source="made up")
DEAR = curve_from_ratios("dear", {2: 2, 64: 64}, source="made up")


def novel(number):
    """An answer in which nothing comes twice."""
    tokens = list(range(1000 * number, 1000 * number + 200))
    return RecordedText(str(number), tokens[:40], tokens[40:], 160)


def looping(number):
    tokens = [number * 10 + place for place in range(7)] * 30
    return RecordedText(str(number), tokens[:40], tokens[40:200], 160)


def misleading(number):
    """Pairs come back, what follows them never does."""
    tokens = [part for n in range(70) for part in (5, 6, 100 + 70 * number + n)]
    return RecordedText(str(number), tokens[:40], tokens[40:200], 160)


def texts(kind):
    return [kind(number) for number in range(6)]


def test_where_verifying_is_free_the_speed_up_is_tokens_per_step():
    several = texts(looping)
    found = transfer(EAGER, several, FREE)
    expected = summary(several, replay(EAGER, several))["tokens_per_step"]
    assert found.logs == pytest.approx(np.log(expected))
    assert found.speedup.value == pytest.approx(found.if_free.value)
    assert found.if_right == pytest.approx(found.width)


@pytest.mark.parametrize(
    ("kind", "curve", "reason"),
    [
        (novel, FREE, NOTHING_DRAFTED),
        (looping, FREE, A_GAIN),
        (looping, DEAR, NO_IDLE_COMPUTE),
        (novel, DEAR, NO_IDLE_COMPUTE),
        (misleading, FREE, NOTHING_RIGHT),
    ],
)
def test_the_explanation_is_the_one_that_was_built_in(kind, curve, reason):
    found = explain(transfer(EAGER, texts(kind), curve))
    assert found.supported == reason
    assert ("no compute to spare" in found.sentences[2]) == (curve is DEAR)


def test_a_gain_that_hangs_on_one_answer_is_not_claimed():
    mixed = [looping(1), *(novel(number) for number in range(2, 6))]
    assert explain(transfer(EAGER, mixed, FREE)).supported == UNDECIDED


def test_the_articles_setting_on_the_articles_cards_drafts_nothing_on_novel_answers():
    for name in ("Gemma 4 26B-A4B Q4_K_M", "Qwen3-32B Q4_K_M"):
        shape = model_shape(name)
        slowest = card("NVIDIA GeForce RTX 5060 Ti")
        # Twenty times the arithmetic at which nothing would be idle is still a slow card.
        curve = described(
            shape, card(slowest.name, gflop_s=20 * idle_until_gflop_s(shape, slowest))
        )
        found = transfer(ARTICLE, texts(novel), curve)
        assert found.speedup.value == 1
        assert explain(found).supported == NOTHING_DRAFTED
        again = transfer(ARTICLE, texts(novel), curve, state="warm-same")
        assert again.speedup.low > 1.5


def test_assumptions_travel_with_the_result_and_name_what_lies_beyond_the_curve():
    curve = published("Nemotron-H MLX")
    inside = transfer(Setting.of("ngram-simple", size_n=2, size_m=6), texts(looping), curve)
    long = Setting.of("ngram-mod", n_match=2, n_min=1, n_max=30)
    beyond = transfer(long, texts(looping), curve)
    assert set(curve.assumptions) < set(inside.assumptions)
    assert not any("last slope" in one for one in inside.assumptions)
    assert any("Beyond 8 tokens" in one for one in beyond.assumptions)


def test_without_a_text_nothing_is_claimed():
    with pytest.raises(InputError, match="no text was recorded"):
        transfer(EAGER, [], FREE)
    one = transfer(EAGER, [looping(1)], FREE)
    assert (one.speedup.low, explain(one).supported) == (None, UNDECIDED)
    assert math.isfinite(one.speedup.value)
