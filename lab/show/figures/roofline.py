"""Is there idle compute, or is the memory the wall?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import magnitude_axis, name_rows, sheet
from lab.show.frames import column_of, float_of, interval_of, ordered, require, why_empty
from lab.show.labels import number
from lab.show.marks import beside, end_labels, estimate, missing_row, no_data
from lab.show.style import LIGHT, Theme, look, themed

_ROOF_IN = 3.4


@themed
def roofline(
    attained: pd.DataFrame,
    roof: pd.DataFrame,
    widths: pd.DataFrame,
    *,
    question: str = "How near does decoding come to what the memory allows?",
    theme: Theme = LIGHT,
) -> Figure:
    """Attained speed under its bandwidth ceiling; below, work against intensity by width.

    Parameters
    ----------
    attained : one row a model: model, decode_tok_s (tok/s), low, high, n, ceiling_tok_s
        (sustained bandwidth over bytes a token), attained_share (fraction).
    roof : the roof as a polyline, corner included: intensity (flop/byte), gflop_s, ridge
        (bool, True at the corner).
    widths : one row a model and width: model, width (tokens in the pass), intensity
        (flop/byte), gflop_s (attained).
    """
    columns = ("model", "decode_tok_s", "low", "high", "n", "ceiling_tok_s", "attained_share")
    require(attained, "roofline", *columns, name="attained")
    require(roof, "roofline", "intensity", "gflop_s", "ridge", name="roof")
    require(widths, "roofline", "model", "width", "intensity", "gflop_s", name="widths")
    rows = max(2, len(attained))
    picture, axes = sheet(
        question,
        theme=theme,
        height_in=1.7 + 0.46 * rows + _ROOF_IN,
        rows=2,
        heights=(0.46 * rows, _ROOF_IN),
    )
    _draw_attained(axes[0, 0], attained, theme)
    _draw_roof(axes[1, 0], roof, widths, theme)
    return picture


def _draw_attained(ax: Axes, attained: pd.DataFrame, theme: Theme) -> None:
    ax.set_title("One token at a time, and the bandwidth ceiling")
    reason = why_empty(attained, "decode_tok_s")
    if reason is not None:
        no_data(ax, reason, theme)
        return
    for place, (_, row) in enumerate(attained.iterrows()):
        value, ceiling = float_of(row, "decode_tok_s"), float_of(row, "ceiling_tok_s")
        if not math.isfinite(value):
            missing_row(ax, place, str(row.get("reason") or "not measured"), theme)
            continue
        if math.isfinite(ceiling):
            ax.hlines(place, value, ceiling, colors=theme.grid, linewidth=5, label="_gap", zorder=1)
            _mark_ceiling(ax, ceiling, place, theme)
        estimate(ax, value, place, look(str(row["model"])), theme, interval=interval_of(row))
        share = float_of(row, "attained_share")
        note = f"{share:.0%} of the ceiling" if math.isfinite(share) else "ceiling unknown"
        beside(ax, place, f"{number(value)} tok/s", theme, note=note)
    name_rows(ax, [str(model) for model in attained["model"]], theme)
    ax.set_xlim(left=0)
    ax.set_xlabel("Tokens a second")


def _mark_ceiling(ax: Axes, ceiling: float, place: int, theme: Theme) -> None:
    ax.scatter([ceiling], [place], marker="|", s=190, c=theme.ink, lw=2, label="_ceiling", zorder=3)
    if place == 0:
        ax.annotate(
            "ceiling",
            (ceiling, place),
            xytext=(-5, 5),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=theme.muted,
        )


def _draw_roof(ax: Axes, roof: pd.DataFrame, widths: pd.DataFrame, theme: Theme) -> None:
    ax.set_title("Several tokens a pass (w): does memory or arithmetic limit?")
    reason = why_empty(widths, "gflop_s")
    if reason is not None:
        no_data(ax, reason, theme)
        return
    magnitude_axis(ax, "x")
    magnitude_axis(ax, "y")
    ends = []
    for model in ordered(widths["model"]):
        style, mine = look(model), widths[widths["model"] == model].sort_values("width")
        x, y = column_of(mine, "intensity"), column_of(mine, "gflop_s")
        ax.plot(x, y, color=style.color, linewidth=1, alpha=0.7, label="_line")
        ax.scatter(x, y, s=26, c=style.color, marker=style.marker, label="_points", zorder=3)
        _name_widths(ax, mine, theme)
        known = y[np.isfinite(y)]
        ends.append((float(known[-1]) if len(known) else math.nan, model, style))
    if not roof.empty:
        _draw_ceiling(ax, roof, theme)
    ax.grid(visible=True, color=theme.grid)
    ax.set_xlabel("Arithmetic intensity, flop/byte (log scale)")
    ax.set_ylabel("Gflop/s (log scale)")
    end_labels(ax, ends, theme, height_in=_ROOF_IN - 0.6)


def _name_widths(ax: Axes, mine: pd.DataFrame, theme: Theme) -> None:
    for _, row in mine.iterrows():
        width = float(row["width"])
        if width in {1, 4, 16, 64} and math.isfinite(float_of(row, "gflop_s")):
            ax.annotate(
                f"w={width:g}",
                (float(row["intensity"]), float(row["gflop_s"])),
                xytext=(4, -9),
                textcoords="offset points",
                fontsize=7.5,
                color=theme.muted,
            )


def _draw_ceiling(ax: Axes, roof: pd.DataFrame, theme: Theme) -> None:
    line = roof.sort_values("intensity")
    ax.plot(
        column_of(line, "intensity"),
        column_of(line, "gflop_s"),
        color=theme.ink,
        linewidth=1.8,
        label="_roof",
    )
    for _, row in line[line["ridge"].astype(bool)].iterrows():
        at = float(row["intensity"])
        ax.axvline(at, color=theme.muted, lw=0.8, linestyle=(0, (1, 3)), label="_ridge")
        ax.annotate(
            f"ridge {at:.3g} flop/byte",
            (at, float(row["gflop_s"])),
            xytext=(-6, 5),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=theme.muted,
        )
