"""How right a draft has to be before it pays on this hardware."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import sheet
from lab.show.frames import column_of, require, why_empty
from lab.show.heat import along, ratio_map, reach_of, scale_bar, steps_of
from lab.show.marks import no_data
from lab.show.style import LIGHT, Theme, themed


@themed
def break_even_map(
    frame: pd.DataFrame,
    boundary: pd.DataFrame | None = None,
    *,
    question: str = "How far must a draft be right before it pays here?",
    theme: Theme = LIGHT,
) -> Figure:
    """Speed-up over drafted width and acceptance length, with the line where it is 1.

    Parameters
    ----------
    frame : one row a cell: width (tokens in the verify pass), acceptance_length (tokens a
        drafted step), speedup (ratio; missing where more is accepted than drafted).
    boundary : break-even acceptance length by width: width, acceptance_length.
    """
    require(frame, "break_even_map", "width", "acceptance_length", "speedup")
    picture, axes = sheet(question, theme=theme, height_in=4.6)
    ax: Axes = axes[0, 0]
    reason = why_empty(frame, "speedup")
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    mesh = ratio_map(
        ax,
        frame,
        x="width",
        y="acceptance_length",
        value="speedup",
        reach=reach_of(column_of(frame, "speedup")),
        theme=theme,
    )
    if boundary is not None and not boundary.empty:
        require(boundary, "break_even_map", "width", "acceptance_length", name="boundary")
        _draw_boundary(ax, frame, boundary, theme)
    ax.set_xlabel("Tokens in the verify pass (drafted width)")
    ax.set_ylabel("Tokens a drafted step (acceptance length)")
    scale_bar(picture, mesh, [ax], "Speed-up where every step drafts", theme)
    return picture


def _draw_boundary(ax: Axes, frame: pd.DataFrame, boundary: pd.DataFrame, theme: Theme) -> None:
    line = boundary.sort_values("width")
    x = along(steps_of(frame, "width"), line["width"])
    y = along(steps_of(frame, "acceptance_length"), line["acceptance_length"])
    ax.plot(x, y, color=theme.ink, linewidth=2, label="_boundary")
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(known):
        ax.annotate(
            "break-even",
            (x[known[-1]], y[known[-1]]),
            xytext=(-4, 6),
            textcoords="offset points",
            ha="right",
            fontsize=8.5,
            fontweight="bold",
            bbox={"facecolor": theme.paper, "edgecolor": "none", "alpha": 0.85, "pad": 2},
        )
