"""Does drafting make it faster? One row an arm."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import name_rows, ratio_axis, sheet
from lab.show.frames import column_of, float_of, interval_of, require, why_empty
from lab.show.labels import label, times_with_interval
from lab.show.marks import at_one, beside, estimate, missing_row, no_data, shaded, strip
from lab.show.style import LIGHT, Theme, is_baseline, look, themed


@themed
def speedup_by_arm(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    *,
    equivalence: tuple[float, float] | None = None,
    question: str = "Does drafting make decoding faster?",
    theme: Theme = LIGHT,
) -> Figure:
    """Paired speed-up of every arm: prompts as a strip, the estimate with its interval.

    The second baseline (A/A) comes first: it shows what no difference looks like here.

    Parameters
    ----------
    frame : one row an arm: arm, speedup (ratio), low, high, n (prompts); optionally label
        (what is written for the arm), verdict (words) and reason (why there is no value).
    points : one row a prompt and arm: arm, speedup.
    equivalence : ends of the margin within which an arm counts as equal, ratios.
    """
    require(frame, "speedup_by_arm", "arm", "speedup", "low", "high", "n")
    require(points, "speedup_by_arm", "arm", "speedup", name="points")
    reason = why_empty(frame, "speedup")
    picture, axes = sheet(question, theme=theme, height_in=1.25 + 0.52 * max(len(frame), 2))
    ax: Axes = axes[0, 0]
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    rows = _baselines_first(frame)
    if equivalence is not None:
        shaded(ax, *equivalence, theme, name="equivalence")
    at_one(ax, theme)
    for place, row in enumerate(rows):
        _draw_row(ax, place, row, points, theme)
    name_rows(ax, [str(row.get("label", row["arm"])) for row in rows], theme)
    ax.set_xlabel("Speed-up over the baseline on the same prompt (log scale)")
    ratio_axis(ax, "x")
    return picture


def _baselines_first(frame: pd.DataFrame) -> list[pd.Series]:
    rows = [row for _, row in frame.iterrows()]
    return sorted(rows, key=lambda row: not is_baseline(str(row["arm"])))


def _draw_row(ax: Axes, place: int, row: pd.Series, points: pd.DataFrame, theme: Theme) -> None:
    style, value = look(str(row["arm"])), float_of(row, "speedup")
    if not math.isfinite(value):
        missing_row(ax, place, str(row.get("reason") or "every request failed"), theme)
        return
    if not points.empty:
        strip(ax, column_of(points[points["arm"] == row["arm"]], "speedup"), place + 0.26, style)
    interval = interval_of(row)
    estimate(ax, value, place - 0.06, style, theme, interval=interval)
    verdict = row.get("verdict")
    note = label(verdict) if isinstance(verdict, str) else ""
    beside(ax, place, times_with_interval(value, *interval), theme, note=note)
