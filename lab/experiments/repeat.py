"""Notebook 01: does one prompt, asked again and again, show what others would?

Two plans. *climb* asks one prompt ten times on one server, for the baseline and every
drafter, with the server's prompt cache off, and again with it on: the pool of n-grams
and the prompt cache are told apart. *forget* goes the other way: after the prompt has
been learnt, how many other prompts may come between until the gain is gone?
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from attrs import evolve, frozen

from lab import paths
from lab.analyse.estimates import Caution
from lab.analyse.findings import Finding
from lab.analyse.stats import judge_interval, mean_log, pairs, summarise
from lab.analyse.tables import measured
from lab.experiments.sheets import Sheet
from lab.inputs.arm import Arm
from lab.inputs.profiles import Decision, Profile
from lab.inputs.prompts import Prompt, PromptSet, stratified_sample
from lab.measure.plan import (
    COLD,
    FILLER,
    MEASURE,
    WARM_OTHER,
    WARM_SAME,
    Plan,
    PlannedRequest,
    Series,
    interleave,
    one_at_a_time,
)
from lab.show import figures

LEARNING_RUNS = 3
"""Times a prompt is asked before the other prompts come between."""

CACHED = "+prompt-cache"
"""Suffix of arms served with the prompt cache on."""

CACHED_RUNS = 4
"""Runs of the arms with the prompt cache: its effect is whole from the second run."""


EXPERIMENTS = ("climb", "forget")
"""Names of the plans of this file."""


def chosen_prompts(profile: Profile, prompts: PromptSet) -> tuple[tuple[Prompt, ...], list[Prompt]]:
    """The prompts that are repeated, and those that come between."""
    wanted = profile.experiments.repeat.prompts
    drawn = stratified_sample(prompts, len(prompts.prompts), profile.decision.seed).prompts
    asked = drawn[:wanted]
    return asked, list(drawn[wanted:] or drawn)


def with_prompt_cache(arm: Arm) -> Arm:
    """The same arm with the server's own prompt cache switched on."""
    return evolve(
        arm,
        name=arm.name + CACHED,
        label=arm.label + ", prompt cache on",
        settings=evolve(arm.settings, cache_prompt=True),
    )


def memory_arm(arms: Sequence[Arm]) -> Arm | None:
    """The first arm whose drafter remembers earlier requests; None when there is none."""
    return next((arm for arm in arms if arm.drafting.outlives_request), None)


def climb_plan(profile: Profile, prompts: Sequence[Prompt]) -> Plan:
    """One prompt again and again, a fresh server each series, all arms taking turns."""
    wanted = profile.experiments.repeat
    plain = (profile.baseline(), *profile.chosen_arms(wanted.arms))
    remembering = memory_arm(plain)
    cached = tuple(with_prompt_cache(arm) for arm in (plain[0], remembering) if arm is not None)
    lanes = []
    for block, prompt in enumerate(p for p in prompts for _ in range(wanted.series_per_prompt)):
        for arm in (*plain, *cached):
            runs = wanted.runs if arm in plain else min(wanted.runs, CACHED_RUNS)
            series = Series(f"b{block:02d}-{arm.name}", arm, block)
            lanes.append((series, _runs(series.name, prompt.id, runs, wanted.n_predict)))
    plan = interleave("climb", lanes, profile.decision.seed)
    return one_at_a_time(plan, profile.decision.seed) if profile.one_server_at_a_time else plan


def _runs(series: str, prompt_id: str, runs: int, n_predict: int) -> tuple[PlannedRequest, ...]:
    return tuple(
        PlannedRequest(series, run, prompt_id, run, WARM_SAME if run else COLD, MEASURE, n_predict)
        for run in range(runs)
    )


def forget_plan(profile: Profile, prompt: Prompt, others: Sequence[Prompt]) -> Plan | None:
    """Learn a prompt, let ``others`` come between, ask again; beside a baseline each time.

    None when no arm's drafter remembers anything.
    """
    wanted = profile.experiments.repeat
    arm = memory_arm(profile.chosen_arms(wanted.arms))
    if arm is None:
        return None
    learning, baseline = Series("learning", arm, 0), Series("baseline", profile.baseline(), 0)
    requests: list[PlannedRequest] = []
    asked = {learning.name: 0, baseline.name: 0}

    def ask(series: Series, prompt_id: str, repeat: int, state: str, role: str) -> None:
        ordinal = asked[series.name]
        asked[series.name] += 1
        requests.append(
            PlannedRequest(series.name, ordinal, prompt_id, repeat, state, role, wanted.n_predict)
        )

    for run in range(LEARNING_RUNS):
        ask(learning, prompt.id, run, WARM_SAME if run else COLD, FILLER)
    used = 0
    for repeat, gap in enumerate(wanted.gaps):
        between = [others[(used + step) % len(others)] for step in range(gap)]
        used += gap
        for other in between:
            ask(learning, other.id, 0, WARM_OTHER, FILLER)
        ask(learning, prompt.id, repeat, WARM_SAME, MEASURE)
        ask(baseline, prompt.id, repeat, COLD, MEASURE)
    return Plan("forget", (learning, baseline), tuple(requests))


@frozen
class Reading:
    """What the records of both plans say.

    Attributes
    ----------
    climb, climb_points : speed-up by arm and run (1 is the first), with intervals; one row
        a prompt, arm and run.
    cause, cause_points : speed-up of decoding with pool and prompt cache each on and off.
    forget, forget_points : speed-up by number of distinct prompts in between.
    published : the article's curve: run, speedup, source.
    """

    climb: pd.DataFrame
    climb_points: pd.DataFrame
    cause: pd.DataFrame
    cause_points: pd.DataFrame
    forget: pd.DataFrame
    forget_points: pd.DataFrame
    published: pd.DataFrame


def read(frame: pd.DataFrame, profile: Profile) -> Reading:
    """Estimates from the records of :func:`climb_plan` and :func:`forget_plan`."""
    rows = measured(frame)
    climbing = rows[rows["experiment"] == "climb"]
    points = _paired_runs(climbing)
    plain = points[~points["arm"].str.endswith(CACHED)]
    cause_points = _factorial(climbing, profile)
    forget_points = _by_distance(frame[frame["experiment"] == "forget"])
    level = profile.decision.level
    names = {arm.name: arm.label for arm in profile.chosen_arms(profile.experiments.repeat.arms)}
    climb = summarise(plain, ["arm", "run"], level)
    return Reading(
        climb=climb.assign(label=climb["arm"].map(names)),
        climb_points=plain,
        cause=summarise(cause_points, ["pool", "cache"], level),
        cause_points=cause_points,
        forget=summarise(forget_points, ["arm", "distinct_between"], level),
        forget_points=forget_points,
        published=published_climb(),
    )


def sheets(reading: Reading) -> dict[str, Sheet]:
    """The figures of this notebook, by name."""
    return {
        one.name: one
        for one in (
            Sheet(
                name="climb",
                draw=figures.climb,
                frames={
                    "frame": reading.climb,
                    "points": reading.climb_points,
                    "reference": reading.published,
                },
                alt="Speed-up over the baseline against run number of the same prompt, one panel "
                "a drafter, beside the published curve of the article.",
                caption="Each point is one prompt, the line the geometric mean over prompts, the "
                "band its interval. All arms took turns run by run; every series began on a "
                "fresh server.",
            ),
            Sheet(
                name="pool_vs_cache",
                draw=figures.pool_vs_cache,
                frames={"frame": reading.cause, "points": reading.cause_points},
                alt="Decoding speed of repeats with the n-gram pool and the prompt cache each on "
                "and off, over neither.",
                caption="Runs after the first of a prompt, over the baseline's same run.",
            ),
            Sheet(
                name="forgetting",
                draw=figures.forgetting,
                frames={"frame": reading.forget, "points": reading.forget_points},
                alt="Speed-up of a learnt prompt against the number of other prompts in between.",
                caption="A prompt was asked three times, then again after ever more different "
                "prompts; the baseline was asked beside it each time.",
            ),
        )
    }


def published_climb() -> pd.DataFrame:
    """The article's repeated-prompt table: run, speedup, source."""
    table = pd.read_csv(paths.REFERENCE / "article_tables.csv")
    rows = table[table["table"] == "repeated_prompt"]
    return pd.DataFrame(
        {
            "run": rows["row"].str.extract(r"run (\d+)")[0].astype(int).to_numpy(),
            "speedup": rows["speedup"].to_numpy(),
            "source": "the article, two RTX 5060 Ti",
        }
    )


def _paired_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """Each arm's run over the baseline's same run of the same prompt."""
    found = []
    for arm in rows["arm"].unique():
        if arm != "baseline":
            paired = pairs(rows, str(arm), match=("prompt_id", "repeat"))
            found.append(paired.assign(arm=str(arm), run=paired["repeat"].astype(int) + 1))
    columns = ["arm", "run", "prompt_id", "speedup", "log_ratio"]
    if not found:
        return pd.DataFrame(columns=columns)
    return pd.concat(found).rename(columns={"ratio": "speedup"})[columns]


def _factorial(rows: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """Pool and prompt cache, on and off, over neither; runs after the first, per prompt."""
    arm = memory_arm(profile.chosen_arms(profile.experiments.repeat.arms))
    columns = ["pool", "cache", "prompt_id", "speedup", "log_ratio"]
    if arm is None:
        return pd.DataFrame(columns=columns)
    later = rows[(rows["repeat"] > 0) & (rows["repeat"] < CACHED_RUNS)]
    cells = {
        (False, False): "baseline",
        (False, True): "baseline" + CACHED,
        (True, False): arm.name,
        (True, True): arm.name + CACHED,
    }
    found = []
    for (pool, cache), name in cells.items():
        mine = later.assign(arm=later["arm"].astype(str))
        twin = mine[mine["arm"] == name].assign(arm="cell")
        paired = pairs(pd.concat([mine[mine["arm"] == "baseline"], twin]), "cell")
        found.append(paired.assign(pool=pool, cache=cache))
    return pd.concat(found).rename(columns={"ratio": "speedup"})[columns]


def _by_distance(rows: pd.DataFrame) -> pd.DataFrame:
    """Ratio to the baseline asked beside it, with the distinct prompts in between counted."""
    columns = ["arm", "distinct_between", "prompt_id", "speedup", "log_ratio"]
    sent = rows[rows["role"].isin([MEASURE, FILLER])].sort_values("ordinal")
    found = []
    for arm, mine in sent.groupby("arm", observed=True):
        if arm == "baseline":
            continue
        between, since = {}, 0
        for _, row in mine.iterrows():
            if row["role"] == MEASURE:
                between[int(row["repeat"])] = since
                since = 0
            elif row["state"] == WARM_OTHER:
                since += 1
        paired = pairs(measured(rows), str(arm), match=("prompt_id", "repeat"))
        found.append(
            paired.assign(arm=str(arm), distinct_between=paired["repeat"].astype(int).map(between))
        )
    if not found:
        return pd.DataFrame(columns=columns)
    return pd.concat(found).rename(columns={"ratio": "speedup"})[columns]


def findings(reading: Reading, profile: Profile, cautions: Sequence[Caution]) -> list[Finding]:
    """What the notebook concludes, computed."""
    arm = memory_arm(profile.chosen_arms(profile.experiments.repeat.arms))
    last = int(reading.climb["run"].max()) if not reading.climb.empty else 0
    found = [
        _climb_finding(reading, name, last, profile.decision, cautions)
        for name in reading.climb["arm"].unique()
    ]
    if arm is not None:
        found += [_cause_finding(reading, profile.decision), _forget_finding(reading)]
    return found


def _climb_finding(
    reading: Reading, arm: str, last: int, decision: Decision, cautions: Sequence[Caution]
) -> Finding:
    points = reading.climb_points
    logs = points[(points["arm"] == arm) & (points["run"] == last)]["log_ratio"].to_numpy()
    estimate = mean_log(logs, level=decision.level)
    first = mean_log(
        points[(points["arm"] == arm) & (points["run"] == 1)]["log_ratio"].to_numpy(),
        level=decision.level,
    )
    label = reading.climb.set_index("arm")["label"].loc[[arm]].iloc[0]
    verdict = judge_interval(estimate, decision.margin)
    return Finding(
        id=f"01/climb/{arm}",
        question=f"Is a prompt faster with {label} the {last}th time it is asked?",
        verdict=verdict,
        sentence=f"{label}: run 1 is {first} times the baseline's speed, run {last} is {estimate}.",
        estimate=estimate,
        record_filter=(("experiment", "climb"), ("arm", arm)),
        figure="climb",
        cautions=tuple(one for one in cautions if one.subject in {arm, "baseline"}),
    )


def _cause_finding(reading: Reading, decision: Decision) -> Finding:
    cells = {
        key: mean_log(rows["log_ratio"].to_numpy(), name="speedup", level=decision.level)
        for key, rows in reading.cause_points.groupby(["pool", "cache"])
    }
    pool, cache = cells.get((True, False)), cells.get((False, True))
    if pool is None or cache is None or pool.low is None or cache.high is None:
        return Finding("01/cause", _CAUSE, "inconclusive", "Too few runs to tell the two apart.")
    if pool.low > 1 and cache.high < pool.low:
        verdict = "yes"
    elif pool.high is not None and pool.high < 1 + decision.margin:
        verdict = "no"
    else:
        verdict = "inconclusive"
    return Finding(
        id="01/cause",
        question=_CAUSE,
        verdict=verdict,
        sentence=f"Decoding a repeat over neither: n-gram pool alone {pool}, "
        f"prompt cache alone {cache}.",
        estimate=pool,
        record_filter=(("experiment", "climb"),),
        figure="pool_vs_cache",
    )


_CAUSE = "Is it the n-gram pool, and not the prompt cache, that makes a repeat decode faster?"


def _forget_finding(reading: Reading) -> Finding:
    question = "How many other prompts until the gain of a repeat is gone?"
    rows = reading.forget.sort_values("distinct_between")
    if rows.empty:
        return Finding("01/forget", question, "inconclusive", "Nothing was measured.")
    furthest = rows.iloc[-1]
    nearest = rows.iloc[0]
    kept = furthest["speedup"] > 1 + (nearest["speedup"] - 1) / 2
    sentence = (
        f"With {nearest['distinct_between']:.0f} prompts between, a repeat runs at "
        f"{nearest['speedup']:.2f} times the baseline; with {furthest['distinct_between']:.0f}, "
        f"at {furthest['speedup']:.2f}."
    )
    return Finding(
        id="01/forget",
        question=question,
        verdict="no" if kept else "yes",
        sentence=sentence + (" The memory outlasts what was tried." if kept else ""),
        record_filter=(("experiment", "forget"),),
        figure="forgetting",
    )
