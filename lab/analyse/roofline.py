"""Is there idle compute? Bandwidth and arithmetic ceilings, and what several tokens cost.

The roofline of Williams, Waterman and Patterson (2009): a pass takes the longer of the
time to read its bytes and the time to do its operations. Decoding one token reads every
weight for two operations each, so memory limits it; verifying w tokens reads the weights
once and does w times the work, so it is nearly free up to the ridge. In a mixture of
experts, w tokens also read more experts. All figures are bounds: launch overheads and
transfers between devices are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd
from attrs import evolve, field, frozen

from lab.analyse.estimates import Estimate
from lab.inputs.gguf_info import GgufInfo
from lab.inputs.layers import F16_CACHE, CacheTypes
from lab.inputs.placement import HOST, DeviceBytes, Split, place

AT_ONCE = frozenset({"row", "tensor"})
"""Split modes in which devices read at the same time, so that their bandwidths add."""
WIDEST = 512
"""Widths beyond this are not searched for a ridge."""


@frozen
class Device:
    """What one device can do.

    Attributes
    ----------
    name : as in the split; "host" for the processor.
    bandwidth_gb_s : sustained (or theoretical) reading, 1e9 bytes a second; None when unknown.
    gflop_s : attained in large matrix products, 1e9 operations a second; None when unknown.
    low_gb_s, high_gb_s : interval of the bandwidth; None where there is none.
    """

    name: str
    bandwidth_gb_s: float | None
    gflop_s: float | None = None
    low_gb_s: float | None = None
    high_gb_s: float | None = None


@frozen
class Workload:
    """One model as it is served.

    Attributes
    ----------
    depth : earlier positions in the KV cache.
    split : over which devices; all on the host when left out.
    """

    info: GgufInfo
    depth: int = 0
    cache: CacheTypes = F16_CACHE
    split: Split = field(factory=Split)

    def parts(self, width: float = 1) -> tuple[DeviceBytes, ...]:
        """What each device reads in one pass over ``width`` tokens."""
        touched = expected_experts(self.info.experts, self.info.experts_used, width)
        return place(
            self.info, self.split, depth=self.depth, cache=self.cache, experts_used=touched
        )


def expected_experts(count: int | None, used: float | None, width: float) -> float | None:
    """Distinct experts that ``width`` tokens touch in one block: E (1 - (1 - k/E)^w).

    Holds for routing that is even and independent; real tokens of one text share experts,
    so that this is the upper end. None for a dense model.
    """
    if count is None or used is None:
        return None
    missed: float = (1 - used / count) ** width
    return count * (1 - missed)


def pass_bytes(work: Workload, width: float = 1) -> float:
    """Bytes read by one pass over ``width`` tokens, all devices together."""
    rows = work.info.token_bytes().rows * (width - 1)
    return sum(part.token_bytes for part in work.parts(width)) + rows


def arithmetic_intensity(work: Workload, width: float = 1) -> float:
    """Operations for each byte read in a pass over ``width`` tokens, flop/byte."""
    return width * work.info.token_flops(work.depth) / pass_bytes(work, width)


def pass_ms(work: Workload, devices: Sequence[Device], width: float = 1) -> float | None:
    """Least time of a pass over ``width`` tokens; None when a bandwidth it needs is unknown.

    Devices take turns under a layer split, so their times add; under row and tensor
    splits they work at once, so the slowest decides. Under a row split the KV cache is
    still read in turns. A device of unknown arithmetic is taken to be limited by memory.
    """
    named = {device.name: device for device in devices}
    at_once, in_turn = [0.0], 0.0
    for part in work.parts(width):
        device = named.get(part.device)
        if device is None and part.device == HOST and not part.blocks and not part.output:
            continue
        if device is None or device.bandwidth_gb_s is None:
            if part.token_bytes == 0:
                continue
            return None
        arithmetic = width * part.token_flops / (device.gflop_s * 1e6) if device.gflop_s else 0.0
        weights = part.token_weight_bytes / (device.bandwidth_gb_s * 1e6)
        cache = part.token_kv_bytes / (device.bandwidth_gb_s * 1e6)
        if work.split.mode == "row" and part.device != HOST:
            at_once.append(max(weights, arithmetic))
            in_turn += cache
        elif work.split.mode == "tensor" and part.device != HOST:
            at_once.append(max(weights + cache, arithmetic))
        else:
            in_turn += max(weights + cache, arithmetic)
    return max(at_once) + in_turn


def ceiling(work: Workload, devices: Sequence[Device]) -> Estimate:
    """Most tokens a second that the memory allows without drafting.

    The interval is that of the bandwidths; None unless every device has one.
    """
    value = _tok_s(work, _reading_only(devices))
    low = _tok_s(work, [_memory_only(one, one.low_gb_s) for one in devices])
    high = _tok_s(work, [_memory_only(one, one.high_gb_s) for one in devices])
    unknown = ", ".join(one.name for one in devices if one.bandwidth_gb_s is None)
    return Estimate(
        name="ceiling_tok_s",
        unit="tok/s",
        value=value,
        low=None if high is None else low,
        high=None if low is None else high,
        level=0.95,
        n=len(devices),
        unit_of_n="device",
        reason=None if value else f"memory bandwidth of {unknown or HOST} is unknown",
    )


def _memory_only(device: Device, bandwidth_gb_s: float | None) -> Device:
    return evolve(device, bandwidth_gb_s=bandwidth_gb_s, gflop_s=None)


def _reading_only(devices: Sequence[Device]) -> list[Device]:
    return [_memory_only(one, one.bandwidth_gb_s) for one in devices]


def _tok_s(work: Workload, devices: Sequence[Device]) -> float | None:
    least = pass_ms(work, devices)
    return 1e3 / least if least else None


def attained_share(decode_tok_s: Estimate, most: Estimate) -> Estimate:
    """Measured decoding speed over its ceiling.

    The interval takes the far ends of both, so it is wider than either alone; where only
    the speed has an interval, the ceiling counts as exact.
    """
    if decode_tok_s.value is None or most.value is None:
        reason = decode_tok_s.reason or most.reason or "not measured"
        return Estimate(
            "attained_share", "fraction", None, None, None, 0.95, decode_tok_s.n, reason=reason
        )
    low = high = None
    if decode_tok_s.low is not None and decode_tok_s.high is not None:
        low = decode_tok_s.low / (most.high or most.value)
        high = decode_tok_s.high / (most.low or most.value)
    return Estimate(
        name="attained_share",
        unit="fraction",
        value=decode_tok_s.value / most.value,
        low=low,
        high=high,
        level=decode_tok_s.level,
        n=decode_tok_s.n,
        unit_of_n=decode_tok_s.unit_of_n,
    )


def attained_gflop_s(info: GgufInfo, prefill_tok_s: float, depth: int = 0) -> float:
    """Arithmetic ceiling as shown by reading prompts: the fastest matrix products seen.

    Logits are computed for the last token of a prompt only and are left out.
    """
    return prefill_tok_s * info.token_flops(depth, logits=False) / 1e9


def ridge_width(work: Workload, devices: Sequence[Device]) -> int | None:
    """Smallest number of tokens in a pass at which arithmetic takes longer than reading.

    Verifying fewer is nearly free. None when a bandwidth or an arithmetic ceiling is
    unknown, or when memory limits up to 512 tokens.
    """
    if any(device.gflop_s is None or device.bandwidth_gb_s is None for device in devices):
        return None
    for width in range(1, WIDEST + 1):
        both = pass_ms(work, devices, width)
        reading = pass_ms(work, _reading_only(devices), width)
        if both is not None and reading is not None and both > reading:
            return width
    return None


def verify_cost_model(
    work: Workload, devices: Sequence[Device], widths: Iterable[int]
) -> pd.DataFrame:
    """Modelled cost of verifying: one row a width.

    Columns: width (tokens), verify_cost (ratio to one token; missing when unknown),
    experts (distinct experts a block; missing in a dense model), gbytes (read),
    limit ("memory" or "arithmetic").
    """
    single = pass_ms(work, devices)
    rows = []
    for width in widths:
        now = pass_ms(work, devices, width)
        reading = pass_ms(work, _reading_only(devices), width)
        known = single is not None and now is not None and reading is not None
        rows.append(
            {
                "width": width,
                "verify_cost": now / single if known else None,  # type: ignore[operator]
                "experts": expected_experts(work.info.experts, work.info.experts_used, width),
                "gbytes": pass_bytes(work, width) / 1e9,
                "limit": _limit(now, reading) if known else None,
            }
        )
    frame = pd.DataFrame(rows, columns=["width", "verify_cost", "experts", "gbytes", "limit"])
    return frame.astype({"verify_cost": "float64", "experts": "float64"})


def _limit(now: float | None, reading: float | None) -> str:
    return "arithmetic" if (now or 0) > (reading or 0) else "memory"


def roof(device: Device, intensities: tuple[float, float]) -> pd.DataFrame:
    """The roof of one device as a polyline between two intensities, its corner included.

    Columns: intensity (flop/byte), gflop_s, ridge (True at the corner). Empty when the
    bandwidth is unknown; without a corner when the arithmetic ceiling is.
    """
    columns = ["intensity", "gflop_s", "ridge"]
    if device.bandwidth_gb_s is None:
        return pd.DataFrame(columns=columns)
    low, high = intensities
    slope = device.bandwidth_gb_s
    points = [(low, low * slope, False), (high, high * slope, False)]
    if device.gflop_s is not None:
        corner = device.gflop_s / slope
        low, high = min(low, corner / 2), max(high, corner * 2)
        points = [
            (low, low * slope, False),
            (corner, device.gflop_s, True),
            (high, device.gflop_s, False),
        ]
    return pd.DataFrame(points, columns=columns)


def widths_on_roof(model: str, work: Workload, pass_times_ms: Mapping[int, float]) -> pd.DataFrame:
    """Measured passes of several tokens as points under the roof.

    Columns: model, width, intensity (flop/byte), gflop_s (attained).
    """
    flops = work.info.token_flops(work.depth)
    return pd.DataFrame(
        [
            {
                "model": model,
                "width": width,
                "intensity": arithmetic_intensity(work, width),
                "gflop_s": width * flops / (time_ms * 1e6),
            }
            for width, time_ms in pass_times_ms.items()
        ],
        columns=["model", "width", "intensity", "gflop_s"],
    )


def effective_bandwidth_gb_s(work: Workload, devices: Sequence[Device]) -> float | None:
    """Bytes of one token over the least time to read them, all devices together."""
    least = pass_ms(work, _reading_only(devices))
    return None if not least else pass_bytes(work) / (least * 1e6)


def how_bandwidths_combine(work: Workload, devices: Sequence[Device]) -> str:
    """One sentence on what several devices give together under this split."""
    used = [part.device for part in work.parts() if part.blocks or part.output]
    together = effective_bandwidth_gb_s(work, devices)
    if together is None:
        return "The memory bandwidth is unknown, so no ceiling can be stated."
    if len(set(used)) < 2:  # noqa: PLR2004 - more than one device
        return f"One device reads everything, at most {together:.0f} GB/s."
    known = [one.bandwidth_gb_s for one in devices if one.bandwidth_gb_s is not None]
    listed = " and ".join(f"{gb_s:.0f}" for gb_s in known)
    if work.split.mode in AT_ONCE:
        return (
            f"Under a {work.split.mode} split the devices read at once: "
            f"{listed} GB/s give at most {together:.0f} GB/s together."
        )
    return (
        f"Under a layer split the devices take turns: {listed} GB/s give "
        f"{together:.0f} GB/s, not their sum of {sum(known):.0f}."
    )
