"""How many experts a pass over several tokens really reads."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import count_axis, sheet
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.labels import label
from lab.show.marks import end_labels, line_and_band, no_data
from lab.show.marks import points as draw_points
from lab.show.style import LIGHT, Look, Theme, look, themed

_HEIGHT_IN = 3.8


@themed
def experts_touched(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    expected: pd.DataFrame | None = None,
    *,
    question: str = "How many experts does a pass over several tokens read?",
    theme: Theme = LIGHT,
) -> Figure:
    """Distinct experts a layer against tokens in the pass, beside what chance would give.

    Parameters
    ----------
    frame : one row a model and width: model, width (tokens), experts (distinct experts a
        layer, mean), low, high, n (layers or passes).
    points : one row a model, width and layer: model, width, experts.
    expected : expectation for a uniform router: model, width, experts; drawn dashed.
    """
    require(frame, "experts_touched", "model", "width", "experts", "low", "high", "n")
    require(points, "experts_touched", "model", "width", "experts", name="points")
    picture, axes = sheet(question, theme=theme, height_in=_HEIGHT_IN)
    ax: Axes = axes[0, 0]
    reason = why_empty(frame, "experts")
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    ends = []
    for model in ordered(frame["model"]):
        style, mine = look(model), frame[frame["model"] == model].sort_values("width")
        if not points.empty:
            raw = points[points["model"] == model]
            draw_points(ax, column_of(raw, "width"), column_of(raw, "experts"), style)
        line_and_band(ax, mine, style, theme, x="width", y="experts")
        ends.append((float(column_of(mine, "experts")[-1]), label(model, 26), style))
        if expected is not None and not expected.empty:
            require(expected, "experts_touched", "model", "width", "experts", name="expected")
            ends.append(_draw_expected(ax, expected, model, theme))
    ax.grid(visible=True, axis="y", color=theme.grid)
    count_axis(ax, "x", column_of(frame, "width").tolist())
    ax.set_ylim(bottom=0)
    ax.set_xlabel("Tokens in the pass (log scale)")
    ax.set_ylabel("Distinct experts a layer")
    end_labels(ax, ends, theme, height_in=_HEIGHT_IN - 1.3)
    return picture


def _draw_expected(
    ax: Axes, expected: pd.DataFrame, model: str, theme: Theme
) -> tuple[float, str, Look]:
    line = expected[expected["model"] == model].sort_values("width")
    x, y = column_of(line, "width"), column_of(line, "experts")
    ax.plot(x, y, color=theme.muted, linewidth=1.3, linestyle=(0, (4, 2.5)), label="_expected")
    return (float(y[-1]) if len(y) else float("nan"), "uniform router", Look(theme.muted, "_"))
