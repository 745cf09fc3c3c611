"""Several streams at once: what all of them gain and each of them loses."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import count_axis, sheet
from lab.show.frames import column_of, ordered, require, why_empty
from lab.show.labels import label
from lab.show.marks import end_labels, line_and_band, no_data
from lab.show.style import LIGHT, Theme, look, themed

_PANEL_IN = 2.3


@themed
def concurrency(
    frame: pd.DataFrame,
    *,
    question: str = "What do parallel requests gain together, and lose each?",
    theme: Theme = LIGHT,
) -> Figure:
    """Throughput of all streams above, time a token of one stream below.

    Parameters
    ----------
    frame : one row an arm and number of streams: arm, streams (count), throughput_tok_s
        (all streams), throughput_low, throughput_high, tpot_ms (one stream), tpot_low,
        tpot_high, n (repeats).
    """
    quantities = ("throughput_tok_s", "throughput_low", "throughput_high")
    latencies = ("tpot_ms", "tpot_low", "tpot_high")
    require(frame, "concurrency", "arm", "streams", *quantities, *latencies, "n")
    picture, axes = sheet(
        question, theme=theme, height_in=1.0 + 2 * _PANEL_IN, rows=2, share_x="all"
    )
    reason = why_empty(frame, "throughput_tok_s", "tpot_ms")
    if reason is not None:
        axes[1, 0].remove()
        no_data(axes[0, 0], reason, theme)
        return picture
    _draw(axes[0, 0], frame, *quantities, theme=theme)
    _draw(axes[1, 0], frame, *latencies, theme=theme)
    axes[0, 0].set_title("All streams together, tokens a second")
    axes[1, 0].set_title("One stream, milliseconds a token")
    axes[1, 0].set_xlabel("Parallel streams (log scale)")
    return picture


def _draw(ax: Axes, frame: pd.DataFrame, value: str, low: str, high: str, *, theme: Theme) -> None:
    ends = []
    for arm in ordered(frame["arm"]):
        style, mine = look(arm), frame[frame["arm"] == arm].sort_values("streams")
        line_and_band(ax, mine, style, theme, x="streams", y=value, low=low, high=high)
        ends.append((float(column_of(mine, value)[-1]), label(arm, 26), style))
    ax.grid(visible=True, axis="y", color=theme.grid)
    ax.set_ylim(bottom=0)
    count_axis(ax, "x", column_of(frame, "streams").tolist())
    end_labels(ax, ends, theme, height_in=_PANEL_IN - 0.5)
