"""Why a drafted step costs more in a server than one pass alone: measured part by part.

Passes are timed in process, requests in the server. What is left between the two is split
over what happened in each request: every step, every step of a server that asks a drafter,
every step with a draft. A fourth part says how the same pass compares in the two places.
Each part comes with its interval and with what it stands for; what no part explains is
reported beside them. Requests that a fit has seen are no test of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from attrs import evolve, frozen
from numpy.typing import NDArray
from scipy.optimize import nnls

from lab.analyse.drafters.steps import RecordedText
from lab.analyse.estimates import Estimate
from lab.analyse.speculation import AnySteps, passes_of
from lab.analyse.step_overhead import StepOverhead
from lab.analyse.verify_cost_curve import VerifyCostCurve, estimate_of
from lab.errors import InputError

Floats = NDArray[np.float64]

MEANING = {
    "pass_scale": "time of a pass in the server over the same pass alone in a process",
    "step_ms": "every step: loop, accounting, sending a token",
    "asked_ms": "every step of a server that drafts: asking its drafter",
    "drafted_ms": "every step with a draft: copying the sampler, cutting the cache back",
}
LEAST_REQUESTS = 8
DRAWS = 200


@frozen(eq=False)
class Observed:
    """One request of which the steps are known.

    Attributes
    ----------
    steps : replayed over the arm's own text, or counted (speculation.counted_steps).
    predicted_ms : what the server took for all tokens after the first.
    drafting : a drafter was on, whether or not it drafted.
    """

    text: RecordedText
    steps: AnySteps
    predicted_ms: float
    drafting: bool


@frozen(eq=False)
class OverheadFit:
    """What a server's steps cost besides their passes.

    Attributes
    ----------
    parts : by name of MEANING; a part that the requests cannot tell is not among them.
    unexplained : median of |measured / priced - 1| over the requests that were fitted.
    n : requests.
    """

    parts: dict[str, Estimate]
    unexplained: Estimate
    n: int

    def applied(self, curve: VerifyCostCurve) -> VerifyCostCurve:
        """The curve as this server charges it."""
        parts = {name: one.value or 0.0 for name, one in self.parts.items()}
        scale = parts.pop("pass_scale", 1.0)
        besides: StepOverhead = evolve(curve.besides, **parts)
        return evolve(curve, times=curve.times * scale, besides=besides)

    def frame(self, curve: VerifyCostCurve) -> pd.DataFrame:
        """One row a part: part, meaning, unit, value, low, high, share (of a plain step; a
        scale's excess over 1).
        """
        plain = float(curve.plain_ms(np.median(curve.depths))[0])
        rows = [
            {
                "part": name,
                "meaning": MEANING[name],
                "unit": one.unit,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "share": (one.value or 0) - 1 if name == "pass_scale" else (one.value or 0) / plain,
            }
            for name, one in self.parts.items()
        ]
        return pd.DataFrame(rows)


def fit_step_overhead(
    requests: Sequence[Observed], curve: VerifyCostCurve, *, draws: int = DRAWS, seed: int = 1
) -> OverheadFit:
    """Split what requests took beyond their passes and their choices of tokens.

    Least squares of relative errors with parts that are never negative; the interval comes
    from drawing requests anew. Without requests that drafted only ``step_ms`` can be told;
    without requests of a server that did not draft, asking is part of every step.

    Raises
    ------
    InputError : fewer than LEAST_REQUESTS requests.
    """
    if len(requests) < LEAST_REQUESTS:
        raise InputError(
            f"needs at least {LEAST_REQUESTS} requests",
            field="requests",
            value=len(requests),
            fix="Measure more",
        )
    names, design, target = _design(requests, curve)
    random = np.random.default_rng(seed)
    every = np.arange(len(requests))
    picks = [every, *(random.choice(every, len(every)) for _ in range(draws - 1))]
    found = np.array([nnls(design[pick], target[pick])[0] for pick in picks])
    left = np.abs(1 / (1 - target + design @ found[0]) - 1)
    unit = {name: "ratio" if name == "pass_scale" else "ms" for name in names}
    parts = {
        name: estimate_of(found[:, place], name, unit[name], n=len(requests), unit_of_n="request")
        for place, name in enumerate(names)
    }
    unexplained = Estimate(
        "unexplained",
        "fraction",
        float(np.median(left)),
        None,
        float(np.quantile(left, 0.9)),
        0.9,
        len(requests),
        "request",
    )
    return OverheadFit(parts, unexplained, len(requests))


def _design(
    requests: Sequence[Observed], curve: VerifyCostCurve
) -> tuple[list[str], Floats, Floats]:
    """Parts that can be told, what each request has of them, and what is to be explained.

    All in shares of the request's own time, so that long requests weigh no more than
    short ones.
    """
    each = [passes_of(one.text, one.steps) for one in requests]
    took = np.array([one.predicted_ms for one in requests])
    bare = np.array([float(one.total(curve.point())[0]) for one in each])
    taken = np.array([one.taken for one in each])
    drafted = np.array([one.drafted for one in each])
    asked = taken * [one.drafting for one in requests]
    chosen = curve.besides.token_ms * np.array([one.tokens for one in each])
    columns = {"step_ms": taken}
    explained = took - chosen
    if drafted.any():
        columns = {"pass_scale": bare, "step_ms": taken, "drafted_ms": drafted}
    else:
        explained = explained - bare
    if asked.any() and not all(one.drafting for one in requests):
        columns["asked_ms"] = asked
    design = np.column_stack(list(columns.values())) / took[:, None]
    return list(columns), design, explained / took
