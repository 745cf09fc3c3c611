"""Notebook 02: what does a drafter give on prompts it has never seen?

The article's eight, the diverse set and, beside them, the templated set where n-grams
may pay. Every prompt is asked once per arm and repeat; the baseline is there twice, so
that the noise floor is measured with the same tools as the effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd
from attrs import frozen

from lab.analyse.cautions import blocking, check_comparison
from lab.analyse.divergence import check_divergence, forks
from lab.analyse.estimates import Caution, Estimate
from lab.analyse.findings import Finding
from lab.analyse.stats import Comparison, compare, margin_above, noise_floor, summarise
from lab.analyse.tables import measured
from lab.experiments.sheets import Sheet
from lab.inputs.arm import Arm
from lab.inputs.profiles import Profile
from lab.inputs.prompts import Prompt, PromptSet, stratified_sample
from lab.measure.plan import (
    COLD,
    WARM_OTHER,
    Plan,
    PlannedRequest,
    Series,
    interleave,
    one_at_a_time,
    requests_for,
)
from lab.show import figures

BASELINE_AGAIN = "baseline-again"
"""The second of the two identical baselines (A/A)."""


def arms_of(profile: Profile) -> tuple[Arm, ...]:
    """Baseline, baseline again, and every drafting arm of the experiment."""
    baseline = profile.baseline()
    again = baseline.with_name(BASELINE_AGAIN, "no drafting, again")
    return (baseline, again, *profile.chosen_arms(profile.experiments.diverse.arms))


def sample(profile: Profile, prompts: PromptSet, n: int) -> tuple[Prompt, ...]:
    """At most ``n`` prompts, balanced over categories, the same for the same seed."""
    return stratified_sample(prompts, min(n, len(prompts.prompts)), profile.decision.seed).prompts


def unseen_plan(experiment: str, profile: Profile, prompts: Sequence[Prompt]) -> Plan:
    """Each prompt once per arm and repeat, every arm in a state that is named.

    A drafter whose memory outlives a request gets a fresh server a prompt, so that it is
    ``cold``; where servers are dear (``one_server_at_a_time``) it shares one within a
    block, and its rows after the first are ``warm-other``.
    """
    wanted = profile.experiments.diverse
    dear = profile.one_server_at_a_time
    lanes: list[tuple[Series, tuple[PlannedRequest, ...]]] = []
    size = wanted.prompts_per_server
    chunks = [prompts[start : start + size] for start in range(0, len(prompts), size)]
    for repeat in range(wanted.repeats):
        for index, chunk in enumerate(chunks):
            block = repeat * len(chunks) + index
            for arm in arms_of(profile):
                lanes += _lane(arm, block, repeat, chunk, wanted.n_predict, shared=dear)
    plan = interleave(experiment, lanes, profile.decision.seed)
    return one_at_a_time(plan, profile.decision.seed) if dear else plan


def _lane(
    arm: Arm, block: int, repeat: int, chunk: Sequence[Prompt], n_predict: int, *, shared: bool
) -> list[tuple[Series, tuple[PlannedRequest, ...]]]:
    """The servers of one arm in one block, with their requests."""
    ids = [prompt.id for prompt in chunk]
    lives = [ids] if shared or not arm.drafting.outlives_request else [[one] for one in ids]
    lane = []
    for life, asked in enumerate(lives):
        series = Series(f"b{block:02d}-{arm.name}-{life}", arm, block)
        remembers = arm.drafting.outlives_request
        states = [WARM_OTHER if remembers and place else COLD for place in range(len(asked))]
        lane.append(
            (
                series,
                requests_for(series.name, asked, states=states, n_predict=n_predict, repeat=repeat),
            )
        )
    return lane


EXPERIMENTS = ("article8", "diverse", "templated")
"""Names of the plans of this file: one a prompt set."""


def plans(profile: Profile, named: Callable[..., PromptSet]) -> list[Plan]:
    """One plan a prompt set, sized by the profile; ``named`` gives a set by its name.

    A person's own prompts (PROMPTS=) take the place of the diverse set.
    """
    wanted = profile.experiments.diverse
    sizes = {"article8": wanted.article, "diverse": wanted.prompts, "templated": wanted.templated}
    return [
        unseen_plan(name, profile, sample(profile, named("" if name == "diverse" else name), size))
        for name, size in sizes.items()
        if size
    ]


@frozen
class Reading:
    """What the records of the three sets say.

    Attributes
    ----------
    floor : A/A noise floor over all sets, |median log-ratio|. margin : the margin in force.
    comparisons : by set, every arm against the baseline.
    estimates, points : speed-up by set and arm, with intervals; one row a prompt.
    categories, category_points : the same by category, diverse and templated sets.
    drafted : coverage, acceptance and tokens per step by set and arm, pooled over prompts.
    diverged : by arm, how many answers differ from the baseline's and where they fork.
    divergence : what of that a reader must know.
    aa_points : second baseline over the first, in the order measured.
    """

    floor: Estimate
    margin: float
    comparisons: dict[str, tuple[Comparison, ...]]
    estimates: pd.DataFrame
    points: pd.DataFrame
    categories: pd.DataFrame
    category_points: pd.DataFrame
    drafted: pd.DataFrame
    diverged: pd.DataFrame
    divergence: tuple[Caution, ...]
    aa_points: pd.DataFrame

    @property
    def equivalence(self) -> tuple[float, float]:
        """Ends of the margin as ratios."""
        return 1 / (1 + self.margin), 1 + self.margin

    def of_set(self, name: str) -> dict[str, pd.DataFrame]:
        """Frame and points of one prompt set, as the figures take them."""
        return {
            "frame": self.estimates[self.estimates["set"] == name],
            "points": self.points[self.points["set"] == name],
        }


def read(frame: pd.DataFrame, outputs: Mapping[str, tuple[int, ...]], profile: Profile) -> Reading:
    """Estimates from the records; ``outputs`` are token ids by record key."""
    rows = measured(frame)
    decision = profile.decision
    floor = noise_floor(rows, "baseline", BASELINE_AGAIN, level=decision.level)
    margin = margin_above(floor, decision.margin)
    labels = {arm.name: arm.label for arm in arms_of(profile)}
    names = [arm for arm in labels if arm != "baseline"]
    comparisons = {
        name: compare(rows[rows["experiment"] == name], names, margin=margin, level=decision.level)
        for name in EXPERIMENTS
        if (rows["experiment"] == name).any()
    }
    points = pd.concat(
        one.pairs.assign(set=name, arm=one.arm, speedup=one.pairs["ratio"])
        for name, found in comparisons.items()
        for one in found
    )
    parted = forks(rows, outputs)
    by_kind = points[points["set"].isin(["diverse", "templated"])]
    return Reading(
        floor=floor,
        margin=margin,
        comparisons=comparisons,
        estimates=_estimates(comparisons, labels),
        points=points,
        categories=summarise(by_kind, ["arm", "category"], decision.level),
        category_points=by_kind,
        drafted=_drafted(rows),
        diverged=_diverged(parted),
        divergence=check_divergence(parted, BASELINE_AGAIN),
        aa_points=_in_order(rows, points),
    )


def sheets(reading: Reading) -> dict[str, Sheet]:
    """The figures of this notebook, by name."""
    margin = reading.equivalence
    made = [
        Sheet(
            name="noise_floor",
            draw=partial(figures.noise_floor, equivalence=margin),
            frames={"points": reading.aa_points},
            alt="Ratios of two identical baselines in the order measured, and their spread.",
            caption="Each point is one prompt asked of two servers started alike, taking turns "
            "with all other arms. What they differ by is noise.",
        ),
        *(_set_sheet(reading, name) for name in reading.comparisons),
        Sheet(
            name="speedup_by_category",
            draw=partial(figures.speedup_by_category, equivalence=margin),
            frames={"frame": reading.categories, "points": reading.category_points},
            alt="Paired speed-up by kind of text, one panel an arm.",
            caption="Points are prompts; a kind with too few prompts has no interval.",
        ),
        Sheet(
            name="coverage_acceptance",
            draw=figures.coverage_acceptance,
            frames={"points": reading.drafted},
            alt="Share of steps with a draft against tokens a drafted step, a point a set and arm.",
            caption="Pooled over the prompts of a set. An arm at zero coverage never drafted.",
        ),
    ]
    return {one.name: one for one in made}


def _set_sheet(reading: Reading, name: str) -> Sheet:
    return Sheet(
        name=f"speedup_{name}",
        draw=partial(
            figures.speedup_by_arm,
            equivalence=reading.equivalence,
            question=f"Does drafting make decoding faster? ({name} prompts)",
        ),
        frames=reading.of_set(name),
        alt=f"Paired speed-up of every drafter on the {name} prompts, with intervals.",
        caption="Points are prompts, bars the interval of the geometric mean; the shaded band is "
        "the margin of equivalence. The first row compares two identical baselines.",
    )


def _estimates(
    comparisons: Mapping[str, Sequence[Comparison]], labels: Mapping[str, str]
) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "set": name,
                "arm": one.arm,
                "label": labels[one.arm],
                "speedup": one.speedup.value,
                "low": one.speedup.low,
                "high": one.speedup.high,
                "n": one.speedup.n,
                "verdict": one.verdict,
            }
            for name, found in comparisons.items()
            for one in found
        ]
    ).astype({"low": float, "high": float, "speedup": float})


def _drafted(rows: pd.DataFrame) -> pd.DataFrame:
    """Pooled over prompts: sums over sums, never a mean of ratios."""
    sums = rows.groupby(["experiment", "arm"], observed=True)[
        ["drafted_steps", "target_steps", "draft_n", "draft_n_accepted"]
    ].sum(min_count=1)
    out = sums.reset_index()
    out["draft_coverage"] = out["drafted_steps"] / out["target_steps"]
    drafted = out["drafted_steps"].where(out["drafted_steps"] > 0)
    out["acceptance_rate"] = out["draft_n_accepted"] / out["draft_n"].where(out["draft_n"] > 0)
    out["acceptance_length"] = 1 + out["draft_n_accepted"] / drafted
    out["tokens_per_step"] = 1 + out["draft_n_accepted"].fillna(0) / out["target_steps"]
    return out


def _diverged(found: pd.DataFrame) -> pd.DataFrame:
    """Answers that differ from the baseline's on the same prompt, and the median fork."""
    grouped = found.groupby("arm", observed=True)
    return pd.DataFrame(
        {
            "answers": grouped.size(),
            "diverged": grouped["diverged"].sum(),
            "median_fork_index": grouped["fork_index"].median(),
        }
    ).reset_index()


def _in_order(rows: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """The A/A pairs in the order they were measured."""
    first = rows[rows["arm"] == BASELINE_AGAIN].groupby("prompt_id")["started_utc"].min()
    pairs_aa = points[points["arm"] == BASELINE_AGAIN].copy()
    pairs_aa["ordinal"] = pairs_aa["prompt_id"].map(first).rank().astype(int)
    return pairs_aa[["ordinal", "speedup", "prompt_id"]].sort_values("ordinal")


def findings(reading: Reading, cautions: Sequence[Caution]) -> list[Finding]:
    """What the notebook concludes, computed."""
    found = [_floor_finding(reading)]
    for name, comparisons in reading.comparisons.items():
        found += [
            _arm_finding(reading, name, one, (*cautions, *reading.divergence))
            for one in comparisons
            if one.arm != BASELINE_AGAIN
        ]
    found.append(_same_text_finding(reading))
    return found


def _floor_finding(reading: Reading) -> Finding:
    floor = reading.floor
    known = floor.value is not None
    return Finding(
        id="02/aa",
        question="Is it known how far apart two identical baselines lie here?",
        verdict="yes" if known else "inconclusive",
        sentence=f"Two identical baselines differ by {floor.value:.2%} in the paired median "
        f"(at most {floor.high:.2%}), so {reading.margin:.1%} counts as no difference."
        if floor.value is not None and floor.high is not None
        else f"The noise floor is unknown: {floor.reason}.",
        estimate=floor,
        record_filter=(("arm", f"baseline, {BASELINE_AGAIN}"),),
        figure="noise_floor",
    )


def _arm_finding(
    reading: Reading, name: str, one: Comparison, cautions: Sequence[Caution]
) -> Finding:
    estimates, drafted = reading.estimates, reading.drafted
    row = estimates[(estimates["set"] == name) & (estimates["arm"] == one.arm)].iloc[0]
    drafts = drafted[(drafted["experiment"] == name) & (drafted["arm"] == one.arm)].iloc[0]
    about = tuple(caution for caution in cautions if caution.subject == one.arm)
    barred = blocking([*cautions], one.arm)
    why = (
        "nothing was drafted"
        if not drafts["draft_n"]
        else f"{drafts['draft_coverage']:.0%} of steps had a draft, "
        f"{drafts['acceptance_rate']:.0%} of "
        f"drafted tokens were accepted, {drafts['tokens_per_step']:.2f} tokens a step"
    )
    return Finding(
        id=f"02/{name}/{one.arm}",
        question=f"Does {row['label']} help on the {name} prompts?",
        verdict="inconclusive" if barred else one.verdict,
        sentence=f"{row['label']} on {name}: {one.speedup} times the baseline; {why}."
        + (f" No headline: {barred.message}" if barred else ""),
        estimate=one.speedup,
        record_filter=(("experiment", name), ("arm", one.arm)),
        figure=f"speedup_{name}",
        cautions=about + check_comparison(one),
    )


def _same_text_finding(reading: Reading) -> Finding:
    table = reading.diverged[reading.diverged["arm"] != BASELINE_AGAIN]
    control = reading.diverged[reading.diverged["arm"] == BASELINE_AGAIN]["diverged"].sum()
    changed, answers = int(table["diverged"].sum()), int(table["answers"].sum())
    return Finding(
        id="02/same_text",
        question="Is the answer with drafting, token for token, the answer without?",
        verdict="inconclusive" if not answers else "no" if changed else "yes",
        sentence=f"{changed} of {answers} greedy answers differ from the baseline's; of the second "
        f"baseline's {int(control)} do. Exact in exact arithmetic; a batch is not.",
        record_filter=(("experiment", ", ".join(reading.comparisons)),),
        figure=None,
    )
