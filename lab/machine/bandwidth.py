"""What host memory really sustains: read-only sums over arrays far larger than the caches.

Decoding reads weights and writes almost nothing, so the ceiling that matters is reading.
A copy or a triad would count writes too, and a written line is read first unless the
store bypasses the caches, which makes such figures wrong by up to a third. Each thread
sums its own slice, which it has written first so that the pages lie near it; a pass
counts every byte once. numpy asks the system for large pages, so that the figure is
that of the memory and not of address translation.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numba
import numpy as np
import psutil
from attrs import frozen
from numpy.typing import NDArray
from scipy import stats

from lab.errors import InputError
from lab.machine.cpu import cache_sizes

CACHE_FACTOR = 4
"""Arrays are at least this many times all last-level caches together (as STREAM demands)."""
SMALLEST_BYTES = 512 * 2**20
MEMORY_SHARE = 0.25
"""Most of the free memory that the arrays may take."""
UNKNOWN_CACHE_BYTES = 64 * 2**20
LEVEL = 0.95


@frozen
class Bandwidth:
    """Bytes read a second by a number of threads.

    Attributes
    ----------
    threads : reading at the same time.
    gb_s : median over the passes, 1e9 bytes a second.
    low, high : interval of the median at 95 % (order statistics); None below 6 passes.
    passes_gb_s : every pass, in order.
    pass_bytes : bytes read in one pass.
    """

    threads: int
    gb_s: float
    low: float | None
    high: float | None
    passes_gb_s: tuple[float, ...]
    pass_bytes: int


def array_bytes() -> int:
    """Bytes to read in one pass on this machine.

    Raises
    ------
    InputError : too little memory is free for arrays that the caches cannot hold.
    """
    _, last_level = cache_sizes()
    wanted = max(CACHE_FACTOR * (last_level or UNKNOWN_CACHE_BYTES), SMALLEST_BYTES)
    allowed = psutil.virtual_memory().available * MEMORY_SHARE
    if wanted > allowed:
        raise InputError(
            f"measuring bandwidth needs {wanted / 1e6:.0f} MB and only {allowed / 1e6:.0f} MB "
            "may be taken",
            fix="Free memory first",
        )
    return wanted


def read_bandwidth(
    threads: int, *, passes: int = 15, n_bytes: int | None = None, warm_ups: int = 2
) -> Bandwidth:
    """Measure how fast ``threads`` threads read host memory together.

    A pass is timed from the start of the first thread until the last has finished.

    Raises
    ------
    InputError : fewer than one thread or pass, or too little memory.
    """
    if threads < 1 or passes < 1:
        raise InputError("needs at least one thread and one pass", value=(threads, passes))
    total = array_bytes() if n_bytes is None else n_bytes
    each = total // threads // 8
    team = _Team(threads, each)
    try:
        for _ in range(warm_ups):
            team.read_once()
        seconds = [team.read_once() for _ in range(passes)]
    finally:
        team.dismiss()
    read = each * threads * 8
    rates = tuple(read / 1e9 / one for one in seconds)
    low, high = median_interval(rates)
    return Bandwidth(threads, float(np.median(rates)), low, high, rates, read)


def sustained(thread_counts: Sequence[int] | None = None, *, passes: int = 15) -> Bandwidth:
    """The best of several thread counts by median; powers of two up to all threads when None."""
    counts = thread_counts or default_threads()
    return max((read_bandwidth(one, passes=passes) for one in counts), key=lambda b: b.gb_s)


def default_threads() -> tuple[int, ...]:
    """Thread counts worth trying here: powers of two, all cores and all hardware threads."""
    most = psutil.cpu_count() or 1
    cores = psutil.cpu_count(logical=False) or most
    powers = {2**k for k in range(most.bit_length()) if 2**k <= most}
    return tuple(sorted(powers | {cores, most}))


def median_interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Interval of the median at 95 % or more that assumes no distribution.

    The ends are order statistics, by the binomial count of values below the median;
    (None, None) below 6 values, where no two of them cover 95 %.
    """
    ordered = sorted(values)
    rank = int(stats.binom.ppf((1 - LEVEL) / 2, len(ordered), 0.5))
    return (None, None) if rank < 1 else (ordered[rank - 1], ordered[-rank])


@numba.njit(nogil=True)
def _sum(values: NDArray[np.uint64]) -> np.uint64:
    """Sum a slice; over integers and by index, for then the loop becomes full vector loads."""
    total = np.uint64(0)
    for i in range(values.shape[0]):
        total += values[i]
    return total


class _Team:
    """Threads that keep their slices and read them together at a signal.

    Each takes its own times: the thread that gives the signal may itself be scheduled
    late while all processors are reading.
    """

    def __init__(self, size: int, elements: int) -> None:
        _sum(np.ones(1, dtype=np.uint64))
        self._start = threading.Barrier(size + 1)
        self._end = threading.Barrier(size + 1)
        self._stopping = False
        self._times = np.zeros((size, 2))
        self._members = [
            threading.Thread(target=self._serve, args=(place, elements), daemon=True)
            for place in range(size)
        ]
        for member in self._members:
            member.start()
        self._end.wait()

    def read_once(self) -> float:
        """Seconds from the first thread's start until the last has read its slice."""
        self._start.wait()
        self._end.wait()
        return float(self._times[:, 1].max() - self._times[:, 0].min())

    def dismiss(self) -> None:
        """End the threads and give their slices back."""
        self._stopping = True
        self._start.wait()
        for member in self._members:
            member.join()

    def _serve(self, place: int, elements: int) -> None:
        mine = np.ones(elements, dtype=np.uint64)
        self._end.wait()
        while True:
            self._start.wait()
            if self._stopping:
                return
            began = time.perf_counter()
            _sum(mine)
            self._times[place] = began, time.perf_counter()
            self._end.wait()
