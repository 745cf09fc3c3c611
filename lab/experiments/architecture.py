"""Notebook 03: what does a mixture of experts change, when nothing else does?

Three models with the same text: the dense source, a mixture made of it, and a dense model
of the mixture's size (setup.standins). Their decode speed, what a pass over several
tokens costs each, how many experts such a pass reads, and what n-gram drafting gives each
on the same text. With two real models in the profile the same plan runs on them, and the
comparison is then confounded by everything in which they differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from attrs import evolve, frozen
from scipy import stats

from lab import paths
from lab.analyse.estimates import Caution, Estimate
from lab.analyse.findings import Finding
from lab.analyse.roofline import expected_experts
from lab.analyse.speculation import VerifyCostCurve, curve_from
from lab.analyse.stats import judge_interval, mean_log, pairs
from lab.analyse.tables import measured
from lab.experiments.sheets import Sheet
from lab.inputs.arm import Arm
from lab.inputs.profiles import Profile
from lab.inputs.prompts import Prompt
from lab.measure.curve_plan import CurvePlan
from lab.measure.plan import COLD, Plan, Series, interleave, one_at_a_time, requests_for
from lab.show import figures

EXPERIMENTS = ("architecture",)
MOE, DENSE, DEEP = "moe", "dense", "deep"
DRAFTING = "+ngram"
"""Suffix of the arm that drafts, on each model."""
WIDTH = 8
"""The width at which mixtures and dense models are compared in one number."""


def models_of(profile: Profile) -> dict[str, str]:
    """The profile's models by their role here; a role that names no model is left out."""
    wanted = profile.experiments.architecture
    roles = {MOE: wanted.moe, DENSE: wanted.dense_active, DEEP: wanted.dense_total}
    found = {role: name for role, name in roles.items() if name in profile.models}
    return {role: name for role, name in found.items() if name not in _earlier(found, role)}


def _earlier(found: Mapping[str, str], role: str) -> set[str]:
    """Models that an earlier role took: one model is measured once."""
    names = list(found)
    return {found[name] for name in names[: names.index(role)]}


def plan(profile: Profile, prompts: Sequence[Prompt]) -> Plan:
    """Every model without and with drafting on the same prompts, taking turns."""
    wanted = profile.experiments.architecture
    ids = [prompt.id for prompt in prompts]
    lanes = []
    for role, model in models_of(profile).items():
        for arm in _arms(profile, role, model):
            series = Series(arm.name.replace("+", "-"), arm, 0)
            states = [COLD] * len(ids)
            asked = requests_for(series.name, ids, states=states, n_predict=wanted.n_predict)
            lanes.append((series, asked))
    made = interleave("architecture", lanes, profile.decision.seed)
    return one_at_a_time(made, profile.decision.seed) if profile.one_server_at_a_time else made


def _arms(profile: Profile, role: str, model: str) -> list[Arm]:
    """A model's baseline and its drafting arm: the first that keeps nothing between requests."""
    baseline = evolve(profile.baseline(model), name=role, label=profile.models[model].label or role)
    drafting = profile.chosen_arms(profile.experiments.architecture.arms, model)
    chosen = next((one for one in drafting if not one.drafting.outlives_request), None)
    if chosen is None:
        return [baseline]
    return [baseline, evolve(chosen, name=role + DRAFTING, label=f"{baseline.label}, drafting")]


def curve_plan(profile: Profile) -> CurvePlan:
    """The passes to time on every model: one depth, every width."""
    wanted = profile.experiments
    depth = wanted.why.depths[0]
    return CurvePlan(widths=wanted.why.widths, depths=(depth,), rounds=wanted.architecture.rounds)


@frozen(eq=False)
class Reading:
    """What the records, the curves and the routers say.

    Attributes
    ----------
    speed, cost : decode speed by model; verify cost by model and width, with intervals.
    over_deep : speed of the mixture over the dense model of its size; None without both.
    dearer : verify_cost(WIDTH) of the mixture minus the dense source's; None without both.
    drafting : speed-up of drafting by model, with coverage and acceptance length.
    experts, expert_points, expected : distinct experts by width, measured and by chance.
    reference : the article's two speeds.
    """

    speed: pd.DataFrame
    cost: pd.DataFrame
    over_deep: Estimate | None
    dearer: Estimate | None
    drafting: pd.DataFrame
    experts: pd.DataFrame
    expert_points: pd.DataFrame
    expected: pd.DataFrame
    reference: pd.DataFrame


def read(
    frame: pd.DataFrame,
    passes: Mapping[str, pd.DataFrame],
    touched: pd.DataFrame,
    routed: tuple[int, int] | None,
    profile: Profile,
) -> Reading:
    """Estimates from records, timed passes by role, and distinct experts by pass.

    ``routed`` is (experts, used a token); None where no model has experts.
    """
    rows, level = measured(frame), profile.decision.level
    arms = set(rows["arm"].unique())
    curves = {role: curve_from(one) for role, one in passes.items()}
    ratio = None
    if {MOE, DEEP} <= arms:
        ratio = mean_log(pairs(rows, MOE, DEEP)["log_ratio"].to_numpy(), level=level)
    return Reading(
        speed=_speed(rows, [role for role in (MOE, DENSE, DEEP) if role in arms], level),
        cost=_cost(curves),
        over_deep=ratio,
        dearer=_difference(curves, level),
        drafting=_drafting(rows, level),
        experts=_experts(touched, level),
        expert_points=_by_layer(touched),
        expected=_expected(touched, routed),
        reference=pd.DataFrame(
            {
                "name": ["article: 26B MoE", "article: 32B dense"],
                "decode_tok_s": _article_speeds(),
            }
        ),
    )


def _article_speeds() -> list[float]:
    table = pd.read_csv(paths.REFERENCE / "article_tables.csv")
    middle = table[table["row"].isin(["median", "all (median)"])]
    return [float(value) for value in middle["baseline_tok_s"]]


def _speed(rows: pd.DataFrame, roles: Sequence[str], level: float) -> pd.DataFrame:
    found = []
    for role in roles:
        pace = rows[rows["arm"] == role].groupby("prompt_id")["decode_tok_s"].median().dropna()
        one = mean_log(np.log(pace.to_numpy()), name="decode_tok_s", level=level)
        found.append(
            {"model": role, "decode_tok_s": one.value, "low": one.low, "high": one.high, "n": one.n}
        )
    return pd.DataFrame(found)


def _cost(curves: Mapping[str, VerifyCostCurve]) -> pd.DataFrame:
    found = []
    for role, curve in curves.items():
        for width in curve.widths:
            one = curve.ratio(int(width), float(curve.depths[0]))
            found.append(
                {
                    "model": role,
                    "width": int(width),
                    "verify_cost": one.value,
                    "low": one.low,
                    "high": one.high,
                    "n": one.n,
                }
            )
    return pd.DataFrame(found, columns=["model", "width", "verify_cost", "low", "high", "n"])


def _difference(curves: Mapping[str, VerifyCostCurve], level: float) -> Estimate | None:
    """Mixture minus dense at WIDTH; independent curves, so their errors add in squares."""
    if MOE not in curves or DENSE not in curves:
        return None
    one, two = (curves[role].ratio(WIDTH, float(curves[role].depths[0])) for role in (MOE, DENSE))
    if None in (one.value, one.low, one.high, two.value, two.low, two.high):
        return None
    value = float(one.value or 0) - float(two.value or 0)
    half = math.hypot(*((float(e.high or 0) - float(e.low or 0)) / 2 for e in (one, two)))
    return Estimate(
        "verify_cost_difference", "ratio", value, value - half, value + half, level, one.n, "round"
    )


def _drafting(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    found = []
    for role in (MOE, DENSE, DEEP):
        paired = pairs(rows, role + DRAFTING, role)
        if paired.empty:
            continue
        one = mean_log(paired["log_ratio"].to_numpy(), level=level)
        mine = rows[rows["arm"] == role + DRAFTING]
        steps, drafted = mine["target_steps"].sum(), mine["drafted_steps"].sum()
        accepted = mine["draft_n_accepted"].sum()
        found.append(
            {
                "model": role,
                "speedup": one.value,
                "low": one.low,
                "high": one.high,
                "n": one.n,
                "draft_coverage": drafted / steps if steps else None,
                "acceptance_length": 1 + accepted / drafted if drafted else None,
            }
        )
    columns = ["model", "speedup", "low", "high", "n", "draft_coverage", "acceptance_length"]
    return pd.DataFrame(found, columns=columns)


def _by_layer(touched: pd.DataFrame) -> pd.DataFrame:
    if touched.empty:
        return pd.DataFrame(columns=["model", "width", "layer", "experts"])
    return touched.groupby(["model", "width", "layer"])["experts"].mean().reset_index()


def _experts(touched: pd.DataFrame, level: float) -> pd.DataFrame:
    columns = ["model", "width", "experts", "low", "high", "n"]
    found = []
    for (model, width), rows in _by_layer(touched).groupby(["model", "width"]):
        n, values = len(rows), rows["experts"]
        half = stats.t.ppf(0.5 + level / 2, max(n - 1, 1)) * values.std(ddof=1) / math.sqrt(n)
        middle = float(values.mean())
        found.append((model, width, middle, middle - half, middle + half, n))
    return pd.DataFrame(found, columns=columns)


def _expected(touched: pd.DataFrame, routed: tuple[int, int] | None) -> pd.DataFrame:
    columns = ["model", "width", "experts"]
    if touched.empty or routed is None:
        return pd.DataFrame(columns=columns)
    widths = sorted(touched["width"].unique())
    model = touched["model"].iloc[0]
    rows = [(model, width, expected_experts(*routed, int(width))) for width in widths]
    return pd.DataFrame(rows, columns=columns)


def sheets(reading: Reading) -> dict[str, Sheet]:
    """The figures of this notebook, by name."""
    made = [
        Sheet(
            name="architecture",
            draw=figures.architecture,
            frames={
                "cost": reading.cost,
                "speed": reading.speed,
                "reference": reading.reference,
            },
            alt="Decode speed of a mixture, its dense source and a dense model of its size, and "
            "what a pass over several tokens costs each.",
            caption="Stand-ins made from one file: same text, same function, other architecture. "
            "Open marks are the article's two models on other hardware.",
        ),
        Sheet(
            name="experts_touched",
            draw=figures.experts_touched,
            frames={
                "frame": reading.experts,
                "points": reading.expert_points,
                "expected": reading.expected,
            },
            alt="Distinct experts a layer read in a pass, by tokens in the pass.",
            caption="Counted at the routers over real text; dashed is a uniform router.",
        ),
    ]
    return {one.name: one for one in made}


def findings(reading: Reading, profile: Profile, cautions: Sequence[Caution]) -> list[Finding]:
    """What the notebook concludes, computed."""
    found = [
        _speed_finding(reading, profile, cautions),
        _cost_finding(reading),
        _experts_finding(reading),
    ]
    return [*found, *_drafting_findings(reading, profile)]


def _speed_finding(reading: Reading, profile: Profile, cautions: Sequence[Caution]) -> Finding:
    question = "Does a mixture decode faster than a dense model of its size?"
    one = reading.over_deep
    if one is None:
        return Finding("03/moe_over_deep", question, "not testable here", "The profile lacks one.")
    return Finding(
        id="03/moe_over_deep",
        question=question,
        verdict=judge_interval(one, profile.decision.margin),
        sentence=f"The mixture decodes {one} times as fast as the dense model of its size "
        "(the article's pair, which differ in much else: 4.3).",
        estimate=one,
        record_filter=(("experiment", "architecture"),),
        figure="architecture",
        cautions=tuple(cautions),
    )


def _cost_finding(reading: Reading) -> Finding:
    question = "Is verifying several tokens dearer for a mixture?"
    one = reading.dearer
    if one is None or one.low is None or one.high is None:
        return Finding(
            "03/verify_cost", question, "not testable here", "One of the curves is missing."
        )
    verdict = "yes" if one.low > 0 else "no" if one.high < 0 else "inconclusive"
    return Finding(
        id="03/verify_cost",
        question=question,
        verdict=verdict,
        sentence=f"A pass over {WIDTH} tokens costs the mixture {one} one-token passes more than "
        "it costs its dense source.",
        estimate=one,
        figure="architecture",
    )


def _experts_finding(reading: Reading) -> Finding:
    question = "Does a pass over several tokens read more experts?"
    if reading.experts.empty:
        return Finding("03/experts", question, "not testable here", "No model here has experts.")
    last = reading.experts[reading.experts["width"] <= WIDTH].iloc[-1]
    both = reading.experts.merge(reading.expected, on=["model", "width"], suffixes=("", "_chance"))
    error = float((both["experts"] / both["experts_chance"] - 1).abs().max())
    return Finding(
        id="03/experts",
        question=question,
        verdict="yes" if last["low"] > 1 else "inconclusive",
        sentence=f"A pass over {last['width']:.0f} tokens reads {last['experts']:.2f} distinct "
        f"experts a layer; over all widths that is within {error:.0%} of what chance gives.",
        figure="experts_touched",
    )


def _drafting_findings(reading: Reading, profile: Profile) -> list[Finding]:
    found = []
    level = profile.decision.level
    for row in reading.drafting.to_dict("records"):
        role = str(row["model"])
        ends = (row["speedup"], row["low"], row["high"])
        one = Estimate("speedup", "ratio", *ends, level, int(row["n"]))
        found.append(
            Finding(
                id=f"03/drafting/{role}",
                question=f"What does n-gram drafting give the {role} model on this text?",
                verdict=judge_interval(one, profile.decision.margin),
                sentence=f"{role}: {one} times its own baseline at "
                f"{row['draft_coverage']:.0%} coverage.",
                estimate=one,
                record_filter=(("experiment", "architecture"), ("arm", role + DRAFTING)),
                figure="architecture",
            )
        )
    return found
