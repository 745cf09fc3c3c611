"""On which kind of text drafting pays."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from lab.show.row_panels import row_panels
from lab.show.style import LIGHT, Theme, themed


@themed
def speedup_by_category(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    *,
    equivalence: tuple[float, float] | None = None,
    question: str = "On which kind of text does drafting pay?",
    theme: Theme = LIGHT,
) -> Figure:
    """Speed-up by category, one panel an arm, categories as rows in the frame's order.

    Parameters
    ----------
    frame : one row an arm and category: arm, category, speedup (ratio), low, high, n (prompts).
    points : one row a prompt and arm: arm, category, speedup.
    equivalence : ends of the margin within which an arm counts as equal, ratios.
    """
    return row_panels(
        frame,
        points,
        figure="speedup_by_category",
        panel="arm",
        row="category",
        equivalence=equivalence,
        question=question,
        theme=theme,
    )
