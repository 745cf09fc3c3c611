from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from lab.machine import cpu
from lab.machine.quiet import check_quiet
from lab.machine.sampler import Sampler


def test_window_has_the_same_keys_with_and_without_cards() -> None:
    with Sampler(period_s=0.01) as sampler:
        start = time.monotonic()
        time.sleep(0.1)
        seen = sampler.window(start, time.monotonic())
    assert {
        "cpu_other_fraction",
        "cpu_steal_fraction",
        "cpu_clock_drop",
        "gpu_clock_drop",
        "gpu_throttle_bits",
        "energy_j",
        "power_w",
        "temperature_c",
        "clock_jump_s",
    } <= set(seen)
    assert seen["samples"] >= 1
    assert seen["clock_jump_s"] == pytest.approx(0, abs=0.01)
    assert 0 <= seen["cpu_other_fraction"] <= 1


def test_window_shorter_than_a_period_is_known() -> None:
    with Sampler(period_s=10) as sampler:
        start = time.monotonic()
        seen = sampler.window(start, time.monotonic())
    assert seen["samples"] == 1


def test_sampler_leaves_no_thread_behind_and_answers_after_its_end() -> None:
    with Sampler(period_s=0.01) as sampler:
        start = time.monotonic()
        time.sleep(0.05)
        end = time.monotonic()
    assert not [one for one in threading.enumerate() if one.name == "machine-sampler"]
    assert sampler.window(start, end)["samples"] >= 1
    assert sampler.overhead < 1


def test_energy_counter_that_wraps_keeps_growing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = tmp_path / "intel-rapl:0"
    zone.mkdir()
    (zone / "max_energy_range_uj").write_text("100000000")
    counter = zone / "energy_uj"
    counter.write_text("95000000")
    monkeypatch.setattr(cpu, "POWERCAP", tmp_path)
    with Sampler(period_s=0.01) as sampler:
        start = time.monotonic()
        time.sleep(0.05)
        counter.write_text("7000000")
        time.sleep(0.05)
        seen = sampler.window(start, time.monotonic())
    assert seen["energy_j"] == pytest.approx(12)
    assert "cpu_energy_j" not in sampler.reasons


def test_check_quiet_judges_the_machine_facts() -> None:
    seen = check_quiet(seconds=0.2)
    assert seen.quiet == (not seen.reasons)
    assert seen.numbers["cpu_other_fraction"] is not None
