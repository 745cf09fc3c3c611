from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lab.machine.throttle import HARMLESS, REASONS, reasons, throttling


def test_case_28_unknown_bits_are_shown_in_hex() -> None:
    assert reasons(0x4 | 0x40 | 0x20000) == (
        "software power cap",
        "hardware thermal slowdown",
        "unknown reason 0x20000",
    )
    assert throttling(0x20000 | 0x1) == 0x20000


def test_idle_and_chosen_clocks_are_no_loss() -> None:
    assert throttling(0x1 | 0x2 | 0x10 | 0x100) == 0
    assert reasons(0) == ()


@given(bits=st.integers(0, 2**40))
def test_no_bit_is_swallowed(bits: int) -> None:
    known = [bit for bit in REASONS if bits & bit]
    unknown = bits & ~sum(REASONS)
    assert len(reasons(bits)) == len(known) + bool(unknown)
    assert throttling(bits) | (bits & HARMLESS) == bits
