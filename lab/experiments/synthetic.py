"""Is the price of a drafted step right? Acceptance prescribed, speed-up foretold and measured.

The engine can accept drafted tokens by lot instead of by what the model says
(``--spec-synth-rates``). Width and acceptance are then ours to choose, and only the cost of
a step is left to be right or wrong. Such an arm's text means nothing and its speed-up is no
drafter's: every name and label here says "synthetic".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lab.analyse.drafters.steps import RecordedText
from lab.analyse.overhead_fit import LEAST_REQUESTS, Observed, fit_step_overhead
from lab.analyse.speculation import VerifyCostCurve, counted_steps, predict
from lab.analyse.stats import mean_log, pairs
from lab.analyse.tables import measured
from lab.experiments.shared_servers import shared_servers
from lab.inputs.arm import Arm, Drafting
from lab.inputs.profiles import Profile
from lab.inputs.prompts import Prompt
from lab.measure.plan import Plan
from lab.measure.records import Output

EXPERIMENT = "synthetic"
BLOCKS = 3
MODE = "synthetic acceptance"


def arms_of(profile: Profile) -> tuple[Arm, ...]:
    """The baseline, and one arm for every width and rate of the profile.

    The drafter is ngram-mod asked for a match of one token and for whole drafts only, which
    proposes something nearly always and costs next to nothing.
    """
    wanted = profile.experiments.why
    baseline = profile.baseline()
    drafting = [
        Arm(
            name=f"synthetic-{width}-{round(100 * rate)}",
            label=f"synthetic: {width} tokens a pass, {rate:.0%} of each accepted",
            settings=baseline.settings,
            drafting=Drafting(("ngram-mod",), _flags(width - 1, rate)),
        )
        for width in wanted.synthetic_widths
        for rate in wanted.synthetic_rates
    ]
    return (baseline, *drafting)


def _flags(drafted: int, rate: float) -> dict[str, str | int]:
    """Each token is accepted with the same chance, given that all before it were."""
    rates = ",".join(f"{rate**place:.6g}" for place in range(1, drafted + 1))
    return {
        "spec-ngram-mod-n-match": 1,
        "spec-ngram-mod-n-min": drafted,
        "spec-ngram-mod-n-max": drafted,
        "spec-synth-rates": rates,
    }


def plan(profile: Profile, prompts: Sequence[Prompt]) -> Plan:
    """Every arm answers the same prompts in every block, arms taking turns."""
    n_predict = profile.experiments.why.n_predict
    arms = arms_of(profile)
    return shared_servers(EXPERIMENT, profile, arms, prompts, blocks=BLOCKS, n_predict=n_predict)


def read(
    frame: pd.DataFrame, outputs: Mapping[str, Output], curve: VerifyCostCurve, profile: Profile
) -> pd.DataFrame:
    """Foretold against measured, one row an arm.

    Steps come from the server's counters, prices from the curve; of the measured times only
    the baseline's are used, for what the server spends on every step.

    Columns: arm, mode ("synthetic acceptance"), width, coverage, acceptance_length,
    predicted, predicted_low, predicted_high, measured, measured_low, measured_high,
    residual (measured over predicted), n (prompts).
    """
    rows = measured(frame[frame["experiment"] == EXPERIMENT])
    curve = with_server(curve, rows[rows["arm"] == "baseline"], outputs)
    level, found = profile.decision.level, []
    for arm in arms_of(profile)[1:]:
        mine = rows[rows["arm"] == arm.name]
        paired = pairs(rows, arm.name)
        if paired.empty:
            continue
        known = [(row, one) for row in mine.itertuples() if (one := _text(row, outputs))]
        steps = [_counted(row, text) for row, text in known]
        _, foretold = predict([text for _, text in known], steps, curve, level=level)
        got = mean_log(paired["log_ratio"].to_numpy(), level=level)
        drafted, accepted = mine["drafted_steps"].sum(), mine["draft_n_accepted"].sum()
        found.append(
            {
                "arm": arm.name,
                "mode": MODE,
                "width": 1 + mine["draft_n"].sum() / drafted if drafted else math.nan,
                "coverage": drafted / mine["target_steps"].sum(),
                "acceptance_length": 1 + accepted / drafted if drafted else math.nan,
                "predicted": foretold.value,
                "predicted_low": foretold.low,
                "predicted_high": foretold.high,
                "measured": got.value,
                "measured_low": got.low,
                "measured_high": got.high,
                "residual": (got.value or math.nan) / (foretold.value or math.nan),
                "n": got.n,
            }
        )
    return pd.DataFrame(found)


def with_server(
    curve: VerifyCostCurve, baseline: pd.DataFrame, outputs: Mapping[str, Output]
) -> VerifyCostCurve:
    """The curve with what the server spends on every step, from baseline requests alone."""
    nothing = np.zeros((0, 3))
    requests = [
        Observed(text, nothing, float(str(row.predicted_ms)), drafting=False)
        for row in baseline.itertuples()
        if (text := _text(row, outputs))
    ]
    if len(requests) < LEAST_REQUESTS:
        return curve
    return fit_step_overhead(requests, curve).applied(curve)


def _text(row: object, outputs: Mapping[str, Output]) -> RecordedText | None:
    output = outputs.get(str(row.key))  # type: ignore[attr-defined] # a named tuple of pandas
    if output is None or not output.prompt_tokens or not output.tokens:
        return None
    asked = int(row.n_predict)  # type: ignore[attr-defined]
    return RecordedText(output.key, output.prompt_tokens, output.tokens, asked)


def _counted(row: object, text: RecordedText) -> np.ndarray:
    names = ("drafted_steps", "draft_n", "draft_n_accepted")
    return counted_steps(text, **{name: int(getattr(row, name)) for name in names})
