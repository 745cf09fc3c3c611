"""A map of ratios: above one in blue, below one in vermillion, one is the paper."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from lab.show.axes import ratio_ticks
from lab.show.frames import column_of
from lab.show.style import BLUE, VERMILLION, Theme, contrast

Values = NDArray[np.float64]

FULL_COLOR = 4.0
"""Ratio at which colour is full at the latest; beyond it small gains would look like paper."""

_WRITE_UP_TO = 150
"""Cells beyond which no number fits into one."""


def ratio_map(
    ax: Axes, frame: pd.DataFrame, *, x: str, y: str, value: str, reach: float, theme: Theme
) -> QuadMesh:
    """Draw one cell a row of the frame; a missing cell stays hatched paper.

    Parameters
    ----------
    x, y : columns with the steps of the two axes, drawn evenly spaced in rising order.
    value : column with ratios.
    reach : the ratio at which colour is full, above 1; the scale is symmetric about 1.
    """
    xs, ys = steps_of(frame, x), steps_of(frame, y)
    cells = np.full((len(ys), len(xs)), np.nan)
    at_x = np.searchsorted(xs, column_of(frame, x))
    at_y = np.searchsorted(ys, column_of(frame, y))
    cells[at_y, at_x] = column_of(frame, value)
    ax.set_facecolor(theme.shade)
    mesh = ax.pcolormesh(
        np.ma.masked_invalid(cells),
        cmap=LinearSegmentedColormap.from_list("ratio", [VERMILLION, theme.paper, BLUE]),
        norm=LogNorm(1 / reach, reach),
        edgecolors=theme.paper,
        linewidth=1.2,
        label="_cells",
    )
    _tick(ax, xs, ys)
    if cells.size <= _WRITE_UP_TO:
        _write(ax, cells, mesh)
    return mesh


def steps_of(frame: pd.DataFrame, column: str) -> Values:
    """The steps of one axis, rising."""
    return np.unique(column_of(frame, column))


def reach_of(values: Values) -> float:
    """The scale's end: the largest ratio or its inverse, between 1.1 and FULL_COLOR."""
    known = values[np.isfinite(values) & (values > 0)]
    if not len(known):
        return 1.1
    return min(FULL_COLOR, max(1.1, float(np.max(known)), float(np.max(1 / known))))


def scale_bar(picture: Figure, mesh: QuadMesh, axes: list[Axes], words: str, theme: Theme) -> None:
    """The colour scale with ratios for ticks."""
    bar = picture.colorbar(mesh, ax=axes, shrink=0.75, aspect=22, pad=0.02, extend="both")
    low, high = mesh.get_clim()
    ticks = ratio_ticks(low, high)
    bar.ax.yaxis.set_major_locator(FixedLocator(ticks))
    bar.ax.yaxis.set_major_formatter(FixedFormatter([f"{tick:g}×" for tick in ticks]))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.outline.set_visible(False)
    bar.set_label(words, color=theme.ink)


def place_of(frame: pd.DataFrame, x: str, y: str, row: pd.Series) -> tuple[float, float]:
    """Centre of a row's cell in the map's coordinates."""
    return (
        float(np.searchsorted(steps_of(frame, x), float(row[x]))) + 0.5,
        float(np.searchsorted(steps_of(frame, y), float(row[y]))) + 0.5,
    )


def along(steps: Values, values: ArrayLike) -> Values:
    """Place of values between evenly drawn steps, for a line over the map; NaN outside."""
    places = np.arange(len(steps)) + 0.5
    wanted = np.asarray(values, dtype=float)
    return np.asarray(np.interp(wanted, steps, places, left=np.nan, right=np.nan))


def _tick(
    ax: Axes,
    xs: Values,
    ys: Values,
) -> None:
    for axis, steps in ((ax.xaxis, xs), (ax.yaxis, ys)):
        every = max(1, -(-len(steps) // 14))
        axis.set_major_locator(FixedLocator((np.arange(len(steps)) + 0.5)[::every].tolist()))
        axis.set_major_formatter(FixedFormatter([f"{step:g}" for step in steps[::every]]))
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _write(ax: Axes, cells: Values, mesh: QuadMesh) -> None:
    for (row, column), value in np.ndenumerate(cells):
        if not np.isfinite(value):
            continue
        fill = to_hex(tuple(mesh.to_rgba(np.array([value]))[0]))
        ink = max(("#0d1117", "#ffffff"), key=lambda color: contrast(color, fill))
        ax.text(
            column + 0.5,
            row + 0.5,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=7.5,
            color=ink,
        )
