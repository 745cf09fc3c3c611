from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from gguf import GGUFWriter

from lab.errors import InputError, SetupError
from lab.inputs.gguf_file import encoded_metadata, read_gguf
from lab.inputs.gguf_info import gguf_info
from lab.setup import standins
from lab.setup.derived import facts
from lab.setup.engine import Engine, find_engine
from lab.setup.standins import check, mixture
from lab.setup.standins.gguf_copy import Copied, NewTensor, Zeros, write_gguf

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    """Stand-ins made by a test are its own."""
    monkeypatch.setattr("lab.paths.MODELS", tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture(scope="module")
def engine():
    return find_engine()


@pytest.fixture
def bare_engine(engine):
    """An engine that cannot be loaded in process."""
    return Engine(engine.bin_dir, None, "xllamacpp", "0", engine.server)


def dense(path, architecture="llama", *, bias=False, experts=0, layers=1):
    writer = GGUFWriter(path, architecture)
    writer.add_uint32(f"{architecture}.block_count", layers)
    writer.add_uint32(f"{architecture}.embedding_length", 4)
    if experts:
        writer.add_uint32(f"{architecture}.expert_count", experts)
    for name in ("attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones((4, 4), np.float32))
    if bias:
        writer.add_tensor("blk.0.ffn_up.bias", np.ones(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_mixture_computes_exactly_what_its_source_does(shallow_model, engine):
    made = standins.moe(shallow_model, experts=8, used=1, engine=engine)
    found = facts(made)["check"]
    assert found["max_abs_logit_difference"] == 0
    assert found["top1_agreement"] == 1
    assert found["identical_for_128_tokens"] == found["prompts"] == 5
    assert found["tokens"] > 5 * 128
    info = gguf_info(made)
    assert (info.experts, info.experts_used) == (8, 1)
    assert "stand-in" in info.name


def test_the_weights_of_several_equal_experts_add_up_to_one(shallow_model, engine):
    found = facts(standins.moe(shallow_model, experts=4, used=2, engine=engine))["check"]
    # A sum of two products rounds otherwise than one; nothing else differs.
    assert found["kl_divergence_nats"] < 1e-3
    assert found["top1_agreement"] > 0.99
    assert [sum(layer) for layer in found["expert_counts"]] == [2 * found["tokens"]] * 2
    assert 0 < found["smallest_expert_share"] < found["largest_expert_share"] < 1


def test_idle_blocks_change_nothing(shallow_model, engine):
    made = standins.deep(shallow_model, factor=3, engine=engine)
    assert facts(made)["check"]["max_abs_logit_difference"] == 0
    assert gguf_info(made).n_layers == 6
    file = read_gguf(made)
    _, data_start = encoded_metadata(file)
    tensors = {one.name: one for one in file.tensors}
    with made.open("rb") as stream:
        for name, is_idle in (("blk.0.attn_output", False), ("blk.1.attn_output", True)):
            tensor = tensors[f"{name}.weight"]
            stream.seek(data_start + tensor.offset)
            assert (stream.read(tensor.n_bytes) == bytes(tensor.n_bytes)) is is_idle


def test_the_same_recipe_is_made_once(shallow_model, engine, monkeypatch):
    first = standins.deep(shallow_model, factor=2, engine=engine)
    monkeypatch.setattr("lab.setup.standins.idle_blocks._write", None)
    assert standins.deep(shallow_model, factor=2, engine=engine) == first


def test_what_computes_something_else_is_thrown_away(shallow_model, engine, models, monkeypatch):
    def wrong(target, file, factor, blocks):
        write_gguf(
            target,
            file,
            [
                NewTensor(
                    one.name,
                    one.type,
                    one.shape,
                    Zeros(one.n_bytes) if one.name == "blk.1.ffn_down.weight" else Copied(one),
                )
                for one in file.tensors
            ],
            texts={},
            counts={},
        )

    monkeypatch.setattr("lab.setup.standins.idle_blocks._write", wrong)
    with pytest.raises(SetupError, match="does not compute what its source does"):
        standins.deep(shallow_model, factor=2, engine=engine)
    assert list((models / "derived").iterdir()) == []


def test_an_interrupted_one_is_never_taken(shallow_model, bare_engine, models, monkeypatch):
    def killed(target, *_):
        target.write_bytes(b"GGUF")
        raise KeyboardInterrupt

    monkeypatch.setattr("lab.setup.standins.idle_blocks._write", killed)
    with pytest.raises(KeyboardInterrupt):
        standins.deep(shallow_model, factor=2, engine=bare_engine)
    assert list((models / "derived").iterdir()) == []


def test_without_libraries_the_file_says_that_nothing_was_checked(shallow_model, bare_engine):
    for made in (
        standins.moe(shallow_model, engine=bare_engine),
        standins.deep(shallow_model, factor=2, engine=bare_engine),
    ):
        found = facts(made)["check"]
        assert found["max_abs_logit_difference"] is None
        assert found["reason"] == check.NO_LIBRARIES


def test_a_file_not_derived_here_has_no_facts(shallow_model, tmp_path):
    assert facts(shallow_model) is None
    copy = tmp_path / "models" / "derived" / "mine.gguf"
    copy.parent.mkdir(parents=True)
    shutil.copy(shallow_model, copy)
    assert facts(copy) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"architecture": "gemma3"}, "architecture is 'gemma3'"),
        ({"experts": 4}, "mixture of experts already"),
    ],
)
def test_what_cannot_be_copied_is_refused(tmp_path, bare_engine, settings, words):
    file = dense(tmp_path / "model.gguf", **settings)
    for make in (standins.moe, standins.deep):
        with pytest.raises(InputError, match=words):
            make(file, engine=bare_engine)


def test_settings_that_make_no_model_are_refused(tmp_path, bare_engine):
    file = dense(tmp_path / "model.gguf", layers=300)
    with pytest.raises(InputError, match="experts_used"):
        standins.moe(file, experts=4, used=5, engine=bare_engine)
    with pytest.raises(InputError, match="600 blocks"):
        standins.deep(file, factor=2, engine=bare_engine)


def test_experts_cannot_carry_a_bias(tmp_path, bare_engine):
    with pytest.raises(InputError, match="has a bias"):
        standins.moe(dense(tmp_path / "model.gguf", bias=True), engine=bare_engine)


def test_calibration_text_is_part_of_the_recipe(shallow_model, engine, monkeypatch):
    monkeypatch.setattr(mixture, "calibration_texts", lambda: ["one"])
    monkeypatch.setattr(check, "calibration_texts", lambda: ["one"])
    first = standins.moe(shallow_model, engine=engine)
    monkeypatch.setattr(mixture, "calibration_texts", lambda: ["two"])
    monkeypatch.setattr(check, "calibration_texts", lambda: ["two"])
    second = standins.moe(shallow_model, engine=engine)
    assert first != second
    assert json.loads(first.with_suffix(".json").read_text())["router"] == "calibrated"
