"""Write a GGUF file from the tensors of another, byte for byte, a few megabytes at a time."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from attrs import frozen
from gguf.constants import GGMLQuantizationType

from lab.inputs.gguf_file import GgufFile, Tensor, alignment, encoded_metadata

_CHUNK = 8 << 20
_UINT32, _STRING = 4, 8
_VERSION = 3


@frozen
class Zeros:
    """Bytes that are nought, which is the value 0 in every tensor type of ggml.

    A block of a quantised type is its scale, which is then 0, times its numbers.
    """

    n_bytes: int


@frozen
class Copied:
    """The bytes of a source tensor, ``times`` over."""

    tensor: Tensor
    times: int = 1

    @property
    def n_bytes(self) -> int:
        """Bytes written."""
        return self.tensor.n_bytes * self.times


@frozen
class Given:
    """Bytes made here."""

    data: bytes

    @property
    def n_bytes(self) -> int:
        """Bytes written."""
        return len(self.data)


@frozen
class NewTensor:
    """A tensor to write: ``shape`` fastest dimension first, ``type`` as ggml names it."""

    name: str
    type: str
    shape: tuple[int, ...]
    content: Zeros | Copied | Given


def write_gguf(
    target: Path,
    source: GgufFile,
    tensors: Sequence[NewTensor],
    *,
    texts: dict[str, str],
    counts: dict[str, int],
) -> None:
    """Write ``tensors`` under the metadata of ``source``, with entries replaced or added.

    Parameters
    ----------
    texts, counts : metadata entries that are strings and unsigned numbers.
    """
    entries, data_start = encoded_metadata(source)
    entries |= {key: _entry(key, _STRING, _text(value)) for key, value in texts.items()}
    entries |= {key: _entry(key, _UINT32, struct.pack("<I", n)) for key, n in counts.items()}
    step = alignment(source.metadata)
    with target.open("wb") as sink, source.path.open("rb") as origin:
        sink.write(b"GGUF" + struct.pack("<IQQ", _VERSION, len(tensors), len(entries)))
        sink.writelines(entries.values())
        sink.writelines(_table(tensors, step))
        for tensor in tensors:
            _pad(sink, step)
            _write_content(sink, tensor.content, origin, data_start)
        _pad(sink, step)


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _entry(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value


def _table(tensors: Sequence[NewTensor], step: int) -> Iterable[bytes]:
    offset = 0
    for one in tensors:
        dims = len(one.shape)
        kind = int(GGMLQuantizationType[one.type])
        yield _text(one.name) + struct.pack(f"<I{dims}QIQ", dims, *one.shape, kind, offset)
        offset += -(-one.content.n_bytes // step) * step


def _pad(sink: IO[bytes], step: int) -> None:
    sink.write(b"\0" * (-sink.tell() % step))


def _write_content(
    sink: IO[bytes], content: Zeros | Copied | Given, origin: IO[bytes], data_start: int
) -> None:
    if isinstance(content, Given):
        sink.write(content.data)
    elif isinstance(content, Zeros):
        for size in _pieces(content.n_bytes):
            sink.write(bytes(size))
    else:
        for _ in range(content.times):
            origin.seek(data_start + content.tensor.offset)
            for size in _pieces(content.tensor.n_bytes):
                sink.write(origin.read(size))


def _pieces(n_bytes: int) -> Iterable[int]:
    for start in range(0, n_bytes, _CHUNK):
        yield min(_CHUNK, n_bytes - start)
