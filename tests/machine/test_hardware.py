from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import cattrs
import psutil
import pytest

from lab.machine import cpu, hardware
from lab.machine.hardware import machine_facts


def test_facts_of_this_machine_are_plain_values() -> None:
    seen = machine_facts()
    assert seen.memory_available_bytes <= seen.memory_bytes
    assert seen.cpu.threads == psutil.cpu_count()
    plain = cattrs.unstructure(seen)
    nulls = {name for name, value in plain["cpu"].items() if value is None}
    assert nulls <= set(plain["cpu"]["reasons"])
    assert seen.label
    summary = seen.summary()
    assert json.loads(json.dumps(summary)) == summary
    assert summary["cpu_model"] == seen.cpu.model


def test_case_33_battery_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    battery = SimpleNamespace(power_plugged=False)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery, raising=False)
    seen = machine_facts()
    assert seen.on_battery is True
    assert any("battery" in note for note in seen.notes)
    battery.power_plugged = True
    assert machine_facts().on_battery is False


@pytest.mark.parametrize(
    ("release", "wsl"), [("5.15.167.4-microsoft-standard-WSL2", True), ("6.8.0-generic", False)]
)
def test_case_26_wsl_is_noted(
    release: str, wsl: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "osrelease"
    kernel.write_text(release)
    monkeypatch.setattr(hardware, "KERNEL", kernel)
    seen = machine_facts()
    assert seen.wsl is wsl
    assert any("WSL" in note for note in seen.notes) is wsl


def test_environment_is_kept_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGML_CUDA_ENABLE_UNIFIED_MEMORY", "1")
    monkeypatch.setenv("LLAMA_API_KEY", "abc")
    seen = machine_facts()
    assert seen.environment["GGML_CUDA_ENABLE_UNIFIED_MEMORY"] == "1"
    assert seen.environment["LLAMA_API_KEY"] == "(hidden)"
    assert any("UNIFIED_MEMORY" in note for note in seen.notes)


def _cache(root: Path, core: int, index: int, **facts: str) -> None:
    folder = root / f"cpu{core}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in facts.items():
        (folder / name).write_text(text)


def test_last_level_caches_are_added_over_the_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for core, socket in ((0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")):
        _cache(tmp_path, core, 0, level="1", type="Data", size="32K", shared_cpu_list=str(core))
        _cache(
            tmp_path, core, 1, level="1", type="Instruction", size="64K", shared_cpu_list=str(core)
        )
        _cache(tmp_path, core, 2, level="3", type="Unified", size="16M", shared_cpu_list=socket)
    monkeypatch.setattr(cpu, "SYS_CPU", tmp_path)
    assert cpu.cache_sizes() == ({"L1d": 32 * 2**10, "L3": 16 * 2**20}, 32 * 2**20)


def _rapl(root: Path, zone: str, *, energy: bool = True) -> None:
    folder = root / zone
    folder.mkdir()
    (folder / "max_energy_range_uj").write_text("262143328850")
    if energy:
        (folder / "energy_uj").write_text("1000000")


def test_energy_counters_of_packages_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "POWERCAP", tmp_path)
    assert "no RAPL counter" in cpu.cpu().reasons["energy"]
    _rapl(tmp_path, "intel-rapl:0", energy=False)
    assert "may not be read" in cpu.cpu().reasons["energy"]
    _rapl(tmp_path, "intel-rapl:1")
    _rapl(tmp_path, "intel-rapl:1:0")
    assert cpu.rapl_counters() == ((tmp_path / "intel-rapl:1" / "energy_uj", 262143.32885),)
    assert cpu.cpu().energy == "RAPL"
