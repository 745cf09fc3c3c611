from __future__ import annotations

import csv

import attrs
import pytest

from lab import paths
from lab.errors import InputError
from lab.machine.cards import peak_bandwidth, published_gb_s
from lab.machine.nvml import Gpu

with (paths.REFERENCE / "gpus.csv").open(newline="") as _file:
    ROWS = list(csv.DictReader(_file))
FULL = [row for row in ROWS if row["nvml_max_memory_clock_mhz"]]


@pytest.mark.parametrize("row", FULL, ids=[row["name"] for row in FULL])
def test_clock_times_two_times_bus_agrees_with_print(row: dict[str, str]) -> None:
    gpu = Gpu(
        uuid="x",
        index=0,
        name=row["name"],
        memory_clock_max_mhz=int(row["nvml_max_memory_clock_mhz"]),
        bus_width_bit=int(row["bus_width_bit"]),
    )
    peak = peak_bandwidth(gpu)
    assert peak.note is None
    assert peak.gb_s == pytest.approx(float(row["bandwidth_gb_s"]), rel=0.05)


def test_disagreement_with_print_is_noted() -> None:
    gpu = Gpu("x", 0, "NVIDIA GeForce RTX 5060 Ti", memory_clock_max_mhz=7000, bus_width_bit=128)
    peak = peak_bandwidth(gpu)
    assert peak.gb_s == 224
    assert peak.note == "clock x bus gives 224 GB/s, published are 448"


def test_laptop_card_does_not_get_the_desktop_figure() -> None:
    assert published_gb_s("NVIDIA GeForce RTX 5070") == 672
    assert published_gb_s("NVIDIA GeForce RTX 5070 Laptop GPU") is None


def test_case_26_unknown_card_is_unknown_not_zero() -> None:
    why = {"memory_clock_max_mhz": "Not Supported", "bus_width_bit": "the driver reports 0"}
    peak = peak_bandwidth(Gpu("x", 0, "Some Card", reasons=why))
    assert (peak.gb_s, peak.source) == (None, "unknown")
    assert peak.note == "memory_clock_max_mhz: Not Supported, bus_width_bit: the driver reports 0"
    assert peak_bandwidth(attrs.evolve(Gpu("x", 0)), given_gb_s=100).gb_s == 100


def test_damaged_table_names_the_file(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gpus.csv").write_text("name,bandwidth_gb_s\nx,many\n")  # type: ignore[operator]
    monkeypatch.setattr("lab.paths.REFERENCE", tmp_path)
    with pytest.raises(InputError, match=r"gpus\.csv: table of cards cannot be read"):
        published_gb_s("x")
