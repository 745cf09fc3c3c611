"""Pricing many settings over the same texts: each answer's passes as a bill, then one product.

A price is linear in the points of a curve. The passes of an answer are therefore turned
once into how often each point is paid, and all draws of the curve price them together;
what is counted is what ``speculation.price`` counts pass by pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy import stats

from lab.analyse.drafters.steps import ACCEPTED, DEPTH, DRAFTED, RecordedText, Steps
from lab.analyse.estimates import Estimate
from lab.analyse.verify_cost_curve import CHANGED, STEADY, Draws, VerifyCostCurve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@frozen(eq=False)
class Bills:
    """What the answers take with one setting.

    Attributes
    ----------
    points : how often each point of the curve is paid, shape (texts, 2, depths, widths).
    taken, drafted, tokens : passes, those with a draft, and tokens they give; shape (texts,).
    """

    points: Floats
    taken: Floats
    drafted: Floats
    tokens: Floats

    @property
    def tokens_per_step(self) -> Floats:
        """Speed-up if every pass cost the same; 1 where no pass is taken. Shape (texts,)."""
        return np.divide(
            self.tokens, self.taken, out=np.ones(len(self.taken)), where=self.taken > 0
        )


class Ledger:
    """Texts laid out once, so that any setting is billed and priced in a moment."""

    def __init__(self, texts: Sequence[RecordedText], curve: VerifyCostCurve) -> None:
        self.curve = curve
        self._first = np.array([len(text.prompt) for text in texts], np.int64)
        self._passes = np.array([max(len(text.answer) - 1, 0) for text in texts], np.int64)
        self._end = np.cumsum(self._passes)
        self._start = self._end - self._passes
        depths = [np.arange(f, f + n) for f, n in zip(self._first, self._passes, strict=True)]
        shares = _shares(curve.depths, np.concatenate([*depths, []]).astype(np.float64))
        self._running = np.vstack([np.zeros(len(curve.depths)), np.cumsum(shares, axis=0)])
        self._plain = self._running[self._end] - self._running[self._start]
        self._times = curve.times.reshape(curve.draws, -1)
        without = curve.times[:, STEADY, :, 0] @ self._plain.T
        self._baseline = without + self._passes * curve.besides.plain_ms

    def bills(self, steps: Sequence[Steps]) -> Bills:
        """Bill the drafted steps of one setting, one array a text."""
        drafted = np.concatenate([np.zeros((0, 3), np.int64), *steps]).astype(np.int64)
        text = np.repeat(np.arange(len(self._passes)), [len(one) for one in steps])
        begin = self._start[text] + drafted[:, DEPTH] - self._first[text]
        after = np.minimum(begin + drafted[:, ACCEPTED] + 1, self._end[text])
        width = drafted[:, DRAFTED] + 1
        next_begin, next_width = np.append(begin[1:], -1), np.append(width[1:], 0)
        # A pass like the one before it, right after it, finds the graph it needs.
        follows = (after < self._end[text]) & (next_begin == after)
        alike = np.append([False], (follows & (next_width == width))[:-1])[: len(width)]
        back = (after < self._end[text]) & ~follows
        whose, place = text[back], after[back]
        points = np.zeros((len(self._passes), 2, *self.curve.times.shape[2:]))
        plain = points[:, STEADY, :, 0]
        plain += self._plain
        np.subtract.at(plain, text, self._running[after] - self._running[begin])
        np.subtract.at(plain, whose, self._running[place + 1] - self._running[place])
        depth = np.concatenate([drafted[:, DEPTH], place - self._start[whose] + self._first[whose]])
        kind = np.concatenate([np.where(alike, STEADY, CHANGED), np.full(len(place), CHANGED)])
        wide = np.concatenate([width, np.ones(len(place), np.int64)])
        self._add(points, np.concatenate([text, whose]), kind, depth, wide)
        saved = np.bincount(text, after - begin - 1, len(self._passes))
        return Bills(
            points=points,
            taken=(self._passes - saved).astype(np.float64),
            drafted=np.bincount(text, minlength=len(self._passes)).astype(np.float64),
            tokens=self._passes.astype(np.float64),
        )

    def _add(self, points: Floats, text: Ints, kind: Ints, depth: Ints, width: Ints) -> None:
        by_depth = _shares(self.curve.depths, depth.astype(np.float64))
        by_width = _shares(self.curve.widths, width.astype(np.float64), beyond=True)
        np.add.at(points, (text, kind), by_depth[:, :, None] * by_width[:, None, :])

    def log_speedups(self, bills: Bills) -> Draws:
        """Logarithm of predicted speed-up, shape (draws, texts); 0 where no pass is taken."""
        besides = self.curve.besides
        arm = self._times @ bills.points.reshape(len(self._passes), -1).T
        arm += bills.tokens * besides.token_ms + bills.drafted * besides.drafted_ms
        arm += bills.taken * (besides.step_ms + besides.asked_ms)
        ratio = np.divide(self._baseline, arm, out=np.ones_like(arm), where=bills.taken > 0)
        return np.asarray(np.log(ratio))


def geometric_mean(logs: Draws, *, name: str = "speedup", level: float = 0.95) -> Estimate:
    """Over texts, of log ratios of shape (draws, texts); draw 0 is the estimate.

    The interval joins which texts were recorded (Student's t over texts) with how well the
    curve is known (its draws; nothing where it has none).
    """
    n = logs.shape[1]
    if n == 0:
        return Estimate(name, "ratio", None, None, None, level, 0, reason="no text")
    centre = float(logs[0].mean())
    if n == 1:
        why = "one text says nothing about others"
        return Estimate(name, "ratio", math.exp(centre), None, None, level, 1, reason=why)
    from_curve = float(np.std(logs[1:].mean(axis=1))) if len(logs) > 1 else 0.0
    from_texts = float(np.std(logs[0], ddof=1)) / math.sqrt(n)
    half = float(stats.t.ppf(0.5 + level / 2, n - 1)) * math.hypot(from_curve, from_texts)
    low, high = math.exp(centre - half), math.exp(centre + half)
    return Estimate(name, "ratio", math.exp(centre), low, high, level, n)


def _shares(known: Floats, wanted: Floats, *, beyond: bool = False) -> Floats:
    """Weights of the measured points for each wanted one; shape (wanted, known).

    Linear between points; outside the nearest holds, but with ``beyond`` the last slope
    goes on above the last point.
    """
    out = np.zeros((len(wanted), len(known)))
    if len(known) == 1:
        return out + 1
    place = np.clip(np.searchsorted(known, wanted, side="right") - 1, 0, len(known) - 2)
    share = (wanted - known[place]) / (known[place + 1] - known[place])
    share = np.clip(share, 0, None if beyond else 1)
    rows = np.arange(len(wanted))
    out[rows, place] = 1 - share
    out[rows, place + 1] = share
    return out
