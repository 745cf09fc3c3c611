"""How far two runs of the same thing lie apart on this machine."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import ratio_axis, sheet
from lab.show.frames import column_of, interval_of, require, why_empty
from lab.show.marks import at_one, no_data, shaded
from lab.show.marks import points as draw_points
from lab.show.style import GREY, LIGHT, Look, Theme, themed


@themed
def noise_floor(
    points: pd.DataFrame,
    frame: pd.DataFrame | None = None,
    *,
    equivalence: tuple[float, float] | None = None,
    question: str = "How much do two identical baselines differ?",
    theme: Theme = LIGHT,
) -> Figure:
    """A/A pairs in the order they were measured, and their distribution on the same axis.

    A drift shows at the left as a slope, a wide floor at the right as a flat curve.

    Parameters
    ----------
    points : one row a pair: ordinal (place in time), speedup (second baseline over the
        first on the same prompt, ratio).
    frame : one row: the paired median as speedup (ratio), low, high, n.
    equivalence : ends of the margin the study uses, ratios.
    """
    require(points, "noise_floor", "ordinal", "speedup", name="points")
    picture, axes = sheet(
        question, theme=theme, height_in=3.4, columns=2, widths=(2.2, 1), share_y="all"
    )
    over_time, spread = axes[0, 0], axes[0, 1]
    reason = why_empty(points, "speedup")
    if reason is not None:
        spread.remove()
        no_data(over_time, reason, theme)
        return picture
    values = column_of(points, "speedup")
    for ax in (over_time, spread):
        if equivalence is not None:
            shaded(ax, *equivalence, theme, name="equivalence", upright=True)
        at_one(ax, theme, upright=True)
        ax.grid(visible=True, axis="y", color=theme.grid)
    style = Look(GREY, "o")
    draw_points(over_time, column_of(points, "ordinal"), values, style, size=18, alpha=0.9)
    spread.ecdf(
        values[np.isfinite(values)], orientation="horizontal", color=theme.ink, label="_ecdf"
    )
    if frame is not None and not frame.empty:
        require(frame, "noise_floor", "speedup", "low", "high", "n")
        _draw_median(over_time, frame.iloc[0], theme)
    over_time.set_xlabel("Order of measuring")
    over_time.set_ylabel("Second baseline over the first (log scale)")
    spread.set_xlabel("Share of pairs at or below")
    ratio_axis(over_time, "y")
    return picture


def _draw_median(ax: Axes, row: pd.Series, theme: Theme) -> None:
    low, high = interval_of(row)
    median = float(row["speedup"])
    if np.isfinite(low):
        ax.axhspan(low, high, facecolor=GREY, alpha=0.3, linewidth=0, label="_interval", zorder=1)
    ax.axhline(median, color=theme.ink, linewidth=1.4, label="_estimate", zorder=3)
    ax.annotate(
        f"median {median:.3f}×",
        (0.99, median),
        xycoords=("axes fraction", "data"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=8.5,
        bbox={"facecolor": theme.paper, "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        zorder=5,
    )
