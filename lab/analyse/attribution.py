"""Where a measured speed-up comes from: coverage, acceptance, cost, and what is left."""

from __future__ import annotations

import math

from attrs import frozen


@frozen
class Attribution:
    """Log contributions that add up to the logarithm of the measured speed-up.

    Attributes
    ----------
    drafting : what tokens_per_step gives: coverage and acceptance length together.
    coverage, acceptance : drafting, split: what the same acceptance would give at full
        coverage is acceptance; what missing coverage takes from it is coverage.
    step_cost : what dearer steps take, by the curve. residual : measured minus all that.
    """

    coverage: float
    acceptance: float
    step_cost: float
    residual: float

    @property
    def drafting(self) -> float:
        """Log of tokens per step."""
        return self.coverage + self.acceptance


def attribute(
    measured_log: float, coverage: float, acceptance_length: float | None, cost_log: float
) -> Attribution:
    """Split a measured log speed-up.

    Parameters
    ----------
    coverage : drafted_steps / target_steps. acceptance_length : tokens a drafted step;
        None when nothing was drafted.
    cost_log : log of the mean step's price over a plain step's, from the curve.
    """
    if not coverage or acceptance_length is None:
        return Attribution(0.0, 0.0, -cost_log, measured_log + cost_log)
    tokens = math.log(1 + coverage * (acceptance_length - 1))
    at_full = math.log(acceptance_length)
    return Attribution(tokens - at_full, at_full, -cost_log, measured_log - tokens + cost_log)
