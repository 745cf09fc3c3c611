from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.errors import InputError
from lab.inputs.gguf_info import GgufInfo, gguf_info
from lab.inputs.placement import HOST, Split, place

Make = Callable[..., Path]
TWO = ("A", "B")


@pytest.fixture
def info(make_gguf: Make, dense_shapes: dict[str, tuple[int, ...]]) -> GgufInfo:
    return gguf_info(make_gguf(shapes={**dense_shapes, "output.weight": (100, 32)}))


def test_thirty_blocks_are_placed_as_the_engine_logs_them() -> None:
    """The boundaries llama.cpp logged for SmolLM2 over two RPC devices."""
    even, uneven = Split(TWO, (1, 1)).owners(30), Split(TWO, (3, 1)).owners(30)
    assert (even.index("B"), uneven.index("B")) == (16, 24)
    assert even[-1] == uneven[-1] == "B"


def test_blocks_kept_off_the_devices_stay_with_the_host() -> None:
    owners = Split(TWO, (1, 1), n_gpu_layers=4).owners(10)
    assert owners == [HOST] * 7 + ["A", "A", "B", "B"]
    assert Split(TWO, n_gpu_layers=0).owners(2) == [HOST] * 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shares=st.tuples(st.floats(0.05, 10), st.floats(0.05, 10)),
    mode=st.sampled_from(["none", "layer", "row"]),
    depth=st.integers(0, 500),
)
def test_devices_together_read_what_the_model_reads(
    info: GgufInfo, shares: tuple[float, float], mode: str, depth: int
) -> None:
    parts = place(info, Split(TWO, shares, mode), depth=depth)
    assert sum(part.token_bytes for part in parts) == pytest.approx(info.token_bytes(depth).total)
    assert sum(part.token_flops for part in parts) == pytest.approx(info.token_flops(depth))
    assert sum(part.weight_bytes for part in parts) == pytest.approx(info.weight_bytes)
    assert sum(part.kv_cache_bytes for part in parts) == pytest.approx(info.kv_cache_bytes(2048))


def test_tensor_split_repeats_norms_and_cuts_the_cache(info: GgufInfo) -> None:
    one, two, host = place(info, Split(TWO, (3, 1), "tensor"), depth=8)
    norms = 3 * 32 * 4
    whole = info.token_bytes(8)
    matrices = whole.total - whole.rows - norms
    assert one.token_bytes == pytest.approx(0.75 * matrices + norms)
    assert two.token_bytes == pytest.approx(0.25 * matrices + norms)
    assert one.kv_cache_bytes == 3 * two.kv_cache_bytes
    assert host.token_bytes == whole.rows


def test_a_tied_head_is_held_twice_and_read_once(make_gguf: Make) -> None:
    tied = gguf_info(make_gguf("tied.gguf"))
    parts = place(tied, Split(("A",)))
    table = 100 * 32 * 4
    assert sum(part.weight_bytes for part in parts) == tied.weight_bytes + table
    assert sum(part.token_bytes for part in parts) == tied.token_bytes().total


def test_without_devices_the_host_has_all(info: GgufInfo) -> None:
    (host,) = place(info, Split())
    assert (host.device, host.blocks, host.output) == (HOST, (0, 1), True)
    assert host.weight_bytes == info.weight_bytes


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"shares": (1.0,)}, "1 shares for 2 devices"),
        ({"shares": (0.0, 0.0)}, "shares add up to nothing"),
        ({"mode": "diagonal"}, "no such split mode"),
    ],
)
def test_impossible_splits_are_refused(parts: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Split(TWO, **parts)  # type: ignore[arg-type]
