"""What the hardware charges for checking several tokens at once."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import count_axis, outer_labels, panels, ratio_axis
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.labels import label
from lab.show.marks import at_one, end_labels, line_and_band, no_data, published
from lab.show.style import LIGHT, PALETTE, Look, Theme, themed

_HEIGHT_IN = 3.3
_DEPTH_MARKERS = ("o", "s", "^", "D")


@themed
def verify_cost(
    frame: pd.DataFrame,
    switches: pd.DataFrame | None = None,
    lower_bound: pd.DataFrame | None = None,
    reference: pd.DataFrame | None = None,
    *,
    question: str = "What does a pass over several tokens cost against a pass over one?",
    theme: Theme = LIGHT,
) -> Figure:
    """Verify cost against width, a line a context depth, one panel a model.

    Two thin lines bound the picture: 1x, where checking is free, and cost equal to
    width, where nothing can be won.

    Parameters
    ----------
    frame : one row a model, depth and width: model, depth (tokens of context), width
        (tokens in the pass), verify_cost (ratio), low, high, n (repeats).
    switches : widths at which the engine changes its kernel: width, name.
    lower_bound : llama-bench's figure, logits for the last row only: model, width, verify_cost.
    reference : published curves: system, width, verify_cost.
    """
    columns = ("model", "depth", "width", "verify_cost", "low", "high", "n")
    require(frame, "verify_cost", *columns)
    reason = why_empty(frame, "verify_cost")
    models = [] if reason else ordered(frame["model"])
    picture, axes = panels(question, models, theme=theme, height_in=_HEIGHT_IN, columns=1)
    if reason is not None:
        no_data(axes[0], reason, theme)
        return picture
    ends = [
        _draw_model(ax, model, frame, theme, lower_bound=lower_bound, reference=reference)
        for ax, model in zip(axes, models, strict=True)
    ]
    widths = column_of(frame, "width").tolist()
    for ax in axes:
        ax.plot([1, max(widths)], [1, max(widths)], color=theme.muted, lw=0.9, label="_no_gain")
        count_axis(ax, "x", widths)
        ax.set_xlim(0.93, max(widths) * 1.08)
        ratio_axis(ax, "y")
        _mark_switches(ax, switches, theme)
    for ax, names in zip(axes, ends, strict=True):
        end_labels(ax, names, theme, height_in=_HEIGHT_IN - 0.9)
    _name_bounds(axes[0], max(widths), theme)
    outer_labels(axes, "Tokens in the pass (log scale)", "Cost over one token (log scale)", 1)
    return picture


def _draw_model(
    ax: Axes,
    model: str,
    frame: pd.DataFrame,
    theme: Theme,
    *,
    lower_bound: pd.DataFrame | None,
    reference: pd.DataFrame | None,
) -> list[tuple[float, str, Look]]:
    at_one(ax, theme, upright=True)
    ax.grid(visible=True, axis="y", color=theme.grid)
    mine = frame[frame["model"] == model]
    ends = []
    for index, depth in enumerate(sorted(set(column_of(mine, "depth").tolist()))):
        style = Look(PALETTE[index % 4], _DEPTH_MARKERS[index % 4])
        line = mine[column_of(mine, "depth") == depth].sort_values("width")
        line_and_band(ax, line, style, theme, x="width", y="verify_cost")
        ends.append((_last(line), f"depth {depth:,.0f}", style))
    if lower_bound is not None and not lower_bound.empty:
        require(lower_bound, "verify_cost", "model", "width", "verify_cost", name="lower_bound")
        line = lower_bound[lower_bound["model"] == model].sort_values("width")
        ax.plot(line["width"], line["verify_cost"], ":", color=theme.ink, lw=1.4, label="_bound")
        ends.append((_last(line), "llama-bench (bound)", Look(theme.ink, "_")))
    if reference is not None and not reference.empty:
        require(reference, "verify_cost", "system", "width", "verify_cost", name="reference")
        for system in ordered(reference["system"]):
            line = reference[reference["system"] == system].sort_values("width")
            published(ax, line["width"], line["verify_cost"], theme)
            ends.append((_last(line), f"{label(system, 24)} (published)", Look(theme.muted, "_")))
    return ends


def _last(line: pd.DataFrame) -> float:
    values = column_of(line, "verify_cost")
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else math.nan


def _mark_switches(ax: Axes, switches: pd.DataFrame | None, theme: Theme) -> None:
    if switches is None or switches.empty:
        return
    require(switches, "verify_cost", "width", "name", name="switches")
    for _, row in switches.iterrows():
        ax.axvline(
            float(row["width"]),
            color=theme.muted,
            linewidth=0.8,
            linestyle=(0, (1, 3)),
            label="_switch",
        )
        ax.annotate(
            label(row["name"], 26),
            (float(row["width"]), 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=7.5,
            color=theme.muted,
        )


def _name_bounds(ax: Axes, widest: float, theme: Theme) -> None:
    at = widest**0.55
    ax.annotate(
        "no gain: w tokens cost w passes",
        (at, at),
        xytext=(-4, 8),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color=theme.muted,
    )
    ax.annotate(
        "free",
        (1, 1),
        xytext=(4, -3),
        textcoords="offset points",
        va="top",
        fontsize=8,
        color=theme.muted,
    )
