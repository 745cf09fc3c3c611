from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.machine.nvml import GpuSample
from lab.machine.quiet import disturbances, labels
from lab.machine.window import Tick, Tops, summarise


def _tick(at_s: float, **fields: object) -> Tick:
    whole = {"wall_s": at_s, "busy_s": at_s, "total_s": 2 * at_s, "steal_s": 0.0, "own_s": at_s}
    return Tick(at_s=at_s, **(whole | fields))  # type: ignore[arg-type]


def _ticks(**rates: float) -> list[Tick]:
    """Three seconds of two hardware threads; counters grow at the given rates."""
    return [
        _tick(i / 10, **{name: rate * i / 10 for name, rate in rates.items()}) for i in range(31)
    ]


def test_own_work_is_not_somebody_elses() -> None:
    seen = summarise(_ticks(busy_s=1.5, own_s=1.0), 0.53, 2.41, tops=Tops())
    assert seen["cpu_other_fraction"] == pytest.approx(0.25)


def test_steal_is_a_share_of_all_threads() -> None:
    seen = summarise(_ticks(steal_s=0.1), 1, 2, tops=Tops())
    assert seen["cpu_steal_fraction"] == pytest.approx(0.05)


@given(
    start=st.floats(0, 1.4), length=st.floats(0.2, 1.4), busy=st.floats(0, 2), own=st.floats(0, 2)
)
def test_share_is_the_rate_whatever_the_window(
    start: float, length: float, busy: float, own: float
) -> None:
    seen = summarise(_ticks(busy_s=busy, own_s=own), start, start + length, tops=Tops())
    assert seen["cpu_other_fraction"] == pytest.approx(max(busy - own, 0) / 2, abs=1e-6)


def test_case_34_suspend_shows_as_a_clock_jump() -> None:
    ticks = [_tick(i / 10, wall_s=i / 10 + (60 if i > 15 else 0)) for i in range(31)]
    seen = summarise(ticks, 1, 2, tops=Tops())
    assert seen["clock_jump_s"] == pytest.approx(60)
    assert "clock-jump" in labels(seen)


def test_window_that_was_not_sampled_is_unknown() -> None:
    seen = summarise(_ticks()[:10], 1.5, 2.5, tops=Tops())
    assert seen["cpu_other_fraction"] is None
    assert seen["clock_jump_s"] is None


def _card(**fields: object) -> GpuSample:
    return GpuSample(at_s=0, utilisation=fields.pop("utilisation", 0.9), **fields)  # type: ignore[arg-type]


def _with_cards(*cards: GpuSample) -> list[Tick]:
    return [_tick(i / 10, gpus=cards) for i in range(31)]


def test_sum_over_cards_is_unknown_when_one_does_not_tell() -> None:
    ticks = _with_cards(_card(power_w=100.0), _card())
    seen = summarise(ticks, 1, 2, tops=Tops(), uuids=("A", "B"))
    assert seen["gpu_power_w"] is None
    assert (seen["A:power_w"], seen["B:power_w"]) == (100, None)


def test_idle_card_has_no_clock_drop() -> None:
    idle = _card(utilisation=0.0, sm_clock_mhz=210)
    seen = summarise(_with_cards(idle), 1, 2, tops=Tops(sm_mhz={0: 2500}))
    assert seen["gpu_clock_drop"] is None


def test_tops_are_those_of_working_cards() -> None:
    tops = Tops()
    for sample in (_card(sm_clock_mhz=2500), _card(utilisation=0.1, sm_clock_mhz=3000)):
        tops = tops.over(_tick(0, gpus=(sample,), cpu_clock_mhz=4000))
    assert tops == Tops(4000, {0: 2500})


def test_case_28_disturbances_are_sentences_and_labels() -> None:
    numbers = {
        "cpu_steal_fraction": 0.2,
        "cpu_other_fraction": 0.5,
        "gpu_throttle_bits": 0x20004,
        "gpu_clock_drop": 0.06,
        "gpus_lost": 1.0,
    }
    said = " ".join(disturbances(numbers))
    assert "hypervisor took 20%" in said
    assert "Other processes kept 50%" in said
    assert "software power cap, unknown reason 0x20000" in said
    assert "GPU clock was 6% below" in said
    assert labels(numbers) == ("busy", "throttled", "lost")


def test_quiet_window_has_no_labels() -> None:
    numbers = {"cpu_steal_fraction": 0.0, "cpu_other_fraction": None, "gpu_throttle_bits": 0.0}
    assert disturbances(numbers) == labels(numbers) == ()
