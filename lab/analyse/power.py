"""How much must be measured to see an effect of a given size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from attrs import frozen
from scipy import stats

from lab.analyse.spread import Spread, variance_of_median
from lab.analyse.stats import CLAIM_N

PROMPTS_AT_MOST = 4096


@frozen
class Design:
    """Size of an experiment: prompts, repeats of each (blocks), and sessions."""

    prompts: int
    repeats: int = 1
    sessions: int = 1

    @property
    def requests(self) -> int:
        """Requests of the arm and its baseline together."""
        return 2 * self.prompts * self.repeats * self.sessions


def standard_error(design: Design, spread: Spread) -> tuple[float, float]:
    """Expected standard error of the mean log speed-up, and its degrees of freedom.

    With one session the spread between sessions is not seen and not counted: the result
    holds for that session. With several it is, by the crossed design of analyse.sessions.
    """
    prompts, sessions = design.prompts, design.sessions
    noise = (spread.request or 0.0) ** 2 * variance_of_median(design.repeats)
    of_prompts = sessions * spread.prompt**2 + noise
    if sessions == 1:
        return math.sqrt(of_prompts / prompts), prompts - 1
    of_sessions = prompts * (spread.session or 0.0) ** 2 + noise
    parts = np.array([of_prompts, of_sessions, -noise]) / (prompts * sessions)
    free = np.array([prompts - 1, sessions - 1, (prompts - 1) * (sessions - 1)])
    variance = float(parts.sum())
    weight = float((parts**2 / free).sum())
    return math.sqrt(variance), max(1.0, variance**2 / weight) if weight else float(free[2])


def power_of_difference(
    effect: float, design: Design, spread: Spread, *, level: float = 0.95
) -> float:
    """Probability that a true log speed-up ``effect`` is called by its sign (noncentral t)."""
    error, df = standard_error(design, spread)
    if error == 0:
        return 1.0
    edge, shift = float(stats.t.ppf(0.5 + level / 2, df)), abs(effect) / error
    return float(stats.nct.sf(edge, df, shift))


def power_of_equivalence(
    margin: float, design: Design, spread: Spread, *, level: float = 0.95
) -> float:
    """Probability that two equal arms are called equivalent within ``margin`` (TOST).

    Averaged over what the standard error may turn out to be (scaled chi).
    """
    error, df = standard_error(design, spread)
    if error == 0:
        return 1.0
    share = (np.arange(200) + 0.5) / 200
    seen = error * np.sqrt(stats.chi2.ppf(share, df) / df)
    room = math.log1p(margin) - float(stats.t.ppf(level, df)) * seen
    return float(np.mean(np.where(room > 0, 2 * stats.norm.cdf(room / error) - 1, 0)))


def designs(
    spread: Spread,
    *,
    effect: float | None = None,
    margin: float = 0.02,
    wanted: float = 0.9,
    level: float = 0.95,
    repeats: Iterable[int] = (1, 2, 3, 5),
    sessions: Iterable[int] = (1, 2, 3, 5),
) -> pd.DataFrame:
    """The fewest prompts that suffice, for each number of repeats and sessions.

    Parameters
    ----------
    effect : true speed-up to be shown, as a fraction (0.03 is 3 %, negative is slower);
        None plans to show that there is none beyond ``margin``.
    wanted : probability of success.

    Returns
    -------
    Cheapest first: repeats, sessions, prompts (missing where PROMPTS_AT_MOST do not
    suffice), requests, power, why. Several sessions are left out where the spread
    between them is not known.
    """

    def power(design: Design) -> float:
        if effect is None:
            return power_of_equivalence(margin, design, spread, level=level)
        return power_of_difference(math.log1p(effect), design, spread, level=level)

    rows = [
        _fewest(power, wanted, again, count)
        for count in sessions
        if count == 1 or spread.session is not None
        for again in repeats
    ]
    columns = ["repeats", "sessions", "prompts", "requests", "power", "why"]
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values("requests", na_position="last", kind="stable").reset_index(drop=True)


def _fewest(
    power: Callable[[Design], float], wanted: float, repeats: int, sessions: int
) -> dict[str, object]:
    def of(prompts: int) -> float:
        return power(Design(prompts, repeats, sessions))

    most = of(PROMPTS_AT_MOST)
    row: dict[str, object] = {"repeats": repeats, "sessions": sessions}
    if most < wanted:
        why = f"not with {PROMPTS_AT_MOST} prompts"
        why += "; sessions differ too much for so few of them" if sessions > 1 else ""
        return row | {"prompts": None, "requests": None, "power": most, "why": why}
    low, high = CLAIM_N - 1, PROMPTS_AT_MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle) >= wanted else (middle, high)
    requests = Design(high, repeats, sessions).requests
    return row | {"prompts": high, "requests": requests, "power": of(high), "why": ""}
