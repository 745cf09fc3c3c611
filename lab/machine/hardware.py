"""The machine as one value: what it is, what it lacks, and what a reader must know of it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cattrs
import psutil
from attrs import field, frozen

from lab.machine.cards import PeakBandwidth, peak_bandwidth
from lab.machine.cpu import Cpu, cpu
from lab.machine.nvml import Gpu, Nvml
from lab.machine.processes import own_tree

KERNEL = Path("/proc/sys/kernel/osrelease")
WATCHED = ("GGML_", "CUDA_", "OMP_", "LLAMA_")
"""Prefixes of environment variables that change how an engine runs."""


@frozen
class Machine:
    """Facts of the machine at one moment.

    Attributes
    ----------
    gpus : by UUID, in NVML's order. gpu_problem : why there are none.
    bandwidths : theoretical memory bandwidth of each GPU, by UUID.
    driver : NVIDIA driver; None without one.
    memory_bytes, memory_available_bytes : host memory.
    virtual : True in a virtual machine as far as the processor says so.
    wsl : True under Windows Subsystem for Linux.
    on_battery : None where there is no battery to ask.
    environment : variables that change an engine's behaviour.
    notes : what a reader must know before trusting numbers from here, in sentences.
    """

    system: str
    python: str
    cpu: Cpu
    memory_bytes: int
    memory_available_bytes: int
    gpus: Mapping[str, Gpu]
    gpu_problem: str | None
    bandwidths: Mapping[str, PeakBandwidth]
    driver: str | None
    virtual: bool
    wsl: bool
    on_battery: bool | None
    load_1min: float | None
    environment: Mapping[str, str] = field(factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Short name for a figure: the cards, or else the processor."""
        names = [gpu.name or "unknown GPU" for gpu in self.gpus.values()]
        if not names:
            return f"{self.cpu.model or 'unknown CPU'}, {self.cpu.threads or '?'} threads"
        return ", ".join(
            f"{names.count(name)}x {name}" if names.count(name) > 1 else name
            for name in dict.fromkeys(names)
        )

    def summary(self) -> dict[str, Any]:
        """The same as plain values for a manifest.

        ``cpu_model`` and ``gpus`` hold only what must agree between two runs that are
        compared; what moves (clocks, load, free memory) stands under other keys.
        """
        facts: dict[str, Any] = cattrs.unstructure(self)
        facts["cards"] = facts.pop("gpus")
        facts["cpu_model"] = self.cpu.model
        facts["cores"] = self.cpu.cores
        facts["label"] = self.label
        facts["gpus"] = [
            {
                "uuid": uuid,
                "name": gpu.name,
                "bandwidth_gb_s": self.bandwidths[uuid].gb_s,
                "power_limit_w": gpu.power_limit_w,
            }
            for uuid, gpu in self.gpus.items()
        ]
        return facts


def machine_facts(given_gb_s: Mapping[str, float] | None = None) -> Machine:
    """Ask everything that can be asked.

    ``given_gb_s`` states the memory bandwidth of cards that do not report it, by UUID.
    """
    with Nvml() as nvml:
        gpus = {gpu.uuid: gpu for gpu in nvml.gpus()}
        problem, driver = nvml.problem, nvml.driver
    if problem is None and not gpus:
        problem = "the driver lists no GPU"
    given = given_gb_s or {}
    memory = psutil.virtual_memory()
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    wsl = is_wsl()
    return Machine(
        system=platform.platform(),
        python=platform.python_version(),
        cpu=cpu(),
        memory_bytes=memory.total,
        memory_available_bytes=memory.available,
        gpus=gpus,
        gpu_problem=problem,
        bandwidths={uuid: peak_bandwidth(gpu, given.get(uuid)) for uuid, gpu in gpus.items()},
        driver=driver,
        virtual=_virtual(),
        wsl=wsl,
        on_battery=None if battery is None else not battery.power_plugged,
        load_1min=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        environment=_environment(),
        notes=_notes(gpus, on_battery=bool(battery and not battery.power_plugged), wsl=wsl),
    )


def is_wsl() -> bool:
    """True under Windows Subsystem for Linux."""
    return KERNEL.exists() and "microsoft" in KERNEL.read_text(encoding="utf-8").lower()


def _virtual() -> bool:
    """The processor says so on x86; elsewhere nothing is claimed."""
    info = Path("/proc/cpuinfo")
    return info.exists() and " hypervisor" in info.read_text(encoding="utf-8")


def _environment() -> dict[str, str]:
    """Watched variables; a value that could be a secret is not kept."""
    secret = ("KEY", "TOKEN", "SECRET", "PASS")
    return {
        name: "(hidden)" if any(word in name for word in secret) else value
        for name, value in sorted(os.environ.items())
        if name.startswith(WATCHED)
    }


def _notes(gpus: Mapping[str, Gpu], *, on_battery: bool, wsl: bool) -> tuple[str, ...]:
    notes = []
    if on_battery:
        notes.append("Running on battery: clocks are held back; plug the machine in.")
    if wsl:
        notes.append("Under WSL some driver queries fail or see only this system's processes.")
    if os.environ.get("GGML_CUDA_ENABLE_UNIFIED_MEMORY"):
        notes.append("GGML_CUDA_ENABLE_UNIFIED_MEMORY is set: weights may be read over PCIe.")
    if _installed("pynvml"):
        notes.append("The deprecated distribution pynvml is installed beside nvidia-ml-py.")
    ours = own_tree()
    for gpu in gpus.values():
        notes += _card_notes(gpu, ours)
    return tuple(notes)


def _card_notes(gpu: Gpu, ours: frozenset[int]) -> list[str]:
    name = f"{gpu.name or 'GPU'} ({gpu.uuid})"
    notes = []
    if gpu.persistence_mode is False:
        notes.append(f"{name}: persistence mode is off, so the first use after a pause is slow.")
    if gpu.mig_enabled:
        notes.append(f"{name}: MIG is on; a program gets a part of the card, not all of it.")
    others = sorted(set(gpu.pids or ()) - ours)
    if others:
        notes.append(f"{name}: other processes are on the card: {others}.")
    width, widest = gpu.pcie_width, gpu.pcie_width_max
    if width is not None and widest is not None and width < widest:
        notes.append(f"{name}: PCIe x{width} of x{widest}.")
    return notes


def _installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True
