"""What makes a repeated prompt fast: the n-gram pool or the prompt cache?"""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import name_rows, ratio_axis, sheet
from lab.show.frames import column_of, float_of, interval_of, require, why_empty
from lab.show.labels import times_with_interval
from lab.show.marks import at_one, beside, estimate, missing_row, no_data, strip
from lab.show.style import BLUE, GREEN, GREY, LIGHT, VERMILLION, Look, Theme, themed

_LOOKS = {
    (False, False): Look(GREY, "o"),
    (False, True): Look(GREEN, "s"),
    (True, False): Look(BLUE, "o"),
    (True, True): Look(VERMILLION, "D"),
}


@themed
def pool_vs_cache(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    *,
    measure: str = "Speed-up of decoding over neither (log scale)",
    question: str = "Does the n-gram pool or the prompt cache make repeats fast?",
    theme: Theme = LIGHT,
) -> Figure:
    """Two factors, each on and off: pool and prompt cache.

    Parameters
    ----------
    frame : one row a combination: pool (bool), cache (bool), speedup (ratio), low, high, n.
    points : one row a prompt and combination: pool, cache, speedup.
    measure : what ``speedup`` is a ratio of, for the axis (decoding, or the whole request).
    """
    require(frame, "pool_vs_cache", "pool", "cache", "speedup", "low", "high", "n")
    require(points, "pool_vs_cache", "pool", "cache", "speedup", name="points")
    reason = why_empty(frame, "speedup")
    picture, axes = sheet(question, theme=theme, height_in=1.25 + 0.55 * 4)
    ax: Axes = axes[0, 0]
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    at_one(ax, theme)
    names = []
    for place, (_, row) in enumerate(frame.iterrows()):
        pool, cache = bool(row["pool"]), bool(row["cache"])
        names.append(f"pool {_on(pool)} · cache {_on(cache)}")
        _draw_row(ax, place, row, _same(points, pool=pool, cache=cache), theme)
    name_rows(ax, names, theme)
    ax.set_xlabel(measure)
    ratio_axis(ax, "x")
    return picture


def _on(state: bool) -> str:
    return "on" if state else "off"


def _same(points: pd.DataFrame, *, pool: bool, cache: bool) -> pd.DataFrame:
    if points.empty:
        return points
    return points[(points["pool"] == pool) & (points["cache"] == cache)]


def _draw_row(ax: Axes, place: int, row: pd.Series, points: pd.DataFrame, theme: Theme) -> None:
    style = _LOOKS[bool(row["pool"]), bool(row["cache"])]
    value, interval = float_of(row, "speedup"), interval_of(row)
    if not math.isfinite(value):
        missing_row(ax, place, str(row.get("reason") or "every request failed"), theme)
        return
    strip(ax, column_of(points, "speedup"), place + 0.26, style)
    estimate(ax, value, place - 0.06, style, theme, interval=interval)
    beside(ax, place, times_with_interval(value, *interval), theme)
