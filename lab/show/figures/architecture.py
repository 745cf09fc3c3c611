"""Does a mixture of experts pay more for checking several tokens than a dense model?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import count_axis, name_rows, ratio_axis, sheet
from lab.show.frames import column_of, float_of, interval_of, ordered, require, why_empty
from lab.show.labels import label, number
from lab.show.marks import at_one, beside, end_labels, estimate, line_and_band, missing_row, no_data
from lab.show.style import LIGHT, Theme, look, themed

_HEIGHT_IN = 3.2


@themed
def architecture(
    cost: pd.DataFrame,
    speed: pd.DataFrame,
    reference: pd.DataFrame | None = None,
    *,
    question: str = "What does the architecture alone change?",
    theme: Theme = LIGHT,
) -> Figure:
    """Decode speed of each model above, its verify cost against width below.

    Parameters
    ----------
    cost : one row a model and width: model, width (tokens), verify_cost (ratio), low, high,
        n (repeats).
    speed : one row a model: model, decode_tok_s (tok/s), low, high, n (prompts).
    reference : published speeds: name, decode_tok_s; drawn open, never in a model's colour.
    """
    require(cost, "architecture", "model", "width", "verify_cost", "low", "high", "n", name="cost")
    require(speed, "architecture", "model", "decode_tok_s", "low", "high", "n", name="speed")
    published_rows = 0 if reference is None else len(reference)
    rows = max(2, len(speed) + published_rows)
    picture, axes = sheet(
        question,
        theme=theme,
        height_in=1.5 + 0.4 * rows + _HEIGHT_IN,
        rows=2,
        heights=(0.4 * rows, _HEIGHT_IN),
    )
    _draw_speed(axes[0, 0], speed, reference, theme)
    _draw_cost(axes[1, 0], cost, theme)
    return picture


def _draw_speed(
    ax: Axes, speed: pd.DataFrame, reference: pd.DataFrame | None, theme: Theme
) -> None:
    ax.set_title("Decode speed without drafting")
    reason = why_empty(speed, "decode_tok_s")
    if reason is not None:
        no_data(ax, reason, theme)
        return
    names = []
    for place, (_, row) in enumerate(speed.iterrows()):
        names.append(str(row["model"]))
        value = float_of(row, "decode_tok_s")
        if not math.isfinite(value):
            missing_row(ax, place, str(row.get("reason") or "not measured"), theme)
            continue
        estimate(ax, value, place, look(names[-1]), theme, interval=interval_of(row))
        beside(ax, place, f"{number(value)} tok/s", theme)
    if reference is not None and not reference.empty:
        require(reference, "architecture", "name", "decode_tok_s", name="reference")
        for place, (_, row) in enumerate(reference.iterrows(), start=len(names)):
            value = float(row["decode_tok_s"])
            ax.scatter(
                [value],
                [place],
                s=36,
                facecolors=theme.paper,
                edgecolors=theme.muted,
                linewidths=1.4,
                label="_published",
            )
            beside(ax, place, f"{number(value)} tok/s", theme)
        names += [f"{label(name, 24)} (published)" for name in reference["name"]]
    name_rows(ax, names, theme)
    ax.set_xlim(left=0)
    ax.set_xlabel("Tokens a second")


def _draw_cost(ax: Axes, cost: pd.DataFrame, theme: Theme) -> None:
    ax.set_title("Verify cost: a pass over several tokens against one")
    reason = why_empty(cost, "verify_cost")
    if reason is not None:
        no_data(ax, reason, theme)
        return
    at_one(ax, theme, upright=True)
    ends = []
    for model in ordered(cost["model"]):
        style, mine = look(model), cost[cost["model"] == model].sort_values("width")
        line_and_band(ax, mine, style, theme, x="width", y="verify_cost")
        values = column_of(mine, "verify_cost")
        known = values[np.isfinite(values)]
        ends.append((float(known[-1]) if len(known) else math.nan, model, style))
    ax.grid(visible=True, axis="y", color=theme.grid)
    count_axis(ax, "x", column_of(cost, "width").tolist())
    ratio_axis(ax, "y")
    ax.set_xlabel("Tokens in the pass (log scale)")
    ax.set_ylabel("Cost over one token (log scale)")
    end_labels(ax, ends, theme, height_in=_HEIGHT_IN - 0.5)
