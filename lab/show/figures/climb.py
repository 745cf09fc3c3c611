"""The warm-up trap: what repeating one prompt does to a drafter that remembers."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lab.show.axes import outer_labels, panels, ratio_axis
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.labels import label, wrapped
from lab.show.marks import at_one, line_and_band, no_data, published
from lab.show.marks import points as draw_points
from lab.show.style import LIGHT, Theme, look, themed


@themed
def climb(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    reference: pd.DataFrame | None = None,
    *,
    question: str = "How much faster does a prompt become when it is asked again?",
    theme: Theme = LIGHT,
) -> Figure:
    """Speed-up against run number, one panel an arm, beside a published curve.

    Parameters
    ----------
    frame : one row an arm and run: arm, run (1 is the first), speedup (ratio), low, high,
        n (prompts); optionally label.
    points : one row a prompt, arm and run: arm, run, speedup.
    reference : the published curve: run, speedup, and source (words), drawn dashed.
    """
    require(frame, "climb", "arm", "run", "speedup", "low", "high", "n")
    require(points, "climb", "arm", "run", "speedup", name="points")
    reason = why_empty(frame, "speedup")
    arms = [] if reason else ordered(frame["arm"])
    titles = [_title(frame, arm) for arm in arms]
    picture, axes = panels(question, titles, theme=theme, height_in=2.35)
    if reason is not None:
        no_data(axes[0], reason, theme)
        return picture
    for ax, arm in zip(axes, arms, strict=True):
        _draw_arm(ax, arm, frame, points, theme)
        if reference is not None and not reference.empty:
            require(reference, "climb", "run", "speedup", "source", name="reference")
            published(ax, reference["run"], reference["speedup"], theme)
    if reference is not None and not reference.empty:
        _name_reference(axes[0], reference, theme)
    for ax in axes:
        ratio_axis(ax, "y")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    outer_labels(axes, "Run of the same prompt", "Speed-up (log scale)")
    return picture


def _title(frame: pd.DataFrame, arm: str) -> str:
    row = frame[frame["arm"] == arm].iloc[0]
    return str(row.get("label", arm))


def _draw_arm(ax: Axes, arm: str, frame: pd.DataFrame, points: pd.DataFrame, theme: Theme) -> None:
    style = look(arm)
    at_one(ax, theme, upright=True)
    if not points.empty:
        mine = points[points["arm"] == arm]
        draw_points(ax, column_of(mine, "run"), column_of(mine, "speedup"), style, size=9)
    line_and_band(ax, frame[frame["arm"] == arm], style, theme, x="run", y="speedup")
    ax.grid(visible=True, axis="y", color=theme.grid)


def _name_reference(ax: Axes, reference: pd.DataFrame, theme: Theme) -> None:
    """Name the dashed curve once, in the corner a climbing curve leaves free."""
    ax.annotate(
        wrapped(f"dashed: {label(reference['source'].iloc[0], 48)} (published)", 21),
        (0.03, 0.98),
        xycoords="axes fraction",
        va="top",
        fontsize=8,
        color=theme.muted,
    )
