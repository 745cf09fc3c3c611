from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import InputError
from lab.measure.experts import Routing, expert_shares, experts_touched, routing
from lab.setup import standins
from lab.setup.engine import find_engine

TEXTS = (
    "The harbour was quiet, and the keeper counted eleven ships before the fog came in.",
    "def area(width, height):\n    return width * height\n\nprint(area(3, 4))\n",
)


def random_routing(seed: int, experts: int, used: int, layers: int, tokens: int) -> Routing:
    draw = np.random.default_rng(seed)
    chosen = draw.random((layers, tokens, experts)).argsort(axis=2)[:, :, :used]
    ids = draw.integers(0, 50, tokens).astype(np.int32)
    return Routing("m", experts, tuple(range(layers)), (ids,), (chosen.astype(np.int16),))


@given(
    seed=st.integers(0, 99),
    used=st.integers(1, 3),
    tokens=st.integers(1, 40),
    width=st.integers(1, 12),
)
@settings(max_examples=60, deadline=None)
def test_distinct_experts_are_counted_as_sets_count_them(seed, used, tokens, width):
    found = random_routing(seed, 6, used, 2, tokens)
    frame = experts_touched(found, [width])
    assert len(frame) == 2 * (tokens // width)
    for row in frame.itertuples():
        part = slice(row.place * width, (row.place + 1) * width)
        assert row.experts == len(set(found.chosen[0][row.layer, part].ravel().tolist()))
        assert row.tokens == len(set(found.tokens[0][part].tolist()))


def test_even_routing_touches_what_the_formula_expects():
    found = random_routing(1, 8, 1, 4, 8000)
    frame = experts_touched(found, [2, 8]).groupby("width")["experts"].mean()
    for width in (2, 8):
        assert frame[width] == pytest.approx(8 * (1 - (1 - 1 / 8) ** width), rel=0.02)


def test_a_text_shorter_than_the_pass_gives_none():
    assert experts_touched(random_routing(1, 8, 1, 1, 5), [6]).empty


def test_shares_add_up_to_one_a_layer():
    shares = expert_shares(random_routing(3, 8, 2, 3, 500))
    assert len(shares) == 24
    assert shares.groupby("layer")["share"].sum().to_list() == pytest.approx([1, 1, 1])


@pytest.fixture(scope="module")
def mixture(shallow_model, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.paths.MODELS", tmp_path_factory.mktemp("models"))
        return standins.moe(shallow_model, experts=4, used=2, engine=find_engine())


@pytest.mark.engine
def test_every_token_of_every_layer_is_seen(mixture):
    found = routing(find_engine(), mixture, TEXTS)
    assert (found.experts, found.used, found.layers) == (4, 2, (0, 1))
    for tokens, chosen in zip(found.tokens, found.chosen, strict=True):
        assert chosen.shape == (2, len(tokens), 2)
        assert (chosen[:, :, 0] != chosen[:, :, 1]).all()
        assert set(chosen.ravel().tolist()) <= {0, 1, 2, 3}


@pytest.mark.engine
def test_where_a_token_goes_does_not_depend_on_the_width_of_its_pass(mixture):
    wide = routing(find_engine(), mixture, TEXTS)
    narrow = routing(find_engine(), mixture, TEXTS, pass_tokens=5)
    for one, other in zip(wide.chosen, narrow.chosen, strict=True):
        assert (np.sort(one) == np.sort(other)).mean() > 0.98


@pytest.mark.engine
def test_a_dense_model_has_nothing_to_watch(shallow_model):
    with pytest.raises(InputError, match="dense model"):
        routing(find_engine(), shallow_model, TEXTS)
