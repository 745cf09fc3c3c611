"""The two halves of what a text allows: how often something is drafted, how far it is right."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lab.show.axes import sheet
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.labels import label
from lab.show.marks import end_labels, no_data
from lab.show.marks import points as draw_points
from lab.show.style import LIGHT, Look, Theme, look, themed

_HEIGHT_IN = 4.2


@themed
def coverage_acceptance(
    points: pd.DataFrame,
    isolines: pd.DataFrame | None = None,
    *,
    question: str = "How often is anything drafted, and how far is the draft right?",
    theme: Theme = LIGHT,
) -> Figure:
    """Draft coverage by acceptance length, with lines of equal speed.

    Parameters
    ----------
    points : one row a category (or prompt) and arm: arm, draft_coverage (fraction),
        acceptance_length (tokens a drafted step). Rows where nothing was drafted have no
        acceptance length and lie at zero coverage; they are counted in a note.
    isolines : polylines of equal speed: level (words, such as "1.5×"), draft_coverage,
        acceptance_length.
    """
    columns = ("arm", "draft_coverage", "acceptance_length")
    require(points, "coverage_acceptance", *columns, name="points")
    picture, axes = sheet(question, theme=theme, height_in=_HEIGHT_IN)
    ax: Axes = axes[0, 0]
    reason = why_empty(points, "acceptance_length")
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    _draw_arms(ax, points)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=1)
    if isolines is not None and not isolines.empty:
        require(isolines, "coverage_acceptance", "level", *columns[1:], name="isolines")
        _draw_isolines(ax, isolines, theme)
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=None))
    ax.set_xlabel("Steps with a draft (draft coverage)")
    ax.set_ylabel("Tokens a drafted step (acceptance length)")
    ax.grid(visible=True, color=theme.grid)
    return picture


def _draw_arms(ax: Axes, points: pd.DataFrame) -> None:
    for arm in ordered(points["arm"]):
        style, mine = look(arm), points[points["arm"] == arm]
        drafted = mine[column_of(mine, "acceptance_length") > 0]
        silent = len(mine) - len(drafted)
        name = label(arm, 30) + (f" ({silent} of {len(mine)} never drafted)" if silent else "")
        draw_points(
            ax,
            column_of(drafted, "draft_coverage"),
            column_of(drafted, "acceptance_length"),
            style,
            size=26,
            alpha=0.8,
        )
        ax.scatter([], [], c=style.color, marker=style.marker, s=26, label=name)
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, handletextpad=0.3)


def _draw_isolines(ax: Axes, isolines: pd.DataFrame, theme: Theme) -> None:
    limits = (*ax.get_xlim(), *ax.get_ylim())
    ends = []
    for level in ordered(isolines["level"]):
        line = isolines[isolines["level"].astype(str) == level].sort_values("draft_coverage")
        x, y = column_of(line, "draft_coverage"), column_of(line, "acceptance_length")
        ax.plot(
            x,
            y,
            color=theme.muted,
            linewidth=0.9,
            linestyle=(0, (1, 2)),
            label="_isoline",
            zorder=1,
        )
        inside = (x <= limits[1]) & (y <= limits[3])
        if inside.any():
            ends.append((float(y[inside][-1]), level, Look(theme.muted, "_")))
    ax.axis(limits)
    end_labels(ax, ends, theme, height_in=_HEIGHT_IN - 1.5)
