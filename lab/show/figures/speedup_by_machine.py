"""The same arms on several machines or builds."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from lab.show.row_panels import row_panels
from lab.show.style import LIGHT, Theme, themed


@themed
def speedup_by_machine(
    frame: pd.DataFrame,
    points: pd.DataFrame,
    *,
    equivalence: tuple[float, float] | None = None,
    question: str = "Does the answer change with the machine?",
    theme: Theme = LIGHT,
) -> Figure:
    """Speed-up of every arm, one panel a recorded run (machine, build, model).

    Each speed-up is a ratio within its own run, so machines are set side by side, never
    divided by one another.

    Parameters
    ----------
    frame : one row an arm and run: arm, run_label, speedup (ratio), low, high, n (prompts).
    points : one row a prompt, arm and run: arm, run_label, speedup.
    equivalence : ends of the margin within which an arm counts as equal, ratios.
    """
    return row_panels(
        frame,
        points,
        figure="speedup_by_machine",
        panel="run_label",
        row="arm",
        equivalence=equivalence,
        question=question,
        theme=theme,
    )
