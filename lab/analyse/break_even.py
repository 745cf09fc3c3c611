"""How right a draft must be before it pays, how long it should be, and what a goal asks for.

One identity stands behind all of it: speedup = tokens_per_step / mean step cost, with
tokens_per_step = 1 + coverage (acceptance_length - 1) and a mean step cost of
1 + coverage (step_cost - 1), where step_cost is that of a drafted step in plain ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from attrs import frozen
from numpy.typing import NDArray

from lab.analyse.estimates import Estimate
from lab.analyse.verify_cost_curve import VerifyCostCurve, estimate_of

Floats = NDArray[np.float64]


def step_cost(
    curve: VerifyCostCurve,
    widths: Iterable[float],
    depth: float,
    *,
    lengths: Iterable[float] | None = None,
    always: bool = False,
) -> Floats:
    """A drafted step in plain ones, shape (draws, widths).

    Parameters
    ----------
    lengths : tokens each step gives, as each has to be chosen from a row of logits; as many
        as rows when left out, the dearest case.
    always : every step drafts, all as wide (a draft model). Otherwise a drafted step stands
        among plain ones (n-gram tables) and pays for the change of width twice: its own
        pass, and the plain one after it.
    """
    wide = np.asarray(list(widths), float)
    given = wide if lengths is None else np.asarray(list(lengths), float)
    besides = curve.besides
    passes = curve.at(wide, depth, changed=not always)
    if not always:
        passes = passes + curve.at(1, depth, changed=True) - curve.at(1, depth)
    rest = besides.step_ms + besides.asked_ms + besides.drafted_ms + given * besides.token_ms
    cost: Floats = (passes + rest) / (curve.at(1, depth) + besides.plain_ms)
    return cost


def break_even(
    curve: VerifyCostCurve, widths: Sequence[int], depth: float, *, always: bool = False
) -> pd.DataFrame:
    """Acceptance length at which a drafted step costs what it saves.

    One row a width (tokens of the pass: the draft and one more): width, verify_cost,
    break_even_acceptance (tokens a drafted step), low, high (its interval), and possible
    (False where even a draft that is right whole would lose).
    """
    plain = curve.at(1, depth) + curve.besides.plain_ms
    bare = step_cost(curve, widths, depth, lengths=np.zeros(len(widths)), always=always)
    # Every token given costs its choice from a row, so length = bare + length * token share.
    reached = bare / (1 - curve.besides.token_ms / plain)
    rows = []
    for place, width in enumerate(widths):
        one = estimate_of(reached[:, place], "break_even_acceptance", "tok/step", n=curve.rounds)
        rows.append(
            {
                "width": width,
                "verify_cost": curve.ratio(width, depth, changed=not always).value,
                "break_even_acceptance": one.value,
                "low": one.low,
                "high": one.high,
                "possible": one.value is not None and one.value < width,
            }
        )
    return pd.DataFrame(rows).astype({"low": float, "high": float})


def break_even_map(
    curve: VerifyCostCurve,
    widths: Sequence[int],
    lengths: Sequence[float],
    depth: float,
    *,
    always: bool = False,
) -> pd.DataFrame:
    """Speed-up where every token comes from a drafted step, one row a cell.

    Columns: width, acceptance_length, speedup (missing where more is accepted than
    drafted).
    """
    wide, long = (axis.ravel() for axis in np.meshgrid(widths, lengths, indexing="ij"))
    cost = step_cost(curve, wide, depth, lengths=long, always=always)[0]
    speedup = np.where(long <= wide, long / cost, math.nan)
    return pd.DataFrame({"width": wide, "acceptance_length": long, "speedup": speedup})


def by_length(
    accepted_share: Sequence[float],
    curve: VerifyCostCurve,
    depth: float,
    *,
    drafting_cost: Sequence[float] | None = None,
) -> pd.DataFrame:
    """What every draft length would give when something is drafted at every step.

    Parameters
    ----------
    accepted_share : share of drafts whose first i tokens are all right, i = 1, 2, ...
    drafting_cost : what drafting each length costs, in plain steps
        (:func:`draft_model_cost`); nothing for an n-gram table.

    Expected tokens of a step are 1 + the sum of the shares up to the length (Leviathan et
    al. 2023, for measured shares).

    Columns: draft_length, tokens_per_step, step_cost, speedup, low, high (interval from
    the curve), best (True once).
    """
    lengths = np.arange(1, len(accepted_share) + 1)
    tokens = 1 + np.cumsum(np.asarray(accepted_share, float))
    cost = step_cost(curve, lengths + 1, depth, lengths=tokens, always=True)
    cost = cost + (0.0 if drafting_cost is None else np.asarray(drafting_cost, float))
    gains = tokens / cost
    each = [estimate_of(gains[:, i], "speedup", "ratio", n=curve.rounds) for i in lengths - 1]
    best = np.arange(len(lengths)) == (gains[0].argmax() if len(lengths) else -1)
    return pd.DataFrame(
        {
            "draft_length": lengths,
            "tokens_per_step": tokens,
            "step_cost": cost[0],
            "speedup": [one.value for one in each],
            "low": [one.low for one in each],
            "high": [one.high for one in each],
            "best": best,
        }
    ).astype({"low": float, "high": float})


def draft_model_cost(
    draft: VerifyCostCurve, target: VerifyCostCurve, lengths: Iterable[int], depth: float
) -> list[float]:
    """What a draft model spends on a draft of each length, in plain steps of the target.

    The engine's draft-simple takes a pass a drafted token, and one more over all that the
    target verifies, whatever of it was accepted.
    """
    plain = float(target.plain_ms(depth)[0])
    long = list(lengths)
    single = float(draft.at(1, depth)[0, 0]) + draft.besides.token_ms
    again = draft.at([length + 1 for length in long], depth, changed=True)[0]
    return [
        (length * single + float(once)) / plain for length, once in zip(long, again, strict=True)
    ]


@frozen
class BestLength:
    """A draft length (0 is: do not draft) and the speed-up expected of it."""

    length: int
    speedup: float


def best_length(
    accepted_share: Sequence[float],
    curve: VerifyCostCurve,
    depth: float,
    *,
    drafting_cost: Sequence[float] | None = None,
) -> BestLength:
    """The draft length that pays most when something is drafted at every step."""
    table = by_length(accepted_share, curve, depth, drafting_cost=drafting_cost)
    if table.empty or table["speedup"].max() <= 1:
        return BestLength(0, 1.0)
    best = table[table["best"]].iloc[0]
    return BestLength(int(best["draft_length"]), float(best["speedup"]))


def acceptance_for(speedup: float, coverage: float, step_cost: float) -> float | None:
    """Tokens a drafted step that a wanted speed-up asks for; None without coverage."""
    if coverage <= 0:
        return None
    return 1 + (speedup * (1 + coverage * (step_cost - 1)) - 1) / coverage


def coverage_for(speedup: float, acceptance_length: float, step_cost: float) -> float | None:
    """Share of steps with a draft that a wanted speed-up asks for; may be above 1.

    None where more drafts of this kind bring no speed-up at all.
    """
    gained = (acceptance_length - 1) - speedup * (step_cost - 1)
    return None if gained <= 0 else (speedup - 1) / gained


def step_cost_for(speedup: float, coverage: float, acceptance_length: float) -> float | None:
    """Cost of a drafted step, in plain ones, that a wanted speed-up allows."""
    if coverage <= 0:
        return None
    return 1 + ((1 + coverage * (acceptance_length - 1)) / speedup - 1) / coverage


@frozen
class Need:
    """One thing that would have to be different for a wanted speed-up, the rest as it is.

    Attributes
    ----------
    name : "draft_coverage", "acceptance_length" or "step_cost".
    now : as measured. needed : None where no value of it would do.
    possible : False where the value needed cannot be.
    """

    name: str
    now: Estimate | float
    needed: float | None
    possible: bool

    def __str__(self) -> str:
        now = self.now if isinstance(self.now, Estimate) else f"{self.now:.3g}"
        if self.needed is None:
            return f"no {self.name} would be enough (now {now})"
        reach = "" if self.possible else ", which cannot be"
        return f"{self.name} would have to be {self.needed:.3g} instead of {now}{reach}"


def what_would_have_to_be_true(
    speedup: float, *, coverage: float, acceptance_length: float, width: float, step_cost: float
) -> tuple[Need, ...]:
    """For a wanted speed-up: each of the three quantities alone, the others as measured.

    Parameters
    ----------
    width : tokens of a drafted pass, which no acceptance length exceeds.
    step_cost : a drafted step in plain ones.
    """
    length = acceptance_for(speedup, coverage, step_cost)
    share = coverage_for(speedup, acceptance_length, step_cost)
    cost = step_cost_for(speedup, coverage, acceptance_length)
    return (
        Need("draft_coverage", coverage, share, share is not None and share <= 1),
        Need(
            "acceptance_length", acceptance_length, length, length is not None and length <= width
        ),
        # A drafted pass reads at least what a plain one does, so it never costs less.
        Need("step_cost", step_cost, cost, cost is not None and cost >= 1),
    )
