"""Why a GPU holds its clocks back, as NVML's bits say it.

``nvmlClocksEventReasons`` of NVML's API reference; the bits are also called throttle
reasons. New drivers set bits that this list does not know: they are shown in hex and
taken for throttling.
"""

from __future__ import annotations

IDLE = 0x1
REASONS = {
    IDLE: "idle",
    0x2: "clocks set by the user",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "clocks set by the display",
    0x200: "board limit",
    0x400: "reliability",
}
HARMLESS = IDLE | 0x2 | 0x10 | 0x100
"""Idle, or held at a clock that somebody chose: no loss during a measurement."""


def throttling(bits: int) -> int:
    """Only the bits that mean performance is being lost; unknown ones among them."""
    return bits & ~HARMLESS


def reasons(bits: int) -> tuple[str, ...]:
    """What the bits mean, lowest first; one entry in hex for all unknown ones."""
    named = tuple(text for bit, text in REASONS.items() if bits & bit)
    unknown = bits & ~sum(REASONS)
    return (*named, f"unknown reason {unknown:#x}") if unknown else named
