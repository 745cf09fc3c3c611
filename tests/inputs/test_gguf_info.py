from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.inputs.gguf_info import gguf_info
from lab.inputs.layers import CacheTypes, Layer, type_bytes

Make = Callable[..., Path]
Shapes = dict[str, tuple[int, ...]]


def test_tied_table_is_read_whole_as_the_head(make_gguf: Make) -> None:
    info = gguf_info(make_gguf())
    read = info.token_bytes()
    assert info.tied
    assert read.head == 100 * 32 * 4
    assert read.rows == 32 * 4
    assert read.weights == info.weight_bytes + 32 * 4


def test_untied_table_is_read_by_the_row(make_gguf: Make, dense_shapes: Shapes) -> None:
    info = gguf_info(make_gguf(shapes={**dense_shapes, "output.weight": (100, 32)}))
    assert not info.tied
    assert info.token_bytes().weights == info.weight_bytes - 100 * 32 * 4 + 32 * 4


def test_per_layer_embeddings_are_read_by_the_row(make_gguf: Make, dense_shapes: Shapes) -> None:
    plain = gguf_info(make_gguf("a.gguf")).token_bytes()
    table = {**dense_shapes, "per_layer_token_embd.weight": (100, 64)}
    assert gguf_info(make_gguf("b.gguf", shapes=table)).token_bytes().weights == (
        plain.weights + 64 * 4
    )


def _moe(shapes: Shapes) -> Shapes:
    kept = {name: shape for name, shape in shapes.items() if "ffn_" not in name}
    for block in range(2):
        kept[f"blk.{block}.ffn_gate_inp.weight"] = (8, 32)
        for name, shape in {"gate": (64, 32), "up": (64, 32), "down": (32, 64)}.items():
            kept[f"blk.{block}.ffn_{name}_exps.weight"] = (8, *shape)
    return kept


def test_only_the_experts_used_are_read(make_gguf: Make, dense_shapes: Shapes) -> None:
    counts = {"expert_count": 8, "expert_used_count": 2}
    info = gguf_info(make_gguf(settings=counts, shapes=_moe(dense_shapes)))
    all_experts = 2 * 8 * 3 * 64 * 32 * 4
    assert (info.experts, info.experts_used) == (8, 2)
    assert info.token_bytes().experts == all_experts / 4
    assert info.token_bytes(experts_used=8).experts == all_experts
    assert info.token_bytes(experts_used=3.2).experts == pytest.approx(all_experts * 0.4)
    router = 2 * 8 * 32 * 4
    assert info.token_bytes().shared == (2 * (32 + 32 * 32 * 2 + 16 * 32 * 2) * 4 + router + 32 * 4)


def test_top_1_moe_costs_a_dense_token_plus_its_router(
    make_gguf: Make, dense_shapes: Shapes
) -> None:
    dense = gguf_info(make_gguf("d.gguf"))
    counts = {"expert_count": 8, "expert_used_count": 1}
    moe = gguf_info(make_gguf("m.gguf", settings=counts, shapes=_moe(dense_shapes)))
    assert moe.token_bytes().total - dense.token_bytes().total == 2 * 8 * 32 * 4


def test_prediction_blocks_are_not_read(make_gguf: Make, dense_shapes: Shapes) -> None:
    extra = {"blk.2.attn_k.weight": (16, 32), "blk.2.nextn.eh_proj.weight": (32, 64)}
    settings = {"block_count": 3, "nextn_predict_layers": 1}
    info = gguf_info(make_gguf("x.gguf", settings=settings, shapes={**dense_shapes, **extra}))
    assert info.n_layers == 2
    assert info.token_bytes().total == gguf_info(make_gguf("d.gguf")).token_bytes().total
    assert "multi-token-prediction" in info.notes[0]


def test_kv_bytes_follow_depth_and_type(make_gguf: Make) -> None:
    info = gguf_info(make_gguf())
    a_position = 2 * 2 * 8 * 2 * 2  # blocks, kv heads, head size, keys and values, f16
    assert info.token_bytes(100).kv == 100 * a_position
    halved = info.token_bytes(100, cache=CacheTypes(k="q8_0", v="f16")).kv
    assert halved == pytest.approx(100 * a_position * (34 / 32 + 2) / 4)
    assert info.kv_cache_bytes(512) == 512 * a_position


def test_windowed_blocks_read_and_hold_only_their_window(make_gguf: Make) -> None:
    settings = {
        "attention.sliding_window": 16,
        "attention.sliding_window_pattern": [True, False],
    }
    info = gguf_info(make_gguf(architecture="gemma4", settings=settings))
    assert [layer.window for layer in info.layers] == [16, None]
    a_block = 2 * 8 * 2 * 2
    assert info.token_bytes(100).kv == (16 + 100) * a_block
    assert info.kv_cache_bytes(4096, ubatch=64) == (256 + 4096) * a_block


def test_window_pattern_by_architecture_when_the_file_has_none(make_gguf: Make) -> None:
    settings = {"attention.sliding_window": 16, "block_count": 4}
    info = gguf_info(make_gguf(architecture="gemma2", settings=settings))
    assert [layer.window for layer in info.layers] == [16, None, 16, None]


def test_blocks_that_share_a_cache_read_but_hold_none(make_gguf: Make) -> None:
    info = gguf_info(make_gguf(settings={"attention.shared_kv_layers": 1}))
    a_block = 2 * 8 * 2 * 2
    assert info.token_bytes(10).kv == 2 * 10 * a_block
    assert info.kv_cache_bytes(512) == 512 * a_block


def test_recurrent_blocks_have_no_cache(make_gguf: Make, dense_shapes: Shapes) -> None:
    shapes = {name: shape for name, shape in dense_shapes.items() if name != "blk.0.attn_k.weight"}
    info = gguf_info(make_gguf(shapes={**shapes, "blk.0.ssm_out.weight": (32, 32)}))
    assert [layer.kv_heads for layer in info.layers] == [0, 2]
    assert any("recurrent" in note for note in info.notes)


def test_heads_by_block(make_gguf: Make) -> None:
    info = gguf_info(make_gguf(settings={"attention.head_count_kv": [1, 4]}))
    assert [layer.kv_heads for layer in info.layers] == [1, 4]


def test_flops_are_two_a_weight(make_gguf: Make, dense_shapes: Shapes) -> None:
    info = gguf_info(make_gguf())
    matrices = sum(a[0] * a[1] for a in dense_shapes.values() if len(a) == 2)
    assert info.token_flops() == 2 * matrices
    assert info.token_flops(10) - info.token_flops() == 2 * 2 * 10 * (4 * 8 * 2)


def test_vocabulary(make_gguf: Make) -> None:
    texts = [f"t{i}" for i in range(100)]
    one = gguf_info(
        make_gguf("a.gguf", tokenizer={"bos_token_id": 1, "add_bos_token": False})
    ).vocabulary
    assert (one.kind, one.pre, one.size, one.bos_id, one.add_bos, one.add_eos) == (
        "gpt2",
        "smollm",
        100,
        1,
        False,
        None,
    )
    texts[7] = "other"
    two = gguf_info(make_gguf("b.gguf", tokens=texts)).vocabulary
    assert one.sha256() == gguf_info(make_gguf("c.gguf")).vocabulary.sha256() != two.sha256()
    assert one.first_difference(two) == 7
    assert one.first_difference(two, start=8) is None


def test_file_without_a_language_model(make_gguf: Make) -> None:
    with pytest.raises(InputError, match="is not a language model"):
        gguf_info(make_gguf(settings={"block_count": "many"}))


@given(
    positions=st.integers(0, 10_000),
    more=st.integers(0, 10_000),
    window=st.none() | st.integers(1, 4096),
)
def test_kv_bytes_grow_with_depth_up_to_the_window(
    positions: int, more: int, window: int | None
) -> None:
    layer = Layer(0, (), 8, 2, 64, 64, window)
    less, all_of_it = (layer.kv_bytes(n, CacheTypes()) for n in (positions, positions + more))
    assert less <= all_of_it
    if window is not None:
        assert all_of_it <= window * layer.position_bytes(CacheTypes())


def test_type_bytes() -> None:
    assert type_bytes("f16") == 2
    assert type_bytes("q4_0") == 18 / 32
    with pytest.raises(InputError, match=r"no such tensor type \(got 'q9'\)"):
        type_bytes("q9")
