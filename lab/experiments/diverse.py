"""Notebook 02: what does a drafter give on prompts it has never seen?

The article's eight, the diverse set and, beside them, the templated set where n-grams
may pay. Every prompt is asked once per arm and repeat; the baseline is there twice, so
that the noise floor is measured with the same tools as the effect.
"""

from __future__ import annotations

from collections.abc import Sequence

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
