from __future__ import annotations

import numpy as np
import pytest

from lab.analyse.drafters.replay import Setting, replay
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.overhead_fit import MEANING, Observed, fit_step_overhead
from lab.analyse.speculation import price
from lab.analyse.step_overhead import StepOverhead
from lab.analyse.verify_cost_curve import VerifyCostCurve
from lab.errors import InputError

WIDTHS = np.array([1.0, 2, 4, 8, 16])
TRUE = {"step_ms": 0.6, "asked_ms": 0.2, "drafted_ms": 1.5}
NOTHING = np.zeros((0, 3), np.int32)


def curve(scale=1.0, **besides):
    times = np.stack([[3 + 2 * WIDTHS], [4 + 2 * WIDTHS]])[None] * scale
    return VerifyCostCurve(
        "made", WIDTHS, np.array([50.0]), times, besides=StepOverhead(token_ms=0.1, **besides)
    )


def answers():
    rng = np.random.default_rng(3)
    made = []
    for n in range(12):
        loop = rng.integers(0, 9, 4 + n).tolist() * 30
        tokens = [t if rng.random() > 0.1 else 99 for t in loop]
        made.append(RecordedText(str(n), tokens[:30], tokens[30:110], 80))
    return made


def observed(real, *, noise=0.0, settings=(2, 5, 12)):
    rng = np.random.default_rng(5)
    texts = answers()
    plain = [(text, NOTHING, False) for text in texts]
    drafting = [
        (text, steps, True)
        for longest in settings
        for text, steps in zip(
            texts,
            replay(Setting.of("ngram-mod", n_match=2, n_min=1, n_max=longest), texts),
            strict=True,
        )
    ]
    found = []
    for text, steps, on in [*plain, *drafting]:
        one = price(text, steps, real)
        took = (one.arm_ms if on else one.baseline_ms) * np.exp(rng.normal(0, noise))
        found.append(Observed(text, steps, took, on))
    return found


def test_the_parts_that_went_in_come_out():
    fit = fit_step_overhead(observed(curve(1.05, **TRUE)), curve(), draws=20)
    assert set(fit.parts) == set(MEANING)
    assert fit.parts["pass_scale"].value == pytest.approx(1.05)
    for name, value in TRUE.items():
        assert fit.parts[name].value == pytest.approx(value)
    assert fit.unexplained.value == pytest.approx(0, abs=1e-9)


def test_a_fitted_curve_foretells_requests_it_has_not_seen():
    real = curve(1.05, **TRUE)
    seen = observed(real, settings=(2, 5), noise=0.005)
    fitted = fit_step_overhead(seen, curve(), draws=20).applied(curve())
    texts = answers()
    steps = replay(Setting.of("ngram-mod", n_match=3, n_min=1, n_max=16), texts)

    def misses(one):
        pairs = zip(texts, steps, strict=True)
        return [price(t, s, one).log_speedup - price(t, s, real).log_speedup for t, s in pairs]

    assert np.abs(misses(fitted)).max() < 0.01 < np.abs(misses(curve())).max()


def test_noise_widens_the_intervals_which_hold_the_truth():
    fit = fit_step_overhead(observed(curve(1.05, **TRUE), noise=0.03), curve())
    for name, value in ({"pass_scale": 1.05} | TRUE).items():
        part = fit.parts[name]
        assert part.low < part.high
        assert part.low - 0.1 <= value <= part.high + 0.1
    assert fit.unexplained.value > 0.005


def test_what_the_requests_cannot_tell_is_not_told():
    alone = [one for one in observed(curve(1.0, **TRUE)) if not one.drafting]
    fit = fit_step_overhead(alone, curve(), draws=5)
    assert set(fit.parts) == {"step_ms"}
    assert fit.parts["step_ms"].value == pytest.approx(TRUE["step_ms"])
    drafting = [one for one in observed(curve(1.0, **TRUE)) if one.drafting]
    both = fit_step_overhead(drafting, curve(), draws=5).parts["step_ms"].value
    assert both == pytest.approx(TRUE["step_ms"] + TRUE["asked_ms"])
    with pytest.raises(InputError, match="at least 8 requests"):
        fit_step_overhead(alone[:7], curve())


def test_every_part_says_what_it_is_and_how_much_of_a_step():
    fit = fit_step_overhead(observed(curve(1.05, **TRUE)), curve(), draws=5)
    table = fit.frame(curve()).set_index("part")
    assert table.loc["pass_scale", "share"] == pytest.approx(0.05)
    assert table.loc["drafted_ms", "share"] == pytest.approx(1.5 / 5.1)
    assert table["meaning"].str.len().min() > 20
