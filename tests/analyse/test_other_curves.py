from __future__ import annotations

import attrs
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.analyse.other_curves import (
    ModelShape,
    card,
    cost_bound,
    described,
    idle_until_gflop_s,
    model_shape,
    modelled,
    published,
)
from lab.analyse.roofline import Device, Workload
from lab.errors import InputError
from lab.inputs.gguf_info import gguf_info
from lab.setup.models import embedded_model

GEMMA, QWEN = "Gemma 4 26B-A4B Q4_K_M", "Qwen3-32B Q4_K_M"
CARD = "NVIDIA GeForce RTX 5060 Ti"
SYSTEMS = pd.read_csv(paths.REFERENCE / "verify_cost.csv")["system"].tolist()


def cost(curve, width):
    return curve.ratio(width, 0).value


def test_a_described_mixture_reads_its_active_weights_for_one_token_and_all_in_the_end():
    shape = model_shape(GEMMA)
    share = shape.bits_per_weight / 8
    assert shape.gbytes(1) == pytest.approx(shape.active_b * share)
    assert shape.gbytes(10_000) == pytest.approx(shape.total_b * share)
    dense = model_shape(QWEN)
    assert dense.gbytes(1) == dense.gbytes(64) == pytest.approx(32.8 * 4.9 / 8)


def test_a_dense_model_verifies_free_until_arithmetic_limits_it():
    shape = model_shape(QWEN)
    assert cost(described(shape, card(CARD)), 65) == pytest.approx(1)
    ridge_gflop_s = 16 * idle_until_gflop_s(shape, card(CARD))
    curve = described(shape, card(CARD, gflop_s=ridge_gflop_s))
    assert cost(curve, 16) == pytest.approx(1)
    assert cost(curve, 64) == pytest.approx(4)


@given(st.floats(0.1, 1), st.integers(2, 65))
def test_a_card_without_idle_compute_pays_every_token_in_full(share, width):
    shape = model_shape(QWEN)
    slow = card(CARD, gflop_s=share * idle_until_gflop_s(shape, card(CARD)))
    assert cost(described(shape, slow, widths=(1, width)), width) == pytest.approx(width)


def test_a_mixture_costs_more_than_a_dense_model_and_less_than_its_width():
    mixture, dense = (described(model_shape(name), card(CARD)) for name in (GEMMA, QWEN))
    for width in (2, 9, 49, 65):
        assert cost(dense, width) < cost(mixture, width) < width
    assert "experts evenly" in " ".join(mixture.assumptions)
    assert "Arithmetic never limits" in " ".join(dense.assumptions)


def test_the_articles_own_numbers_leave_no_room_for_a_lack_of_compute():
    table = pd.read_csv(paths.REFERENCE / "article_tables.csv")
    best = table[table["table"] == "repeated_prompt"]["speedup"].max()
    # 65 tokens a pass at most: without idle compute its cost would be 65 one-token passes.
    assert cost_bound(best, 65) < 65 / 4
    shape, one = model_shape(GEMMA), card(CARD)
    assert cost(described(shape, one), 65) < cost_bound(best, 65)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_published_curve_says_what_was_published_and_what_to_believe(system):
    curve = published(system)
    row = pd.read_csv(paths.REFERENCE / "verify_cost.csv").set_index("system").loc[system]
    assert cost(curve, 8) == pytest.approx(row["w8"])
    assert curve.source == row["source"]
    assert curve.ratio(8, 0).low is None
    assert len(curve.assumptions) == 2


@pytest.mark.engine
def test_a_model_file_gets_the_rooflines_curve():
    work = Workload(gguf_info(embedded_model()), depth=256)
    curve = modelled("here", work, [Device("host", 10.0, 100.0)], (1, 8, 64))
    assert cost(curve, 64) == pytest.approx(64 / 8 * cost(curve, 8), rel=0.01)
    with pytest.raises(InputError, match="bandwidth is unknown"):
        modelled("here", work, [Device("host", None)])


def test_what_is_not_listed_is_named_with_what_is():
    with pytest.raises(InputError, match=r"nobody's.*Known: .*MI50"):
        published("nobody's")
    with pytest.raises(InputError, match="is not listed"):
        model_shape("GPT-9")
    shape = ModelShape("x", 1.0, 1.0, None, None, 8.0, "made up")
    with pytest.raises(InputError, match=r"RTX 9999.*gpus\.csv"):
        described(shape, card("RTX 9999"))
    assert described(shape, attrs.evolve(card("RTX 9999"), bandwidth_gb_s=100.0)).draws == 1
