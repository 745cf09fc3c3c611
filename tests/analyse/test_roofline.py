from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse.estimates import Estimate
from lab.analyse.roofline import (
    Device,
    Workload,
    arithmetic_intensity,
    attained_gflop_s,
    attained_share,
    ceiling,
    effective_bandwidth_gb_s,
    expected_experts,
    how_bandwidths_combine,
    pass_bytes,
    pass_ms,
    ridge_width,
    roof,
    verify_cost_model,
    widths_on_roof,
)
from lab.inputs.gguf_file import Tensor
from lab.inputs.gguf_info import GgufInfo
from lab.inputs.layers import Layer
from lab.inputs.placement import Split
from lab.inputs.vocabulary import Vocabulary

N_LAYERS, WIDTH, VOCABULARY = 8, 1024, 4096


def _matrix(name: str, *shape: int) -> Tensor:
    n_bytes = 2
    for extent in shape:
        n_bytes *= extent
    return Tensor(name, "F16", shape, n_bytes, 0)


def _model(experts: int | None = None, used: int | None = None) -> GgufInfo:
    ffn = (
        _matrix("ffn_up.weight", WIDTH, WIDTH)
        if experts is None
        else _matrix("ffn_up_exps.weight", WIDTH, WIDTH, experts)
    )
    layers = tuple(
        Layer(
            index=i,
            tensors=(
                _matrix(f"blk.{i}.attn_q.weight", WIDTH, WIDTH),
                attrs.evolve(ffn, name=f"blk.{i}.{ffn.name}"),
            ),
            heads=8,
            kv_heads=8,
            key_length=128,
            value_length=128,
            window=None,
        )
        for i in range(N_LAYERS)
    )
    outer = (
        _matrix("token_embd.weight", WIDTH, VOCABULARY),
        _matrix("output.weight", WIDTH, VOCABULARY),
    )
    return GgufInfo(
        path=Path("model.gguf"),
        parts=(),
        file_bytes=0,
        weight_bytes=sum(t.n_bytes for la in layers for t in la.tensors)
        + sum(t.n_bytes for t in outer),
        architecture="llama",
        name="model",
        n_layers=N_LAYERS,
        n_blocks=N_LAYERS,
        n_embd=WIDTH,
        n_ctx_train=4096,
        experts=experts,
        experts_used=used,
        tied=False,
        vocabulary=Vocabulary("gpt2", "x", VOCABULARY, 1, 2, add_bos=False, add_eos=False),
        layers=layers,
        outer=outer,
    )


DENSE, MOE = _model(), _model(experts=8, used=1)
TWO = Split(("A", "B"), (1, 1), "layer")


def test_ceiling_is_bandwidth_over_bytes() -> None:
    work = Workload(DENSE, depth=100)
    most = ceiling(work, [Device("host", 50.0, low_gb_s=40.0, high_gb_s=60.0)])
    assert most.value == pytest.approx(50e9 / DENSE.token_bytes(100).total)
    assert most.low == pytest.approx(0.8 * most.value)
    assert most.high == pytest.approx(1.2 * most.value)


def test_case_26_unknown_bandwidth_gives_no_ceiling() -> None:
    most = ceiling(Workload(DENSE), [Device("host", None)])
    assert most.value is None
    assert most.reason == "memory bandwidth of host is unknown"
    assert how_bandwidths_combine(Workload(DENSE), [Device("host", None)]).startswith("The memory")
    assert roof(Device("host", None), (1, 10)).empty
    curve = verify_cost_model(Workload(DENSE), [Device("host", None)], (1, 2))
    assert curve["verify_cost"].isna().all()


def test_case_27_layer_split_bandwidths_do_not_add() -> None:
    cards = [Device("A", 448.0), Device("B", 448.0)]
    work = Workload(DENSE, split=TWO)
    assert effective_bandwidth_gb_s(work, cards) == pytest.approx(448, rel=1e-3)
    assert "take turns: 448 and 448 GB/s give 448 GB/s, not their sum of 896" in (
        how_bandwidths_combine(work, cards)
    )


@pytest.mark.parametrize("mode", ["row", "tensor"])
def test_case_27_row_and_tensor_split_bandwidths_add(mode: str) -> None:
    cards = [Device("A", 448.0), Device("B", 448.0)]
    work = Workload(DENSE, split=attrs.evolve(TWO, mode=mode))
    assert effective_bandwidth_gb_s(work, cards) == pytest.approx(896, rel=1e-3)
    assert f"Under a {mode} split the devices read at once" in how_bandwidths_combine(work, cards)


def test_case_27_unequal_cards_are_held_up_by_the_slower() -> None:
    fast, slow = Device("A", 1008.0), Device("B", 360.0)
    layer = effective_bandwidth_gb_s(Workload(DENSE, split=TWO), [fast, slow])
    tensor = effective_bandwidth_gb_s(
        Workload(DENSE, split=attrs.evolve(TWO, mode="tensor")), [fast, slow]
    )
    assert layer is not None
    assert 360 < layer < 1008
    assert tensor == pytest.approx(720, rel=1e-3)


def test_row_split_still_reads_the_cache_in_turns() -> None:
    cards = [Device("A", 448.0), Device("B", 448.0)]
    split = attrs.evolve(TWO, mode="row")
    shallow, deep = Workload(DENSE, split=split), Workload(DENSE, depth=4096, split=split)
    extra = pass_ms(deep, cards) - pass_ms(shallow, cards)  # type: ignore[operator]
    assert extra == pytest.approx(DENSE.token_bytes(4096).kv / 448e6)


@given(count=st.integers(1, 128), share=st.floats(0.01, 1), width=st.integers(1, 200))
def test_expected_experts(count: int, share: float, width: int) -> None:
    used = max(1.0, share * count)
    touched = expected_experts(count, used, width)
    assert touched is not None
    assert used - 1e-9 <= touched <= min(count, used * width) + 1e-9
    assert expected_experts(count, used, 1) == pytest.approx(used)


def test_dense_verifying_is_free_until_arithmetic_takes_longer() -> None:
    device = [Device("host", 100.0, 995.0)]
    work = Workload(DENSE)
    curve = verify_cost_model(work, device, range(1, 33)).set_index("width")
    ridge = ridge_width(work, device)
    # Two operations for two bytes: the ridge lies at 9.95 operations a byte.
    assert ridge == 10
    assert curve.loc[2, "verify_cost"] == pytest.approx(1, abs=0.001)
    assert (curve.loc[: ridge - 1, "limit"] == "memory").all()
    assert (curve.loc[ridge:, "limit"] == "arithmetic").all()
    assert curve.loc[32, "verify_cost"] == pytest.approx(3.2, rel=0.05)


def test_moe_verifying_reads_more_experts() -> None:
    device = [Device("host", 100.0)]
    curve = verify_cost_model(Workload(MOE), device, (1, 2, 8, 400)).set_index("width")
    assert curve.loc[8, "experts"] == pytest.approx(8 * (1 - (7 / 8) ** 8))
    assert curve.loc[2, "verify_cost"] > 1.2
    whole = MOE.token_bytes(experts_used=8).total / MOE.token_bytes().total
    assert curve.loc[400, "verify_cost"] == pytest.approx(whole, rel=0.05)


@given(width=st.integers(1, 64), more=st.integers(0, 64), depth=st.integers(0, 4096))
def test_wider_passes_never_take_less(width: int, more: int, depth: int) -> None:
    for info in (DENSE, MOE):
        work, devices = Workload(info, depth=depth), [Device("host", 50.0, 300.0)]
        narrow, wide = (pass_ms(work, devices, w) for w in (width, width + more))
        assert narrow is not None
        assert wide is not None
        assert narrow <= wide * (1 + 1e-12)
        assert wide <= narrow * (width + more) / width * (1 + 1e-12)


def test_intensity_of_one_token_and_of_many() -> None:
    work = Workload(DENSE)
    assert arithmetic_intensity(work) == pytest.approx(1, abs=0.01)
    assert arithmetic_intensity(work, 16) == pytest.approx(16, rel=0.01)
    assert pass_bytes(work, 3) - pass_bytes(work) == 2 * 2 * WIDTH


def test_no_ridge_without_an_arithmetic_ceiling_or_within_reach() -> None:
    assert ridge_width(Workload(DENSE), [Device("host", 100.0)]) is None
    assert ridge_width(Workload(DENSE), [Device("host", 1.0, 1e6)]) is None


def _estimate(value: float | None, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate("x", "tok/s", value, low, high, 0.95, 8, reason=None if value else "no runs")


def test_attained_share_takes_the_far_ends() -> None:
    share = attained_share(_estimate(50, 45, 55), _estimate(100, 90, 110))
    assert (share.value, share.low, share.high) == (
        0.5,
        pytest.approx(45 / 110),
        pytest.approx(55 / 90),
    )
    assert attained_share(_estimate(50), _estimate(100, 90, 110)).low is None
    nothing = attained_share(_estimate(None), _estimate(100))
    assert (nothing.value, nothing.reason) == (None, "no runs")


def test_points_lie_under_the_roof_they_were_made_from() -> None:
    device = Device("host", 100.0, attained_gflop_s(DENSE, prefill_tok_s=2000))
    work = Workload(DENSE)
    times = {w: pass_ms(work, [device], w) or 0.0 for w in (1, 4, 64)}
    points = widths_on_roof("model", work, times)
    for _, point in points.iterrows():
        line = min(point["intensity"] * 100.0, device.gflop_s or 0.0)
        assert point["gflop_s"] == pytest.approx(line)
    outline = roof(device, (points["intensity"].min(), points["intensity"].max()))
    assert outline["ridge"].sum() == 1
    assert outline["gflop_s"].is_monotonic_increasing
    (corner,) = outline.loc[outline["ridge"], "intensity"]
    assert corner == pytest.approx((device.gflop_s or 0) / 100)


def test_logits_are_left_out_of_the_arithmetic_ceiling() -> None:
    head = 2 * WIDTH * VOCABULARY
    assert attained_gflop_s(DENSE, 1.0) * 1e9 == DENSE.token_flops() - head
