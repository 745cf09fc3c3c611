"""A background sampler that runs beside a measurement and says what disturbed it.

At 10 samples a second it is meant to use less than one hundredth of a core;
``overhead`` says what it does use.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Self

import psutil

from lab.machine.cpu import SYS_CPU, rapl_counters
from lab.machine.nvml import Nvml
from lab.machine.processes import cpu_seconds, own_tree
from lab.machine.window import PERIOD_S, SLOW_S, SLOW_TICKS, Tick, Tops, summarise

TREE_TICKS = 10
"""The lab's own processes are looked up again every so many samples."""
KEPT = 36_000
"""Samples kept: one hour."""


class Sampler:
    """Samples the machine from ``__enter__`` to ``__exit__``.

    Attributes
    ----------
    reasons : key of a window -> why it is always None here.
    """

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self.period_s = period_s
        self.reasons: dict[str, str] = {}
        self._ticks: deque[Tick] = deque(maxlen=KEPT)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="machine-sampler", daemon=True)
        self._nvml = Nvml()
        self._tops = Tops()
        self._count = 0
        self._tree: frozenset[int] = frozenset()
        self._rapl = _Rapl()
        self._used_s = 0.0
        self._started_s = 0.0

    def __enter__(self) -> Self:
        self._nvml.__enter__()
        if self._nvml.problem is not None:
            self.reasons["gpu"] = self._nvml.problem
        if not self._rapl.counters:
            self.reasons["cpu_energy_j"] = "no readable RAPL counter"
        self._started_s = time.monotonic()
        self._take()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self._nvml.__exit__(*exc)

    @property
    def overhead(self) -> float:
        """CPU time of the sampling thread over time passed, as a fraction of one core."""
        return self._used_s / max(time.monotonic() - self._started_s, 1e-9)

    def window(self, start_s: float, end_s: float) -> Mapping[str, float | None]:
        """What happened between two moments of the monotonic clock, as flat numbers.

        ``cpu_other_fraction``
            hardware threads kept busy by processes that are not the lab's, over all.
        ``cpu_steal_fraction``
            time the hypervisor gave to somebody else, over all.
        ``cpu_clock_drop``, ``gpu_clock_drop``
            share by which the clock fell below the highest seen under load so far.
        ``gpu_throttle_bits``
            every bit seen that means lost performance (machine.throttle).
        ``energy_j``, ``power_w``
            of the GPUs where they count it, else of the processor package.
        ``temperature_c``
            highest of any GPU.
        ``clock_jump_s``
            wall clock against monotonic clock: a suspend, or a clock that was set.

        With several cards the same by UUID ("GPU-...:power_w"). A key is None when it is
        not known; ``reasons`` says why.
        """
        if self._thread.is_alive():
            self._take()
        with self._lock:
            latest = takewhile(lambda tick: tick.at_s >= start_s - SLOW_S, reversed(self._ticks))
            near = list(latest)[::-1] or [self._ticks[-1]]
            tops = self._tops
        return summarise(near, start_s, end_s, tops=tops, uuids=self._nvml.uuids)

    def _run(self) -> None:
        began = time.thread_time()
        while not self._stop.wait(self.period_s):
            self._take()
            self._used_s = time.thread_time() - began

    def _take(self) -> None:
        with self._lock:
            if self._count % TREE_TICKS == 0:
                self._tree = own_tree()
            slow = self._count % SLOW_TICKS == 0
            times = psutil.cpu_times()
            total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
            waiting = times.idle + getattr(times, "iowait", 0.0)
            steal = getattr(times, "steal", 0.0)
            tick = Tick(
                at_s=time.monotonic(),
                wall_s=time.time(),
                busy_s=total - waiting - steal,
                total_s=total,
                steal_s=steal,
                own_s=cpu_seconds(self._tree),
                cpu_energy_j=self._rapl.read(),
                cpu_clock_mhz=_highest_clock_mhz() if slow else None,
                throttle_events=_throttle_events() if slow else None,
                gpus=tuple(self._nvml.sample(uuid) for uuid in self._nvml.uuids),
            )
            self._count += 1
            self._ticks.append(tick)
            self._tops = self._tops.over(tick)


class _Rapl:
    """Package energy that keeps growing although each counter wraps."""

    def __init__(self) -> None:
        self.counters = rapl_counters()
        self._last: dict[Path, float] = {}
        self._sum_j = 0.0

    def read(self) -> float | None:
        if not self.counters:
            return None
        for path, span_j in self.counters:
            try:
                now = int(path.read_text()) / 1e6
            except OSError:
                return None
            before = self._last.get(path, now)
            self._sum_j += now - before if now >= before else now - before + span_j
            self._last[path] = now
        return self._sum_j


def _highest_clock_mhz() -> float | None:
    """Highest core clock now; reading every core of a large machine would disturb it."""
    clocks = []
    for path in sorted(SYS_CPU.glob("cpufreq/policy[0-9]*/scaling_cur_freq"))[:8]:
        try:
            clocks.append(int(path.read_text()) / 1e3)
        except (OSError, ValueError):
            continue
    return max(clocks, default=None)


def _throttle_events() -> float | None:
    path = SYS_CPU / "cpu0/thermal_throttle/package_throttle_count"
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None
