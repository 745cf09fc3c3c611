"""If you change one thing: every lever by what it gains and what it costs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import name_rows, ratio_axis, sheet
from lab.show.frames import column_of, float_of, interval_of, require, why_empty
from lab.show.labels import label, times
from lab.show.marks import at_one, beside, estimate, missing_row, no_data, shaded
from lab.show.style import BLUE, GREY, LIGHT, VERMILLION, Look, Theme, themed


@themed
def lever_ranking(
    frame: pd.DataFrame,
    *,
    equivalence: tuple[float, float] | None = None,
    question: str = "If you change one thing, what gains most, and at what price?",
    theme: Theme = LIGHT,
) -> Figure:
    """Speed gain of every setting in the frame's order, its loss of quality beside it.

    Blue gains, vermillion loses, grey cannot be told from no change.

    Parameters
    ----------
    frame : one row a setting: lever, setting, speedup (ratio over the stated default), low,
        high, n; kl_divergence (nats a token against the reference), kl_low, kl_high; optionally
        quality_reason (words where no divergence is given, such as "same arithmetic") and
        memory_mib (peak).
    equivalence : ends of the margin within which a lever counts as doing nothing, ratios.
    """
    columns = ("lever", "setting", "speedup", "low", "high", "n", "kl_divergence")
    require(frame, "lever_ranking", *columns)
    reason = why_empty(frame, "speedup")
    picture, axes = sheet(
        question,
        theme=theme,
        height_in=1.45 + 0.3 * max(len(frame), 4),
        columns=2,
        widths=(2.1, 1),
        share_y="all",
    )
    gain, loss = axes[0, 0], axes[0, 1]
    if reason is not None:
        loss.remove()
        no_data(gain, reason, theme)
        return picture
    if equivalence is not None:
        shaded(gain, *equivalence, theme, name="equivalence")
    at_one(gain, theme)
    for place, (_, row) in enumerate(frame.iterrows()):
        _draw_gain(gain, place, row, theme)
        _draw_loss(loss, place, row, theme)
    names = [
        f"{lever} · {value}" for lever, value in zip(frame["lever"], frame["setting"], strict=True)
    ]
    name_rows(gain, names, theme, limit=36)
    _finish(gain, loss, frame, theme)
    return picture


def _look(low: float, high: float) -> Look:
    if low > 1:
        return Look(BLUE, "o")
    if high < 1:
        return Look(VERMILLION, "o")
    return Look(GREY, "o")


def _draw_gain(ax: Axes, place: int, row: pd.Series, theme: Theme) -> None:
    value, interval = float_of(row, "speedup"), interval_of(row)
    if not math.isfinite(value):
        missing_row(ax, place, str(row.get("reason") or "not measured"), theme)
        return
    estimate(ax, value, place, _look(*interval), theme, interval=interval, size=38)


def _draw_loss(ax: Axes, place: int, row: pd.Series, theme: Theme) -> None:
    value = float_of(row, "kl_divergence")
    _write_numbers(ax, place, row, theme)
    if not math.isfinite(value):
        why = row.get("quality_reason")
        ax.annotate(
            label(why, 24) if isinstance(why, str) else "not measured",
            (0.03, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7.5,
            color=theme.muted,
        )
        return
    interval = interval_of(row, "kl_low", "kl_high")
    estimate(ax, value, place, Look(theme.ink, "o"), theme, interval=interval, size=30)


def _finish(gain: Axes, loss: Axes, frame: pd.DataFrame, theme: Theme) -> None:
    ratio_axis(gain, "x")
    gain.set_title("Gain in speed")
    gain.set_xlabel("Over the default (log scale)")
    loss.set_title("Loss of quality")
    loss.set_xlabel("KL divergence, nats a token")
    loss.grid(visible=True, axis="x", color=theme.grid)
    loss.spines["left"].set_visible(False)
    loss.tick_params(axis="y", length=0)
    known = column_of(frame, "kl_divergence")
    if np.isfinite(known).any():
        loss.set_xlim(left=min(0.0, float(loss.get_xlim()[0])))
    else:
        loss.set_xticks([])


def _write_numbers(ax: Axes, place: int, row: pd.Series, theme: Theme) -> None:
    """The gain and the peak memory in figures, at the right end of the row."""
    value, memory = float_of(row, "speedup"), float_of(row, "memory_mib")
    if math.isfinite(value):
        beside(ax, place, times(value), theme)
    if math.isfinite(memory):
        ax.annotate(
            f"{memory:,.0f} MiB",
            (1.02, place),
            xycoords=("axes fraction", "data"),
            xytext=(34, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=theme.muted,
            annotation_clip=False,
        )
