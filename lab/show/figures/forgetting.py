"""How long a drafter's memory lasts."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from lab.show.axes import ratio_axis, sheet, thinned
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.marks import at_one, end_labels, line_and_band, no_data
from lab.show.marks import points as draw_points
from lab.show.style import LIGHT, Theme, look, themed

_HEIGHT_IN = 3.6


@themed
def forgetting(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    *,
    question: str = "How many other prompts until the gain of a repeat is gone?",
    theme: Theme = LIGHT,
) -> Figure:
    """Speed-up of a repeated prompt against the distinct prompts asked in between.

    Parameters
    ----------
    frame : one row an arm and distance: arm, distinct_between (count, 0 is an immediate
        repeat), speedup (ratio), low, high, n (prompts).
    points : one row a prompt, arm and distance: arm, distinct_between, speedup.
    """
    require(frame, "forgetting", "arm", "distinct_between", "speedup", "low", "high", "n")
    require(points, "forgetting", "arm", "distinct_between", "speedup", name="points")
    picture, axes = sheet(question, theme=theme, height_in=_HEIGHT_IN)
    ax: Axes = axes[0, 0]
    reason = why_empty(frame, "speedup")
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    at_one(ax, theme, upright=True)
    ends = []
    for arm in ordered(frame["arm"]):
        style, mine = look(arm), frame[frame["arm"] == arm].sort_values("distinct_between")
        if not points.empty:
            raw = points[points["arm"] == arm]
            draw_points(ax, column_of(raw, "distinct_between"), column_of(raw, "speedup"), style)
        line_and_band(ax, mine, style, theme, x="distinct_between", y="speedup")
        ends.append((float(column_of(mine, "speedup")[-1]), arm, style))
    ax.grid(visible=True, axis="y", color=theme.grid)
    _count_from_zero(ax, frame)
    ax.set_xlabel("Distinct prompts between two runs of the same prompt")
    ax.set_ylabel("Speed-up (log scale)")
    ratio_axis(ax, "y")
    end_labels(ax, ends, theme, height_in=_HEIGHT_IN - 1.2)
    return picture


def _count_from_zero(ax: Axes, frame: pd.DataFrame) -> None:
    """Ticks at the measured counts; linear up to 1, since a logarithm has no zero."""
    counts = sorted(set(column_of(frame, "distinct_between").tolist()))
    ax.set_xscale("symlog", base=2, linthresh=1)
    ticks = [tick for tick in counts if tick <= 0] + thinned([c for c in counts if c > 0])
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(-0.15, max(counts) * 1.1 + 0.1)
