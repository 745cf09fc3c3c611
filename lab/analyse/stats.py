"""Paired comparison of arms: the prompt is the unit, the log-ratio the quantity.

Repeats of a prompt are reduced to their median first; the baseline's milliseconds per
token over the arm's, on the same prompt, is one ratio. Its centre over prompts is the
geometric mean and its interval Student's t on the logarithms. Simulated with noise as
seen here (5 % a request, heavy tails, outliers, rounding, category effects), t covers
94 to 97 % at 5, 8, 24 and 96 prompts, where the BCa bootstrap covers 80 to 91 % at 5 and
8 and falls to 84 % with outliers (analyse.simulate; docs/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from attrs import frozen
from scipy import stats

from lab.analyse.estimates import Estimate

LEAST_N = 3
"""Fewer pairs give a value without an interval."""
CLAIM_N = 5
"""Fewer pairs give no verdict but "inconclusive"."""
SKEW_N = 24
"""With fewer pairs a strongly skewed effect makes any interval too narrow: see cautions."""


@frozen
class Comparison:
    """One arm against the baseline.

    Attributes
    ----------
    arm : name. speedup : the estimate. verdict : "faster", "slower", "equivalent" or
        "inconclusive". margin : fraction within which a difference is of no practical use.
    p_value : two-sided, of no difference; adjusted by Holm when several arms are compared.
    pairs : the ratios behind it, one row a prompt (see :func:`pairs`).
    """

    arm: str
    speedup: Estimate
    verdict: str
    margin: float
    p_value: float | None
    pairs: pd.DataFrame


def pairs(
    frame: pd.DataFrame,
    arm: str,
    baseline: str = "baseline",
    *,
    value: str = "ms_per_token",
    match: Sequence[str] = ("prompt_id",),
) -> pd.DataFrame:
    """Ratios of an arm to the baseline on the same prompt.

    Parameters
    ----------
    frame : measured rows (tables.measured).
    value : a quantity of which less is better; the ratio is baseline over arm.
    match : columns that make two rows a pair.

    Returns
    -------
    One row a pair: the match columns, category, baseline, arm, ratio, log_ratio; sorted
    by the match columns. Rows with a missing value make no pair.
    """
    keys = [*match]
    chosen = frame[frame[value].notna() & frame["arm"].isin([baseline, arm])]
    medians = (
        chosen.groupby([*keys, "arm"], observed=True, sort=True)[value].median().unstack("arm")  # noqa: PD010 - no other key
    )
    medians = medians.reindex(columns=[baseline, arm]).dropna()
    out = medians.set_axis(["baseline", "arm"], axis=1).reset_index()
    out["ratio"] = out["baseline"] / out["arm"]
    out["log_ratio"] = np.log(out["ratio"])
    category = chosen.drop_duplicates("prompt_id").set_index("prompt_id")["category"]
    out["category"] = out["prompt_id"].map(category) if "prompt_id" in keys else ""
    return out


def mean_log(
    logs: np.ndarray, *, name: str = "speedup", level: float = 0.95, unit_of_n: str = "prompt"
) -> Estimate:
    """Geometric mean of ratios with Student's t interval on their logarithms.

    The value is None without a ratio, the interval with fewer than LEAST_N.
    """
    n = len(logs)
    if n == 0:
        return Estimate(name, "ratio", None, None, None, level, 0, unit_of_n, "no pairs")
    centre = float(np.mean(logs))
    if n < LEAST_N:
        return Estimate(
            name, "ratio", math.exp(centre), None, None, level, n, unit_of_n, "too few pairs"
        )
    half = _half_width(logs, level)
    return Estimate(
        name,
        "ratio",
        math.exp(centre),
        math.exp(centre - half),
        math.exp(centre + half),
        level,
        n,
        unit_of_n,
    )


def _half_width(logs: np.ndarray, level: float) -> float:
    n = len(logs)
    error = float(np.std(logs, ddof=1)) / math.sqrt(n)
    return float(stats.t.ppf(0.5 + level / 2, n - 1)) * error


def judge(logs: np.ndarray, *, margin: float, level: float = 0.95) -> str:
    """Which of four things the ratios prove.

    ========================================  ==============
    interval of 1 - 2 alpha inside the margin  "equivalent"
    else interval of 1 - alpha above 1         "faster"
    else interval of 1 - alpha below 1         "slower"
    else, or fewer than CLAIM_N pairs          "inconclusive"
    ========================================  ==============

    The first line is two one-sided tests at alpha (Schuirmann 1987) against
    1 / (1 + margin) and 1 + margin. It comes first: a difference that is certain but
    below the margin is of no practical use.
    """
    if len(logs) < CLAIM_N:
        return "inconclusive"
    centre, alpha, edge = float(np.mean(logs)), 1 - level, math.log1p(margin)
    if abs(centre) + _half_width(logs, 1 - 2 * alpha) < edge:
        return "equivalent"
    if abs(centre) > _half_width(logs, level):
        return "faster" if centre > 0 else "slower"
    return "inconclusive"


def judge_interval(estimate: Estimate, margin: float) -> str:
    """A verdict from an interval alone, for estimates of fewer than CLAIM_N pairs.

    Stricter than :func:`judge`: "equivalent" asks that the whole interval lies within
    the margin, which is a test at half its alpha.
    """
    if estimate.low is None or estimate.high is None:
        return "inconclusive"
    if estimate.low > 1 / (1 + margin) and estimate.high < 1 + margin:
        return "equivalent"
    if estimate.low > 1:
        return "faster"
    return "slower" if estimate.high < 1 else "inconclusive"


def summarise(points: pd.DataFrame, by: Sequence[str], level: float) -> pd.DataFrame:
    """Geometric mean and interval of ``log_ratio`` in each group.

    Returns
    -------
    One row a group: the ``by`` columns, speedup, low, high (NaN where there is no
    interval) and n.
    """
    rows = []
    for key, group in points.groupby([*by], observed=True, sort=True):
        one = mean_log(group["log_ratio"].to_numpy(), level=level)
        names = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        rows.append(names | {"speedup": one.value, "low": one.low, "high": one.high, "n": one.n})
    columns = [*by, "speedup", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns).astype({"low": float, "high": float})


def p_no_difference(logs: np.ndarray) -> float | None:
    """Two-sided p of "no difference" (paired t on logarithms); None below LEAST_N pairs."""
    if len(logs) < LEAST_N:
        return None
    if np.ptp(logs) == 0:
        return 1.0 if logs[0] == 0 else 0.0
    return float(stats.ttest_1samp(logs, 0.0).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment (1979); missing values stay missing and do not count."""
    known = [(p, place) for place, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(sorted(known)):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        adjusted[place] = highest
    return adjusted


def compare(
    frame: pd.DataFrame,
    arms: Sequence[str],
    *,
    baseline: str = "baseline",
    margin: float,
    level: float = 0.95,
    value: str = "ms_per_token",
) -> tuple[Comparison, ...]:
    """Every arm against the baseline, with Holm over the arms for "faster" and "slower"."""
    found = []
    for arm in arms:
        rows = pairs(frame, arm, baseline, value=value)
        logs = rows["log_ratio"].to_numpy()
        verdict = judge(logs, margin=margin, level=level)
        found.append(
            Comparison(
                arm, mean_log(logs, level=level), verdict, margin, p_no_difference(logs), rows
            )
        )
    return _adjusted(found, 1 - level)


def _adjusted(found: Sequence[Comparison], alpha: float) -> tuple[Comparison, ...]:
    """Take back a "faster" or "slower" that does not survive the number of arms tried."""
    p_values = holm([one.p_value for one in found])
    return tuple(
        Comparison(
            one.arm,
            one.speedup,
            "inconclusive"
            if one.verdict in {"faster", "slower"} and (p is None or p > alpha)
            else one.verdict,
            one.margin,
            p,
            one.pairs,
        )
        for one, p in zip(found, p_values, strict=True)
    )


def noise_floor(frame: pd.DataFrame, first: str, second: str, *, level: float = 0.95) -> Estimate:
    """How far two identical arms lie apart: |median log-ratio| over prompts (A/A).

    ``high`` bounds what the machine makes of nothing: the larger end of the interval of
    the median, by binomial order statistics (no distribution assumed).
    """
    logs = np.sort(pairs(frame, second, first)["log_ratio"].to_numpy())
    n = len(logs)
    if n < CLAIM_N:
        return Estimate(
            "noise_floor", "log ratio", None, None, None, level, n, reason="too few pairs"
        )
    rank = int(stats.binom.ppf((1 - level) / 2, n, 0.5))
    low, high = logs[max(rank - 1, 0)], logs[min(n - rank, n - 1)]
    value = abs(float(np.median(logs)))
    crosses = low <= 0 <= high
    ends = sorted((abs(float(low)), abs(float(high))))
    return Estimate(
        "noise_floor", "log ratio", value, 0.0 if crosses else ends[0], ends[1], level, n
    )


def margin_above(floor: Estimate, wanted: float) -> float:
    """The margin fixed before measuring, raised to the A/A floor where that is higher."""
    return wanted if floor.value is None else max(wanted, math.expm1(floor.value))


def by_category(comparison: Comparison, *, level: float = 0.95) -> dict[str, Estimate]:
    """Speed-up within each category; too few prompts give a value without interval."""
    return {
        str(name): mean_log(rows["log_ratio"].to_numpy(), level=level)
        for name, rows in comparison.pairs.groupby("category", observed=True, sort=True)
    }
