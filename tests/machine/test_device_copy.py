from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import SetupError
from lab.machine.device_copy import device_bandwidth
from lab.setup.engine import find_engine


@pytest.fixture(scope="module")
def lib_dir() -> Path:
    found = find_engine().lib_dir
    assert found is not None
    return found


@pytest.mark.engine
def test_copies_count_reads_and_writes(lib_dir: Path) -> None:
    seen = device_bandwidth(lib_dir, "CPU", mib=8, passes=7)
    assert (seen.device, len(seen.passes_gb_s)) == ("CPU", 7)
    assert seen.low is not None
    assert seen.high is not None
    assert 0 < seen.low <= seen.gb_s <= seen.high


@pytest.mark.engine
def test_case_24_device_the_build_lacks_is_refused(lib_dir: Path) -> None:
    with pytest.raises(SetupError, match=r"'CUDA99' was not measured: no such device; there are"):
        device_bandwidth(lib_dir, "CUDA99", mib=8)


@pytest.mark.engine
def test_too_much_memory_is_refused(lib_dir: Path) -> None:
    with pytest.raises(SetupError, match="could not be had on the device"):
        device_bandwidth(lib_dir, "CPU", mib=2**30)


def test_libraries_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no engine library to load"):
        device_bandwidth(tmp_path)
