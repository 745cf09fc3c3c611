"""What the drafter had seen before."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from lab.show.row_panels import row_panels
from lab.show.style import LIGHT, Theme, themed


@themed
def speedup_by_state(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    *,
    equivalence: tuple[float, float] | None = None,
    question: str = "What changes when the drafter has seen other prompts, or this one?",
    theme: Theme = LIGHT,
) -> Figure:
    """Speed-up of every arm, one panel a state (cold, warm-other, warm-same).

    Parameters
    ----------
    frame : one row an arm and state: arm, state, speedup (ratio), low, high, n (prompts).
    points : one row a prompt, arm and state: arm, state, speedup.
    equivalence : ends of the margin within which an arm counts as equal, ratios.
    """
    return row_panels(
        frame,
        points,
        figure="speedup_by_state",
        panel="state",
        row="arm",
        equivalence=equivalence,
        question=question,
        theme=theme,
    )
