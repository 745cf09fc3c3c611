"""Notebook 05: why did drafting give what it gave, and could it have been foretold?

The text's half comes from replaying every setting over the recorded baseline answers, the
hardware's half from timing passes in process. Neither uses the measured speed-ups, which
are then held against the prediction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from attrs import frozen

from lab import paths
from lab.analyse.attribution import attribute
from lab.analyse.break_even import break_even, break_even_map
from lab.analyse.drafters.replay import Setting, replay, setting_of, summary
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.estimates import Estimate
from lab.analyse.findings import Finding
from lab.analyse.speculation import VerifyCostCurve, curve_from, predict, price
from lab.analyse.stats import mean_log, pairs
from lab.analyse.tables import measured
from lab.experiments import diverse
from lab.experiments.sheets import Sheet
from lab.inputs.arm import Arm
from lab.inputs.profiles import Profile
from lab.measure.curve_plan import CurvePlan
from lab.measure.records import Output
from lab.show import figures

SWITCHES = pd.DataFrame(
    {"width": [8, 32, 64], "name": ["vector kernels end (CUDA)", "32 tokens", "64 tokens"]}
)
"""Widths at which engines change kernels (user reports; CUDA's MMVQ_MAX_BATCH_SIZE is 8)."""

MATCHES = (2, 3, 4, 6, 8, 12, 16, 24)
LENGTHS = (2, 4, 6, 8, 12, 16, 32, 48)
ACCEPTED = np.arange(1, 17, 0.5)


def curve_plan(profile: Profile) -> CurvePlan:
    """The passes to time, from the profile."""
    wanted = profile.experiments.why
    depths = tuple(d for d in wanted.depths if d + max(wanted.widths) <= profile.settings.n_ctx)
    return CurvePlan(widths=wanted.widths, depths=depths, rounds=wanted.rounds)


@frozen(eq=False)
class Reading:
    """What curve and replay say, beside what was measured.

    Attributes
    ----------
    curve : the verify-cost curve. cost : it as a frame with intervals, by depth and width.
    points : predicted and measured speed-up, one row a prompt set and arm, with intervals.
    errors : absolute relative error of the prediction, one row a prompt and arm.
    split, totals : attribution of each arm's measured speed-up, and that speed-up.
    even, even_line : speed-up over width and acceptance length, and where it is 1.
    grid : predicted speed-up over match and draft length for the diverse prompts.
    reference : published verify-cost curves.
    """

    curve: VerifyCostCurve
    cost: pd.DataFrame
    points: pd.DataFrame
    errors: pd.DataFrame
    split: pd.DataFrame
    totals: pd.DataFrame
    even: pd.DataFrame
    even_line: pd.DataFrame
    grid: pd.DataFrame
    reference: pd.DataFrame


def recorded_texts(
    frame: pd.DataFrame, outputs: Mapping[str, Output], experiment: str
) -> dict[str, RecordedText]:
    """The baseline's answers of an experiment, by prompt id."""
    rows = measured(frame[(frame["experiment"] == experiment) & (frame["arm"] == "baseline")])
    found = {}
    for row in rows.drop_duplicates("prompt_id").itertuples():
        output = outputs.get(str(row.key))
        if output is not None and output.prompt_tokens and output.tokens:
            found[str(row.prompt_id)] = RecordedText(
                str(row.prompt_id), output.prompt_tokens, output.tokens, int(str(row.n_predict))
            )
    return found


def read(
    frame: pd.DataFrame, outputs: Mapping[str, Output], passes: pd.DataFrame, profile: Profile
) -> Reading:
    """Predictions and what they are held against.

    Parameters
    ----------
    frame : records of notebook 02's experiments. passes : timed passes of the target.
    """
    bare = curve_from(passes)
    curve = curve_from(passes, server_ms=_server_ms(frame, outputs, bare))
    arms = [arm for arm in diverse.arms_of(profile) if setting_of(arm.drafting) is not None]
    points, errors, split, totals = [], [], [], []
    for experiment in diverse.EXPERIMENTS:
        texts = recorded_texts(frame, outputs, experiment)
        rows = measured(frame[frame["experiment"] == experiment])
        for arm in arms:
            one = _held_against(experiment, arm, texts, rows, curve=curve, profile=profile)
            if one is not None:
                points.append(one.point)
                errors.append(one.errors)
                split += one.split
                totals.append(one.total)
    depth = float(np.median(curve.depths))
    return Reading(
        curve=curve,
        cost=curve.frame().assign(model="target"),
        points=pd.DataFrame(points),
        errors=pd.concat(errors) if errors else pd.DataFrame(columns=["arm", "error"]),
        split=pd.DataFrame(split),
        totals=pd.DataFrame(totals),
        even=_even(curve, depth),
        even_line=break_even(curve, [int(w) for w in curve.widths if w > 1], depth).rename(
            columns={"break_even_acceptance": "acceptance_length"}
        ),
        grid=_grid(list(recorded_texts(frame, outputs, "diverse").values()), curve, profile),
        reference=published_curves(),
    )


def _server_ms(frame: pd.DataFrame, outputs: Mapping[str, Output], bare: VerifyCostCurve) -> float:
    """What a server's plain step takes beyond a steady pass: its loop, HTTP and accounting.

    From baseline answers only; never below 0.
    """
    rows = measured(frame[frame["arm"] == "baseline"])
    extra = []
    for row in rows.itertuples():
        output = outputs.get(str(row.key))
        if output is not None and output.prompt_tokens and output.tokens:
            first = len(output.prompt_tokens)
            depths = np.arange(first, first + len(output.tokens) - 1, dtype=np.float64)
            extra.append(float(str(row.ms_per_token)) - float(bare.plain_ms(depths).mean()))
    return max(float(np.median(extra)), 0.0) if extra else 0.0


@frozen(eq=False)
class _Held:
    point: dict[str, object]
    errors: pd.DataFrame
    split: list[dict[str, object]]
    total: dict[str, object]


def _held_against(
    experiment: str,
    arm: Arm,
    texts: Mapping[str, RecordedText],
    rows: pd.DataFrame,
    *,
    curve: VerifyCostCurve,
    profile: Profile,
) -> _Held | None:
    """Prediction and measurement of one arm on one set; None when nothing was measured."""
    setting = setting_of(arm.drafting)
    found = pairs(rows, arm.name)
    found = found[found["prompt_id"].isin(list(texts))]
    if setting is None or found.empty:
        return None
    chosen = [texts[str(name)] for name in found["prompt_id"]]
    steps = replay(setting, chosen, n_ctx=profile.settings.n_ctx)
    logs, predicted = predict(chosen, steps, curve, level=profile.decision.level)
    real = found["log_ratio"].to_numpy()
    got = mean_log(real, level=profile.decision.level)
    table = summary(chosen, steps)
    name = f"{arm.name} ({experiment})"
    drafted, target = table["drafted_steps"].sum(), table["target_steps"].sum()
    accepted = table["draft_n_accepted"].sum()
    parts = attribute(
        math.log(got.value or 1.0),
        float(drafted / target),
        float(1 + accepted / drafted) if drafted else None,
        math.log((target + accepted) / target) - float(logs.mean()),
    )
    return _Held(
        point={
            "arm": arm.name,
            "set": experiment,
            "predicted": predicted.value,
            "predicted_low": predicted.low,
            "predicted_high": predicted.high,
            "measured": got.value,
            "measured_low": got.low,
            "measured_high": got.high,
            "residual": (got.value or math.nan) / (predicted.value or math.nan),
        },
        errors=pd.DataFrame(
            {
                "arm": arm.name,
                "set": experiment,
                "prompt_id": found["prompt_id"].to_numpy(),
                "error": np.abs(np.expm1(logs - real)),
            }
        ),
        split=[
            {"arm": name, "factor": factor, "log_contribution": value}
            for factor, value in (
                ("coverage", parts.coverage),
                ("acceptance length", parts.acceptance),
                ("step cost", parts.step_cost),
                ("residual", parts.residual),
            )
        ],
        total={"arm": name, "speedup": got.value, "low": got.low, "high": got.high, "n": got.n},
    )


def _even(curve: VerifyCostCurve, depth: float) -> pd.DataFrame:
    shown = [int(width) for width in curve.widths if 1 < width <= 17]  # noqa: PLR2004 - readable
    return break_even_map(curve, shown, ACCEPTED.tolist(), depth)


def _grid(texts: Sequence[RecordedText], curve: VerifyCostCurve, profile: Profile) -> pd.DataFrame:
    """Predicted speed-up of every match and draft length on these texts."""
    rows = []
    for kind in ("ngram-simple", "ngram-mod"):
        for match, length in itertools.product(MATCHES, LENGTHS):
            if kind == "ngram-simple":
                setting = Setting.of(kind, size_n=match, size_m=length)
            else:
                setting = Setting.of(kind, n_match=match, n_min=min(2, length), n_max=length)
            steps = replay(setting, texts, n_ctx=profile.settings.n_ctx) if texts else []
            speedup = _overall(texts, steps, curve)
            rows.append(
                {
                    "drafter": kind,
                    "match_length": match,
                    "draft_length": length,
                    "speedup": speedup,
                }
            )
    grid = pd.DataFrame(rows)
    return grid.assign(best=grid["speedup"] == grid.groupby("drafter")["speedup"].transform("max"))


def _overall(
    texts: Sequence[RecordedText], steps: Sequence[np.ndarray], curve: VerifyCostCurve
) -> float:
    logs = [price(t, s, curve).log_speedup for t, s in zip(texts, steps, strict=True)]
    return math.exp(float(np.mean(logs))) if logs else math.nan


def published_curves() -> pd.DataFrame:
    """Verify cost as others reported it: system, width, verify_cost."""
    table = pd.read_csv(paths.REFERENCE / "verify_cost.csv")
    widths = [name for name in table.columns if name[0] == "w" and name[1:].isdigit()]
    long = table.melt("system", widths, "width", "verify_cost").dropna()
    return long.assign(width=long["width"].str[1:].astype(int)).sort_values(["system", "width"])


def sheets(reading: Reading) -> dict[str, Sheet]:
    """The figures of this notebook, by name."""
    made = [
        Sheet(
            name="verify_cost",
            draw=figures.verify_cost,
            frames={
                "frame": reading.cost,
                "switches": SWITCHES,
                "lower_bound": None,
                "reference": reading.reference,
            },
            alt="Cost of a pass over several tokens against its width, by context depth, beside "
            "published curves.",
            caption="A pass that follows one of another width, with logits for every row, over a "
            "steady one-token pass of the same round.",
        ),
        Sheet(
            name="predicted_vs_measured",
            draw=figures.predicted_vs_measured,
            frames={"points": reading.points},
            alt="Predicted against measured speed-up, one point an arm and prompt set.",
            caption="Predicted from baseline answers and timed passes alone.",
        ),
        Sheet(
            name="attribution",
            draw=figures.attribution,
            frames={"frame": reading.split, "totals": reading.totals},
            alt="Measured speed-up of each arm split into coverage, acceptance, cost and residual.",
            caption="Contributions are logarithms and add up to the measured speed-up.",
        ),
        Sheet(
            name="break_even_map",
            draw=figures.break_even_map,
            frames={"frame": reading.even, "boundary": reading.even_line},
            alt="Speed-up of a drafted step over its width and the tokens it gives.",
            caption="Left of the line a drafted step costs more than it saves.",
        ),
        Sheet(
            name="replay_map",
            draw=figures.replay_map,
            frames={"frame": reading.grid},
            alt="Predicted speed-up over match length and draft length on the diverse prompts.",
            caption="Every cell is a setting, replayed over recorded answers and priced by the "
            "curve; the best is ringed.",
        ),
    ]
    return {one.name: one for one in made}


def findings(reading: Reading, profile: Profile) -> list[Finding]:
    """What the notebook concludes, computed."""
    depth = float(np.median(reading.curve.depths))
    width = int(min(reading.curve.widths, key=lambda w: abs(w - 8)))
    cost = reading.curve.ratio(width, depth)
    return [
        _cost_finding(cost, width),
        _prediction_finding(reading),
        _best_finding(reading, profile),
    ]


def _cost_finding(cost: Estimate, width: int) -> Finding:
    free = cost.low is not None and cost.low <= 1 + 0.1 * (width - 1)
    return Finding(
        id=f"05/verify_cost_{width}",
        question="Does verifying several tokens cost about the same as one?",
        verdict="yes" if free else "no",
        sentence=f"A pass over {width} tokens costs {cost} times a pass over one here.",
        estimate=cost,
        figure="verify_cost",
    )


def _prediction_finding(reading: Reading) -> Finding:
    errors = reading.errors["error"].dropna().to_numpy()
    question = "Could the speed-up have been foretold?"
    if len(errors) == 0:
        return Finding("05/prediction", question, "inconclusive", "Nothing was measured.")
    middle, tail = np.quantile(errors, [0.5, 0.9])
    estimate = Estimate(
        "prediction_error", "fraction", float(middle), None, float(tail), 0.9, len(errors)
    )
    return Finding(
        id="05/prediction",
        question=question,
        verdict="yes" if middle <= 0.03 and tail <= 0.08 else "no",  # noqa: PLR2004 - the goals
        sentence=f"The prediction misses single prompts by {middle:.1%} in the median and "
        f"{tail:.1%} at the 90th percentile ({len(errors)} pairs of prompt and arm).",
        estimate=estimate,
        figure="predicted_vs_measured",
    )


def _best_finding(reading: Reading, profile: Profile) -> Finding:
    question = "Which n-gram setting would these prompts want?"
    if reading.grid["speedup"].isna().all():
        return Finding("05/best", question, "inconclusive", "No text was recorded.")
    best = reading.grid.nlargest(1, "speedup").iloc[0]
    worth = best["speedup"] > 1 + profile.decision.margin
    return Finding(
        id="05/best",
        question=question,
        verdict="yes" if worth else "no",
        sentence=f"Of {len(reading.grid)} settings replayed the best is {best['drafter']} with a "
        f"match of {best['match_length']} and drafts of {best['draft_length']}: predicted "
        f"{best['speedup']:.3f} times the baseline."
        + ("" if worth else " That is no practical gain: leave it off."),
        figure="replay_map",
    )
