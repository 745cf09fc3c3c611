"""What will be measured, in which order, fixed before anything is measured.

A *series* is one life of one server. A plan is an ordered list of requests, each
belonging to a series; a series opens at its first request and closes after its last.
Interleaving arms is therefore nothing but an order, and "one server at a time" is
another order of the same requests.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence

from attrs import evolve, field, frozen

from lab.inputs.arm import Arm

COLD, WARM_OTHER, WARM_SAME = "cold", "warm-other", "warm-same"
MEASURE, FILLER = "measure", "filler"


@frozen
class PlannedRequest:
    """One request to send.

    Attributes
    ----------
    series : the server life it belongs to. ordinal : its place there, from 0.
    prompt_id : what is asked. repeat : how often (arm, prompt) was measured before.
    state : what the drafter will have seen: "cold", "warm-other" or "warm-same".
    role : "measure", or "filler" when it only brings about the state of later ones.
    n_predict : tokens to generate.
    """

    series: str
    ordinal: int
    prompt_id: str
    repeat: int
    state: str
    role: str
    n_predict: int

    @property
    def key(self) -> str:
        """Identity within an experiment; resuming skips keys that are recorded."""
        return f"{self.series}#{self.ordinal:03d}"


@frozen
class Series:
    """One life of one server: ``name`` unique in the plan, ``block`` the interleaving block."""

    name: str
    arm: Arm
    block: int


@frozen
class Plan:
    """Everything an experiment will ask, in order.

    Attributes
    ----------
    experiment : name, also the prefix of every record key.
    series : every server life. requests : in the order they are sent.
    """

    experiment: str
    series: tuple[Series, ...]
    requests: tuple[PlannedRequest, ...]
    fingerprint: str = field(init=False)

    @fingerprint.default
    def _digest(self) -> str:
        return hashlib.sha256(repr((self.series, self.requests)).encode()).hexdigest()[:16]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The distinct arms, in order of first appearance."""
        return tuple({series.arm.name: series.arm for series in self.series}.values())

    def key(self, request: PlannedRequest) -> str:
        """The record key of a request: unique within a run."""
        return f"{self.experiment}/{request.key}"


def interleave(
    experiment: str, series: Sequence[tuple[Series, tuple[PlannedRequest, ...]]], seed: int
) -> Plan:
    """Order requests so that arms take turns, in fresh random order each turn.

    Within a block the k-th request of every arm is sent before any (k+1)-th, the order
    of arms being drawn anew each time: slow drift then falls on all arms alike. An arm
    whose drafter has memory may spread its requests over several series (fresh servers).
    Blocks follow one another.
    """
    draw = random.Random(seed)  # noqa: S311 - an experimental design, not a secret
    ordered: list[PlannedRequest] = []
    for block in sorted({one.block for one, _ in series}):
        lanes: dict[str, list[PlannedRequest]] = {}
        for one, requests in series:
            if one.block == block:
                lanes.setdefault(one.arm.name, []).extend(requests)
        for turn in range(max(map(len, lanes.values()), default=0)):
            present = [lane[turn] for lane in lanes.values() if turn < len(lane)]
            draw.shuffle(present)
            ordered += present
    return Plan(experiment, tuple(one for one, _ in series), tuple(ordered))


def one_at_a_time(plan: Plan, seed: int) -> Plan:
    """The same requests with only one server alive at any moment.

    For models of which two do not fit. Series of a block run whole, in random order.
    """
    draw = random.Random(seed)  # noqa: S311 - an experimental design, not a secret
    by_series: dict[str, list[PlannedRequest]] = {one.name: [] for one in plan.series}
    for request in plan.requests:
        by_series[request.series].append(request)
    ordered: list[PlannedRequest] = []
    for block in sorted({one.block for one in plan.series}):
        names = [one.name for one in plan.series if one.block == block]
        draw.shuffle(names)
        ordered += [request for name in names for request in by_series[name]]
    return evolve(plan, requests=tuple(ordered))


def requests_for(
    series: str,
    prompt_ids: Iterable[str],
    *,
    states: Iterable[str],
    n_predict: int,
    repeat: int = 0,
) -> tuple[PlannedRequest, ...]:
    """One measured request a prompt, numbered in order; ``states`` runs beside the prompts."""
    return tuple(
        PlannedRequest(series, ordinal, prompt_id, repeat, state, MEASURE, n_predict)
        for ordinal, (prompt_id, state) in enumerate(zip(prompt_ids, states, strict=True))
    )


def outline(*plans: Plan | None) -> list[dict[str, object]]:
    """What plans amount to: one row an experiment and arm, with servers and requests."""
    rows: list[dict[str, object]] = []
    for plan in filter(None, plans):
        arm_of = {one.name: one.arm.name for one in plan.series}
        for arm in plan.arms:
            asked = [one for one in plan.requests if arm_of[one.series] == arm.name]
            rows.append(
                {
                    "experiment": plan.experiment,
                    "arm": arm.name,
                    "servers": sum(one.arm.name == arm.name for one in plan.series),
                    "requests": len(asked),
                    "prompts": len({one.prompt_id for one in asked}),
                    "tokens": sum(one.n_predict for one in asked),
                }
            )
    return rows
