"""What happened over a stretch of samples, as flat numbers for a record.

Counters (CPU time, energy) are interpolated at the ends of the window; gauges (clocks,
power, temperature) are summarised over the samples inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from attrs import field, frozen

from lab.machine.nvml import GpuSample
from lab.machine.throttle import throttling

PERIOD_S = 0.1
SLOW_TICKS = 10
"""Costly readings (CPU clocks) are taken every so many samples."""
SLOW_S = PERIOD_S * SLOW_TICKS
BUSY = 0.5
"""A card counts as working from this utilisation on; clocks of an idle card mean nothing."""


@frozen
class Tick:
    """One sample. CPU times are seconds summed over all hardware threads."""

    at_s: float
    wall_s: float
    busy_s: float
    total_s: float
    steal_s: float
    own_s: float
    cpu_energy_j: float | None = None
    cpu_clock_mhz: float | None = None
    throttle_events: float | None = None
    gpus: tuple[GpuSample, ...] = field(default=())


@frozen
class Tops:
    """Highest clocks seen so far: of the processor, and of each card while it worked."""

    cpu_mhz: float | None = None
    sm_mhz: Mapping[int, float] = field(factory=dict)

    def over(self, tick: Tick) -> Tops:
        """The same after one more sample."""
        clocks = [mhz for mhz in (self.cpu_mhz, tick.cpu_clock_mhz) if mhz is not None]
        sm_mhz = dict(self.sm_mhz)
        for place, sample in enumerate(tick.gpus):
            if sample.sm_clock_mhz is not None and at_work(sample):
                sm_mhz[place] = max(sm_mhz.get(place, 0.0), sample.sm_clock_mhz)
        return Tops(max(clocks, default=None), sm_mhz)


def at_work(sample: GpuSample) -> bool:
    """True when the card works, or does not say (MIG)."""
    return sample.utilisation is None or sample.utilisation >= BUSY


def summarise(
    ticks: Sequence[Tick],
    start_s: float,
    end_s: float,
    *,
    tops: Tops,
    uuids: Sequence[str] = (),
) -> dict[str, float | None]:
    """Flat summary of the samples over a window; see ``Sampler.window`` for the keys.

    ``ticks`` should reach a little further than the window on both sides.
    """
    inside = [tick for tick in ticks if start_s <= tick.at_s <= end_s] or list(ticks[-1:])
    lasted = end_s - start_s
    total = _moved(ticks, start_s, end_s, lambda tick: tick.total_s)
    busy = _moved(ticks, start_s, end_s, lambda tick: tick.busy_s)
    own = _moved(ticks, start_s, end_s, lambda tick: tick.own_s)
    steal = _moved(ticks, start_s, end_s, lambda tick: tick.steal_s)
    wall = _moved(ticks, start_s, end_s, lambda tick: tick.wall_s)
    cpu_energy = _moved(ticks, start_s, end_s, lambda tick: tick.cpu_energy_j)
    summary: dict[str, float | None] = {
        "samples": float(len(inside)),
        "cpu_other_fraction": _share(None if None in (busy, own) else busy - own, total),  # type: ignore[operator]
        "cpu_steal_fraction": _share(steal, total),
        "cpu_clock_drop": _drop([tick.cpu_clock_mhz for tick in inside], tops.cpu_mhz),
        "cpu_throttle_events": _moved(
            ticks, start_s, end_s, lambda tick: tick.throttle_events, SLOW_S
        ),
        "cpu_energy_j": cpu_energy,
        "clock_jump_s": None if wall is None else wall - lasted,
    }
    cards = [
        _card(ticks, inside, place, (start_s, end_s), tops.sm_mhz.get(place))
        for place in range(len(ticks[-1].gpus))
    ]
    summary |= _together(cards)
    energy = summary["gpu_energy_j"] if summary["gpu_energy_j"] is not None else cpu_energy
    summary["energy_j"] = energy
    power = summary["gpu_power_w"]
    if power is None and cpu_energy is not None and lasted > 0:
        power = cpu_energy / lasted
    summary["power_w"] = power
    summary["temperature_c"] = summary["gpu_temperature_c"]
    if len(cards) > 1:
        for uuid, card in zip(uuids, cards, strict=True):
            summary |= {f"{uuid}:{key}": value for key, value in card.items()}
    return summary


def _card(
    ticks: Sequence[Tick],
    inside: Sequence[Tick],
    place: int,
    span: tuple[float, float],
    top_mhz: float | None,
) -> dict[str, float | None]:
    now = [tick.gpus[place] for tick in inside]
    bits = [sample.throttle_bits for sample in now if sample.throttle_bits is not None]
    seen = 0
    for one in bits:
        seen |= throttling(one)
    working = [sample for sample in now if at_work(sample)]
    return {
        "power_w": _mean(sample.power_w for sample in now),
        "energy_j": _moved(ticks, *span, lambda tick: tick.gpus[place].energy_j),
        "temperature_c": _largest(sample.temperature_c for sample in now),
        "throttle_bits": float(seen) if bits else None,
        "clock_drop": _drop([sample.sm_clock_mhz for sample in working], top_mhz),
        "memory_clock_mhz": _mean(sample.memory_clock_mhz for sample in working),
        "utilisation": _mean(sample.utilisation for sample in now),
        "lost": float(any(sample.lost for sample in now)),
    }


def _together(cards: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """One figure over all cards; None where any card does not tell and a sum is asked for."""

    def known(key: str) -> list[float]:
        return [value for card in cards if (value := card[key]) is not None]

    def added(key: str) -> float | None:
        return sum(known(key)) if cards and len(known(key)) == len(cards) else None

    bits = 0
    for value in known("throttle_bits"):
        bits |= int(value)
    return {
        "gpu_power_w": added("power_w"),
        "gpu_energy_j": added("energy_j"),
        "gpu_temperature_c": max(known("temperature_c"), default=None),
        "gpu_throttle_bits": float(bits) if known("throttle_bits") else None,
        "gpu_clock_drop": max(known("clock_drop"), default=None),
        "gpu_memory_clock_mhz": min(known("memory_clock_mhz"), default=None),
        "gpus_lost": added("lost"),
    }


def _moved(
    ticks: Sequence[Tick],
    start_s: float,
    end_s: float,
    of: Callable[[Tick], float | None],
    late_s: float = PERIOD_S,
) -> float | None:
    """How far a counter moved between two moments; None when it was not read around both."""
    read = [(tick.at_s, value) for tick in ticks if (value := of(tick)) is not None]
    if not read or read[0][0] > start_s + late_s or read[-1][0] < end_s - late_s:
        return None
    times, values = np.array(read).T
    first, last = np.interp([start_s, end_s], times, values)
    return float(last - first)


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None or whole <= 0:
        return None
    return min(max(part / whole, 0.0), 1.0)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((float(value) for value in values if value is not None), default=None)


def _drop(now: Iterable[float | None], top: float | None) -> float | None:
    mean = _mean(now)
    return None if mean is None or not top else max(1.0 - mean / top, 0.0)
