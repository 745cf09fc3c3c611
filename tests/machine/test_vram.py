from __future__ import annotations

from collections.abc import Sequence

import pytest

from lab.errors import BackendError
from lab.machine.nvml import Gpu
from lab.machine.vram import used_bytes, wait_released

MB = 10**6


class _Cards:
    """Stands for an open driver whose card gives memory back reading by reading."""

    def __init__(self, used: Sequence[int | None]) -> None:
        self.used = list(used)

    def gpus(self) -> tuple[Gpu, ...]:
        now = self.used.pop(0) if len(self.used) > 1 else self.used[0]
        return (Gpu("GPU-a", 0, "RTX 5060 Ti", memory_used_bytes=now, pids=(42, 77)),)

    def gpu(self, uuid: str) -> Gpu:
        return self.gpus()[0]


def _wait(used: Sequence[int | None], before: int) -> list[float]:
    slept: list[float] = []
    wait_released(_Cards(used), {"GPU-a": before}, timeout_s=1, sleep=slept.append)  # type: ignore[arg-type]
    return slept


def test_case_25_waits_until_memory_is_back() -> None:
    assert _wait([9000 * MB, 9000 * MB, 520 * MB], before=500 * MB) == [0.25, 0.25]


def test_case_25_stops_with_the_owners_when_it_is_not() -> None:
    with pytest.raises(
        BackendError, match=r"RTX 5060 Ti \(GPU-a\): 8500 MB, process ids \[42, 77\]"
    ):
        _wait([9000 * MB], before=500 * MB)


def test_case_25_card_that_does_not_tell_is_not_waited_for() -> None:
    assert _wait([None], before=0) == []
    assert used_bytes(_Cards([None])) == {}  # type: ignore[arg-type]
