"""Was the speed-up foretold before it was measured?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import name_rows, ratio_axis, sheet
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.marks import at_one, no_data, strip
from lab.show.marks import points as draw_points
from lab.show.style import LIGHT, Theme, look, themed


@themed
def predicted_vs_measured(
    points: pd.DataFrame,
    *,
    question: str = "Does the arithmetic foretell the speed-up?",
    theme: Theme = LIGHT,
) -> Figure:
    """Predicted against measured speed-up with both intervals, and what is left over by arm.

    Parameters
    ----------
    points : one row a prompt (or setting) and arm: arm, predicted, predicted_low,
        predicted_high, measured, measured_low, measured_high (ratios), residual
        (measured over predicted, ratio).
    """
    ends = ("predicted_low", "predicted_high", "measured_low", "measured_high")
    columns = ("arm", "predicted", "measured", "residual", *ends)
    require(points, "predicted_vs_measured", *columns, name="points")
    reason = why_empty(points, "residual")
    arms = [] if reason else ordered(points["arm"])
    picture, axes = sheet(
        question,
        theme=theme,
        height_in=4.0 + 0.42 * len(arms),
        rows=2,
        heights=(3.1, 0.42 * max(len(arms), 1) + 0.3),
    )
    plane, left_over = axes[0, 0], axes[1, 0]
    if reason is not None:
        left_over.remove()
        no_data(plane, reason, theme)
        return picture
    for arm in arms:
        _draw_arm(plane, points[points["arm"] == arm], arm)
    _square(plane, theme)
    at_one(left_over, theme)
    for place, arm in enumerate(arms):
        mine = points[points["arm"] == arm]
        strip(left_over, column_of(mine, "residual"), place, look(arm), size=18)
    name_rows(left_over, arms, theme)
    left_over.set_xlabel("Measured over predicted (log scale)")
    ratio_axis(left_over, "x")
    return picture


def _draw_arm(ax: Axes, mine: pd.DataFrame, arm: str) -> None:
    style = look(arm)
    x, y = column_of(mine, "predicted"), column_of(mine, "measured")
    ax.hlines(
        y,
        column_of(mine, "predicted_low"),
        column_of(mine, "predicted_high"),
        colors=style.color,
        alpha=0.4,
        linewidth=1,
        label="_interval",
    )
    ax.vlines(
        x,
        column_of(mine, "measured_low"),
        column_of(mine, "measured_high"),
        colors=style.color,
        alpha=0.4,
        linewidth=1,
        label="_interval",
    )
    draw_points(ax, x, y, style, size=20, alpha=0.9)


def _square(ax: Axes, theme: Theme) -> None:
    """Equal limits on both axes, and the line on which a prediction is right."""
    corners = np.array([*ax.get_xlim(), *ax.get_ylim()])
    known = corners[np.isfinite(corners) & (corners > 0)]
    low, high = (known.min(), known.max()) if len(known) else (0.5, 2.0)
    low, high = min(float(low), 0.95), max(float(high), 1.05)
    ax.plot([low, high], [low, high], color=theme.muted, lw=1, label="_identity", zorder=1)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.grid(visible=True, color=theme.grid)
    ax.set_xlabel("Predicted speed-up (log scale)")
    ax.set_ylabel("Measured speed-up (log scale)")
    ratio_axis(ax, "x")
    ratio_axis(ax, "y")
    ax.set_box_aspect(1)
    ax.annotate(
        "on the line: foretold exactly",
        (0.98, 0.02),
        xycoords="axes fraction",
        ha="right",
        va="bottom",
        fontsize=8,
        color=theme.muted,
    )
