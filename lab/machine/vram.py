"""Card memory given back: the next arm never starts on what the last one left behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from lab.errors import BackendError
from lab.machine.nvml import Gpu, Nvml

TOLERANCE_BYTES = 64 * 2**20
"""What a driver or a desktop may take in the meantime without it being a leak."""


def used_bytes(nvml: Nvml) -> dict[str, int]:
    """Memory in use on each card that tells, by UUID."""
    return {
        gpu.uuid: gpu.memory_used_bytes for gpu in nvml.gpus() if gpu.memory_used_bytes is not None
    }


def wait_released(
    nvml: Nvml,
    before: Mapping[str, int],
    *,
    timeout_s: float = 30.0,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until every card uses no more than ``before`` (see ``used_bytes``).

    Raises
    ------
    BackendError : memory is still held after ``timeout_s``; names card, amount and the
        processes that are on it.
    """
    waited = 0.0
    while True:
        held = {
            uuid: used - before.get(uuid, 0)
            for uuid, used in used_bytes(nvml).items()
            if used - before.get(uuid, 0) > TOLERANCE_BYTES
        }
        if not held:
            return
        if waited >= timeout_s:
            raise BackendError(_complaint([nvml.gpu(uuid) for uuid in held], held, timeout_s))
        sleep(0.25)
        waited += 0.25


def _complaint(gpus: list[Gpu], held: Mapping[str, int], timeout_s: float) -> str:
    parts = []
    for gpu in gpus:
        owners = "processes not known" if gpu.pids is None else f"process ids {list(gpu.pids)}"
        parts.append(f"{gpu.name} ({gpu.uuid}): {held[gpu.uuid] / 1e6:.0f} MB, {owners}")
    return (
        f"card memory was not given back within {timeout_s:.0f} s: {'; '.join(parts)}. "
        "End those processes, or start again"
    )
