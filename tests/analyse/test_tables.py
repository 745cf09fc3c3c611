from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import cattrs
import pandas as pd
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse import tables
from lab.analyse.tables import (
    REJECTED_AT_MOST,
    measured,
    read_frame,
    read_frame_leniently,
    write_parquet,
)
from lab.errors import ResultsError
from lab.measure.records import SCHEMA_VERSION, RequestRecord

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
    predicted_n=11,
    predicted_ms=100.0,
    machine={"cpu_other_fraction": 0.01, "power_w": None},
)


def write(tmp_path, *records, tail=""):
    file = tmp_path / "records.jsonl"
    lines = [json.dumps(cattrs.unstructure(one)) + "\n" for one in records]
    file.write_text("".join(lines) + tail)
    return file


def numbered(n, **changes):
    return evolve(RECORD, key=f"x/s#{n:03d}", **changes)


def test_a_record_becomes_a_row_with_its_metrics(tmp_path):
    frame = read_frame(write(tmp_path, numbered(0), numbered(1, accepted_per_position=(2, 1))))
    assert frame["decode_tok_s"].tolist() == [100, 100]
    assert frame["machine_cpu_other_fraction"].tolist() == [0.01, 0.01]
    assert frame["draft_n"].isna().all()


def test_an_empty_file_is_an_empty_frame_with_all_columns(tmp_path):
    frame = read_frame(write(tmp_path))
    assert len(frame) == 0
    assert "decode_tok_s" in frame


def test_a_torn_last_line_is_left_out(tmp_path):
    frame = read_frame(write(tmp_path, numbered(0), tail='{"key": "x/s#001", "run'))
    assert frame["key"].tolist() == ["x/s#000"]


def test_a_key_that_occurs_twice_is_said_and_the_first_counts(tmp_path):
    file = write(tmp_path, numbered(0), numbered(0, predicted_ms=50.0))
    with pytest.raises(ResultsError, match="occurs twice"):
        read_frame(file)
    frame, rejected = read_frame_leniently(file)
    assert frame["predicted_ms"].tolist() == [100.0]
    assert [one.key for one in rejected] == ["x/s#000"]


def test_a_future_record_is_rejected_and_the_others_kept(tmp_path):
    file = write(tmp_path, numbered(0), numbered(1, schema_version=SCHEMA_VERSION + 1))
    frame, rejected = read_frame_leniently(file)
    assert frame["key"].tolist() == ["x/s#000"]
    assert "newer lab" in rejected[0].why


def test_an_impossible_value_is_rejected_with_its_key(tmp_path):
    file = write(tmp_path, numbered(0), numbered(1, predicted_ms=-5.0))
    frame, rejected = read_frame_leniently(file)
    assert frame["key"].tolist() == ["x/s#000"]
    assert rejected[0].key == "x/s#001"


def test_case_09_more_accepted_than_drafted_is_kept_as_invalid(tmp_path):
    file = write(tmp_path, numbered(0), numbered(1, draft_n=4, draft_n_accepted=5))
    frame = read_frame(file)
    assert frame["status"].tolist() == ["ok", "invalid"]
    assert "draft_n_accepted > draft_n" in frame["problem"][1]
    assert pd.isna(frame["decode_tok_s"][1])
    assert len(measured(frame)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "garbage",
        "[1, 2]",
        "null",
        '{"key": "x/s#001"}',
        '{"key": "x/s#001", "schema_version": 1, "predicted_n": "many"}',
        '{"key": "x/s#001", "schema_version": 0}',
        '{"key": null, "schema_version": 1}',
        "\x00",
    ],
)
def test_a_line_that_is_no_record_is_rejected_and_its_neighbours_kept(tmp_path, line):
    file = write(tmp_path, *(numbered(n) for n in range(10, 15)))
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:2], line + "\n", *lines[2:]]))
    frame, rejected = read_frame_leniently(file)
    assert len(frame) == 5
    assert len(rejected) == 1
    with pytest.raises(ResultsError, match=re.escape(rejected[0].why[:30])):
        read_frame(file)


def test_a_file_of_another_kind_is_refused_early(tmp_path):
    file = tmp_path / "records.jsonl"
    file.write_text("what is this\n" * (REJECTED_AT_MOST + 1))
    with pytest.raises(ResultsError, match="JSON lines"):
        read_frame_leniently(file)


@given(st.binary(max_size=300))
def test_any_bytes_give_rows_or_the_labs_own_error(content):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.jsonl"
        file.write_bytes(content)
        try:
            frame, _ = read_frame_leniently(file)
        except ResultsError:
            return
        assert frame.empty


def test_pieces_end_where_lines_do(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_PIECE_BYTES", 300)
    file = write(tmp_path, *(numbered(n, machine={f"m{n}": n, "none": None}) for n in range(7)))
    frame = read_frame(file)
    assert frame["key"].tolist() == [f"x/s#{n:03d}" for n in range(7)]
    assert frame["machine_m3"].dropna().tolist() == [3.0]
    assert str(frame["arm"].dtype) == "category"


def test_labels_are_tuples(tmp_path):
    frame = read_frame(write(tmp_path, numbered(0), numbered(1, labels=("busy", "lost"))))
    assert frame["labels"].tolist() == [(), ("busy", "lost")]


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(ResultsError, match="Run an experiment first"):
        read_frame(tmp_path / "records.jsonl")


def test_what_is_no_json_is_one_clear_error(tmp_path):
    file = tmp_path / "records.jsonl"
    file.write_text("not json\n")
    with pytest.raises(ResultsError, match="JSON lines"):
        read_frame(file)


def test_only_measured_rows_without_a_label_carry_a_headline(tmp_path):
    rows = (
        numbered(0),
        numbered(1),
        numbered(2, labels=("busy",)),
        numbered(3, labels=("cache-hit",)),
        numbered(4, role="warmup"),
        numbered(5, status="timeout"),
    )
    frame = measured(read_frame(write(tmp_path, *rows)))
    assert frame["key"].tolist() == ["x/s#000", "x/s#001"]


def test_a_disturbed_machine_leaves_something_to_pair(tmp_path):
    rows = [numbered(n, labels=("busy",)) for n in range(4)] + [numbered(9, labels=("inactive",))]
    frame = measured(read_frame(write(tmp_path, *rows)))
    assert len(frame) == 4


def test_a_frame_survives_parquet(tmp_path):
    frame = read_frame(write(tmp_path, numbered(0)))
    write_parquet(frame, tmp_path / "t.parquet")
    assert pd.read_parquet(tmp_path / "t.parquet")["key"].tolist() == ["x/s#000"]
