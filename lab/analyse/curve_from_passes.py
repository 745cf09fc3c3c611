"""A verify-cost curve out of timed passes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lab.analyse.step_overhead import StepOverhead
from lab.analyse.verify_cost_curve import VerifyCostCurve
from lab.errors import InputError
from lab.measure.curve_plan import ALTERNATING, REPEATED

DRAWS = 200
LEAST_ROUNDS = 3
"""With fewer rounds a curve claims no interval."""


def curve_from(
    passes: pd.DataFrame,
    *,
    server_ms: float = 0.0,
    label: str | None = None,
    draws: int = DRAWS,
    seed: int = 1,
) -> VerifyCostCurve:
    """The curve of measured passes (``measure.verify_cost.read_curve``).

    A time is the median over rounds of the ratio to the one-token pass of the same round,
    times the median one-token pass; rounds are drawn anew, whole, for the uncertainty.
    Rounds that are not whole are left out. Where only one of the two modes was measured the
    curve says so in its assumptions.
    Choosing a token from a row of logits, and cutting the cache back after a draft, are
    those timed beside the passes; ``server_ms`` is what a server spends on a step besides.

    Raises
    ------
    InputError : no passes, or no whole round of them.
    """
    if passes.empty:
        raise InputError("no pass was timed", field="passes", fix="Measure a curve first")
    against = "over_steady_one" if (passes["mode"] == REPEATED).any() else "verify_cost"
    steady, changed, assumptions = _by_what_came_before(passes)
    depths, widths, rounds = (
        np.sort(passes[name].unique()) for name in ("depth", "width", "round")
    )
    cells = [_by_round(one, against, depths, widths, rounds) for one in (steady, changed)]
    ratios = np.stack(cells, axis=1)
    single = _by_round(steady, "ms", depths, widths[:1], rounds)[:, :, 0]
    whole = ~(np.isnan(ratios).any(axis=(1, 2, 3)) | np.isnan(single).any(axis=1))
    if not whole.any():
        raise InputError(
            "no round holds every width at every depth",
            field="width",
            value=widths.tolist(),
            fix="Let the measurement finish a round",
        )
    ratios, single = ratios[whole], single[whole]
    count = len(single)
    picks = _resampled(count, draws if count >= LEAST_ROUNDS else 1, seed)
    times = np.stack([_times(ratios[pick], single[pick]) for pick in picks])
    return VerifyCostCurve(
        label=label or str(passes["model"].iloc[0]),
        widths=widths.astype(float),
        depths=depths.astype(float),
        times=times,
        besides=StepOverhead(
            token_ms=float((passes["sample_ms"] / passes["width"]).median()),
            step_ms=server_ms,
            drafted_ms=float(passes["trim_ms"].median()),
        ),
        source=f"measured in process, {count} rounds",
        assumptions=assumptions,
        rounds=count,
    )


def _by_what_came_before(
    passes: pd.DataFrame,
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Passes after one of the same width, after one of another, and what was taken for what."""
    steady = passes[(passes["mode"] == REPEATED) & (passes["place"] > 0)]
    changed = passes[passes["mode"] == ALTERNATING]
    if changed.empty:
        first = passes[passes["place"] == 0]
        return steady, first, ("Only the first pass of a run pays for a change of width.",)
    if steady.empty:
        alike = "A pass costs the same whatever the width of the one before."
        return changed, changed, (alike,)
    return steady, changed, ()


def _by_round(
    passes: pd.DataFrame,
    value: str,
    depths: NDArray[np.int64],
    widths: NDArray[np.int64],
    rounds: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Medians within a round, shape (rounds, depths, widths); NaN where nothing was timed."""
    medians = passes.groupby(["round", "depth", "width"])[value].median()
    every = pd.MultiIndex.from_product([rounds, depths, widths])
    filled = medians.reindex(every).to_numpy(dtype=float)
    return filled.reshape(len(rounds), len(depths), len(widths))


def _times(ratios: NDArray[np.float64], single: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = np.median(ratios, axis=0) * np.median(single, axis=0)[:, None]
    return scaled


def _resampled(rounds: int, draws: int, seed: int) -> list[NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    every = np.arange(rounds)
    return [every, *(random.choice(every, rounds) for _ in range(draws - 1))]
