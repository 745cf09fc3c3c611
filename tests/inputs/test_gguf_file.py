from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf import GGUFReader

from lab.errors import InputError
from lab.inputs.gguf_file import Strings, read_gguf
from lab.inputs.gguf_info import gguf_info

Make = Callable[..., Path]


def test_agrees_with_the_reference_reader(make_gguf: Make) -> None:
    path = make_gguf()
    ours, theirs = read_gguf(path), GGUFReader(path)
    assert {t.name: (t.type, t.n_bytes) for t in ours.tensors} == {
        t.name: (t.tensor_type.name, t.n_bytes) for t in theirs.tensors
    }
    keys = set(theirs.fields) - {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count"}
    assert set(ours.metadata) == keys
    tokens = ours.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, Strings)
    assert [one.decode() for one in tokens] == theirs.fields["tokenizer.ggml.tokens"].contents()


def test_case_21_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.gguf: no such model file"):
        read_gguf(tmp_path / "nothing.gguf")


def test_case_21_directory_names_what_is_inside(make_gguf: Make, tmp_path: Path) -> None:
    make_gguf("inside.gguf")
    with pytest.raises(InputError, match=r"is a directory.*inside\.gguf"):
        read_gguf(tmp_path)


@pytest.mark.parametrize(
    ("start", "hint"),
    [
        (b"PK\x03\x04", "zip archive"),
        (b"<!doctype html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        (b"\x10\0\0\0\0\0\0\0{", "safetensors"),
        (b"XXXX", "It starts with b'XXXX'"),
    ],
)
def test_case_21_wrong_magic_says_what_it_looks_like(
    tmp_path: Path, start: bytes, hint: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(start + bytes(64))
    with pytest.raises(InputError, match=f"is not a GGUF file.*{hint}"):
        read_gguf(path)


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.05, 0.5, 0.999])
def test_case_21_truncated_at_any_point(make_gguf: Make, share: float) -> None:
    path = make_gguf()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match=r"is cut off: .*Fetch the file again"):
        read_gguf(path)


def test_case_21_truncated_says_how_much_is_there(make_gguf: Make) -> None:
    path = make_gguf()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=f"need {len(whole)} bytes and it has {len(whole) - 1}"):
        read_gguf(path)


def test_case_21_vocabulary_only(make_gguf: Make) -> None:
    with pytest.raises(InputError, match="holds only a vocabulary, no weights"):
        gguf_info(make_gguf("vocab.gguf", shapes={}))


def test_case_21_versions_and_byte_order(make_gguf: Make) -> None:
    path = make_gguf()
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + struct.pack("<I", 1) + whole[8:])
    with pytest.raises(InputError, match=r"version cannot be read \(got 1\).*convert"):
        read_gguf(path)
    path.write_bytes(whole[:4] + struct.pack(">I", 3) + whole[8:])
    with pytest.raises(InputError, match="big-endian"):
        read_gguf(path)


def test_case_21_split_set_is_read_as_one(make_gguf: Make) -> None:
    names = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    make_gguf(names[1], shapes={"blk.1.attn_k.weight": (16, 32)})
    first = make_gguf(names[0], shapes={"blk.0.attn_k.weight": (16, 32)})
    file = read_gguf(first)
    assert [part.name for part in file.parts] == names
    assert {tensor.name for tensor in file.tensors} == {
        "blk.0.attn_k.weight",
        "blk.1.attn_k.weight",
    }
    assert file.file_bytes == sum(part.stat().st_size for part in file.parts)


def test_case_21_split_set_with_a_part_missing(make_gguf: Make) -> None:
    first = make_gguf("m-00001-of-00003.gguf")
    make_gguf("m-00003-of-00003.gguf")
    with pytest.raises(InputError, match=r"1 of 3 parts.*m-00002-of-00003\.gguf"):
        read_gguf(first)


def test_case_21_later_part_of_a_split_set(make_gguf: Make) -> None:
    make_gguf("m-00001-of-00002.gguf")
    second = make_gguf("m-00002-of-00002.gguf")
    with pytest.raises(InputError, match=r"is part 2 of 2\. Name m-00001-of-00002\.gguf"):
        read_gguf(second)


@pytest.mark.parametrize("name", ["a b.gguf", "a=b.gguf", "Größe 模型.gguf", "-m.gguf"])
def test_case_21_unusual_paths_are_read(make_gguf: Make, name: str) -> None:
    path = make_gguf(name)
    assert gguf_info(path).path == path


def test_unknown_tensor_type_is_sized_by_the_next_offset(make_gguf: Make) -> None:
    path = make_gguf(shapes={"blk.0.attn_q.weight": (32, 32), "blk.0.attn_k.weight": (16, 32)})
    whole = bytearray(path.read_bytes())
    at = whole.index(b"blk.0.attn_q.weight") + len("blk.0.attn_q.weight") + 4 + 16
    whole[at : at + 4] = struct.pack("<I", 77)
    path.write_bytes(whole)
    tensor = read_gguf(path).tensors[0]
    assert (tensor.type, tensor.n_bytes) == ("type77", 32 * 32 * 4)
