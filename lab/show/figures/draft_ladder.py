"""Better drafts and longer drafts: what acceptance buys."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lab.show.axes import count_axis, ratio_axis, sheet
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.labels import label
from lab.show.marks import at_one, end_labels, line_and_band, no_data
from lab.show.style import LIGHT, PALETTE, Look, Theme, themed

_PANEL_IN = 2.6
_MARKERS = ("o", "s", "^", "D")


@themed
def draft_ladder(
    frame: pd.DataFrame,
    predicted: pd.DataFrame | None = None,
    *,
    question: str = "How long should a draft be, and what does a better draft buy?",
    theme: Theme = LIGHT,
) -> Figure:
    """Acceptance rate above, speed-up below, against the longest draft.

    Colours go by the frame's order: a ladder of drafts of one type would else share one.

    Parameters
    ----------
    frame : one row a draft and length: arm, draft_length (tokens), acceptance_rate
        (fraction), acceptance_low, acceptance_high, speedup (ratio), low, high, n (prompts).
    predicted : arm, draft_length, speedup (ratio), best (bool): dashed, the best one ringed.
    """
    columns = ("acceptance_rate", "acceptance_low", "acceptance_high", "speedup", "low", "high")
    require(frame, "draft_ladder", "arm", "draft_length", *columns, "n")
    picture, axes = sheet(
        question, theme=theme, height_in=1.0 + 2 * _PANEL_IN, rows=2, share_x="all"
    )
    accepted, faster = axes[0, 0], axes[1, 0]
    reason = why_empty(frame, "speedup", "acceptance_rate")
    if reason is not None:
        faster.remove()
        no_data(accepted, reason, theme)
        return picture
    at_one(faster, theme, upright=True)
    rates, gains = [], []
    for index, arm in enumerate(ordered(frame["arm"])):
        style = Look(PALETTE[index % 4], _MARKERS[index % 4], filled=index < len(_MARKERS))
        mine = frame[frame["arm"] == arm].sort_values("draft_length")
        line_and_band(
            accepted,
            mine,
            style,
            theme,
            x="draft_length",
            y="acceptance_rate",
            low="acceptance_low",
            high="acceptance_high",
        )
        line_and_band(faster, mine, style, theme, x="draft_length", y="speedup")
        _draw_predicted(faster, predicted, arm, style, theme)
        rates.append((_last(mine, "acceptance_rate"), label(arm, 26), style))
        gains.append((_last(mine, "speedup"), label(arm, 26), style))
    _finish(accepted, faster, frame, theme)
    end_labels(accepted, rates, theme, height_in=_PANEL_IN - 0.5)
    end_labels(faster, gains, theme, height_in=_PANEL_IN - 0.5)
    return picture


def _last(mine: pd.DataFrame, column: str) -> float:
    known = column_of(mine, column)
    known = known[np.isfinite(known)]
    return float(known[-1]) if len(known) else math.nan


def _draw_predicted(
    ax: Axes, predicted: pd.DataFrame | None, arm: str, style: Look, theme: Theme
) -> None:
    if predicted is None or predicted.empty:
        return
    require(predicted, "draft_ladder", "arm", "draft_length", "speedup", "best", name="predicted")
    line = predicted[predicted["arm"] == arm].sort_values("draft_length")
    ax.plot(
        column_of(line, "draft_length"),
        column_of(line, "speedup"),
        color=style.color,
        linewidth=1.1,
        linestyle=(0, (4, 2.5)),
        label="_predicted",
    )
    best = line[line["best"].astype(bool)]
    ax.scatter(
        column_of(best, "draft_length"),
        column_of(best, "speedup"),
        s=120,
        facecolors="none",
        edgecolors=theme.ink,
        linewidths=1.4,
        label="_best",
        zorder=5,
    )


def _finish(accepted: Axes, faster: Axes, frame: pd.DataFrame, theme: Theme) -> None:
    for ax in (accepted, faster):
        ax.grid(visible=True, axis="y", color=theme.grid)
    accepted.set_title("Accepted of what was drafted")
    accepted.set_ylim(0, 1.04)
    accepted.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    accepted.set_ylabel("Acceptance rate")
    faster.set_title("Measured (solid) and predicted (dashed, its best ringed)")
    faster.set_ylabel("Speed-up (log scale)")
    faster.set_xlabel("Longest draft, tokens (log scale)")
    count_axis(faster, "x", column_of(frame, "draft_length").tolist())
    ratio_axis(faster, "y")
