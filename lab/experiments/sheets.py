"""A figure of an experiment with everything it needs, ready to be shown or redrawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
from attrs import frozen
from matplotlib.figure import Figure

from lab.show.export import Words

Provenance = Mapping[str, str]


@frozen
class Sheet:
    """One figure.

    Attributes
    ----------
    name : stem of its files. draw : a function of lab.show.figures, or a partial of one.
    frames : what it draws, by parameter name; None for an optional frame left out.
    alt, caption : what is told beside it.
    """

    name: str
    draw: Callable[..., Figure]
    frames: Mapping[str, pd.DataFrame | None]
    alt: str
    caption: str

    def words(self, made_by: Provenance) -> Words:
        """Alternative text and caption, with what made the figure."""
        return Words(alt=self.alt, caption=self.caption, provenance=dict(made_by))
