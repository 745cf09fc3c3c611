"""Where along an answer something was drafted, and how much of it was kept."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import name_rows, sheet
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.marks import no_data
from lab.show.style import BLUE, LIGHT, VERMILLION, Theme, themed


@themed
def timeline(
    frame: pd.DataFrame,
    *,
    question: str = "Where along the answer was anything drafted, and was it right?",
    theme: Theme = LIGHT,
) -> Figure:
    """Steps of a generation along its tokens, one row a generation.

    A tick is a step; a blue bar the draft tokens kept, a vermillion one those thrown away.

    Parameters
    ----------
    frame : one row a step: generation (name of the row), position (tokens generated before
        the step), drafted (tokens), accepted (tokens).
    """
    require(frame, "timeline", "generation", "position", "drafted", "accepted")
    reason = why_empty(frame, "position")
    names = [] if reason else ordered(frame["generation"])
    picture, axes = sheet(question, theme=theme, height_in=1.6 + 0.5 * max(len(names), 2))
    ax: Axes = axes[0, 0]
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    for place, name in enumerate(names):
        _draw_generation(ax, place, frame[frame["generation"].astype(str) == name], theme)
    name_rows(ax, names, theme)
    ax.set_xlabel("Tokens generated")
    ax.set_xlim(left=0)
    ax.plot([], [], color=BLUE, linewidth=6, label="drafted and kept")
    ax.plot([], [], color=VERMILLION, linewidth=3, label="drafted and thrown away")
    ax.scatter([], [], marker="|", c=theme.muted, s=40, label="one step")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=3)
    return picture


def _draw_generation(ax: Axes, place: int, steps: pd.DataFrame, theme: Theme) -> None:
    start = column_of(steps, "position")
    kept, drafted = column_of(steps, "accepted"), column_of(steps, "drafted")
    ax.vlines(
        start,
        place + 0.16,
        place + 0.3,
        colors=theme.muted,
        linewidth=0.7,
        label="_steps",
        zorder=2,
    )
    wasted, used = drafted > kept, kept > 0
    ax.hlines(
        [place] * int(wasted.sum()),
        (start + kept)[wasted],
        (start + drafted)[wasted],
        colors=VERMILLION,
        linewidth=3,
        alpha=0.75,
        label="_rejected",
        zorder=3,
    )
    ax.hlines(
        [place] * int(used.sum()),
        start[used],
        (start + kept)[used],
        colors=BLUE,
        linewidth=6,
        label="_accepted",
        zorder=4,
    )
