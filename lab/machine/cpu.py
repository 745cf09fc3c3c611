"""What is known of the processor: model, caches, governor, energy counter.

Everything is read from Linux' /proc and /sys where that is the system; a fact that is
not there is None and its reason stands in ``reasons``.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import psutil
from attrs import field, frozen

CPUINFO = Path("/proc/cpuinfo")
SYS_CPU = Path("/sys/devices/system/cpu")
POWERCAP = Path("/sys/class/powercap")
T = TypeVar("T")
_SIZES = {"K": 2**10, "M": 2**20, "G": 2**30}


@frozen
class Cpu:
    """The processor; None has its reason in ``reasons``.

    Attributes
    ----------
    cores, threads : physical cores and hardware threads the system may use.
    caches_bytes : size of one cache of each level ("L1d", "L2", "L3").
    last_level_bytes : all last-level caches together.
    governor : frequency policy of the first core.
    max_mhz : highest clock.
    features : instruction sets that matter for inference, of those present.
    energy : where an energy counter can be read ("RAPL").
    """

    model: str | None
    cores: int | None
    threads: int | None
    caches_bytes: Mapping[str, int]
    last_level_bytes: int | None
    governor: str | None
    max_mhz: float | None
    features: tuple[str, ...]
    energy: str | None
    reasons: Mapping[str, str] = field(factory=dict)


FEATURES = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx_vnni",
    "amx_int8",
    "fma",
    "f16c",
    "asimddp",
    "i8mm",
)


def cpu() -> Cpu:
    """Facts of this machine's processor."""
    why: dict[str, str] = {}
    caches, last_level = cache_sizes()
    if not caches:
        why["caches_bytes"] = f"nothing below {SYS_CPU}"
    return Cpu(
        model=_known("model", _model(), "the system does not name it", why),
        cores=_known("cores", psutil.cpu_count(logical=False), "not reported", why),
        threads=_known("threads", psutil.cpu_count(), "not reported", why),
        caches_bytes=caches,
        last_level_bytes=_known("last_level_bytes", last_level, "no cache reported", why),
        governor=_known(
            "governor",
            _text(SYS_CPU / "cpu0/cpufreq/scaling_governor"),
            "no frequency control (usual in a virtual machine)",
            why,
        ),
        max_mhz=_known("max_mhz", _max_mhz(), "no frequency control", why),
        features=_features(),
        energy=_known("energy", _energy_source(why), why.get("energy", ""), why),
        reasons=why,
    )


def cache_sizes() -> tuple[dict[str, int], int | None]:
    """(size of one cache by level, all caches of the last level together), bytes."""
    by_level: dict[str, int] = {}
    last: dict[str, int] = {}
    deepest = 0
    for cache in sorted(SYS_CPU.glob("cpu[0-9]*/cache/index[0-9]*")):
        level, kind = _text(cache / "level"), _text(cache / "type")
        size, shared = _text(cache / "size"), _text(cache / "shared_cpu_list")
        if None in (level, kind, size, shared) or kind == "Instruction":
            continue
        n_bytes = int(str(size)[:-1]) * _SIZES[str(size)[-1]]
        by_level.setdefault(f"L{level}{'d' if kind == 'Data' else ''}", n_bytes)
        if int(str(level)) > deepest:
            deepest, last = int(str(level)), {}
        if int(str(level)) == deepest:
            last[str(shared)] = n_bytes
    return by_level, sum(last.values()) or None


def rapl_counters() -> tuple[tuple[Path, float], ...]:
    """Readable package energy counters and where each wraps, joules; empty when there are none.

    Since 2020 only root may read them unless the system says otherwise.
    """
    found = []
    for zone in sorted(POWERCAP.glob("intel-rapl:[0-9]*")):
        if zone.name.count(":") > 1:
            continue
        counter, span = zone / "energy_uj", _text(zone / "max_energy_range_uj")
        if _text(counter) is not None and span is not None:
            found.append((counter, int(span) / 1e6))
    return tuple(found)


def _energy_source(why: dict[str, str]) -> str | None:
    if rapl_counters():
        return "RAPL"
    zones = list(POWERCAP.glob("intel-rapl:[0-9]*"))
    why["energy"] = (
        "RAPL is there but may not be read: ask an administrator to allow energy_uj"
        if zones
        else "no RAPL counter (usual in a virtual machine)"
    )
    return None


def _known(name: str, value: T | None, reason: str, why: dict[str, str]) -> T | None:
    if value is None:
        why[name] = reason
    return value


def _model() -> str | None:
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", _text(CPUINFO) or "", re.MULTILINE)
    return found[1] if found else platform.processor() or None


def _features() -> tuple[str, ...]:
    found = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", _text(CPUINFO) or "", re.MULTILINE)
    present = set(found[1].split()) if found else set()
    return tuple(name for name in FEATURES if name in present)


def _max_mhz() -> float | None:
    khz = _text(SYS_CPU / "cpu0/cpufreq/cpuinfo_max_freq")
    return None if khz is None else int(khz) / 1e3


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
