"""What a card's memory could move at best: from its clock and bus, checked against print.

Bandwidth = NVML memory clock x 2 x bus width / 8. The factor is 2 for every kind of
memory, since NVML already reports half the data rate (checked in the published table
for GDDR6, GDDR6X, GDDR7 and HBM).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping

from attrs import frozen

from lab import paths
from lab.errors import InputError
from lab.machine.nvml import Gpu

TOLERANCE = 0.05
"""How far a computed figure may be from the published one before it is doubted."""


@frozen
class PeakBandwidth:
    """Theoretical memory bandwidth of a card and where the figure comes from.

    Attributes
    ----------
    gb_s : 1e9 bytes a second; None when nothing tells.
    source : "given", "clock x bus", "published" or "unknown".
    note : what a reader must know; None when there is nothing.
    """

    gb_s: float | None
    source: str
    note: str | None = None


def published_gb_s(name: str | None) -> float | None:
    """Published bandwidth of exactly this card; None when the table does not have it.

    A laptop part shares its number, not its memory, with the desktop card, and NVML
    spells it with "Laptop GPU": only the whole name counts.
    """
    return None if name is None else _table().get(name)


def _table() -> Mapping[str, float]:
    path = paths.REFERENCE / "gpus.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {row["name"]: float(row["bandwidth_gb_s"]) for row in csv.DictReader(file)}
    except (KeyError, ValueError) as error:
        raise InputError("table of cards cannot be read", file=path, fix=str(error)) from error


def peak_bandwidth(gpu: Gpu, given_gb_s: float | None = None) -> PeakBandwidth:
    """Theoretical bandwidth of a card.

    ``given_gb_s`` is what a person states for a card that neither reports nor is listed.
    """
    if given_gb_s is not None:
        return PeakBandwidth(given_gb_s, "given")
    if gpu.mig_enabled:
        note = "MIG is on: a program gets a share of the card's bandwidth that is not reported"
        return PeakBandwidth(None, "unknown", note)
    published = published_gb_s(gpu.name)
    clock, bus = gpu.memory_clock_max_mhz, gpu.bus_width_bit
    if clock is not None and bus is not None:
        computed = clock * 2 * bus / 8 / 1e3
        if published is not None and abs(computed / published - 1) > TOLERANCE:
            note = f"clock x bus gives {computed:.0f} GB/s, published are {published:.0f}"
            return PeakBandwidth(computed, "clock x bus", note)
        return PeakBandwidth(computed, "clock x bus")
    missing = ", ".join(
        f"{name}: {gpu.reasons.get(name, 'not read')}"
        for name, value in (("memory_clock_max_mhz", clock), ("bus_width_bit", bus))
        if value is None
    )
    if published is not None:
        return PeakBandwidth(published, "published", missing)
    return PeakBandwidth(None, "unknown", missing)
