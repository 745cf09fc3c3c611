"""Verify-cost curves of hardware that is not here: published ones, and modelled ones.

A modelled curve is the roofline's (analyse.roofline) for what a pass over w tokens reads
and computes. Every curve carries what must be believed to use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from attrs import frozen

from lab import paths
from lab.analyse.roofline import Device, Workload, expected_experts, verify_cost_model
from lab.analyse.verify_cost_curve import VerifyCostCurve, curve_from_ratios
from lab.errors import InputError
from lab.machine.cards import published_gb_s

WIDTHS = (*range(1, 10), 12, 16, 17, 24, 32, 33, 48, 49, 64, 65)
"""Widths that a model is worked out at; experts make it curved in between."""

_NUMBERS = ("total_b", "active_b", "bits_per_weight")
_EXPERTS = ("experts", "experts_used")
_AS_REPORTED = "Cost is as reported, whatever depth, build and logits; linear between widths."
_ONLY_PASSES = "A step costs its pass: drafting, choosing tokens and changes of width cost nothing."


@frozen
class ModelShape:
    """What a model reads for a token, known from its description alone.

    Attributes
    ----------
    total_b, active_b : parameters in all and for one token, 1e9.
    experts, experts_used : routed experts a block; None in a dense model.
    bits_per_weight : of its file. source : where all that is said.
    """

    name: str
    total_b: float
    active_b: float
    experts: int | None
    experts_used: int | None
    bits_per_weight: float
    source: str

    def gbytes(self, width: float) -> float:
        """Weights read by one pass over ``width`` tokens, 1e9 bytes.

        Total and active parameters give the routed part X from
        total - active = X (1 - used / experts); a pass reads the share of X it touches.
        """
        touched = expected_experts(self.experts, self.experts_used, width)
        if touched is None or self.experts is None or self.experts_used is None:
            return self.active_b * self.bits_per_weight / 8
        routed = (self.total_b - self.active_b) / (1 - self.experts_used / self.experts)
        read = self.total_b - routed * (1 - touched / self.experts)
        return read * self.bits_per_weight / 8


def model_shape(name: str, *, file: Path = paths.REFERENCE / "models.csv") -> ModelShape:
    """A described model by name.

    Raises
    ------
    InputError : it is not described.
    """
    row = _row(file, "name", name)
    experts, used = (None if pd.isna(row[key]) else int(row[key]) for key in _EXPERTS)
    total_b, active_b, bits = (float(row[key]) for key in _NUMBERS)
    return ModelShape(name, total_b, active_b, experts, used, bits, str(row["source"]))


def card(name: str, *, gflop_s: float | None = None) -> Device:
    """A card by its published bandwidth; of unknown arithmetic unless ``gflop_s`` says."""
    return Device(name, published_gb_s(name), gflop_s)


def _row(file: Path, column: str, wanted: str) -> pd.Series:
    table = pd.read_csv(file)
    found = table[table[column] == wanted]
    if found.empty:
        raise InputError(
            "is not listed",
            file=file,
            field=column,
            value=wanted,
            fix=f"Known: {list(table[column])}",
        )
    return found.iloc[0]


def published(system: str, *, file: Path = paths.REFERENCE / "verify_cost.csv") -> VerifyCostCurve:
    """The curve someone reported, by the name of their system.

    Raises
    ------
    InputError : nobody reported it.
    """
    row = _row(file, "system", system)
    known = {
        float(name[1:]): float(row[name])
        for name in row.index
        if name[0] == "w" and name[1:].isdigit() and pd.notna(row[name])
    }
    return curve_from_ratios(
        system,
        known,
        source=str(row["source"]),
        assumptions=(_AS_REPORTED, _ONLY_PASSES),
    )


def modelled(
    label: str, work: Workload, devices: Sequence[Device], widths: Iterable[int] = WIDTHS
) -> VerifyCostCurve:
    """The roofline's curve for a model file that is at hand (roofline.verify_cost_model).

    Raises
    ------
    InputError : a bandwidth it needs is unknown.
    """
    table = verify_cost_model(work, devices, widths)
    if table["verify_cost"].isna().any():
        raise InputError(
            "cannot be modelled: a memory bandwidth is unknown",
            field="devices",
            value=[device.name for device in devices],
            fix="Give the bandwidth of every device that holds weights",
        )
    ratios = dict(zip(table["width"], table["verify_cost"], strict=True))
    return curve_from_ratios(
        label,
        ratios,
        source="roofline of " + " and ".join(device.name for device in devices),
        assumptions=_modelled(devices[0].gflop_s, work.info.experts),
        depths=(float(work.depth),),
    )


def described(
    shape: ModelShape, device: Device, *, widths: Iterable[int] = WIDTHS
) -> VerifyCostCurve:
    """The roofline's curve of a model known by description, on one card or several alike.

    Under a layer split equal cards take turns, so that their number changes the time of
    every pass alike and no ratio.

    Raises
    ------
    InputError : the card's bandwidth is unknown.
    """
    single = _pass_ms(shape, device, 1)
    ratios = {float(width): _pass_ms(shape, device, width) / single for width in widths}
    return curve_from_ratios(
        f"{shape.name} on {device.name}",
        ratios,
        source=f"roofline; {shape.source}",
        assumptions=(
            *_modelled(device.gflop_s, shape.experts),
            "Every parameter takes the same bits; reading the KV cache is left out.",
        ),
    )


def _pass_ms(shape: ModelShape, device: Device, width: float) -> float:
    reading = 1e3 * shape.gbytes(width) / _bandwidth(device)
    if device.gflop_s is None:
        return reading
    return max(reading, 1e3 * width * 2 * shape.active_b / device.gflop_s)


def _modelled(gflop_s: float | None, experts: int | None) -> tuple[str, ...]:
    arithmetic = (
        "Arithmetic never limits a pass."
        if gflop_s is None
        else f"Matrix products run at {gflop_s / 1e3:.3g} Tflop/s at every width."
    )
    routing = () if experts is None else ("Tokens choose experts evenly and independently.",)
    return (
        "Memory is read at its full published or measured rate.",
        arithmetic,
        *routing,
        _ONLY_PASSES,
    )


def idle_until_gflop_s(shape: ModelShape, device: Device) -> float:
    """Arithmetic, Gflop/s, at which decoding one token would leave no compute idle.

    There the operations of a token take as long as reading its weights, so that w tokens
    would cost w passes and nothing could be won. A faster card has compute to spare.

    Raises
    ------
    InputError : the card's bandwidth is unknown.
    """
    return 2 * shape.active_b * _bandwidth(device) / shape.gbytes(1)


def _bandwidth(device: Device) -> float:
    if device.bandwidth_gb_s is None:
        raise InputError(
            "memory bandwidth is unknown",
            field="device",
            value=device.name,
            fix="Add the card to data/reference/gpus.csv, or state its bandwidth",
        )
    return device.bandwidth_gb_s


def cost_bound(speedup: float, widest: int) -> float:
    """Most a mean step can have cost where ``speedup`` was measured, in one-token passes.

    speedup = tokens_per_step / step_cost, and no step gives more tokens than its width.
    """
    return widest / speedup
