"""What log speed-ups vary by: the prompt, the session, and the single request.

Sessions and prompts are crossed: the same prompts are asked in every session (a run of
its own, on another day or after a restart).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
from attrs import frozen

from lab.analyse.location import locate
from lab.analyse.stats import pairs


@frozen
class Spread:
    """Standard deviations of a log speed-up.

    Attributes
    ----------
    prompt : of the true gain between prompts (of one category, where there are several).
    request : of one request of the arm over one of the baseline, nothing else differing;
        None where a pilot cannot tell it from ``prompt``, which then holds both.
    session : of the true gain between sessions; None where there was one session.
    """

    prompt: float
    request: float | None = None
    session: float | None = None


def cells(
    frame: pd.DataFrame, arm: str, baseline: str = "baseline", *, session: str = "run_id"
) -> pd.DataFrame:
    """Log-ratios, one row a session and one column a prompt asked in every session."""
    found = pairs(frame, arm, baseline, match=(session, "prompt_id"))
    table = found.pivot_table("log_ratio", session, "prompt_id", observed=True)
    return table.dropna(axis=1)


@frozen
class MeanSquares:
    """Two-way decomposition of a table of sessions and prompts, one value a cell.

    Attributes
    ----------
    session, prompt, rest : mean squares; ``rest`` is None with a single session.
    sessions, prompts : size of the table. mean : over all cells.
    """

    mean: float
    session: float | None
    prompt: float
    rest: float | None
    sessions: int
    prompts: int

    @property
    def between_sessions(self) -> float | None:
        """Variance between sessions (method of moments, not below 0)."""
        if self.session is None or self.rest is None:
            return None
        return max(0.0, (self.session - self.rest) / self.prompts)


def mean_squares(table: pd.DataFrame, category: pd.Series | None = None) -> MeanSquares:
    """Decompose a complete table of at least two prompts.

    Parameters
    ----------
    category : of each prompt, by prompt_id; prompts are then compared within categories.
    """
    values = table.to_numpy(float)
    sessions, prompts = values.shape
    mean, by_session, by_prompt = values.mean(), values.mean(axis=1), values.mean(axis=0)
    strata = None if category is None else category.reindex(table.columns).to_numpy()
    within = float(locate(by_prompt, strata).error) ** 2 * prompts
    if sessions == 1:
        return MeanSquares(float(mean), None, within, None, sessions, prompts)
    residual = values - by_session[:, None] - by_prompt[None, :] + mean
    rest = float((residual**2).sum()) / ((sessions - 1) * (prompts - 1))
    session = float(((by_session - mean) ** 2).sum()) * prompts / (sessions - 1)
    return MeanSquares(float(mean), session, within * sessions, rest, sessions, prompts)


def spread_of(
    frame: pd.DataFrame,
    arm: str,
    baseline: str = "baseline",
    *,
    again: str | None = None,
    session: str = "run_id",
) -> Spread | None:
    """Spreads of a pilot; None with fewer than two prompts asked in every session.

    Parameters
    ----------
    frame : measured rows (tables.measured).
    again : the second baseline of an A/A pair, which tells the spread of single requests
        where no prompt was repeated.
    """
    table = cells(frame, arm, baseline, session=session)
    if table.shape[1] < 2:  # noqa: PLR2004 - no spread between fewer
        return None
    category = frame.drop_duplicates("prompt_id").set_index("prompt_id")["category"].astype(str)
    squares = mean_squares(table, category)
    request = _of_requests(frame, arm, baseline, again, session)
    if request is None and squares.rest is not None:
        request = squares.rest
    repeats = _repeats(frame, arm, session)
    noise = 0.0 if request is None else request * variance_of_median(repeats)
    prompt = max(0.0, squares.prompt - noise) / squares.sessions
    between = squares.between_sessions
    return Spread(
        math.sqrt(prompt),
        None if request is None else math.sqrt(request),
        None if between is None else math.sqrt(between),
    )


def _of_requests(
    frame: pd.DataFrame, arm: str, baseline: str, again: str | None, session: str
) -> float | None:
    """Variance of the log-ratio of two single requests; None where nothing was repeated."""
    single = pairs(frame, arm, baseline, match=(session, "prompt_id", "repeat"))
    grouped = single.groupby([session, "prompt_id"], observed=True)["log_ratio"]
    free = int((grouped.size() - 1).sum())
    if free:
        return float((grouped.var(ddof=1).fillna(0) * (grouped.size() - 1)).sum()) / free
    if again is None:
        return None
    twins = pairs(frame, again, baseline, match=(session, "prompt_id", "repeat"))
    return None if twins.empty else float((twins["log_ratio"] ** 2).mean())


def _repeats(frame: pd.DataFrame, arm: str, session: str) -> int:
    asked = frame[frame["arm"] == arm].groupby([session, "prompt_id"], observed=True).size()
    return int(asked.median())


@cache
def variance_of_median(n: int) -> float:
    """Variance of the median of ``n`` standard normal values.

    Simulated with a fixed seed, to 1 %. Noise with heavier tails gains more from repeats
    than this says.
    """
    rng = np.random.default_rng(0)
    return 1.0 if n == 1 else float(np.median(rng.normal(size=(40_000, n)), axis=1).var())
