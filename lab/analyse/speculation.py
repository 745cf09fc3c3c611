"""A speed-up worked out before it is measured: what the text allows, priced by the hardware.

The text gives the steps (analyse.drafters): where something would be drafted, how much,
and how much of it is right. The hardware gives the price of a pass (measure.verify_cost).
A pass whose width differs from the one before costs more than one of a steady run, since
the engine builds its graph anew; so a drafted step, and a plain step right after one, are
priced by passes of changing width, all other steps by the steady pass. Choosing a token
for every row and trimming the cache are measured apart and belong to the step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from attrs import frozen
from numpy.typing import NDArray
from scipy import stats

from lab.analyse.drafters.steps import DEPTH, DRAFTED, RecordedText, Steps
from lab.analyse.estimates import Estimate
from lab.errors import InputError

Floats = NDArray[np.float64]
RESAMPLES = 200


@frozen(eq=False)
class VerifyCostCurve:
    """Milliseconds of a step by context depth and width, with the rounds it rests on.

    Attributes
    ----------
    depths, widths : where it was measured, ascending; tokens.
    changing : shape (rounds, depths, widths): a pass after one of another width, with
        choosing a token a row and trimming.
    steady : shape (rounds, depths): a one-token pass in a run of such passes.
    server_ms : what the server spends on a step besides, from baseline records; 0 where
        nothing is known of it.
    """

    depths: Floats
    widths: Floats
    changing: Floats
    steady: Floats
    server_ms: float = 0.0

    def step_ms(self, depth: Floats, width: Floats) -> Floats:
        """Price of drafted steps: median over rounds, linear between measured points.

        Beyond the last width the slope of the last two goes on; beyond the depths the
        nearest holds.
        """
        return _at(self.depths, self.widths, np.median(self.changing, axis=0), depth, width)

    def plain_ms(self, depth: Floats) -> Floats:
        """Price of undrafted steps in a run of such."""
        return np.interp(depth, self.depths, np.median(self.steady, axis=0))

    def ratio(self, width: int, depth: float) -> Estimate:
        """verify_cost: a pass of ``width`` over a steady one-token pass, over rounds."""
        at = np.array([float(depth)]), np.array([float(width)])
        logs = [
            math.log(
                _at(self.depths, self.widths, one, *at)[0] / np.interp(depth, self.depths, two)
            )
            for one, two in zip(self.changing, self.steady, strict=True)
        ]
        n, level = len(logs), 0.95
        centre = float(np.median(logs))
        half = float(stats.t.ppf(0.5 + level / 2, n - 1) * np.std(logs, ddof=1) / math.sqrt(n))
        low, high = math.exp(centre - half), math.exp(centre + half)
        return Estimate("verify_cost", "ratio", math.exp(centre), low, high, level, n, "round")

    def resampled(self, rng: np.random.Generator) -> VerifyCostCurve:
        """The same curve from rounds drawn with replacement."""
        drawn = rng.integers(0, len(self.steady), len(self.steady))
        return VerifyCostCurve(
            self.depths, self.widths, self.changing[drawn], self.steady[drawn], self.server_ms
        )


def curve_from(frame: pd.DataFrame, *, server_ms: float = 0.0) -> VerifyCostCurve:
    """A curve from timed passes (measure.verify_cost.read_curve).

    Raises
    ------
    InputError : a mode is missing, or no round holds every depth and width.
    """
    timed = frame.assign(step=frame["ms"] + frame["sample_ms"] + frame["trim_ms"])
    changing = timed[timed["mode"] == "alternating"].pivot_table(
        "step", "round", ["depth", "width"], "median"
    )
    run = timed[(timed["mode"] == "repeated") & (timed["width"] == 1) & (timed["place"] > 0)]
    steady = run.pivot_table("step", "round", "depth", "median")
    whole = changing.dropna().index.intersection(steady.dropna().index)
    if len(whole) < 2:  # noqa: PLR2004 - an interval needs two
        raise InputError(
            "too few whole rounds for a curve", field="rounds", value=len(whole), fix="Measure more"
        )
    depths = steady.columns.to_numpy(float)
    widths = changing.columns.get_level_values("width").unique().to_numpy(float)
    cube = changing.loc[whole].to_numpy(float).reshape(len(whole), len(depths), len(widths))
    return VerifyCostCurve(depths, widths, cube, steady.loc[whole].to_numpy(float), server_ms)


def _at(depths: Floats, widths: Floats, table: Floats, depth: Floats, width: Floats) -> Floats:
    """Bilinear in depth and width; the last slope over width goes on."""
    by_width = np.stack([_along(widths, row, width) for row in table])
    if len(depths) == 1:
        return np.asarray(by_width[0])
    place = np.clip(np.searchsorted(depths, depth) - 1, 0, len(depths) - 2)
    share = np.clip((depth - depths[place]) / (depths[place + 1] - depths[place]), 0, 1)
    points = np.arange(len(depth))
    return np.asarray(by_width[place, points] * (1 - share) + by_width[place + 1, points] * share)


def _along(known: Floats, values: Floats, wanted: Floats) -> Floats:
    beyond = np.maximum(wanted - known[-1], 0)
    slope = (values[-1] - values[-2]) / (known[-1] - known[-2]) if len(known) > 1 else 0.0
    return np.asarray(np.interp(wanted, known, values) + beyond * slope)


@frozen
class Price:
    """What an answer takes by the curve, milliseconds: without drafting and with."""

    baseline_ms: float
    arm_ms: float

    @property
    def log_speedup(self) -> float:
        """Logarithm of baseline over arm."""
        return math.log(self.baseline_ms / self.arm_ms)


def price(text: RecordedText, steps: Steps, curve: VerifyCostCurve) -> Price:
    """Price the steps of an answer.

    A step is drafted (its width is the draft and the sampled token), plain right after a
    drafted one, or plain in a run of plain ones.
    """
    first = len(text.prompt)
    places = np.arange(first, first + len(text.answer) - 1, dtype=float)
    baseline = float((curve.plain_ms(places) + curve.server_ms).sum())
    covered = np.zeros(len(places), bool)
    after = np.zeros(len(places) + 1, bool)
    for depth, _, accepted in steps:
        start = depth - first
        covered[start : start + accepted + 1] = True
        after[min(start + accepted + 1, len(places))] = True
    changed = ~covered & after[:-1]
    plain = ~covered & ~changed
    depth, width = steps[:, DEPTH].astype(np.float64), (steps[:, DRAFTED] + 1).astype(np.float64)
    drafted_ms = curve.step_ms(depth, width).sum()
    changed_ms = curve.step_ms(places[changed], np.ones(int(changed.sum()))).sum()
    taken = len(steps) + int(changed.sum() + plain.sum())
    arm = drafted_ms + changed_ms + curve.plain_ms(places[plain]).sum() + taken * curve.server_ms
    return Price(baseline, float(arm))


def predict(
    texts: Sequence[RecordedText],
    steps: Sequence[Steps],
    curve: VerifyCostCurve,
    *,
    level: float = 0.95,
    seed: int = 1,
) -> tuple[Floats, Estimate]:
    """Predicted speed-up of every text, and overall with an interval.

    The interval joins two independent errors: which texts were recorded (Student's t over
    texts) and which rounds the curve rests on (bootstrap over rounds).

    Returns
    -------
    Log speed-ups, one a text; and their geometric mean.
    """
    logs = np.array([price(t, s, curve).log_speedup for t, s in zip(texts, steps, strict=True)])
    n = len(logs)
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(RESAMPLES):
        drawn = curve.resampled(rng)
        means.append(
            np.mean([price(t, s, drawn).log_speedup for t, s in zip(texts, steps, strict=True)])
        )
    from_curve = float(np.std(means))
    from_texts = float(np.std(logs, ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    half = float(stats.t.ppf(0.5 + level / 2, max(n - 1, 1))) * math.hypot(from_curve, from_texts)
    centre = float(logs.mean())
    low, high = (math.exp(centre - half), math.exp(centre + half)) if n > 1 else (None, None)
    return logs, Estimate("speedup", "ratio", math.exp(centre), low, high, level, n)
