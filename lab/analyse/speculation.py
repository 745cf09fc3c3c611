"""A speed-up worked out before it is measured: what the text allows, priced by the hardware.

The text gives the steps (analyse.drafters): where something would be drafted, how much,
and how much of it is right. The hardware gives the price of a pass (verify_cost_curve),
and what a server's step costs besides is measured apart (step_overhead). A pass whose
width differs from the one before costs more than one in a run: nearly every drafted step
pays that, and every plain step right after one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from lab.analyse.curve_from_passes import curve_from
from lab.analyse.drafters.steps import ACCEPTED, DEPTH, DRAFTED, RecordedText, Steps
from lab.analyse.estimates import Estimate
from lab.analyse.ledger import geometric_mean
from lab.analyse.verify_cost_curve import Draws, VerifyCostCurve
from lab.errors import InputError

__all__ = ["Passes", "Price", "VerifyCostCurve", "curve_from", "passes_of", "predict", "price"]

Floats = NDArray[np.float64]
AnySteps = Steps | Floats
"""Drafted steps, or what counters say of them on average (:func:`counted_steps`)."""


@frozen(eq=False)
class Passes:
    """The passes of one answer by what they cost, one row a kind and place.

    Attributes
    ----------
    width, depth : tokens in the pass and in the context before it. changed : the pass before
        had another width. times : how often this pass is taken; -1 for a plain pass that a
        drafted one makes unnecessary.
    taken, drafted : passes in all, and with a draft. tokens : given by all of them together.
    """

    width: Floats
    depth: Floats
    changed: NDArray[np.bool_]
    times: Floats
    taken: float
    drafted: float
    tokens: int

    def total(self, curve: VerifyCostCurve) -> Draws:
        """Time of all of them, shape (draws,)."""
        each: Draws = curve.at(self.width, self.depth, changed=self.changed)
        return each @ self.times


@frozen(eq=False)
class Price:
    """What an answer takes, by draw of the curve: without drafting and with."""

    baseline: Draws
    arm: Draws
    logs: Draws = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "logs", np.log(self.baseline / self.arm))

    @property
    def baseline_ms(self) -> float:
        """Without drafting (in passes over one token where the curve has no times)."""
        return float(self.baseline[0])

    @property
    def arm_ms(self) -> float:
        """With drafting, in the same unit."""
        return float(self.arm[0])

    @property
    def log_speedup(self) -> float:
        """Logarithm of baseline over arm."""
        return float(self.logs[0])


def plain_passes(text: RecordedText) -> Passes:
    """The passes of an answer without drafting: all but its first token take one each."""
    first, taken = len(text.prompt), len(text.answer) - 1
    return Passes(
        width=np.ones(taken),
        depth=np.arange(first, first + taken, dtype=float),
        changed=np.zeros(taken, bool),
        times=np.ones(taken),
        taken=taken,
        drafted=0,
        tokens=taken,
    )


def passes_of(text: RecordedText, steps: AnySteps) -> Passes:
    """The passes of an answer with these drafted steps, plain ones between them.

    A drafted pass is as wide as its draft and the sampled token before it. It follows a
    pass of another width unless it comes right after a drafted one of the same.
    """
    plain = plain_passes(text)
    if not len(steps):
        return plain
    start, width = steps[:, DEPTH].astype(float), steps[:, DRAFTED] + 1.0
    end = np.minimum(start + steps[:, ACCEPTED] + 1.0, plain.depth[-1] + 1)
    at_once = np.isclose(start[1:], end[:-1], atol=0.5)
    alike = np.concatenate([[False], at_once & (width[1:] == width[:-1])])
    back = np.concatenate([~at_once, [end[-1] <= plain.depth[-1]]])
    saved = _overlap(plain.depth, start, end)
    several = np.full(int(back.sum()), 1.0)
    after = end[back]
    return Passes(
        width=np.concatenate([plain.width, width, several, several]),
        depth=np.concatenate([plain.depth, start, after, after]),
        changed=np.concatenate([plain.changed, ~alike, several > 0, several < 0]),
        times=np.concatenate([1 - saved, np.ones(len(start)), several, -several]),
        taken=float(len(start) + plain.taken - saved.sum()),
        drafted=len(start),
        tokens=plain.tokens,
    )


def _overlap(places: Floats, start: Floats, end: Floats) -> Floats:
    """How much of every place's unit length the spans from start to end cover."""
    covered = np.zeros(len(places) + 1)
    for edge, sign in ((start, 1.0), (end, -1.0)):
        at = edge - places[0]
        whole = np.clip(np.floor(at).astype(int), 0, len(places))
        share = at - whole
        np.add.at(covered, whole, sign * (1 - share))
        np.add.at(covered, np.minimum(whole + 1, len(places)), sign * share)
    overlap: Floats = np.cumsum(covered)[:-1]
    return overlap


def price(
    text: RecordedText,
    steps: AnySteps,
    curve: VerifyCostCurve,
    *,
    draft: VerifyCostCurve | None = None,
) -> Price:
    """What an answer takes with these steps and without, passes and all besides.

    Parameters
    ----------
    draft : curve of the draft model, where one drafts: it takes a pass a drafted token, and
        one over whatever the target verifies (draft-simple's ``process``).

    Raises
    ------
    InputError : an answer of one token, which took no step.
    """
    if len(text.answer) < 2:  # noqa: PLR2004 - the first token comes out of the prompt pass
        raise InputError(
            "an answer of one token took no step that could be priced",
            field=f"texts[{text.key}]",
            value=len(text.answer),
            fix="Leave it out",
        )
    plain, drafting, besides = plain_passes(text), passes_of(text, steps), curve.besides
    arm = (
        drafting.total(curve)
        + drafting.tokens * besides.token_ms
        + drafting.taken * (besides.step_ms + besides.asked_ms)
        + drafting.drafted * besides.drafted_ms
    )
    if draft is not None:
        arm = arm + _draft_model_ms(steps, drafting, draft)
    return Price(plain.total(curve) + plain.tokens * besides.plain_ms, arm)


def _draft_model_ms(steps: AnySteps, passes: Passes, draft: VerifyCostCurve) -> float:
    """What a draft model adds to an answer; its own uncertainty is left out."""
    single = draft.at(1, steps[:, DEPTH])[0] + draft.besides.token_ms
    return float(passes.total(draft.point())[0] + (steps[:, DRAFTED] * single).sum())


def counted_steps(
    text: RecordedText, *, drafted_steps: int, draft_n: int, draft_n_accepted: int, seed: int = 1
) -> Floats:
    """Drafted steps as counters know them: alike, and spread over the answer at random.

    For a run whose steps cannot be replayed. Every step has the mean width and acceptance;
    how often two drafted steps follow each other is left to chance.
    """
    taken = len(text.answer) - 1 - draft_n_accepted
    if drafted_steps == 0:
        return np.zeros((0, 3))
    chosen = np.zeros(max(taken, drafted_steps), bool)
    chosen[:drafted_steps] = True
    np.random.default_rng(seed).shuffle(chosen)
    accepted = draft_n_accepted / drafted_steps
    before = np.concatenate([[0.0], np.cumsum(1 + accepted * chosen)[:-1]])
    depth = len(text.prompt) + before[chosen]
    return np.column_stack(
        [depth, np.full(len(depth), draft_n / drafted_steps), np.full(len(depth), accepted)]
    )


def predict(
    texts: Sequence[RecordedText],
    steps: Sequence[AnySteps],
    curve: VerifyCostCurve,
    *,
    draft: VerifyCostCurve | None = None,
    level: float = 0.95,
) -> tuple[Floats, Estimate]:
    """Predicted speed-up of every text, and overall with an interval.

    The interval joins two independent errors: which texts were recorded (Student's t over
    texts) and how well the curve is known (its draws; nothing where it has none).

    Returns
    -------
    Log speed-ups, one a text; and their geometric mean.
    """
    priced = (price(t, s, curve, draft=draft) for t, s in zip(texts, steps, strict=True))
    logs = np.array([one.logs for one in priced]).reshape(len(texts), curve.draws)
    return logs[:, 0], geometric_mean(logs.T, level=level)


def interval(found: Price, *, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of one text's speed-up from the curve alone; None where it is not known."""
    if len(found.logs) < 2:  # noqa: PLR2004 - the estimate and one draw
        return None
    tails = (1 - level) / 2, (1 + level) / 2
    low, high = np.exp(np.quantile(found.logs[1:], tails))
    return float(low), float(high)
