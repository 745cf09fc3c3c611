"""Every claim and what became of it."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import ratio_axis, sheet
from lab.show.frames import column_of, float_of, interval_of, require
from lab.show.labels import label, wrapped
from lab.show.marks import at_one, beside, estimate, no_data
from lab.show.style import BLUE, GREY, LIGHT, VERMILLION, Look, Theme, themed

VERDICTS = ("supported", "refuted", "inconclusive", "not testable here")
_HEADINGS = ("supported", "refuted", "inconclusive", "not testable")
_LOOKS = {
    "supported": Look(BLUE, "o"),
    "refuted": Look(VERMILLION, "X"),
    "inconclusive": Look(GREY, "o", filled=False),
    "not testable here": Look(GREY, "d", filled=False),
}


@themed
def ledger_overview(
    frame: pd.DataFrame,
    *,
    question: str = "Which claims hold on this machine?",
    theme: Theme = LIGHT,
) -> Figure:
    """One row a claim: a mark in the column of its verdict, and its effect where it is a ratio.

    Parameters
    ----------
    frame : one row a claim: claim (short words), verdict (one of VERDICTS), value, low,
        high, n, unit ("ratio" is drawn, any other is written), and optionally effect
        (words, written in place of the number).
    """
    require(frame, "ledger_overview", "claim", "verdict", "value", "low", "high", "n", "unit")
    picture, axes = sheet(
        question,
        theme=theme,
        height_in=1.5 + 0.42 * max(len(frame), 3),
        columns=2,
        widths=(1, 1.5),
        share_y="all",
    )
    matrix, effect = axes[0, 0], axes[0, 1]
    if frame.empty:
        effect.remove()
        no_data(matrix, "no claim was judged", theme)
        return picture
    for place, (_, row) in enumerate(frame.iterrows()):
        _mark_verdict(matrix, place, str(row["verdict"]), theme)
        _draw_effect(effect, place, row, theme)
    _finish_matrix(matrix, frame, theme)
    _finish_effect(effect, frame, theme)
    return picture


def _mark_verdict(ax: Axes, place: int, verdict: str, theme: Theme) -> None:
    if verdict in VERDICTS:
        estimate(ax, VERDICTS.index(verdict), place, _LOOKS[verdict], theme, size=70)


def _draw_effect(ax: Axes, place: int, row: pd.Series, theme: Theme) -> None:
    value, words = float_of(row, "value"), row.get("effect")
    interval = interval_of(row)
    if math.isfinite(value) and str(row["unit"]) == "ratio":
        style = _LOOKS.get(str(row["verdict"]), Look(GREY, "o"))
        estimate(ax, value, place, Look(style.color, "o"), theme, interval=interval, size=34)
    if isinstance(words, str) and words:
        beside(ax, place, label(words, 30), theme)
    elif math.isfinite(value):
        unit = "×" if str(row["unit"]) == "ratio" else f" {label(row['unit'], 12)}"
        ends = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if math.isfinite(interval[0]) else ""
        beside(ax, place, f"{value:.2f}{unit}{ends}", theme)


def _finish_matrix(ax: Axes, frame: pd.DataFrame, theme: Theme) -> None:
    names = [wrapped(claim, 40) for claim in frame["claim"]]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(-0.5, len(VERDICTS) - 0.5)
    ax.set_xticks([])
    ax.tick_params(length=0)
    for place, heading in enumerate(_HEADINGS):
        text = ax.annotate(
            heading,
            (place, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 3),
            textcoords="offset points",
            rotation=40,
            rotation_mode="anchor",
            annotation_clip=False,
            fontsize=8.5,
        )
        # The last heading leans over the empty corner beside it; it must claim no room there.
        text.set_in_layout(place < len(_HEADINGS) - 1)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.grid(visible=True, axis="y", color=theme.grid)


def _finish_effect(ax: Axes, frame: pd.DataFrame, theme: Theme) -> None:
    for spine in ("left", "top"):
        ax.spines[spine].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=True, color=theme.grid)
    drawn = column_of(frame[frame["unit"].astype(str) == "ratio"], "value")
    if pd.isna(drawn).all():
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
        return
    at_one(ax, theme)
    ax.set_xlabel("Effect as a ratio (log scale)")
    ratio_axis(ax, "x", most=4)
