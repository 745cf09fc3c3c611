from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Play = Callable[..., Any]

MACHINE = """
import cattrs, json
from lab.machine.hardware import machine_facts
print(json.dumps(cattrs.unstructure(machine_facts(GIVEN))))
"""
DESCRIBE = MACHINE.replace("GIVEN", "")

SAMPLE = """
import json, time
from lab.machine.sampler import Sampler
with Sampler(period_s=0.02) as sampler:
    start = time.monotonic()
    time.sleep(0.05)
    before = sampler.window(start, time.monotonic())
    time.sleep(0.4)
    late = time.monotonic()
    time.sleep(0.4)
    after = sampler.window(late, time.monotonic())
    lasted = time.monotonic() - late
print(json.dumps({"before": before, "after": after, "lasted": lasted, "why": sampler.reasons}))
"""

ONE, TWO = "GPU-5060aaaa-0001", "GPU-5060bbbb-0002"


def test_two_5060ti_have_448_gb_s_each(play: Play) -> None:
    seen = play("two-5060ti", DESCRIBE)
    assert list(seen["gpus"]) == [ONE, TWO]
    for uuid in (ONE, TWO):
        assert seen["bandwidths"][uuid]["gb_s"] == pytest.approx(448, abs=0.1)
        assert seen["bandwidths"][uuid]["source"] == "clock x bus"
        assert seen["bandwidths"][uuid]["note"] is None
    card = seen["gpus"][ONE]
    assert (card["memory_clock_mhz"], card["memory_clock_max_mhz"]) == (13801, 14001)
    assert card["performance_state"] == 2
    assert seen["driver"] == "590.44.01"


def test_summary_says_which_cards_must_agree(play: Play) -> None:
    script = "import json; from lab.machine.hardware import machine_facts as f"
    seen = play("two-5060ti", f"{script}; print(json.dumps(f().summary()))")
    assert seen["label"] == "2x NVIDIA GeForce RTX 5060 Ti"
    assert [card["uuid"] for card in seen["gpus"]] == [ONE, TWO]
    assert {card["power_limit_w"] for card in seen["gpus"]} == {180}
    assert seen["cards"][ONE]["temperature_c"] == 61


def test_h200_bandwidth_agrees_with_the_published_one(play: Play) -> None:
    seen = play("h200", DESCRIBE)
    (peak,) = seen["bandwidths"].values()
    assert peak == {"gb_s": pytest.approx(4917, abs=1), "source": "clock x bus", "note": None}
    (card,) = seen["gpus"].values()
    assert card["mig_enabled"] is False


def test_case_26_no_library(play: Play, tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    seen = play("two-5060ti", DESCRIBE, LD_LIBRARY_PATH=str(tmp_path))
    assert seen["gpus"] == {}
    assert seen["gpu_problem"] == "no NVIDIA driver to ask: NVML Shared Library Not Found"


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        ("no-driver", "no NVIDIA driver to ask: Driver Not Loaded"),
        ("empty", "the driver lists no GPU"),
    ],
)
def test_case_26_nothing_to_ask_is_said_and_the_run_continues(
    play: Play, scenario: str, problem: str
) -> None:
    seen = play(scenario, DESCRIBE)
    assert (seen["gpus"], seen["gpu_problem"]) == ({}, problem)
    window = play(scenario, SAMPLE)["after"]
    assert window["gpu_power_w"] is None
    assert window["cpu_other_fraction"] is not None


def test_case_26_bus_width_0_and_unsupported_clocks(play: Play) -> None:
    seen = play("gb10", DESCRIBE)
    (card,) = seen["gpus"].values()
    for name, reason in {
        "bus_width_bit": "the driver reports 0",
        "memory_clock_mhz": "Not Supported",
        "memory_clock_max_mhz": "Not Supported",
        "power_limit_w": "Not Supported",
        "energy_j": "Not Supported",
        "memory_total_bytes": "Not Supported",
    }.items():
        assert (card[name], card["reasons"][name]) == (None, reason)
    assert card["sm_clock_mhz"] == 2418
    (peak,) = seen["bandwidths"].values()
    assert (peak["gb_s"], peak["source"]) == (273, "published")
    assert "the driver reports 0" in peak["note"]


def test_case_26_every_null_has_its_reason(play: Play) -> None:
    for scenario in ("two-5060ti", "h200", "gb10", "mig", "mixed", "shared"):
        for card in play(scenario, DESCRIBE)["gpus"].values():
            nulls = {name for name, value in card.items() if value is None}
            assert nulls == set(card["reasons"])


def test_case_26_bandwidth_can_be_given(play: Play) -> None:
    script = MACHINE.replace("GIVEN", '{"GPU-gb10dddd-0004": 250.0}')
    (peak,) = play("gb10", script)["bandwidths"].values()
    assert (peak["gb_s"], peak["source"]) == (250, "given")


def test_case_26_mig_has_no_utilisation_and_no_whole_bandwidth(play: Play) -> None:
    seen = play("mig", DESCRIBE)
    (card,) = seen["gpus"].values()
    assert (card["mig_enabled"], card["utilisation"]) == (True, None)
    (peak,) = seen["bandwidths"].values()
    assert (peak["gb_s"], peak["source"]) == (None, "unknown")
    assert any("MIG is on" in note for note in seen["notes"])
    window = play("mig", SAMPLE)["after"]
    assert window["gpu_power_w"] == pytest.approx(410)
    assert window["gpu_clock_drop"] == 0


def test_case_27_cards_are_told_apart_by_uuid_and_link(play: Play) -> None:
    seen = play("two-5060ti", DESCRIBE)
    assert [seen["gpus"][uuid]["pcie_width"] for uuid in (ONE, TWO)] == [8, 4]
    assert [note for note in seen["notes"] if "PCIe" in note] == [
        f"NVIDIA GeForce RTX 5060 Ti ({TWO}): PCIe x4 of x8."
    ]
    window = play("two-5060ti", SAMPLE)["after"]
    assert window[f"{ONE}:power_w"] == window[f"{TWO}:power_w"] == pytest.approx(110)
    assert window["gpu_power_w"] == pytest.approx(220)


def test_case_28_throttling_is_seen_and_named(play: Play) -> None:
    seen = play("throttles", SAMPLE)
    assert seen["before"]["gpu_throttle_bits"] == 0
    assert seen["after"]["gpu_throttle_bits"] == 0x20044
    assert seen["after"]["gpu_clock_drop"] == pytest.approx(0.2, abs=0.01)


def test_case_28_other_processes_on_the_card_are_named(play: Play) -> None:
    seen = play("shared", DESCRIBE)
    assert any("other processes are on the card: [1]" in note for note in seen["notes"])


def test_case_33_persistence_mode_off_is_noted(play: Play) -> None:
    notes = play("mixed", DESCRIBE)["notes"]
    (note,) = [note for note in notes if "persistence" in note]
    assert note.startswith("NVIDIA GeForce RTX 3060 (GPU-3060eeee-0005): persistence mode is off")


def test_card_that_vanishes_leaves_the_sampler_running(play: Play) -> None:
    seen = play("vanishes", SAMPLE)
    assert seen["before"]["gpus_lost"] == 0
    assert seen["before"]["gpu_power_w"] == pytest.approx(110)
    assert seen["after"]["gpus_lost"] == 1
    assert seen["after"]["gpu_power_w"] is None
    assert seen["after"]["gpu_energy_j"] is None
    assert seen["after"]["cpu_other_fraction"] is not None


def test_energy_is_power_times_time(play: Play) -> None:
    seen = play("h200", SAMPLE)
    assert seen["after"]["energy_j"] == pytest.approx(410 * seen["lasted"], rel=0.05)
    assert seen["after"]["power_w"] == pytest.approx(410)


def test_energy_is_null_with_a_card_that_does_not_count_it(play: Play) -> None:
    window = play("gb10", SAMPLE)["after"]
    assert window["gpu_energy_j"] is None
    assert window["gpu_power_w"] == pytest.approx(38)
