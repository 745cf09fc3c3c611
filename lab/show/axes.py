"""The sheet a figure is drawn on, and its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import (
    FixedFormatter,
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
)

from lab.show.labels import label, wrapped
from lab.show.style import WIDTH_IN, Picture, Theme

Grid = np.ndarray[tuple[int, int], np.dtype[np.object_]]

_ROUND_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100)
_COARSE_RATIOS = (0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)
_DECADES = (0.001, 0.01, 0.1, 1, 10, 100, 1000)


def sheet(
    question: str,
    *,
    theme: Theme,
    height_in: float,
    rows: int = 1,
    columns: int = 1,
    widths: Sequence[float] | None = None,
    heights: Sequence[float] | None = None,
    share_x: bool | Literal["none", "all", "row", "col"] = False,
    share_y: bool | Literal["none", "all", "row", "col"] = False,
) -> tuple[Picture, Grid]:
    """A new figure of text-column width with its question as title, and its axes.

    Returns
    -------
    The figure and an array of axes, shape (rows, columns).
    """
    spacing = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, wspace=0.03, hspace=0.04)
    picture = Picture(figsize=(WIDTH_IN, height_in), layout=spacing)
    picture.theme = theme
    picture.suptitle(wrapped(question, 70), x=0.1 / WIDTH_IN, ha="left")
    axes = picture.subplots(
        rows,
        columns,
        squeeze=False,
        width_ratios=widths,
        height_ratios=heights,
        sharex=share_x,
        sharey=share_y,
    )
    return picture, axes


def panels(
    question: str, names: Sequence[str], *, theme: Theme, height_in: float, columns: int = 3
) -> tuple[Picture, list[Axes]]:
    """One small panel a name, same axes throughout, each with its name above it.

    ``height_in`` is the height of one row of panels, inches.
    """
    columns = max(1, min(columns, len(names)))
    rows = max(1, math.ceil(len(names) / columns))
    picture, grid = sheet(
        question,
        theme=theme,
        height_in=0.75 + height_in * rows,
        rows=rows,
        columns=columns,
        share_x="all",
        share_y="all",
    )
    axes: list[Axes] = grid.ravel().tolist()
    for spare in axes[max(len(names), 1) :]:
        spare.remove()
    for ax, name in zip(axes, names, strict=False):
        ax.set_title(label(name, 30))
    # The lowest panel of each column keeps its ticks, also where the last row is short.
    for ax in axes[max(0, len(names) - columns) : len(names)]:
        ax.tick_params(labelbottom=True)
    return picture, axes[: max(len(names), 1)]


def outer_labels(axes: Sequence[Axes], x: str, y: str, columns: int = 3) -> None:
    """Axis labels where the eye looks for them: left column, lowest row."""
    columns = max(1, min(columns, len(axes)))
    for index, ax in enumerate(axes):
        if index % columns == 0:
            ax.set_ylabel(y)
        if index >= len(axes) - columns:
            ax.set_xlabel(x)


def name_rows(ax: Axes, names: Sequence[str], theme: Theme, *, limit: int = 34) -> None:
    """One named row a value, the first at the top, on quiet guide lines."""
    ax.set_yticks(range(len(names)), [label(name, limit) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=True, axis="x", color=theme.grid)


def ratio_axis(ax: Axes, which: Literal["x", "y"], most: int = 8) -> None:
    """Make an axis logarithmic with ratios for ticks (0.9×, 1×, 1.1×); 1 always in sight.

    Call it after everything is drawn: the ticks follow from the limits. ``most`` is how
    many ticks have room.
    """
    get, put, scale, axis = (
        (ax.get_xlim, ax.set_xlim, ax.set_xscale, ax.xaxis)
        if which == "x"
        else (ax.get_ylim, ax.set_ylim, ax.set_yscale, ax.yaxis)
    )
    if not _has_positive(ax, which):
        put(0.5, 2.0)
    scale("log", nonpositive="mask")
    low, high = get()
    if not (0 < low <= high and math.isfinite(high)):
        low, high = 0.5, 2.0
    low, high = min(low, 0.985), max(high, 1.015)
    put(low, high)
    ticks = ratio_ticks(low, high, most)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(_ratio_texts(ticks)))
    axis.set_minor_locator(NullLocator())


def _has_positive(ax: Axes, which: Literal["x", "y"]) -> bool:
    """True when anything drawn here, or where the axis is shared, has a logarithm."""
    shared = ax.get_shared_x_axes() if which == "x" else ax.get_shared_y_axes()
    place = 0 if which == "x" else 1
    return any(math.isfinite(other.dataLim.minpos[place]) for other in shared.get_siblings(ax))


def ratio_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round ratios within [low, high], about ``most`` of them or fewer."""
    if high / low < 3:  # noqa: PLR2004
        steps = MaxNLocator(nbins=most - 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return [round(float(tick), 6) for tick in steps if low <= tick <= high]
    for candidates in (_ROUND_RATIOS, _COARSE_RATIOS, _DECADES):
        ticks = [float(tick) for tick in candidates if low <= tick <= high]
        if len(ticks) <= most:
            break
    return ticks


def _ratio_texts(ticks: Sequence[float]) -> list[str]:
    digits = max((len(f"{tick:g}".partition(".")[2]) for tick in ticks), default=0)
    same_digits = bool(ticks) and max(ticks) / min(ticks) < 3  # noqa: PLR2004
    return [f"{tick:.{digits}f}×" if same_digits else f"{tick:g}×" for tick in ticks]


def count_axis(ax: Axes, which: Literal["x", "y"], values: Sequence[float]) -> None:
    """A base-2 logarithmic axis ticked at the counts that were measured."""
    scale, axis = (ax.set_xscale, ax.xaxis) if which == "x" else (ax.set_yscale, ax.yaxis)
    scale("log", base=2)
    ticks = thinned(sorted({float(value) for value in values if value > 0}))
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def magnitude_axis(ax: Axes, which: Literal["x", "y"]) -> None:
    """A base-10 logarithmic axis with plain numbers at 1, 2 and 5 of every decade."""
    scale, axis = (ax.set_xscale, ax.xaxis) if which == "x" else (ax.set_yscale, ax.yaxis)
    scale("log", nonpositive="mask")
    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def thinned(ticks: Sequence[float], factor: float = 1.3) -> list[float]:
    """Ticks at least ``factor`` apart, so that 8 and 9 do not print over each other."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or tick >= kept[-1] * factor:
            kept.append(tick)
    return kept
