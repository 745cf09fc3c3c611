"""What the hardware did while it was measured."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import sheet
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.labels import label
from lab.show.marks import end_labels, no_data
from lab.show.style import LIGHT, PALETTE, Look, Theme, themed

_PANEL_IN = 1.25


@themed
def clocks(
    frame: pd.DataFrame,
    spans: pd.DataFrame | None = None,
    *,
    question: str = "Did the machine keep its pace while it was measured?",
    theme: Theme = LIGHT,
) -> Figure:
    """One panel a quantity over time, one line a device; marked spans behind.

    Parameters
    ----------
    frame : one row a sample: device, quantity ("SM clock", "power", ...), unit, elapsed_s,
        value. A gap in the samples stays a gap.
    spans : what to shade: start_s, end_s, name ("throttled", "prefill", ...).
    """
    require(frame, "clocks", "device", "quantity", "unit", "elapsed_s", "value")
    reason = why_empty(frame, "value")
    quantities = [] if reason else ordered(frame["quantity"])
    rows = max(1, len(quantities))
    picture, axes = sheet(
        question, theme=theme, height_in=1.2 + _PANEL_IN * max(rows, 2), rows=rows, share_x="all"
    )
    if reason is not None:
        no_data(axes[0, 0], reason, theme)
        return picture
    devices = ordered(frame["device"])
    for ax, quantity in zip(axes[:, 0], quantities, strict=True):
        _shade(ax, spans, theme, named=ax is axes[0, 0])
        ends = _draw_quantity(ax, frame[frame["quantity"] == quantity], devices, theme)
        if ax is axes[0, 0]:
            end_labels(ax, ends, theme, height_in=_PANEL_IN - 0.5)
    axes[-1, 0].set_xlabel("Seconds since the start")
    return picture


def _draw_quantity(
    ax: Axes, mine: pd.DataFrame, devices: list[str], theme: Theme
) -> list[tuple[float, str, Look]]:
    ends = []
    # Reversed, so that the first device lies on top where two run alike.
    for device in reversed(ordered(mine["device"])):
        color = PALETTE[devices.index(device) % 4]
        line = mine[mine["device"] == device].sort_values("elapsed_s")
        values = column_of(line, "value")
        ax.plot(column_of(line, "elapsed_s"), values, color=color, lw=1.2, label="_line")
        known = values[~pd.isna(values)]
        if len(known):
            ends.append((float(known[-1]), label(device, 26), Look(color, "o")))
    ax.set_title(f"{label(mine['quantity'].iloc[0])}, {label(mine['unit'].iloc[0])}")
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
    ax.grid(visible=True, axis="y", color=theme.grid)
    return ends


def _shade(ax: Axes, spans: pd.DataFrame | None, theme: Theme, *, named: bool) -> None:
    if spans is None or spans.empty:
        return
    require(spans, "clocks", "start_s", "end_s", "name", name="spans")
    for _, row in spans.iterrows():
        start = float(row["start_s"])
        ax.axvspan(start, float(row["end_s"]), facecolor=theme.shade, lw=0, label="_span", zorder=0)
        if named:
            ax.annotate(
                label(row["name"], 18),
                (start, 0),
                xycoords=("data", "axes fraction"),
                xytext=(3, 2),
                textcoords="offset points",
                va="bottom",
                fontsize=7.5,
                color=theme.muted,
            )
