"""Why an arm gained or lost: its speed-up taken apart."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import name_rows, ratio_axis, sheet
from lab.show.frames import column_of, float_of, interval_of, ordered, require, why_empty
from lab.show.labels import label
from lab.show.marks import at_one, missing_row, no_data
from lab.show.style import BLUE, GREEN, GREY, LIGHT, PINK, VERMILLION, Theme, themed

_LANE = 0.15
_FACTOR_COLORS = {
    "coverage": BLUE,
    "acceptance length": GREEN,
    "step cost": VERMILLION,
    "residual": GREY,
}


@themed
def attribution(
    frame: pd.DataFrame,
    totals: pd.DataFrame,
    *,
    question: str = "Where does each arm's speed-up come from?",
    theme: Theme = LIGHT,
) -> Figure:
    """Log contributions laid end to end from 1x to the measured speed-up of each arm.

    Parameters
    ----------
    frame : one row an arm and factor, in the order to lay them: arm, factor ("coverage",
        "acceptance length", "step cost", "residual"), log_contribution (natural log of the
        ratio the factor multiplies the speed by).
    totals : one row an arm: arm, speedup (ratio), low, high, n.
    """
    require(frame, "attribution", "arm", "factor", "log_contribution")
    require(totals, "attribution", "arm", "speedup", "low", "high", "n", name="totals")
    reason = why_empty(frame, "log_contribution")
    arms = [] if reason else ordered(frame["arm"])
    picture, axes = sheet(question, theme=theme, height_in=1.7 + 0.72 * max(len(arms), 2))
    ax: Axes = axes[0, 0]
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    at_one(ax, theme)
    for place, arm in enumerate(arms):
        _lay(ax, place, frame[frame["arm"] == arm], theme)
        _mark_total(ax, place, totals[totals["arm"] == arm] if len(totals) else totals, theme)
    name_rows(ax, arms, theme)
    for factor in ordered(frame["factor"]):
        ax.plot([], [], color=_color(factor), linewidth=5, label=label(factor))
    ax.scatter([], [], marker="D", c=theme.ink, s=30, label="measured")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=5, columnspacing=1.2)
    ax.set_xlabel("Speed over the baseline (log scale)")
    ratio_axis(ax, "x")
    return picture


def _color(factor: str) -> str:
    return _FACTOR_COLORS.get(factor, PINK)


def _lay(ax: Axes, place: int, mine: pd.DataFrame, theme: Theme) -> None:
    """Each factor on its own lane, starting where the one before ended."""
    logs = column_of(mine, "log_contribution")
    if not np.isfinite(logs).all():
        missing_row(ax, place, "a factor is not known", theme)
        return
    ends = np.exp(np.cumsum(logs))
    starts = np.concatenate(([1.0], ends[:-1]))
    top = place - _LANE * (len(mine) - 1) / 2 - 0.06
    for lane, (start, end, factor) in enumerate(zip(starts, ends, mine["factor"], strict=True)):
        y = top + lane * _LANE
        if lane:
            ax.vlines(start, y - _LANE, y, colors=theme.muted, linewidth=0.7, label="_joint")
        ax.hlines(
            y, start, end, colors=_color(str(factor)), linewidth=4.5, label="_segment", zorder=3
        )
        ax.scatter([end], [y], s=20, c=_color(str(factor)), label="_end", zorder=4)


def _mark_total(ax: Axes, place: int, totals: pd.DataFrame, theme: Theme) -> None:
    if totals.empty or not math.isfinite(float_of(totals.iloc[0], "speedup")):
        return
    row = totals.iloc[0]
    y = place + 0.34
    low, high = interval_of(row)
    if math.isfinite(low):
        ax.hlines(y, low, high, colors=theme.ink, linewidth=1.6, label="_interval", zorder=3)
    ax.scatter(
        [float(row["speedup"])], [y], marker="D", s=30, c=theme.ink, label="_estimate", zorder=4
    )
