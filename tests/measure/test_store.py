from __future__ import annotations

import errno
import json
import os
import stat
from multiprocessing import get_context

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ResultsError
from lab.measure import store
from lab.measure.records import SCHEMA_VERSION, Output, RequestRecord
from lab.measure.store import RunFolder

RECORD = RequestRecord(
    key="x/s#000",
    run_id="r",
    experiment="x",
    arm="baseline",
    model="target",
    prompt_id="p",
    category="c",
    state="cold",
    role="measure",
    block=0,
    series="s",
    ordinal=0,
    repeat=0,
    started_utc="2026-12-01T00:00:00+00:00",
    status="ok",
    n_predict=8,
    temperature=0.0,
    seed=1,
    ignore_eos=True,
    stream=False,
    accepted_per_position=(3, 2),
    machine={"busy": 0.1, "power_w": None},
)


def numbered(n):
    return evolve(RECORD, key=f"x/s#{n:03d}", ordinal=n)


def test_what_is_written_is_read_back(tmp_path):
    output = Output(RECORD.key, (1, 2), (3,), "a\u2028b \ud7ff")
    with RunFolder(tmp_path / "run") as folder:
        folder.append(RECORD, output)
    with RunFolder(tmp_path / "run") as folder:
        assert list(folder.records()) == [RECORD]
        assert list(folder.outputs()) == [output]
        assert folder.recorded_keys() == {RECORD.key}


@given(cut=st.integers(1, 400))
def test_a_torn_last_line_is_set_aside_and_the_rest_survives(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "run"
    with RunFolder(path) as folder:
        folder.append(numbered(0))
        whole = folder.records_file.stat().st_size
        folder.append(numbered(1))
    size = (path / "records.jsonl").stat().st_size
    os.truncate(path / "records.jsonl", max(whole, size - cut))
    with RunFolder(path) as folder:
        assert folder.recorded_keys() == {"x/s#000"}
        folder.append(numbered(1))
        assert folder.recorded_keys() == {"x/s#000", "x/s#001"}
        assert [one.ordinal for one in folder.records()] == [0, 1]


def test_a_line_that_is_not_json_names_file_and_line(tmp_path):
    with RunFolder(tmp_path / "run") as folder:
        folder.append(RECORD)
    with (tmp_path / "run" / "records.jsonl").open("a") as stream:
        stream.write("not json\n")
    with pytest.raises(ResultsError, match="line 2 is not JSON"):
        RunFolder(tmp_path / "run").recorded_keys()


def test_a_record_of_the_future_is_refused(tmp_path):
    with RunFolder(tmp_path / "run") as folder:
        folder.append(evolve(RECORD, schema_version=SCHEMA_VERSION + 1))
        with pytest.raises(ResultsError, match="Update the lab"):
            list(folder.records())


def _hold(path, ready, leave):
    with RunFolder(path):
        ready.set()
        leave.wait(30)


def test_two_processes_cannot_write_one_run(tmp_path):
    spawn = get_context("spawn")
    ready, leave = spawn.Event(), spawn.Event()
    holder = spawn.Process(target=_hold, args=(tmp_path / "run", ready, leave))
    holder.start()
    try:
        assert ready.wait(30)
        with pytest.raises(ResultsError, match="another process"), RunFolder(tmp_path / "run"):
            pass
    finally:
        leave.set()
        holder.join()


def test_case_31_too_little_space_fails_before_anything_is_measured(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(store.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ResultsError, match="MiB free"), RunFolder(tmp_path / "run"):
        pass


def test_case_31_a_read_only_results_folder_fails_before_anything_is_measured(
    tmp_path, monkeypatch
):
    def refuse(*_args, **_kw):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(store.Path, "mkdir", refuse)
    with pytest.raises(ResultsError, match="Read-only"), RunFolder(tmp_path / "run"):
        pass


def test_a_disk_that_fills_up_harms_nothing_already_written(tmp_path, monkeypatch):
    with RunFolder(tmp_path / "run") as folder:
        folder.append(numbered(0))

        class Full:
            def __init__(self, stream):
                self.stream = stream

            def tell(self):
                return self.stream.tell()

            def write(self, data):
                self.stream.write(bytes(data)[:20])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            def fileno(self):
                return self.stream.fileno()

            def close(self):
                self.stream.close()

        folder._streams[folder.records_file] = Full(folder._streams[folder.records_file])
        with pytest.raises(ResultsError, match="No space left"):
            folder.append(numbered(1))
    with RunFolder(tmp_path / "run") as folder:
        assert folder.recorded_keys() == {"x/s#000"}
        folder.append(numbered(1))
        assert len(list(folder.records())) == 2


def test_many_records_are_one_append(tmp_path):
    with RunFolder(tmp_path / "run") as folder:
        folder.append_many(numbered(n) for n in range(50))
    lines = (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["ordinal"] for line in lines] == list(range(50))
    assert stat.S_ISREG((tmp_path / "run" / "records.jsonl").stat().st_mode)
