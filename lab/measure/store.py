"""A results folder: append-only records that survive a kill at any byte.

::

    <results>/<profile>/<run id>/
        manifest.json      provenance, and what must match between runs
        records.jsonl      one line a request, numbers only
        outputs.jsonl      token ids and text by the same key
        events.jsonl       what happened besides (launch failures, restarts)
        logs/ notebooks/ figures/ findings/
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import cattrs

from lab.errors import ResultsError
from lab.measure.records import SCHEMA_VERSION, Output, RequestRecord

_CONVERTER = cattrs.Converter()
_NEEDED_BYTES = 256 * 2**20
"""Free space demanded before a run: records, server logs, notebooks and figures."""


class RunFolder:
    """One run's folder, held by one process at a time.

    Raises
    ------
    ResultsError : not writable, too little space, or another process writes to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records_file = path / "records.jsonl"
        self.outputs_file = path / "outputs.jsonl"
        self._streams: dict[Path, IO[bytes]] = {}
        self._lock: IO[str] | None = None

    @property
    def run_id(self) -> str:
        """Name of the folder."""
        return self.path.name

    def folder(self, name: str) -> Path:
        """A sub-folder, made if missing ("logs", "notebooks", "figures", "findings")."""
        sub = self.path / name
        sub.mkdir(parents=True, exist_ok=True)
        return sub

    def __enter__(self) -> Self:
        try:
            self._claim()
        except ResultsError:
            self._release()
            raise
        for file in (self.records_file, self.outputs_file):
            _mend_torn_end(file)
        return self

    def _claim(self) -> None:
        """Take the folder for this process, before anything is measured."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / ".lock").open("a")
            free = shutil.disk_usage(self.path).free
        except OSError as error:
            raise ResultsError(
                f"{self.path}: cannot be written ({error.strerror}). Choose another folder with "
                "RESULTS=, or make this one writable"
            ) from error
        if free < _NEEDED_BYTES:
            raise ResultsError(
                f"{self.path}: only {free / 2**20:.0f} MiB free, {_NEEDED_BYTES / 2**20:.0f} MiB "
                "needed. Free some space before anything is measured"
            )
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ResultsError(
                f"{self.path}: another process is writing to this run. Wait for it, or start a "
                "run of its own"
            ) from error

    def _release(self) -> None:
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def append(self, record: RequestRecord, output: Output | None = None) -> None:
        """Write one record durably; its output first, so no record lacks one.

        Raises
        ------
        ResultsError : the disk refused; nothing already written is harmed.
        """
        if output is not None:
            self._write(self.outputs_file, [_CONVERTER.unstructure(output)])
        self._write(self.records_file, [_CONVERTER.unstructure(record)])

    def append_many(self, records: Iterable[RequestRecord]) -> None:
        """Write several records with one flush to disk; all or a prefix survive a kill."""
        self._write(self.records_file, [_CONVERTER.unstructure(one) for one in records])

    def note(self, event: str, **facts: object) -> None:
        """Keep what happened besides the requests."""
        self._write(self.path / "events.jsonl", [{"event": event, **facts}])

    def _write(self, file: Path, rows: list[Mapping[str, Any]]) -> None:
        if self._lock is None:
            raise ResultsError(f"{self.path}: not open for writing. Use it in a with block")
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        try:
            if file not in self._streams:
                self._streams[file] = file.open("ab", buffering=0)
            stream = self._streams[file]
            start = stream.tell()
            data = memoryview(lines.encode())
            while data:
                data = data[stream.write(data) :]
            os.fsync(stream.fileno())
        except OSError as error:
            _cut_back(file, start if file in self._streams else None)
            raise ResultsError(
                f"{file}: the disk refused a write ({error.strerror}). Free space and run again: "
                "it continues after the last whole record"
            ) from error

    def recorded_keys(self) -> set[str]:
        """Keys of every record already in the folder."""
        return {str(row["key"]) for row in _rows(self.records_file)}

    def records(self) -> Iterator[RequestRecord]:
        """Every record, in the order written."""
        for row in _rows(self.records_file):
            yield read_record(row, self.records_file)

    def outputs(self) -> Iterator[Output]:
        """Every output, in the order written."""
        for row in _rows(self.outputs_file):
            yield _CONVERTER.structure(row, Output)


def read_record(row: Mapping[str, Any], file: Path) -> RequestRecord:
    """A record from its JSON row.

    Raises
    ------
    ResultsError : written by a newer lab, or fields are missing or of another type.
    """
    version = row.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise ResultsError(
            f"{file}: record {row.get('key')!r} has schema_version {version!r}, this lab reads up "
            f"to {SCHEMA_VERSION}. Update the lab to read it"
        )
    try:
        return _CONVERTER.structure(row, RequestRecord)
    except (cattrs.errors.BaseValidationError, TypeError, ValueError, KeyError) as error:
        raise ResultsError(f"{file}: record {row.get('key')!r} cannot be read: {error}") from error


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    if not file.exists():
        return
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return  # a writer was killed inside this line; opening for writing mends it
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ResultsError(f"{file}: line {number} is not JSON: {error}") from error


def _mend_torn_end(file: Path) -> None:
    """Set a torn last line aside: whoever wrote it was killed, the request is asked again."""
    if not file.exists():
        return
    data_end = file.stat().st_size
    with file.open("rb+") as stream:
        whole = _end_of_last_line(stream, data_end)
        if whole == data_end:
            return
        stream.seek(whole)
        torn = stream.read()
        with file.with_suffix(".torn").open("ab") as aside:
            aside.write(torn + b"\n")
        stream.truncate(whole)
        os.fsync(stream.fileno())


def _end_of_last_line(stream: IO[bytes], end: int) -> int:
    step = 1 << 16
    while end > 0:
        start = max(0, end - step)
        stream.seek(start)
        found = stream.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _cut_back(file: Path, size: int | None) -> None:
    """Take back the part of a line that a full disk let through."""
    if size is not None and file.exists() and file.stat().st_size > size:
        os.truncate(file, size)
