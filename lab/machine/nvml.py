"""What NVIDIA's management library says about each GPU, every field guarded on its own.

A field that the driver does not support, or answers with nonsense, is None and its
reason stands in ``reasons``; nothing here raises because of a card. The module
``pynvml`` comes from the distribution nvidia-ml-py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import pynvml
from attrs import field, frozen

T = TypeVar("T")


@frozen
class Gpu:
    """One GPU as the driver describes it at one moment; None has its reason in ``reasons``.

    Attributes
    ----------
    uuid : the identity of the card; indices change with the environment.
    index : NVML's own order (by PCI bus), whatever CUDA_VISIBLE_DEVICES says.
    memory_clock_mhz, memory_clock_max_mhz : NVML's memory clock, half the data rate.
    bus_width_bit : None where the driver says 0 (unified memory).
    power_limit_w : limit in force. energy_j : counter since the driver was loaded.
    throttle_bits : see machine.throttle.
    pcie_generation, pcie_width : now; both fall when a card idles, so read them under load.
    performance_state : 0 is the highest; CUDA work often runs in 2.
    pids : processes with memory on the card, ours among them.
    reasons : field -> why it is None.
    """

    uuid: str
    index: int
    name: str | None = None
    pci_bus_id: str | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_clock_mhz: int | None = None
    memory_clock_max_mhz: int | None = None
    bus_width_bit: int | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    energy_j: float | None = None
    temperature_c: int | None = None
    throttle_bits: int | None = None
    utilisation: float | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    performance_state: int | None = None
    mig_enabled: bool | None = None
    persistence_mode: bool | None = None
    pids: tuple[int, ...] | None = None
    reasons: Mapping[str, str] = field(factory=dict)


@frozen
class GpuSample:
    """The few fields that move during a measurement.

    ``at_s`` is the monotonic clock; ``lost`` is True once the card has left the bus.
    """

    at_s: float
    lost: bool = False
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_w: float | None = None
    energy_j: float | None = None
    temperature_c: int | None = None
    throttle_bits: int | None = None
    utilisation: float | None = None
    reasons: Mapping[str, str] = field(factory=dict)


class Nvml:
    """An open connection to the driver; a context manager.

    Attributes
    ----------
    problem : why there are no GPUs to be seen; None when the library answered.
    driver : version; None without one.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        self.driver: str | None = None
        self._handles: dict[str, tuple[int, Any]] = {}

    def __enter__(self) -> Self:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            self.problem = f"no NVIDIA driver to ask: {error}"
            return self
        self.driver = _guarded(pynvml.nvmlSystemGetDriverVersion, "driver", {})
        self._handles = self._enumerate()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.problem is None:
            pynvml.nvmlShutdown()

    def _enumerate(self) -> dict[str, tuple[int, Any]]:
        handles: dict[str, tuple[int, Any]] = {}
        for index in range(_guarded(pynvml.nvmlDeviceGetCount, "count", {}) or 0):
            handle = _guarded(_call(pynvml.nvmlDeviceGetHandleByIndex, index), "handle", {})
            if handle is not None:
                uuid = _guarded(_call(pynvml.nvmlDeviceGetUUID, handle), "uuid", {})
                handles[uuid or f"index-{index}"] = (index, handle)
        return handles

    @property
    def uuids(self) -> tuple[str, ...]:
        """Cards found when the connection was opened, in NVML's order."""
        return tuple(self._handles)

    def gpu(self, uuid: str) -> Gpu:
        """Everything about one card."""
        index, handle = self._handles[uuid]
        why: dict[str, str] = {}
        values = {name: _guarded(_call(read, handle), name, why) for name, read in _READ.items()}
        if values["bus_width_bit"] == 0:
            values["bus_width_bit"], why["bus_width_bit"] = None, "the driver reports 0"
        return Gpu(uuid=uuid, index=index, reasons=why, **values)

    def gpus(self) -> tuple[Gpu, ...]:
        """Everything about every card."""
        return tuple(self.gpu(uuid) for uuid in self._handles)

    def sample(self, uuid: str) -> GpuSample:
        """What moves during a measurement, read once."""
        _, handle = self._handles[uuid]
        why: dict[str, str] = {}
        values = {name: _guarded(_call(_READ[name], handle), name, why) for name in _SAMPLED}
        lost = str(pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)) in why.values()
        return GpuSample(at_s=time.monotonic(), lost=lost, reasons=why, **values)


def _guarded(read: Callable[[], T], name: str, why: dict[str, str]) -> T | None:
    try:
        return read()
    except pynvml.NVMLError as error:
        why[name] = str(error)
        return None


def _call(function: Callable[..., T], *arguments: Any) -> Callable[[], T]:
    return lambda: function(*arguments)


def _pids(handle: Any) -> tuple[int, ...]:
    running = [
        *pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle),
        *pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle),
    ]
    return tuple(sorted({process.pid for process in running}))


def _event_reasons(handle: Any) -> int:
    """The bits under their new name, or under the old one where the driver is older."""
    try:
        return int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


_READ: dict[str, Callable[[Any], Any]] = {
    "name": pynvml.nvmlDeviceGetName,
    "pci_bus_id": lambda h: pynvml.nvmlDeviceGetPciInfo(h).busId,
    "memory_total_bytes": lambda h: pynvml.nvmlDeviceGetMemoryInfo(h).total,
    "memory_used_bytes": lambda h: pynvml.nvmlDeviceGetMemoryInfo(h).used,
    "memory_clock_mhz": lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_MEM),
    "memory_clock_max_mhz": lambda h: pynvml.nvmlDeviceGetMaxClockInfo(h, pynvml.NVML_CLOCK_MEM),
    "bus_width_bit": pynvml.nvmlDeviceGetMemoryBusWidth,
    "sm_clock_mhz": lambda h: pynvml.nvmlDeviceGetClockInfo(h, pynvml.NVML_CLOCK_SM),
    "sm_clock_max_mhz": lambda h: pynvml.nvmlDeviceGetMaxClockInfo(h, pynvml.NVML_CLOCK_SM),
    "power_w": lambda h: pynvml.nvmlDeviceGetPowerUsage(h) / 1e3,
    "power_limit_w": lambda h: pynvml.nvmlDeviceGetEnforcedPowerLimit(h) / 1e3,
    "energy_j": lambda h: pynvml.nvmlDeviceGetTotalEnergyConsumption(h) / 1e3,
    "temperature_c": lambda h: pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU),
    "throttle_bits": _event_reasons,
    "utilisation": lambda h: pynvml.nvmlDeviceGetUtilizationRates(h).gpu / 100,
    "pcie_generation": pynvml.nvmlDeviceGetCurrPcieLinkGeneration,
    "pcie_generation_max": pynvml.nvmlDeviceGetMaxPcieLinkGeneration,
    "pcie_width": pynvml.nvmlDeviceGetCurrPcieLinkWidth,
    "pcie_width_max": pynvml.nvmlDeviceGetMaxPcieLinkWidth,
    "performance_state": pynvml.nvmlDeviceGetPerformanceState,
    "mig_enabled": lambda h: bool(pynvml.nvmlDeviceGetMigMode(h)[0]),
    "persistence_mode": lambda h: bool(pynvml.nvmlDeviceGetPersistenceMode(h)),
    "pids": _pids,
}
_SAMPLED = (
    "sm_clock_mhz",
    "memory_clock_mhz",
    "power_w",
    "energy_j",
    "temperature_c",
    "throttle_bits",
    "utilisation",
)
