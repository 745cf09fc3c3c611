"""A plan in which every arm keeps one server for a block of prompts."""

from __future__ import annotations

from collections.abc import Sequence

from lab.inputs.arm import Arm
from lab.inputs.profiles import Profile
from lab.inputs.prompts import Prompt
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


def shared_servers(
    experiment: str,
    profile: Profile,
    arms: Sequence[Arm],
    prompts: Sequence[Prompt],
    *,
    blocks: int,
    n_predict: int,
) -> Plan:
    """Every arm answers the same prompts in the same order in every block, taking turns.

    What a drafter remembers of earlier prompts is part of what is measured; a replay has
    to go through the prompts in this order too.
    """
    ids = [prompt.id for prompt in prompts]
    lanes: list[tuple[Series, tuple[PlannedRequest, ...]]] = []
    for block in range(blocks):
        for arm in arms:
            series = Series(f"b{block:02d}-{arm.name}", arm, block)
            warm = WARM_OTHER if arm.drafting.outlives_request else COLD
            states = [warm if place else COLD for place in range(len(ids))]
            asked = requests_for(series.name, ids, states=states, n_predict=n_predict, repeat=block)
            lanes.append((series, asked))
    planned = interleave(experiment, lanes, profile.decision.seed)
    dear = profile.one_server_at_a_time
    return one_at_a_time(planned, profile.decision.seed) if dear else planned
