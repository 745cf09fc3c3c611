"""How right a draft must be before it pays, and how long it should be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from attrs import frozen

from lab.analyse.speculation import VerifyCostCurve


def break_even(curve: VerifyCostCurve, widths: Sequence[int], depth: float) -> pd.DataFrame:
    """Acceptance length at which a drafted step costs what it saves.

    One row a width (tokens of the pass, the draft and one more): width, verify_cost, low,
    high, break_even_acceptance (tokens a drafted step, equal to the cost), and
    possible (False where even a draft that is right whole would lose).
    """
    rows = []
    for width in widths:
        cost = curve.ratio(width, depth)
        rows.append(
            {
                "width": width,
                "verify_cost": cost.value,
                "low": cost.low,
                "high": cost.high,
                "break_even_acceptance": cost.value,
                "possible": cost.value is not None and cost.value < width,
            }
        )
    return pd.DataFrame(rows)


@frozen
class BestLength:
    """A draft length (0 is: do not draft) and the speed-up expected of it."""

    length: int
    speedup: float


def best_length(
    accepted_share: Sequence[float], curve: VerifyCostCurve, depth: float
) -> BestLength:
    """The draft length that pays most when something is drafted at every step.

    Parameters
    ----------
    accepted_share : share of drafts whose first i tokens are all right, i = 1, 2, ...

    Expected tokens of a step are 1 + the sum of the shares up to the length (Leviathan et
    al. 2023, for measured shares); its cost is the curve's.
    """
    best = BestLength(0, 1.0)
    for length in range(1, len(accepted_share) + 1):
        tokens = 1 + float(np.sum(accepted_share[:length]))
        cost = curve.ratio(length + 1, depth).value or float("inf")
        if tokens / cost > best.speedup:
            best = BestLength(length, tokens / cost)
    return best


def acceptance_for(speedup: float, coverage: float, step_cost: float) -> float | None:
    """What would have to be true: tokens a drafted step for a wanted speed-up.

    From speedup = tokens_per_step / mean cost with tokens_per_step = 1 + coverage
    (acceptance_length - 1) and mean cost = 1 + coverage (step_cost - 1). None without
    coverage, where nothing can be gained.
    """
    if coverage <= 0:
        return None
    mean_cost = 1 + coverage * (step_cost - 1)
    return 1 + (speedup * mean_cost - 1) / coverage
