"""Records to a tidy frame: one row a request, typed columns, every metric, validated."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pyarrow.json as pj
from attrs import frozen

from lab.analyse.metrics import with_metrics
from lab.errors import ResultsError
from lab.measure.records import SCHEMA_VERSION

_TEXT = (
    "key",
    "run_id",
    "experiment",
    "arm",
    "model",
    "prompt_id",
    "category",
    "state",
    "role",
    "series",
    "started_utc",
    "status",
    "problem",
    "stop",
    "output_sha256",
)
_WHOLE = ("block", "ordinal", "repeat", "n_predict", "seed", "schema_version")
_NUMBER = (
    "temperature",
    "prompt_tokens_n",
    "cache_n",
    "prompt_n",
    "prompt_ms",
    "predicted_n",
    "predicted_ms",
    "draft_n",
    "draft_n_accepted",
    "drafted_steps",
    "decode_calls",
    "ttft_ms",
    "e2e_ms",
    "max_chunk_gap_ms",
    "reasoning_n",
)
_FLAG = ("ignore_eos", "stream", "speculation_active")

_ARROW = pa.schema(
    [(name, pa.string()) for name in _TEXT]
    + [(name, pa.int64()) for name in _WHOLE]
    + [(name, pa.float64()) for name in _NUMBER]
    + [(name, pa.bool_()) for name in _FLAG]
    + [("labels", pa.list_(pa.string())), ("accepted_per_position", pa.list_(pa.int64()))]
)

_CATEGORIES = ("experiment", "arm", "model", "category", "state", "role", "status")

SCHEMA = pandera.DataFrameSchema(
    {
        "key": pandera.Column(str, unique=True),
        "arm": pandera.Column(nullable=False),
        "prompt_id": pandera.Column(nullable=False),
        "role": pandera.Column(
            checks=pandera.Check.isin(["measure", "warmup", "filler", "restore"])
        ),
        "state": pandera.Column(checks=pandera.Check.isin(["cold", "warm-other", "warm-same"])),
        "predicted_n": pandera.Column(float, pandera.Check.ge(0), nullable=True),
        "predicted_ms": pandera.Column(float, pandera.Check.ge(0), nullable=True),
        "draft_n": pandera.Column(float, pandera.Check.ge(0), nullable=True),
    },
    strict=False,
)


@frozen
class Rejected:
    """A row that could not be used: its key, and why."""

    key: str
    why: str


def read_frame(file: Path) -> pd.DataFrame:
    """Records as a tidy frame with every metric; see :func:`read_frame_leniently`.

    Raises
    ------
    ResultsError : the file is missing, a row is not readable, or a key occurs twice.
    """
    frame, rejected = read_frame_leniently(file)
    if rejected:
        first = rejected[0]
        more = f" ({len(rejected) - 1} more)" if len(rejected) > 1 else ""
        raise ResultsError(f"{file}: record {first.key!r}: {first.why}{more}")
    return frame


def read_frame_leniently(file: Path) -> tuple[pd.DataFrame, tuple[Rejected, ...]]:
    """The usable rows, and those that are not with the reason.

    A torn last line is left out: its request is asked again when the run resumes. Of a
    key that occurs twice the first row counts, since records are never changed. Machine
    numbers become columns named ``machine_<name>``.

    Raises
    ------
    ResultsError : the file is missing or not JSON lines.
    """
    table = _arrow(file)
    frame = table.drop_columns(["machine"] if "machine" in table.column_names else []).to_pandas()
    frame = pd.concat([frame, _machine_columns(table)], axis=1)
    newer = frame["schema_version"] > SCHEMA_VERSION
    twice = frame["key"].duplicated() & ~newer
    reasons = [
        *(
            Rejected(key, "written by a newer lab; update to read it")
            for key in frame["key"][newer]
        ),
        *(Rejected(key, "this key occurs twice") for key in frame["key"][twice]),
    ]
    frame = frame[~newer & ~twice].reset_index(drop=True)
    for name in _CATEGORIES:
        frame[name] = frame[name].astype("category")
    try:
        SCHEMA.validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as error:
        cases = error.failure_cases.dropna(subset=["index"])
        for index, cell in zip(cases["index"], cases["check"], strict=True):
            reasons.append(Rejected(str(frame["key"].get(index)), f"fails {cell}"))
        frame = frame.drop(index=cases["index"].unique(), errors="ignore").reset_index(drop=True)
    return with_metrics(frame), tuple(reasons)


def _arrow(file: Path) -> pa.Table:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ResultsError(
            f"{file}: no records here ({error.strerror}). Run an experiment first"
        ) from error
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        return _ARROW.empty_table()
    options = pj.ParseOptions(explicit_schema=_ARROW, unexpected_field_behavior="infer")
    blocks = pj.ReadOptions(
        block_size=max(1 << 22, max(map(len, whole[: 1 << 20].split(b"\n"))) * 2)
    )
    try:
        table = pj.read_json(pa.BufferReader(whole), read_options=blocks, parse_options=options)
    except pa.ArrowInvalid as error:
        raise ResultsError(f"{file}: not readable as JSON lines: {error}") from error
    for name in _ARROW.names:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table), _ARROW.field(name).type))
    return table


def _machine_columns(table: pa.Table) -> pd.DataFrame:
    """The sampler's summary, flattened."""
    if "machine" not in table.column_names or not pa.types.is_struct(table["machine"].type):
        return pd.DataFrame(index=range(len(table)))
    flat: pd.DataFrame = table.select(["machine"]).flatten().to_pandas()
    return flat.rename(columns=lambda name: str(name).replace("machine.", "machine_"))


def write_parquet(frame: pd.DataFrame, file: Path) -> None:
    """Keep a frame as Parquet, in one step."""
    partial = file.with_suffix(".partial")
    frame.to_parquet(partial, index=False)
    partial.replace(file)


SOFT_LABELS = frozenset({"busy", "throttled"})
"""Labels of a disturbed machine: such rows are left out while enough others remain."""


def measured(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that may carry a headline: measured, ok, and with no label against them.

    Where a disturbed machine labels more than half of the rows, leaving them out would
    leave nothing to pair; they then stay, and cautions say so.
    """
    rows = frame[(frame["role"] == "measure") & (frame["status"] == "ok")]
    wrong = rows["labels"].map(lambda found: bool(set(found) - SOFT_LABELS))
    rows = rows[~wrong]
    disturbed = rows["labels"].map(len) > 0
    return rows if disturbed.mean() > 0.5 else rows[~disturbed]  # noqa: PLR2004 - half
