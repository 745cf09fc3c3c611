"""One experiment measured in several sessions: how far is a number good for another day?

The interval of one session says how well that session is known. What a restart, another
temperature or another memory layout makes of the same setting only several sessions tell.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from attrs import frozen
from scipy import stats

from lab.analyse.estimates import Estimate
from lab.analyse.spread import MeanSquares, cells, mean_squares
from lab.analyse.stats import summarise


@frozen
class Sessions:
    """A speed-up over sessions, beside what each of them says.

    Attributes
    ----------
    speedup : over sessions and prompts, n counting sessions; no interval from one session.
    between : spread of the true speed-up between sessions, as a fraction of it (one
        standard deviation of the logarithm); 0 when sessions differ by less than their noise.
    within : one row a session: its own speedup, low, high, n.
    """

    speedup: Estimate
    between: Estimate
    within: pd.DataFrame


def across_sessions(
    frame: pd.DataFrame,
    arm: str,
    baseline: str = "baseline",
    *,
    session: str = "run_id",
    level: float = 0.95,
) -> Sessions:
    """Speed-up of an arm over every session in the frame, on prompts asked in all of them.

    Sessions and prompts are both samples; the variance of the mean adds what each brings
    (crossed two-way random effects), with Satterthwaite's degrees of freedom (1946).

    Parameters
    ----------
    frame : measured rows of several runs that may be compared (manifest.require_comparable).
    session : column that tells sessions apart.
    """
    table = cells(frame, arm, baseline, session=session)
    long = table.reset_index().melt(session, value_name="log_ratio")
    within = summarise(long, [session], level)
    count, prompts = table.shape
    if count == 0 or prompts < 2:  # noqa: PLR2004 - no spread between fewer
        nothing = Estimate(
            "speedup", "ratio", None, None, None, level, count, "session", "no common prompts"
        )
        return Sessions(nothing, _unknown(level, count, "no common prompts"), within)
    squares = mean_squares(table)
    value = math.exp(squares.mean)
    if squares.session is None or squares.rest is None:
        why = "one session cannot say how sessions differ; measure again on another day"
        alone = Estimate("speedup", "ratio", value, None, None, level, 1, "session", why)
        return Sessions(alone, _unknown(level, 1, why), within)
    half = _half_width(squares, squares.session, squares.rest, level)
    low, high = math.exp(squares.mean - half), math.exp(squares.mean + half)
    return Sessions(
        Estimate("speedup", "ratio", value, low, high, level, count, "session"),
        _between(squares, squares.session, squares.rest, level),
        within,
    )


def _unknown(level: float, n: int, why: str) -> Estimate:
    return Estimate(
        "between_session_spread", "fraction", None, None, None, level, n, "session", why
    )


def _half_width(squares: MeanSquares, session: float, rest: float, level: float) -> float:
    cell = squares.sessions * squares.prompts
    parts = np.array([session, squares.prompt, -rest]) / cell
    free = np.array([squares.sessions - 1, squares.prompts - 1, 0])
    free[2] = free[0] * free[1]
    # Negative when the noise of single cells happens to exceed both effects.
    variance = max(float(parts.sum()), rest / cell)
    df = max(1.0, variance**2 / float((parts**2 / free).sum())) if variance else float(free[2])
    return float(stats.t.ppf(0.5 + level / 2, df)) * math.sqrt(variance)


def _between(squares: MeanSquares, session: float, rest: float, level: float) -> Estimate:
    """Spread with the interval that the chi-squared mean square of sessions allows."""
    free = squares.sessions - 1

    def spread(tail: float) -> float:
        return math.expm1(math.sqrt(max(0.0, (session / tail - rest) / squares.prompts)))

    value = spread(1.0)
    low, high = (
        spread(float(stats.chi2.ppf(tail, free)) / free)
        for tail in ((1 + level) / 2, (1 - level) / 2)
    )
    return Estimate(
        "between_session_spread", "fraction", value, low, high, level, squares.sessions, "session"
    )
