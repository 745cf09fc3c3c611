"""Where the middle of some log-ratios lies and how far it may be off.

The interval is Student's t, by category where categories can tell their own spread. The
alternatives were simulated (analyse.simulate, table in docs/statistics.md): the BCa and
percentile bootstraps cover too little below about 100 prompts, and resampling within
categories of two prompts, as a stratified bootstrap must, covers 80 %.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from attrs import frozen
from scipy import stats

Strata = Sequence[Hashable] | np.ndarray


@frozen
class Location:
    """Means along the last axis, with what their intervals need.

    Attributes
    ----------
    mean, error : mean and its standard error, in the unit of the values.
    df : degrees of freedom of the standard error. n : values behind each mean.
    """

    mean: np.ndarray
    error: np.ndarray
    df: int
    n: int

    def half_width(self, level: float) -> np.ndarray:
        """Half the width of the two-sided interval at ``level``."""
        return np.asarray(stats.t.ppf(0.5 + level / 2, self.df) * self.error)

    def p_no_difference(self) -> np.ndarray:
        """Two-sided p of a true mean of 0; 1 where all values are 0, 0 where all are the same."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.mean) / self.error
        t = np.where(self.error > 0, t, np.where(self.mean == 0, 0.0, np.inf))
        return np.asarray(2 * stats.t.sf(t, self.df))


def locate(values: np.ndarray, strata: Strata | None = None) -> Location:
    """Mean of at least two values along the last axis, every value with the same weight.

    With ``strata`` (a category a value) the error is what remains within categories: it
    speaks of texts of these categories in these shares. Without, or where each category
    has one value, it is the plain t interval, which also covers which categories were
    chosen.

    The variance is right whatever categories spread by; its degrees of freedom are those
    of equal spreads. Satterthwaite's, which would not assume that, come from so few
    values a category that intervals grow by half where a request is slow (simulated).
    """
    n = values.shape[-1]
    codes = merge_singles(strata if strata is not None else np.zeros(n, int))
    sizes = np.bincount(codes)
    member = np.eye(len(sizes))[codes]
    means = values @ member / sizes
    squares = (values - means[..., codes]) ** 2 @ member
    # The mean over all values has variance sum of n_k s_k^2 / n^2 over the categories k.
    variance = (sizes * squares / (sizes - 1) / n**2).sum(axis=-1)
    return Location(values.mean(axis=-1), np.sqrt(variance), n - len(sizes), n)


def merge_singles(strata: Strata) -> np.ndarray:
    """Category codes from 0, those of a single value put together.

    One value knows no spread. Collapsing strata makes the error larger rather than
    smaller (Cochran, Sampling Techniques, 1977, 5A.12).
    """
    _, codes, sizes = np.unique(
        np.asarray(strata, dtype=str), return_inverse=True, return_counts=True
    )
    single = sizes == 1
    if single.sum() == 1 and len(sizes) > 1:
        others = np.where(single, np.iinfo(int).max, sizes)
        single[int(np.argmin(others))] = True
    merged = np.where(single[codes], -1, codes)
    return np.asarray(np.unique(merged, return_inverse=True)[1])


def verdicts(at: Location, *, margin: float, level: float) -> np.ndarray:
    """Which of four things each mean of log-ratios proves; see stats.judge."""
    alpha, edge = 1 - level, np.log1p(margin)
    equivalent = np.abs(at.mean) + at.half_width(1 - 2 * alpha) < edge
    certain = np.abs(at.mean) > at.half_width(level)
    return np.select(
        [equivalent, certain & (at.mean > 0), certain & (at.mean < 0)],
        ["equivalent", "faster", "slower"],
        "inconclusive",
    )
