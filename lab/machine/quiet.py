"""Is this machine quiet enough to measure on, and was it during a request?"""

from __future__ import annotations

import time
from collections.abc import Mapping

from attrs import frozen

from lab.machine.hardware import Machine, machine_facts
from lab.machine.processes import own_tree
from lab.machine.sampler import Sampler
from lab.machine.throttle import reasons

STEAL_AT_MOST = 0.01
"""Share of CPU time a hypervisor may take before a number is doubted."""
OTHERS_AT_MOST = 0.05
"""Share of all hardware threads that other processes may keep busy."""
CLOCK_DROP_AT_MOST = 0.05
"""Share a clock may fall below the highest seen."""
CLOCK_JUMP_AT_MOST_S = 0.5


@frozen
class Quiet:
    """Verdict of a look at the machine.

    Attributes
    ----------
    quiet : True when nothing was found that would disturb a measurement.
    reasons : what was found, in sentences.
    seconds : how long was looked.
    numbers : summary of the sampler over that time (machine.sampler).
    """

    quiet: bool
    reasons: tuple[str, ...]
    seconds: float
    numbers: Mapping[str, float | None]


def check_quiet(machine: Machine | None = None, *, seconds: float = 2.0) -> Quiet:
    """Watch the machine (asked anew when None) for a moment, while idle, and judge it."""
    with Sampler() as sampler:
        start = time.monotonic()
        time.sleep(seconds)
        numbers = sampler.window(start, time.monotonic())
    found = (*disturbances(numbers), *_standing(machine or machine_facts()))
    return Quiet(not found, found, seconds, numbers)


def disturbances(numbers: Mapping[str, float | None]) -> tuple[str, ...]:
    """What disturbed a window of the sampler, in sentences; empty when nothing is known to."""
    found = []
    steal = numbers.get("cpu_steal_fraction") or 0.0
    others = numbers.get("cpu_other_fraction") or 0.0
    if steal > STEAL_AT_MOST:
        found.append(f"The hypervisor took {steal:.0%} of the CPU time.")
    if others > OTHERS_AT_MOST:
        found.append(f"Other processes kept {others:.0%} of the CPU busy.")
    return (*found, *_held_back(numbers))


def labels(numbers: Mapping[str, float | None]) -> tuple[str, ...]:
    """Labels that keep a record out of headlines: "busy", "throttled", "lost", "clock-jump"."""
    busy = any(
        (numbers.get(key) or 0.0) > limit
        for key, limit in (
            ("cpu_steal_fraction", STEAL_AT_MOST),
            ("cpu_other_fraction", OTHERS_AT_MOST),
        )
    )
    checks = {
        "busy": busy,
        "throttled": bool(_held_back(numbers)),
        "lost": bool(numbers.get("gpus_lost")),
        "clock-jump": abs(numbers.get("clock_jump_s") or 0.0) > CLOCK_JUMP_AT_MOST_S,
    }
    return tuple(name for name, holds in checks.items() if holds)


def _held_back(numbers: Mapping[str, float | None]) -> tuple[str, ...]:
    found = []
    bits = int(numbers.get("gpu_throttle_bits") or 0)
    if bits:
        found.append(f"A card held back its clocks: {', '.join(reasons(bits))}.")
    for what in ("cpu", "gpu"):
        drop = numbers.get(f"{what}_clock_drop") or 0.0
        if drop > CLOCK_DROP_AT_MOST:
            found.append(f"The {what.upper()} clock was {drop:.0%} below the highest seen.")
    if numbers.get("cpu_throttle_events"):
        found.append("The processor reported thermal throttling.")
    return tuple(found)


def _standing(machine: Machine) -> tuple[str, ...]:
    """What disturbs whatever is measured here."""
    found = []
    if machine.on_battery:
        found.append("The machine runs on battery.")
    ours = own_tree()
    for gpu in machine.gpus.values():
        others = sorted(set(gpu.pids or ()) - ours)
        if others:
            found.append(f"Other processes are on {gpu.name} ({gpu.uuid}): {others}.")
    return tuple(found)
