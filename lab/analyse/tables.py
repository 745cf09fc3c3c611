"""Records to a tidy frame: one row a request, typed columns, every metric, validated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pyarrow.json as pj
from attrs import frozen

from lab.analyse.metrics import with_metrics
from lab.errors import ResultsError
from lab.measure.records import SCHEMA_VERSION

_CATEGORIES = ("run_id", "experiment", "arm", "model", "category", "state", "role", "status")
_TEXT = (
    "key",
    "prompt_id",
    "series",
    "started_utc",
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
    + [(name, pa.string()) for name in _CATEGORIES]
    + [(name, pa.int64()) for name in _WHOLE]
    + [(name, pa.float64()) for name in _NUMBER]
    + [(name, pa.bool_()) for name in _FLAG]
    + [("labels", pa.list_(pa.string())), ("accepted_per_position", pa.list_(pa.int64()))]
)

_PIECE_BYTES = 1 << 24
"""What is parsed at once: large enough for threads, small beside a million records."""
_BLOCK_BYTES = 1 << 22
REJECTED_AT_MOST = 1000
"""More rows that cannot be read make a file no records file."""

SCHEMA = pandera.DataFrameSchema(
    {
        "key": pandera.Column(str),
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
    ResultsError : the file is missing or holds no JSON lines.
    """
    tables, reasons = _tables(file)
    frame = _frame(tables)
    version, rejected = frame["schema_version"], np.zeros(len(frame), dtype=bool)
    for wrong, why in (
        (version > SCHEMA_VERSION, "written by a newer lab; update to read it"),
        (version.isna() | (version < 1), "has no schema_version that this lab knows"),
        (frame["key"].isna(), "has no key"),
        (frame["key"].duplicated(), "this key occurs twice"),
    ):
        new = wrong.to_numpy() & ~rejected
        reasons += [Rejected(str(key), why) for key in frame["key"][new]]
        rejected |= new
    if rejected.any():
        frame = frame[~rejected].reset_index(drop=True)
    frame["schema_version"] = frame["schema_version"].astype(int)
    try:
        SCHEMA.validate(frame[[*SCHEMA.columns]], lazy=True)
    except pandera.errors.SchemaErrors as error:
        cases = error.failure_cases.dropna(subset=["index"])
        for index, cell in zip(cases["index"], cases["check"], strict=True):
            reasons.append(Rejected(str(frame["key"].get(index)), f"fails {cell}"))
        frame = frame.drop(index=cases["index"].unique(), errors="ignore").reset_index(drop=True)
    return with_metrics(_with_impossible_marked(frame)), tuple(reasons)


def _with_impossible_marked(frame: pd.DataFrame) -> pd.DataFrame:
    """More accepted than drafted is no measurement: the row stays, as invalid."""
    wrong = frame["status"].eq("ok") & (frame["draft_n_accepted"] > frame["draft_n"])
    if not wrong.any():
        return frame
    status = frame["status"].astype(object).mask(wrong, "invalid").astype("category")
    problem = frame["problem"].mask(wrong, "draft_n_accepted > draft_n")
    return frame.assign(status=status, problem=problem)


def _tables(file: Path) -> tuple[list[pa.Table], list[Rejected]]:
    """All rows that are JSON objects with fields of the right types, in pieces."""
    tables, reasons = [_flat(_ARROW.empty_table())], []
    try:
        for piece in _pieces(file):
            for found in _parsed(piece):
                if isinstance(found, Rejected):
                    reasons.append(found)
                else:
                    tables.append(found)
            if len(reasons) > REJECTED_AT_MOST:
                raise ResultsError(f"{file}: record {reasons[0].key!r}: {reasons[0].why}")
    except OSError as error:
        raise ResultsError(
            f"{file}: no records here ({error.strerror}). Run an experiment first"
        ) from error
    return tables, reasons


def _pieces(file: Path) -> Iterator[bytes]:
    """Whole lines, some at a time; what a writer was killed inside is left out."""
    rest = b""
    with file.open("rb") as stream:
        while more := stream.read(_PIECE_BYTES):
            end = more.rfind(b"\n") + 1
            if end:
                yield rest + more[:end]
                rest = more[end:]
            else:
                rest += more


def _parsed(piece: bytes) -> Iterator[pa.Table | Rejected]:
    """Tables of a piece; a line that cannot be read is found by halving."""
    single = piece.count(b"\n") == 1
    blocks = pj.ReadOptions(block_size=len(piece) + 1 if single else _BLOCK_BYTES)
    options = pj.ParseOptions(explicit_schema=_ARROW, unexpected_field_behavior="infer")
    if not piece.strip():
        return
    try:
        yield _flat(
            pj.read_json(pa.BufferReader(piece), read_options=blocks, parse_options=options)
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if single:
            yield Rejected(_key_of(piece), f"not readable as JSON lines: {error}")
            return
        middle = piece.rfind(b"\n", 0, len(piece) // 2 + 1) + 1 or piece.index(b"\n") + 1
        for half in (piece[:middle], piece[middle:]):
            yield from _parsed(half)


def _key_of(line: bytes) -> str:
    """Key of a line as far as it can be told, else its beginning."""
    try:
        return str(json.loads(line)["key"])
    except (ValueError, TypeError, KeyError):
        return line[:40].decode(errors="replace").strip()


def _flat(table: pa.Table) -> pa.Table:
    """The known columns, few-valued ones encoded, and the sampler's numbers beside them."""
    columns = {name: table[name] for name in _ARROW.names}
    for name in _CATEGORIES:
        columns[name] = columns[name].dictionary_encode()
    if "machine" in table.column_names and pa.types.is_struct(table["machine"].type):
        flat = table.select(["machine"]).flatten()
        for name, values in zip(flat.column_names, flat.columns, strict=True):
            columns[name.replace("machine.", "machine_")] = values.cast(pa.float64())
    return pa.table(columns)


def _frame(tables: list[pa.Table]) -> pd.DataFrame:
    """Arrow to pandas; labels become tuples, nearly all of them the same empty one.

    Empties ``tables``, so that each column is let go as soon as it is converted: otherwise
    a million records are held twice.
    """
    whole = pa.concat_tables(tables, promote_options="default").unify_dictionaries()
    tables.clear()
    pa.default_memory_pool().release_unused()
    listed = whole["labels"].combine_chunks()
    labels = np.empty(len(whole), dtype=object)
    labels.fill(())
    for place in np.flatnonzero(listed.value_lengths().fill_null(0).to_numpy()):
        labels[place] = tuple(listed[int(place)].as_py())
    whole = whole.drop_columns(["labels"])
    frame: pd.DataFrame = whole.to_pandas(split_blocks=True, self_destruct=True)
    return frame.assign(labels=labels)


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
    headline = (frame["role"] == "measure") & (frame["status"] == "ok")
    labelled = frame["labels"].map(bool).astype(bool)
    wrong = frame.loc[labelled, "labels"].map(lambda found: bool(set(found) - SOFT_LABELS))
    headline[wrong.index[wrong.astype(bool)]] = False
    mostly_disturbed = labelled[headline].mean() > 0.5  # noqa: PLR2004 - half
    return frame[headline if mostly_disturbed else headline & ~labelled]
