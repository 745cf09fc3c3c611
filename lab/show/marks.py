"""The few marks every figure is made of.

Each artist carries a label that starts with an underscore (``_points``, ``_estimate``,
``_interval``, ``_band``, ``_line``, ``_reference``): legends skip it, tests find it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from numpy.typing import ArrayLike

from lab.show.frames import column_of
from lab.show.labels import label
from lab.show.style import Look, Theme

RASTER_ABOVE = 2000
"""Points beyond which a cloud becomes an image inside the SVG, which would not open else."""

_GOLDEN = 0.6180339887498949


def points(
    ax: Axes, x: ArrayLike, y: ArrayLike, look: Look, *, size: float = 11, alpha: float = 0.75
) -> PathCollection:
    """Raw values, one small dot each."""
    x_values, y_values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    return ax.scatter(
        x_values,
        y_values,
        s=size,
        c=look.color,
        marker=look.marker,
        alpha=alpha,
        linewidths=0,
        label="_points",
        zorder=2,
        rasterized=len(x_values) > RASTER_ABOVE,
    )


def strip(ax: Axes, values: ArrayLike, row: float, look: Look, *, size: float = 11) -> None:
    """Raw values of one row, spread a little across it by their order, never by chance."""
    along = np.asarray(values, dtype=float)
    across = row + 0.2 * ((np.arange(len(along)) * _GOLDEN) % 1 - 0.5)
    points(ax, along, across, look, size=size)


def estimate(
    ax: Axes,
    x: float,
    y: float,
    look: Look,
    theme: Theme,
    *,
    interval: tuple[float, float] = (math.nan, math.nan),
    size: float = 44,
) -> None:
    """A point estimate with its interval; no bar where the interval is unknown."""
    if all(map(math.isfinite, interval)):
        ax.hlines(y, *interval, colors=look.color, linewidth=2.2, label="_interval", zorder=3)
    ax.scatter(
        [x],
        [y],
        s=size,
        marker=look.marker,
        facecolors=look.color if look.filled else theme.paper,
        edgecolors=theme.paper if look.filled else look.color,
        linewidths=1.0 if look.filled else 1.6,
        label="_estimate",
        zorder=4,
    )


def line_and_band(
    ax: Axes,
    frame: pd.DataFrame,
    look: Look,
    theme: Theme,
    *,
    x: str,
    y: str,
    low: str = "low",
    high: str = "high",
    marked: bool = True,
) -> None:
    """Straight segments between estimates, their interval as a band; nothing is smoothed."""
    known = frame[np.isfinite(column_of(frame, y))].sort_values(x, kind="stable")
    if known.empty:
        return
    at, values = column_of(known, x), column_of(known, y)
    lows, highs = column_of(known, low), column_of(known, high)
    if "n" in known.columns:
        single = column_of(known, "n") < 2  # noqa: PLR2004
        lows, highs = np.where(single, math.nan, lows), np.where(single, math.nan, highs)
    if np.isfinite(lows).any():
        ax.fill_between(
            at, lows, highs, color=look.color, alpha=0.2, linewidth=0, label="_band", zorder=1.5
        )
    ax.plot(at, values, color=look.color, label="_line", zorder=3)
    if marked:
        ax.scatter(
            at,
            values,
            s=26,
            marker=look.marker,
            facecolors=look.color if look.filled else theme.paper,
            edgecolors=theme.paper if look.filled else look.color,
            linewidths=0.8 if look.filled else 1.4,
            label="_estimate",
            zorder=4,
        )


def published(ax: Axes, x: ArrayLike, y: ArrayLike, theme: Theme) -> None:
    """A curve somebody else published: dashed, with open circles, never in an arm's colour."""
    ax.plot(
        np.asarray(x, dtype=float),
        np.asarray(y, dtype=float),
        color=theme.muted,
        linestyle=(0, (4, 2.5)),
        linewidth=1.2,
        marker="o",
        markersize=4,
        markerfacecolor=theme.paper,
        label="_published",
        zorder=2.5,
    )


def at_one(ax: Axes, theme: Theme, *, upright: bool = False) -> None:
    """The baseline: a line at 1x."""
    draw = ax.axhline if upright else ax.axvline
    draw(1.0, color=theme.muted, linewidth=1.0, zorder=1.8, label="_baseline")


def shaded(
    ax: Axes, low: float, high: float, theme: Theme, *, name: str, upright: bool = False
) -> None:
    """A band that is no data, such as an equivalence margin."""
    draw = ax.axhspan if upright else ax.axvspan
    draw(low, high, facecolor=theme.shade, linewidth=0, zorder=0.5, label=f"_{name}")


def no_data(ax: Axes, reason: str, theme: Theme) -> None:
    """Say in place of a picture that there is none, and why."""
    ax.set_axis_off()
    ax.text(
        0.5,
        0.5,
        f"no data: {label(reason, limit=200)}",
        transform=ax.transAxes,
        ha="center",
        va="center",
        color=theme.muted,
        fontsize=10,
        wrap=True,
    )


def missing_row(ax: Axes, row: float, reason: str, theme: Theme) -> None:
    """The same within one row of a figure whose other rows have values."""
    ax.annotate(
        f"no data: {label(reason, limit=60)}",
        (0.02, row),
        xycoords=("axes fraction", "data"),
        va="center",
        color=theme.muted,
        fontsize=8.5,
        fontstyle="italic",
    )


def beside(ax: Axes, row: float, text: str, theme: Theme, *, note: str = "") -> None:
    """A value written at the right end of its row, a verdict below it in a quieter ink."""
    x = 1.02
    ax.annotate(
        text,
        (x, row),
        xycoords=("axes fraction", "data"),
        xytext=(0, 5.5 if note else 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=theme.ink,
        annotation_clip=False,
    )
    if note:
        ax.annotate(
            note,
            (x, row),
            xycoords=("axes fraction", "data"),
            xytext=(0, -6),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=theme.muted,
            annotation_clip=False,
        )


def end_labels(
    ax: Axes, ends: Sequence[tuple[float, str, Look]], theme: Theme, *, height_in: float
) -> None:
    """Name each line at the right edge, pushed apart where two would overlap.

    ``ends`` holds (last value, text, look); call it when the limits are final.
    ``height_in`` is the height of the axes, inches.
    """
    gap = 12.5 / (72 * height_in)
    to_fraction = ax.transScale + ax.transLimits
    x_right = ax.get_xlim()[1]
    wanted = sorted(
        (
            (float(to_fraction.transform((x_right, value))[1]), text, look)
            for value, text, look in ends
            if math.isfinite(value)
        ),
        key=lambda end: end[0],
    )
    heights = _apart([height for height, _, _ in wanted], gap)
    for (_, text, look), height in zip(wanted, heights, strict=True):
        ax.plot(
            [1.022],
            [height],
            transform=ax.transAxes,
            clip_on=False,
            linestyle="none",
            marker=look.marker,
            markersize=5.5,
            markerfacecolor=look.color if look.filled else theme.paper,
            markeredgecolor=look.color,
            label="_key",
        )
        ax.annotate(
            text,
            (1.015, height),
            xycoords="axes fraction",
            xytext=(11, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=theme.ink,
            annotation_clip=False,
        )


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Sorted heights moved as little as needed to lie at least ``gap`` apart, kept within 0..1."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap) if placed else height)
    ceiling = 1.0
    for index in reversed(range(len(placed))):
        placed[index] = min(placed[index], ceiling)
        ceiling = placed[index] - gap
    return placed
