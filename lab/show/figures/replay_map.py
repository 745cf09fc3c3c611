"""Every n-gram setting at once, from one recorded run."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import outer_labels, panels
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.heat import place_of, ratio_map, reach_of, scale_bar
from lab.show.marks import no_data
from lab.show.style import LIGHT, Theme, themed


@themed
def replay_map(
    frame: pd.DataFrame,
    *,
    question: str = "Which match and draft length suits these prompts?",
    theme: Theme = LIGHT,
) -> Figure:
    """Predicted speed-up over match length and draft length, one panel a drafter.

    Parameters
    ----------
    frame : one row a setting: drafter, match_length (tokens), draft_length (tokens),
        speedup (predicted, ratio); optionally best (bool), ringed.
    """
    require(frame, "replay_map", "drafter", "match_length", "draft_length", "speedup")
    reason = why_empty(frame, "speedup")
    drafters = [] if reason else ordered(frame["drafter"])
    shown = 1 if len(drafters) == 1 else 2
    height_in = 3.9 if shown == 1 else 3.0
    picture, axes = panels(question, drafters, theme=theme, height_in=height_in, columns=shown)
    if reason is not None:
        no_data(axes[0], reason, theme)
        return picture
    reach = reach_of(column_of(frame, "speedup"))
    for ax, drafter in zip(axes, drafters, strict=True):
        mine = frame[frame["drafter"] == drafter]
        mesh = ratio_map(
            ax, mine, x="draft_length", y="match_length", value="speedup", reach=reach, theme=theme
        )
        if "best" in mine.columns:
            _ring_best(ax, mine, theme)
    outer_labels(axes, "Longest draft, tokens", "Match length, tokens", shown)
    scale_bar(picture, mesh, axes, "Predicted speed-up", theme)
    return picture


def _ring_best(ax: Axes, mine: pd.DataFrame, theme: Theme) -> None:
    for _, row in mine[mine["best"].astype(bool)].iterrows():
        x, y = place_of(mine, "draft_length", "match_length", row)
        ax.scatter(
            [x],
            [y],
            marker="s",
            s=420,
            facecolors="none",
            edgecolors=theme.ink,
            linewidths=1.8,
            label="_best",
            zorder=4,
        )
