"""Speed-ups as rows within panels: the shape shared by categories, states and machines."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import name_rows, outer_labels, panels, ratio_axis
from lab.show.frames import column_of, float_of, interval_of, ordered, require, why_empty
from lab.show.marks import at_one, estimate, missing_row, no_data, shaded, strip
from lab.show.style import Theme, look


def row_panels(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    *,
    figure: str,
    panel: str,
    row: str,
    equivalence: tuple[float, float] | None,
    question: str,
    theme: Theme,
) -> Figure:
    """Draw one panel a value of column ``panel`` and one row a value of column ``row``.

    Both frames need ``panel``, ``row``, ``arm`` and ``speedup``, the first also ``low``,
    ``high`` and ``n``. Panels and rows keep the order of the frame; colour follows the arm.
    """
    keys = tuple(dict.fromkeys(("arm", panel, row)))
    require(frame, figure, *keys, "speedup", "low", "high", "n")
    require(points, figure, *keys, "speedup", name="points")
    reason = why_empty(frame, "speedup")
    titles = [] if reason else ordered(frame[panel])
    names = [] if reason else ordered(frame[row])
    height_in = 0.6 + 0.32 * max(len(names), 4)
    picture, axes = panels(question, titles, theme=theme, height_in=height_in)
    if reason is not None:
        no_data(axes[0], reason, theme)
        return picture
    for ax, title in zip(axes, titles, strict=True):
        if equivalence is not None:
            shaded(ax, *equivalence, theme, name="equivalence")
        at_one(ax, theme)
        for place, name in enumerate(names):
            found = _where(frame, panel, title, row, name)
            raw = _where(points, panel, title, row, name)
            _draw_row(ax, place, found, raw, theme)
        name_rows(ax, names, theme, limit=24)
    for ax in axes:
        ratio_axis(ax, "x")
    outer_labels(axes, "Speed-up (log scale)", "")
    return picture


def _where(frame: pd.DataFrame, panel: str, title: str, row: str, name: str) -> pd.DataFrame:
    if frame.empty:
        return frame
    return frame[(frame[panel].astype(str) == title) & (frame[row].astype(str) == name)]


def _draw_row(ax: Axes, place: int, found: pd.DataFrame, raw: pd.DataFrame, theme: Theme) -> None:
    if found.empty or not math.isfinite(float_of(found.iloc[0], "speedup")):
        missing_row(ax, place, "not measured", theme)
        return
    row = found.iloc[0]
    style = look(str(row["arm"]))
    strip(ax, column_of(raw, "speedup"), place + 0.24, style)
    value = float_of(row, "speedup")
    estimate(ax, value, place - 0.08, style, theme, interval=interval_of(row), size=30)
