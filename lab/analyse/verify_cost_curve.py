"""What a pass over w tokens costs on one machine, between the widths that were measured.

A curve keeps two times for every width and depth: after a pass of the same width, whose
graph the engine uses again, and after a pass of another width, for which it builds one
anew. A server that does not draft only knows the first, at width 1; a server that drafts
pays the second at nearly every draft, and once more for the plain step after it. Taking
the two for the same is one reason why a curve of isolated passes promises too much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from attrs import evolve, frozen
from numpy.typing import ArrayLike, NDArray

from lab.analyse.estimates import Estimate
from lab.analyse.step_overhead import NOTHING_BESIDES, StepOverhead
from lab.errors import InputError

Draws = NDArray[np.float64]
"""Values by draw in the first dimension: draw 0 is the estimate, the others are bootstrap
draws of the measurement. A single draw has no uncertainty that is known."""

STEADY, CHANGED = 0, 1


@frozen(eq=False)
class VerifyCostCurve:
    """Time of a pass by width, context depth and what came before it.

    Attributes
    ----------
    label : model or system it was measured with.
    widths : tokens in the pass, ascending, beginning with 1; shape (W,).
    depths : tokens of context before it, ascending; shape (D,).
    times : shape (draws, 2, D, W); [:, 0] after a pass of the same width, [:, 1] after
        another width.
    unit : "ms", or "one-token pass" where only ratios are known.
    besides : what a server's step costs besides its pass.
    source : where it comes from, for a caption.
    assumptions : what must be believed to use it, one sentence each.
    rounds : repeats behind each time; 0 for a curve that was not measured.
    """

    label: str
    widths: NDArray[np.float64]
    depths: NDArray[np.float64]
    times: Draws
    unit: str = "ms"
    besides: StepOverhead = NOTHING_BESIDES
    source: str = "measured"
    assumptions: tuple[str, ...] = ()
    rounds: int = 0

    def __attrs_post_init__(self) -> None:
        shape = (len(self.widths), len(self.depths))
        if self.times.shape[1:] != (2, shape[1], shape[0]):
            raise InputError(
                "times do not fit widths and depths",
                file=f"curve {self.label}",
                field="times",
                value=self.times.shape,
                fix=f"Give an array of shape (draws, 2, {shape[1]}, {shape[0]})",
            )
        if not len(self.widths) or self.widths[0] != 1 or (np.diff(self.widths) <= 0).any():
            raise InputError(
                "widths must ascend from 1",
                file=f"curve {self.label}",
                field="widths",
                value=self.widths.tolist(),
            )

    @property
    def draws(self) -> int:
        """Draws of the measurement, the estimate among them."""
        return len(self.times)

    def at(self, widths: ArrayLike, depths: ArrayLike, *, changed: ArrayLike = False) -> Draws:
        """Times of passes, shape (draws, n): linear between what was measured.

        Beyond the widest pass the last slope goes on; beyond the depths the nearest holds.
        ``changed`` is True where the pass before had another width.
        """
        wide, deep, kind = np.broadcast_arrays(
            np.asarray(widths, float), np.asarray(depths, float), np.asarray(changed, bool)
        )
        wide, deep, kind = wide.ravel(), deep.ravel(), kind.ravel().astype(int)
        column, right = _between(self.widths, wide)
        row, below = _between(self.depths, np.clip(deep, self.depths[0], self.depths[-1]))
        next_column = np.minimum(column + 1, len(self.widths) - 1)
        next_row = np.minimum(row + 1, len(self.depths) - 1)
        upper = _mix(self.times[:, kind, row, column], self.times[:, kind, row, next_column], right)
        lower = _mix(
            self.times[:, kind, next_row, column], self.times[:, kind, next_row, next_column], right
        )
        return _mix(upper, lower, below)

    def plain_ms(self, depth: ArrayLike) -> NDArray[np.float64]:
        """Steps without drafting in a run of such, each with the token it chooses."""
        found: NDArray[np.float64] = self.at(1, depth)[0] + self.besides.plain_ms
        return found

    def ratio(self, width: float, depth: float, *, changed: bool = True) -> Estimate:
        """verify_cost: a pass over ``width`` tokens over a steady pass over one.

        ``changed`` False is for a pass after one of the same width.
        """
        values = self.at(width, depth, changed=changed) / self.at(1, depth)
        return estimate_of(values[:, 0], "verify_cost", "ratio", n=self.rounds, unit_of_n="round")

    def point(self) -> VerifyCostCurve:
        """The estimate alone, for pricing many settings."""
        return evolve(self, times=self.times[:1])

    def frame(self) -> pd.DataFrame:
        """The measured points, one row a depth and width.

        Columns: model, depth, width, verify_cost (after a pass of another width), low,
        high, n (rounds), steady (verify cost after a pass of the same width).
        """
        rows = []
        for depth in self.depths:
            for width in self.widths:
                one = self.ratio(width, depth)
                steady = self.ratio(width, depth, changed=False).value
                rows.append((self.label, depth, width, one.value, one.low, one.high, one.n, steady))
        names = ["model", "depth", "width", "verify_cost", "low", "high", "n", "steady"]
        return pd.DataFrame(rows, columns=names).astype(
            {"depth": int, "width": int, "low": float, "high": float}
        )

    def switch_points(self, factor: float = 3.0) -> pd.DataFrame:
        """Widths at which the cost jumps: the engine changes its kernel there.

        A step from w to w + 1 counts when it is at least ``factor`` times the typical cost
        of one more token (the median slope of the curve) at every depth, and by more than
        the draws scatter.

        Columns: width (the first one that pays), name, jump (one-token passes).
        """
        ratio = self.times[:, STEADY] / self.times[:, STEADY, :, :1]
        slopes = np.diff(ratio, axis=2) / np.diff(self.widths)
        typical = np.median(slopes, axis=2, keepdims=True)
        rows = []
        for place in np.flatnonzero(np.diff(self.widths) == 1):
            jump = slopes[:, :, place]
            above = jump - factor * typical[:, :, 0]
            sure = np.quantile(above[1:] if len(above) > 1 else above, 0.05, axis=0)
            if (sure > 0).all():
                width = int(self.widths[place + 1])
                rows.append((width, f"from {width} tokens", float(jump[0].mean())))
        return pd.DataFrame(rows, columns=["width", "name", "jump"])


def estimate_of(
    draws: NDArray[np.float64],
    name: str,
    unit: str,
    *,
    n: int,
    unit_of_n: str = "prompt",
    level: float = 0.95,
) -> Estimate:
    """Draw 0 with the percentile interval of the other draws; none where there are none."""
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(draws[1:], tails) if len(draws) > 1 else (None, None)
    return Estimate(
        name,
        unit,
        float(draws[0]),
        None if low is None else float(low),
        None if high is None else float(high),
        level,
        n,
        unit_of_n,
        None if low is not None else "its uncertainty is not known",
    )


def curve_from_ratios(
    label: str,
    ratios: dict[float, float],
    *,
    source: str,
    assumptions: Sequence[str] = (),
    depths: Sequence[float] = (0.0,),
) -> VerifyCostCurve:
    """A curve from cost by width alone: published, or worked out. No uncertainty is known.

    Width 1 costs 1; it is added where it is left out.
    """
    known = {1.0: 1.0, **{float(width): float(cost) for width, cost in ratios.items()}}
    widths = np.array(sorted(known))
    row = np.array([known[width] for width in widths])
    return VerifyCostCurve(
        label=label,
        widths=widths,
        depths=np.asarray(depths, float),
        times=np.broadcast_to(row, (1, 2, len(depths), len(widths))).copy(),
        unit="one-token pass",
        source=source,
        assumptions=tuple(assumptions),
    )


def _between(
    grid: NDArray[np.float64], wanted: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Index of the grid point to the left, and how far on to the next (beyond 1: past it)."""
    if len(grid) == 1:
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted))
    left = np.clip(np.searchsorted(grid, wanted, side="right") - 1, 0, len(grid) - 2)
    return left, (wanted - grid[left]) / (grid[left + 1] - grid[left])


def _mix(
    left: NDArray[np.float64], right: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    mixed: NDArray[np.float64] = left * (1 - share) + right * share
    return mixed
