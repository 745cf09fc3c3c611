"""Paired comparison of arms: the prompt is the unit, the log-ratio the quantity.

Repeats of a prompt are reduced to their median first; the baseline's milliseconds per
token over the arm's, on the same prompt, is one ratio. Its centre over prompts is the
geometric mean (or the median), its interval Student's t on the logarithms, by category
where every category can tell its own spread (analyse.location says why).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from attrs import frozen
from scipy import stats

from lab.analyse.estimates import Estimate
from lab.analyse.location import Strata, locate, verdicts

LEAST_N = 3
"""Fewer pairs give a value without an interval."""
CLAIM_N = 5
"""Fewer pairs give no verdict but "inconclusive"."""


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
    logs: np.ndarray,
    strata: Strata | None = None,
    *,
    name: str = "speedup",
    level: float = 0.95,
    unit_of_n: str = "prompt",
) -> Estimate:
    """Geometric mean of ratios with Student's t interval on their logarithms.

    The value is None without a ratio, the interval with fewer than LEAST_N. ``strata``
    is a category a ratio: see :func:`lab.analyse.location.locate`.
    """
    n = len(logs)
    if n == 0:
        return Estimate(name, "ratio", None, None, None, level, 0, unit_of_n, "no pairs")
    centre = float(np.mean(logs))
    if n < LEAST_N:
        return Estimate(
            name, "ratio", math.exp(centre), None, None, level, n, unit_of_n, "too few pairs"
        )
    half = float(locate(logs, strata).half_width(level))
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


def median_log(logs: np.ndarray, *, name: str = "median_speedup", level: float = 0.95) -> Estimate:
    """Median ratio with its interval by binomial order statistics (no distribution assumed).

    The value is None without a ratio, the interval where n allows none at this level
    (fewer than 6 ratios at 95 %).
    """
    n = len(logs)
    if n == 0:
        return Estimate(name, "ratio", None, None, None, level, 0, reason="no pairs")
    value = math.exp(float(np.median(logs)))
    rank = int(stats.binom.ppf((1 - level) / 2, n, 0.5))
    if rank == 0:
        return Estimate(name, "ratio", value, None, None, level, n, reason="too few pairs")
    ordered = np.sort(logs)
    low, high = float(ordered[rank - 1]), float(ordered[n - rank])
    return Estimate(name, "ratio", value, math.exp(low), math.exp(high), level, n)


def judge(
    logs: np.ndarray, strata: Strata | None = None, *, margin: float, level: float = 0.95
) -> str:
    """Which of four things the ratios prove.

    ========================================  ==============
    interval of 1 - 2 alpha inside the margin  "equivalent"
    else interval of 1 - alpha above 1         "faster"
    else interval of 1 - alpha below 1         "slower"
    else, or fewer than CLAIM_N pairs          "inconclusive"
    ========================================  ==============

    The first line is two one-sided tests at alpha (Schuirmann 1987) against
    1 / (1 + margin) and 1 + margin. It comes first: a difference that is certain but
    below the margin is of no practical use. "faster" does not say by more than the
    margin: the interval says by how much.
    """
    if len(logs) < CLAIM_N:
        return "inconclusive"
    return str(verdicts(locate(logs, strata), margin=margin, level=level))


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


def p_no_difference(logs: np.ndarray, strata: Strata | None = None) -> float | None:
    """Two-sided p of "no difference" (paired t on logarithms); None below LEAST_N pairs."""
    return float(locate(logs, strata).p_no_difference()) if len(logs) >= LEAST_N else None


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
        logs, strata = rows["log_ratio"].to_numpy(), rows["category"].to_numpy()
        found.append(
            Comparison(
                arm,
                mean_log(logs, strata, level=level),
                judge(logs, strata, margin=margin, level=level),
                margin,
                p_no_difference(logs, strata),
                rows,
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
    the median. None where there are too few pairs for one.
    """
    logs = pairs(frame, second, first)["log_ratio"].to_numpy()
    middle = median_log(logs, level=level)
    if middle.value is None or middle.low is None or middle.high is None:
        return Estimate(
            "noise_floor", "log ratio", None, None, None, level, len(logs), reason="too few pairs"
        )
    ends = sorted(abs(math.log(end)) for end in (middle.low, middle.high))
    least = 0.0 if middle.low <= 1 <= middle.high else ends[0]
    value = abs(math.log(middle.value))
    return Estimate("noise_floor", "log ratio", value, least, ends[1], level, len(logs))


def margin_above(floor: Estimate, wanted: float) -> float:
    """The margin fixed before measuring, raised to the A/A floor where that is higher."""
    return wanted if floor.value is None else max(wanted, math.expm1(floor.value))


def by_category(comparison: Comparison, *, level: float = 0.95) -> dict[str, Estimate]:
    """Speed-up within each category; too few prompts give a value without interval."""
    return {
        str(name): mean_log(rows["log_ratio"].to_numpy(), level=level)
        for name, rows in comparison.pairs.groupby("category", observed=True, sort=True)
    }
