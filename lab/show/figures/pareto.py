"""Speed, quality and memory: what cannot be had together."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.show.axes import ratio_axis, sheet
from lab.show.frames import column_of, float_of, interval_of, require, why_empty
from lab.show.labels import label
from lab.show.marks import estimate, no_data
from lab.show.style import BLUE, GREY, LIGHT, Look, Theme, themed

Box = tuple[float, float, float, float]
"""left, right, bottom, top."""


@themed
def pareto(
    frame: pd.DataFrame,
    *,
    question: str = "Which settings buy speed at the least loss of quality?",
    theme: Theme = LIGHT,
) -> Figure:
    """Speed against loss of quality, memory written at each; the front joined in steps.

    Parameters
    ----------
    frame : one row a setting: setting, speedup (ratio), low, high, n, kl_divergence (nats
        a token), kl_low, kl_high, memory_mib (may be missing), on_front (bool: no other
        setting is better in one of the three and no worse in the others).
    """
    columns = ("setting", "speedup", "low", "high", "n", "kl_divergence", "on_front")
    require(frame, "pareto", *columns)
    picture, axes = sheet(question, theme=theme, height_in=4.6)
    ax: Axes = axes[0, 0]
    known = frame
    if not frame.empty:
        both = pd.notna(frame["speedup"]) & pd.notna(frame["kl_divergence"])
        known = frame[both]
    reason = why_empty(known, "speedup")
    if reason is not None:
        no_data(ax, reason, theme)
        return picture
    ax.margins(x=0.12, y=0.1)
    for _, row in known.iterrows():
        _draw_setting(ax, row, theme)
    _join_front(ax, known, theme)
    ratio_axis(ax, "x")
    _name_settings(ax, known, theme)
    _count_left_out(ax, len(frame) - len(known), theme)
    ax.grid(visible=True, color=theme.grid)
    ax.set_xlabel("Speed over the default (log scale)")
    ax.set_ylabel("Loss: KL divergence, nats a token (lower is better)")
    return picture


def _draw_setting(ax: Axes, row: pd.Series, theme: Theme) -> None:
    front = bool(row["on_front"])
    style = Look(BLUE, "o") if front else Look(GREY, "o", filled=False)
    x, y = float_of(row, "speedup"), float_of(row, "kl_divergence")
    loss = interval_of(row, "kl_low", "kl_high")
    ax.vlines(x, *loss, colors=style.color, linewidth=1.2, alpha=0.7, label="_loss_interval")
    estimate(ax, x, y, style, theme, interval=interval_of(row), size=46 if front else 30)


def _join_front(ax: Axes, known: pd.DataFrame, theme: Theme) -> None:
    """Steps, since nothing between two settings was shown to exist."""
    front = known[known["on_front"].astype(bool)].sort_values("speedup")
    ax.step(
        column_of(front, "speedup"),
        column_of(front, "kl_divergence"),
        where="pre",
        color=theme.muted,
        linewidth=1,
        label="_front",
        zorder=1,
    )


def _count_left_out(ax: Axes, left_out: int, theme: Theme) -> None:
    if left_out:
        ax.annotate(
            f"{left_out} more: speed or loss not measured",
            (0.99, 0.98),
            xycoords="axes fraction",
            ha="right",
            va="top",
            fontsize=8,
            color=theme.muted,
        )


def _name_settings(ax: Axes, known: pd.DataFrame, theme: Theme) -> None:
    """Name the front first, then every setting whose name finds a free place."""
    to_fraction = ax.transScale + ax.transLimits
    taken: list[Box] = []
    for _, row in known.sort_values("on_front", ascending=False, kind="stable").iterrows():
        at = float_of(row, "speedup"), float_of(row, "kl_divergence")
        memory = float_of(row, "memory_mib")
        size = "" if pd.isna(memory) else f" · {memory:,.0f} MiB"
        text, front = f"{label(row['setting'], 24)}{size}", bool(row["on_front"])
        x, y = (float(part) for part in to_fraction.transform(at))
        place = _free_place(x, y, text, taken, always=front)
        if place is None:
            continue
        right, up = place
        ax.annotate(
            text,
            at,
            xytext=(7 if right else -7, 5 if up else -5),
            textcoords="offset points",
            ha="left" if right else "right",
            va="bottom" if up else "top",
            fontsize=8 if front else 7.5,
            color=theme.ink if front else theme.muted,
        )


def _free_place(
    x: float, y: float, text: str, taken: list[Box], *, always: bool
) -> tuple[bool, bool] | None:
    """Side (right, up) of a point where its name is free of the others; None where none is.

    Sizes are fractions of the axes, estimated from the number of letters.
    """
    wide = 0.0105 * len(text)
    for right, up in ((True, True), (True, False), (False, True), (False, False)):
        left = x + 0.012 if right else x - 0.012 - wide
        low = y + 0.012 if up else y - 0.052
        box = (left, left + wide, low, low + 0.04)
        inside = left > 0 and box[1] < 1.05  # noqa: PLR2004
        if inside and (always or not any(_overlap(box, other) for other in taken)):
            taken.append(box)
            return right, up
    return (False, True) if always else None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
