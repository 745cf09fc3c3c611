"""Notebook 01: does one prompt, asked again and again, show what others would?

Two plans. *climb* asks one prompt ten times on one server, for the baseline and every
drafter, with the server's prompt cache off, and again with it on: the pool of n-grams
and the prompt cache are told apart. *forget* goes the other way: after the prompt has
been learnt, how many other prompts may come between until the gain is gone?
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from lab.inputs.arm import Arm
from lab.inputs.profiles import Profile
from lab.inputs.prompts import Prompt
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

LEARNING_RUNS = 3
"""Times a prompt is asked before the other prompts come between."""

CACHED = "+prompt-cache"
"""Suffix of arms served with the prompt cache on."""

CACHED_RUNS = 4
"""Runs of the arms with the prompt cache: its effect is whole from the second run."""


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
