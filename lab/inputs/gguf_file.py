"""The header of a GGUF file: metadata and tensor table, read without touching a weight.

The file is mapped, never loaded, and string arrays (vocabularies of a quarter of a
million entries) are stepped over and kept as a place to come back to. The reader of the
``gguf`` package builds an object for every entry: two seconds and 190 MB for a vocabulary
of 49 152, which is why the lab walks the header itself and takes only the table of block
sizes from there. Format: docs/gguf.md of ggml.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from attrs import frozen
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from lab.errors import InputError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
KEPT_ELEMENTS = 4096
"""Number arrays up to this long (one entry a layer) are read; longer ones are stepped over."""

MAX_DIMS = 4
"""ggml tensors have at most four dimensions."""

_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_SHARD = re.compile(r"^(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$")
_LOOKS_LIKE = (
    (b"PK", "a zip archive; unpack it first"),
    (b"ggml", "the format before GGUF; convert the model again"),
    (b"ggjt", "the format before GGUF; convert the model again"),
    (b"<", "a web page; download the file itself, not the page about it"),
    (b"version https://git-lfs", "a Git LFS pointer; fetch the file it stands for"),
)


@frozen
class Strings:
    """An array of strings left in the file: ``count`` entries between two byte offsets."""

    path: Path
    count: int
    start: int
    end: int

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            file.seek(self.start)
            block = file.read(self.end - self.start)
        position = 0
        for _ in range(self.count):
            (length,) = struct.unpack_from("<Q", block, position)
            position += 8
            yield block[position : position + length]
            position += length


@frozen
class Skipped:
    """A long array of numbers that was stepped over."""

    count: int


Value = str | int | float | bool | tuple[int | float | bool, ...] | Strings | Skipped


@frozen
class Tensor:
    """One tensor of the table.

    Attributes
    ----------
    shape : as stored, fastest dimension first (``ne`` of ggml).
    type : name of its ggml type ("Q4_K", "F32").
    n_bytes : size in the file.
    offset : bytes from the start of the data section.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    n_bytes: int
    offset: int

    @property
    def n_elements(self) -> int:
        """Product of the shape."""
        product = 1
        for extent in self.shape:
            product *= extent
        return product

    @property
    def row_bytes(self) -> int:
        """Bytes of one row, the fastest dimension."""
        return self.n_bytes * self.shape[0] // self.n_elements


@frozen
class GgufFile:
    """Metadata and tensor table of a model, over all parts of a split set.

    Attributes
    ----------
    path : the file named, or the first part. parts : every file of the set, in order.
    file_bytes : size of all parts together.
    """

    path: Path
    parts: tuple[Path, ...]
    file_bytes: int
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]

    def number(self, key: str) -> int | None:
        """An integer of the metadata; None when it is absent or not a single integer."""
        value = self.metadata.get(key)
        return int(value) if isinstance(value, int) else None

    def text(self, key: str) -> str | None:
        """A string of the metadata; None when it is absent or not a string."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None


def read_gguf(path: Path | str) -> GgufFile:
    """Read the header of a model file, and of all parts when it is the first of a set.

    Raises
    ------
    InputError : the path is missing, a directory, not GGUF, cut off, a later part of a
        split set, or a set with parts missing.
    """
    path = Path(path)
    _check_is_file(path)
    first = _read_part(path)
    names = _part_names(path, first.metadata)
    if len(names) == 1:
        return first
    rest = [_read_part(name) for name in names[1:]]
    return GgufFile(
        path=path,
        parts=tuple(names),
        file_bytes=sum(part.file_bytes for part in (first, *rest)),
        metadata=first.metadata,
        tensors=tuple(tensor for part in (first, *rest) for tensor in part.tensors),
    )


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        inside = sorted(file.name for file in path.glob("*.gguf"))[:3]
        fix = f"Name the file inside it: {', '.join(inside)}" if inside else "It holds no .gguf"
        raise InputError("is a directory, not a GGUF file", file=path, fix=fix)
    if not path.exists():
        raise InputError(
            "no such model file", file=path, fix="Check the path, or fetch the model first"
        )


def _part_names(path: Path, metadata: Mapping[str, Value]) -> list[Path]:
    """Every file of a split set, checked to be there; just ``path`` for a single file."""
    named = _SHARD.match(path.name)
    count = metadata.get("split.count", 1)
    declared = count if isinstance(count, int) else 1
    if declared <= 1 and (named is None or int(named["parts"]) == 1):
        return [path]
    total = max(declared, int(named["parts"]) if named else 0)
    if named is None:
        raise InputError(
            f"is part of a set of {total} files but is not named like one",
            file=path,
            fix=f"Give it back its name, NAME-00001-of-{total:05d}.gguf",
        )
    names = [
        path.with_name(f"{named['stem']}-{part:05d}-of-{total:05d}.gguf")
        for part in range(1, total + 1)
    ]
    if int(named["part"]) != 1:
        raise InputError(
            f"is part {int(named['part'])} of {total}", file=path, fix=f"Name {names[0].name}"
        )
    missing = [name.name for name in names if not name.is_file()]
    if missing:
        raise InputError(
            f"{len(missing)} of {total} parts of the set are missing",
            file=path,
            fix=f"Fetch {', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}",  # noqa: PLR2004
        )
    return names


def _read_part(path: Path) -> GgufFile:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(24)
        _check_magic(path, head)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            cursor = _Cursor(view, path)
            try:
                metadata, tensors, data_start = _header(cursor)
            except (struct.error, IndexError) as error:
                raise _cut_off(path, "its own header is not complete") from error
    needed = data_start + max((one.offset + one.n_bytes for one in tensors), default=0)
    if tensors and needed > size:
        raise _cut_off(path, f"its tensors need {needed} bytes and it has {size}")
    return GgufFile(path, (path,), size, metadata, tensors)


def _check_magic(path: Path, head: bytes) -> None:
    if not head:
        raise _cut_off(path, "it is empty")
    if head[:4] != MAGIC:
        known = next((what for start, what in _LOOKS_LIKE if head.startswith(start)), None)
        if known is None and head[8:9] == b"{":
            known = "safetensors; convert it to GGUF first"
        fix = f"It looks like {known}" if known else f"It starts with {head[:4]!r}"
        raise InputError("is not a GGUF file", file=path, fix=fix)
    if len(head) < 24:  # noqa: PLR2004 - magic, version and the two counts
        raise _cut_off(path, "its own header is not complete")
    (version,) = struct.unpack_from("<I", head, 4)
    if version not in VERSIONS:
        swapped = int.from_bytes(head[4:8], "big") in VERSIONS
        fix = (
            "It is written for big-endian machines"
            if swapped
            else f"Versions {VERSIONS} are read; convert the model again"
        )
        raise InputError("GGUF version cannot be read", file=path, value=version, fix=fix)


def _cut_off(path: Path, why: str) -> InputError:
    return InputError(f"is cut off: {why}", file=path, fix="Fetch the file again")


class _Cursor:
    """A position in the mapped file that moves as values are read."""

    def __init__(self, view: mmap.mmap, path: Path) -> None:
        self.view, self.path, self.at = view, path, len(MAGIC)

    def number(self, layout: str) -> int | float | bool:
        (value,) = struct.unpack_from(layout, self.view, self.at)
        self.at += struct.calcsize(layout)
        return value  # type: ignore[no-any-return]

    def count(self, layout: str = "<Q") -> int:
        return int(self.number(layout))

    def step(self, n_bytes: int) -> None:
        self.at += n_bytes
        if self.at > len(self.view):
            raise IndexError(self.at)

    def string(self) -> str:
        length = self.count()
        start = self.at
        self.step(length)
        return self.view[start : self.at].decode("utf-8", errors="replace")

    def value(self, kind: int) -> Value:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array()
        if kind not in _SCALARS:
            raise InputError(
                "metadata type is not known",
                file=self.path,
                value=kind,
                fix="The file is damaged or newer than this reader",
            )
        return self.number(_SCALARS[kind])

    def array(self) -> Value:
        kind, count = self.count("<I"), self.count()
        if kind == _STRING:
            start = self.at
            for _ in range(count):
                self.step(self.count())
            return Strings(self.path, count, start, self.at)
        if kind not in _SCALARS:
            raise InputError("array of arrays in the metadata", file=self.path, value=kind)
        layout = f"<{count}{_SCALARS[kind][1]}"
        start = self.at
        self.step(struct.calcsize(layout))
        if count > KEPT_ELEMENTS:
            return Skipped(count)
        return struct.unpack_from(layout, self.view, start)


def _header(cursor: _Cursor) -> tuple[dict[str, Value], tuple[Tensor, ...], int]:
    cursor.count("<I")
    n_tensors, n_keys = cursor.count(), cursor.count()
    metadata: dict[str, Value] = {}
    for _ in range(n_keys):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.count("<I"))
    rows = [_tensor_row(cursor) for _ in range(n_tensors)]
    data_start = _padded(cursor.at, alignment(metadata))
    return metadata, _sized(rows, len(cursor.view) - data_start), data_start


def alignment(metadata: Mapping[str, Value]) -> int:
    """Bytes that tensors are aligned to in a file with this metadata."""
    stated = metadata.get("general.alignment", 32)
    return stated if isinstance(stated, int) and stated > 0 else 32


def _padded(at: int, step: int) -> int:
    return -(-at // step) * step


def encoded_metadata(file: GgufFile) -> tuple[dict[str, bytes], int]:
    """The metadata of a one-part file as encoded, by key, and the offset of its tensor data.

    For writing another file of the same vocabulary without decoding it.
    """
    with (
        file.path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view,
    ):
        cursor = _Cursor(view, file.path)
        cursor.count("<I")
        n_tensors, n_keys = cursor.count(), cursor.count()
        entries: dict[str, bytes] = {}
        for _ in range(n_keys):
            start = cursor.at
            key = cursor.string()
            cursor.value(cursor.count("<I"))
            entries[key] = view[start : cursor.at]
        for _ in range(n_tensors):
            _tensor_row(cursor)
        return entries, _padded(cursor.at, alignment(file.metadata))


@frozen
class _Row:
    name: str
    shape: tuple[int, ...]
    type_id: int
    offset: int


def _tensor_row(cursor: _Cursor) -> _Row:
    name, n_dims = cursor.string(), cursor.count("<I")
    if n_dims > MAX_DIMS:
        raise InputError("tensor table is damaged", file=cursor.path, field=name, value=n_dims)
    shape = tuple(cursor.count() for _ in range(n_dims))
    return _Row(name, shape, cursor.count("<I"), cursor.count())


def _sized(rows: list[_Row], data_bytes: int) -> tuple[Tensor, ...]:
    """Tensors with their sizes.

    A type newer than the installed table is sized by where the next tensor starts,
    which is exact up to the padding (less than 32 bytes).
    """
    after = dict(pairwise([*sorted(row.offset for row in rows), data_bytes]))
    tensors = []
    for row in rows:
        try:
            kind = GGMLQuantizationType(row.type_id)
        except ValueError:
            n_bytes = max(after[row.offset] - row.offset, 0)
            tensors.append(Tensor(row.name, f"type{row.type_id}", row.shape, n_bytes, row.offset))
            continue
        block, block_bytes = GGML_QUANT_SIZES[kind]
        elements = 1
        for extent in row.shape:
            elements *= extent
        n_bytes = elements // block * block_bytes
        tensors.append(Tensor(row.name, kind.name, row.shape, n_bytes, row.offset))
    return tuple(tensors)
