from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.machine import bandwidth
from lab.machine.bandwidth import array_bytes, default_threads, median_interval, read_bandwidth


def test_kernel_reads_every_element() -> None:
    values = np.arange(100_001, dtype=np.uint64)
    assert bandwidth._sum(values) == 100_000 * 100_001 // 2


def test_a_pass_counts_every_byte_of_every_thread_once() -> None:
    seen = read_bandwidth(3, passes=7, n_bytes=3 * 2**16)
    assert seen.pass_bytes == 3 * 2**16
    assert len(seen.passes_gb_s) == 7
    assert seen.low is not None
    assert seen.high is not None
    assert min(seen.passes_gb_s) <= seen.low <= seen.gb_s <= seen.high <= max(seen.passes_gb_s)


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    read_bandwidth(4, passes=1, n_bytes=2**16)
    assert threading.active_count() == before


def test_arrays_are_larger_than_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "cache_sizes", lambda: ({"L3": 2**28}, 2**28))
    memory = SimpleNamespace(available=2**33)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    assert array_bytes() == 2**30
    memory.available = 2**31
    with pytest.raises(InputError, match=r"needs 1074 MB and only 537 MB may be taken"):
        array_bytes()


@pytest.mark.parametrize("parts", [{"threads": 0}, {"threads": 1, "passes": 0}])
def test_nothing_to_do_is_refused(parts: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least one thread"):
        read_bandwidth(**parts)


def test_thread_counts_reach_from_one_to_all() -> None:
    counts = default_threads()
    assert (counts[0], counts[-1]) == (1, psutil.cpu_count())
    assert list(counts) == sorted(set(counts))


@given(values=st.lists(st.floats(0.1, 100), min_size=0, max_size=40))
def test_interval_of_the_median_surrounds_it(values: list[float]) -> None:
    low, high = median_interval(values)
    if len(values) < 6:
        assert (low, high) == (None, None)
    else:
        assert low is not None
        assert high is not None
        assert min(values) <= low <= float(np.median(values)) <= high <= max(values)


def test_interval_covers_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(sum(map(ord, "coverage of a median")))
    for n in (6, 9, 15, 30):
        draws = rng.lognormal(size=(2000, n))
        ends = [median_interval(list(row)) for row in draws]
        covered = np.mean([low <= 1 <= high for low, high in ends])  # type: ignore[operator]
        assert covered > 0.94
