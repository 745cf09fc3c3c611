"""Which passes a verify-cost curve is made of."""

from __future__ import annotations

from attrs import frozen

ALTERNATING = "alternating"
"""The width changes with every pass, so the engine builds its graph anew each time."""
REPEATED = "repeated"
"""Runs of one width, whose graph the engine can use again."""

WIDTHS = (*range(1, 10), 16, 17, 24, 32, 33, 48, 64, 65)
"""Every width of a short draft, then both sides of the usual switches between kernels."""


@frozen
class CurvePlan:
    """Which passes are timed.

    Attributes
    ----------
    widths : tokens a pass; must hold 1. depths : tokens of context before the pass.
    rounds : how often every (depth, mode, width) is timed; each on the next text in turn.
    modes : "alternating", "repeated" or both.
    repeats : passes of the same width in a run of the repeated mode, after a first that is
        kept apart because it pays for the change of width.
    seed : decides the order.
    """

    widths: tuple[int, ...] = WIDTHS
    depths: tuple[int, ...] = (64, 256, 1024)
    rounds: int = 20
    modes: tuple[str, ...] = (ALTERNATING, REPEATED)
    repeats: int = 2
    seed: int = 1

    @property
    def lines(self) -> int:
        """Lines of measurement a finished file holds."""
        return self.rounds * len(self.depths) * len(self.modes)
