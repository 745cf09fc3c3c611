"""A number the lab is willing to show: a value with its interval, and what to beware of."""

from __future__ import annotations

from attrs import frozen


@frozen
class Estimate:
    """A point estimate with its uncertainty.

    Attributes
    ----------
    name, unit : as in the vocabulary of analyse.metrics.
    value : point estimate; None when it cannot be given (``reason`` says why).
    low, high : ends of the interval; None when n is too small to claim one.
    level : confidence level of the interval, a fraction.
    n : units behind it (prompts, unless ``unit_of_n`` says otherwise).
    """

    name: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    unit_of_n: str = "prompt"
    reason: str | None = None

    def __str__(self) -> str:
        if self.value is None:
            return f"n/a ({self.reason})"
        if self.low is None or self.high is None:
            return f"{self.value:.3g}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@frozen
class Caution:
    """Something a reader must know before believing a number.

    ``kind`` is one of TooFewPrompts, HighSpread, Drift, Throttled, Busy, CacheHit,
    Truncated, ErrorsPresent, Diverged, InactiveSpeculation, ContaminatedBaseline,
    LengthsDiffer, SuspiciousConstantStep, Stochastic, NotComparable, ClockJump, ClientTimed,
    DeviceLost, WarmPool.
    ``blocks`` is True when the headline must not be shown at all.
    """

    kind: str
    subject: str
    message: str
    blocks: bool = False
