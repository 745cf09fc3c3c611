from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter

from lab.inputs.gguf_file import read_gguf
from lab.setup.standins.gguf_copy import Copied, Given, NewTensor, Zeros, write_gguf


@pytest.fixture
def source(tmp_path: Path) -> Path:
    writer = GGUFWriter(tmp_path / "source.gguf", "llama")
    writer.add_string("general.name", "source")
    writer.add_uint32("llama.block_count", 1)
    writer.add_token_list(["a", "b", "ünïcode"])
    writer.add_array("llama.odd", [1, 2, 3])
    writer.add_tensor("one", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("two", np.arange(5, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "source.gguf"


def test_an_independent_reader_finds_the_copied_tensors_and_metadata(source, tmp_path):
    file = read_gguf(source)
    one, two = file.tensors
    new = [
        NewTensor("one", one.type, one.shape, Copied(one)),
        NewTensor("two_three_times", two.type, (*two.shape, 3), Copied(two, times=3)),
        NewTensor("nought", one.type, one.shape, Zeros(one.n_bytes)),
        NewTensor("made", "F32", (2,), Given(np.array([7, 8], "<f4").tobytes())),
    ]
    target = tmp_path / "copy.gguf"
    write_gguf(
        target,
        file,
        new,
        texts={"general.name": "a copy"},
        counts={"llama.block_count": 9, "llama.expert_count": 8},
    )

    reader = GGUFReader(target)
    found = {tensor.name: tensor.data for tensor in reader.tensors}
    np.testing.assert_array_equal(found["one"], np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(found["two_three_times"], np.tile(np.arange(5), (3, 1)))
    np.testing.assert_array_equal(found["nought"], np.zeros((2, 3)))
    np.testing.assert_array_equal(found["made"], [7, 8])
    fields = {name: reader.fields[name].contents() for name in reader.fields if "." in name}
    assert fields["general.name"] == "a copy"
    assert fields["llama.block_count"] == 9
    assert fields["llama.expert_count"] == 8
    assert fields["llama.odd"] == [1, 2, 3]
    assert fields["tokenizer.ggml.tokens"] == ["a", "b", "ünïcode"]


def test_every_tensor_starts_on_the_alignment(source, tmp_path):
    file = read_gguf(source)
    new = [NewTensor(f"t{i}", "F16", (5,), Copied(file.tensors[1])) for i in range(4)]
    write_gguf(tmp_path / "copy.gguf", file, new, texts={}, counts={})
    assert [tensor.offset % 32 for tensor in read_gguf(tmp_path / "copy.gguf").tensors] == [0] * 4
