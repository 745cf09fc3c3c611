from __future__ import annotations

import pytest

from lab.errors import InputError
from lab.inputs.gguf_info import gguf_info
from lab.setup.derived import facts
from lab.setup.engine import find_engine
from lab.setup.quantise import LADDER, quantised

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.paths.MODELS", tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture(scope="module")
def engine():
    return find_engine()


@pytest.mark.parametrize("name", LADDER)
def test_every_type_of_the_ladder_can_be_made_without_a_matrix(name, shallow_model, engine):
    made = quantised(shallow_model, name, engine)
    assert gguf_info(made).n_layers == 2
    found = facts(made)
    assert found["quantised"] == name
    assert "a file of Q8_0 and Q4_1 weights" in found["note"]


def test_tensors_that_cannot_have_the_type_are_counted(shallow_model, engine):
    found = facts(quantised(shallow_model, "Q4_K_M", engine))
    assert found["fallback_tensors"] == 12  # rows of 576 are no multiple of 256
    assert "Q5_0" in found["types"]


def test_a_second_call_takes_the_file_that_is_there(shallow_model, engine, monkeypatch):
    first = quantised(shallow_model, "Q8_0", engine)
    monkeypatch.setattr("lab.setup.quantise._quantise", None)
    assert quantised(shallow_model, "q8_0", engine) == first


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("IQ1_S", "importance matrix"),
        ("Q99_0", "not a quantisation type"),
        ("../x", "not a quantisation type"),
    ],
)
def test_a_type_that_cannot_be_made_is_named(name, words, shallow_model, engine, models):
    with pytest.raises(InputError, match=words):
        quantised(shallow_model, name, engine)
    assert not (models / "derived").exists() or list((models / "derived").iterdir()) == []
