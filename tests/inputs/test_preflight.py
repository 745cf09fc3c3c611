from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.errors import InputError
from lab.inputs.arm import ServerSettings
from lab.inputs.gguf_info import gguf_info
from lab.inputs.preflight import (
    MemoryNeed,
    check_draft,
    check_fits,
    check_lookup_fits,
    check_settings,
    lookup_logits_bytes,
    memory_need,
    vocabulary_problem,
)

Make = Callable[..., Path]
TOKENS = [f"t{i}" for i in range(100)]


def _pair(make: Make, target: dict[str, Any], draft: dict[str, Any]) -> str | None:
    one = gguf_info(make("target.gguf", **target))
    return vocabulary_problem(one, gguf_info(make("draft.gguf", **draft)))


def test_case_20_same_vocabulary_is_accepted(make_gguf: Make) -> None:
    assert _pair(make_gguf, {}, {}) is None


@pytest.mark.parametrize(
    ("target", "draft", "problem"),
    [
        ({}, {"tokenizer": {"model": "llama"}}, "tokenizer llama against gpt2"),
        (
            {"tokenizer": {"add_bos_token": True, "bos_token_id": 1}},
            {"tokenizer": {"add_bos_token": False, "bos_token_id": 1}},
            "add_bos is False against True",
        ),
        (
            {"tokenizer": {"add_bos_token": True, "bos_token_id": 1}},
            {"tokenizer": {"add_bos_token": True, "bos_token_id": 2}},
            "BOS is token 2 against 1",
        ),
        (
            {"tokenizer": {"add_eos_token": True, "eos_token_id": 3}},
            {"tokenizer": {"add_eos_token": True, "eos_token_id": 4}},
            "EOS is token 4 against 3",
        ),
        ({}, {"tokens": [f"t{i}" for i in range(229)]}, "229 tokens against 100"),
        ({}, {"tokens": [*TOKENS[:50], "x", *TOKENS[51:]]}, "token 50 is another text"),
    ],
)
def test_case_20_mismatch_is_named(
    make_gguf: Make, target: dict[str, Any], draft: dict[str, Any], problem: str
) -> None:
    assert _pair(make_gguf, target, draft) == problem
    with pytest.raises(InputError, match=f"cannot draft for target.gguf: {problem}"):
        check_draft(
            gguf_info(make_gguf("target.gguf", **target)),
            gguf_info(make_gguf("draft.gguf", **draft)),
        )


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ({}, {"tokens": [f"t{i}" for i in range(228)]}),
        ({}, {"tokens": [*(f"u{i}" for i in range(5)), *TOKENS[5:]]}),
        (
            {"tokenizer": {"add_bos_token": False, "bos_token_id": 1}},
            {"tokenizer": {"add_bos_token": False, "bos_token_id": 2}},
        ),
        ({"tokenizer": {"eos_token_id": 3}}, {"tokenizer": {"eos_token_id": 4}}),
    ],
    ids=["padded", "first five", "BOS never added", "EOS never added"],
)
def test_case_20_what_the_engine_tolerates_is_accepted(
    make_gguf: Make, target: dict[str, Any], draft: dict[str, Any]
) -> None:
    assert _pair(make_gguf, target, draft) is None


def test_case_20_draft_larger_than_its_target(
    make_gguf: Make, dense_shapes: dict[str, tuple[int, ...]]
) -> None:
    small = gguf_info(make_gguf("small.gguf"))
    large = gguf_info(
        make_gguf("large.gguf", shapes={**dense_shapes, "blk.1.extra.weight": (999, 999)})
    )
    check_draft(large, small)
    check_draft(small, small)
    with pytest.raises(InputError, match="costs more than decoding without"):
        check_draft(small, large)


def test_case_22_quantised_v_cache_needs_flash_attention() -> None:
    with pytest.raises(InputError, match=r"cache_type_v.*needs flash attention.*flash_attn"):
        check_settings(ServerSettings(cache_type_v="q8_0", flash_attn="off"))
    check_settings(ServerSettings(cache_type_v="q8_0", flash_attn="auto"))
    check_settings(ServerSettings(cache_type_k="q8_0", flash_attn="off"))


@pytest.mark.parametrize("types", [{"cache_type_k": "q8_0"}, {"cache_type_v": "q4_0"}])
def test_case_22_tensor_split_refuses_a_quantised_cache(types: dict[str, str]) -> None:
    with pytest.raises(InputError, match="cannot hold a quantised KV cache"):
        check_settings(ServerSettings(split_mode="tensor", flash_attn="on", **types))
    check_settings(ServerSettings(split_mode="layer", flash_attn="on", **types))


def test_case_22_tensor_split_needs_flash_attention() -> None:
    with pytest.raises(InputError, match="a tensor split needs flash attention"):
        check_settings(ServerSettings(split_mode="tensor", flash_attn="off"))


def test_case_22_shares_must_match_devices() -> None:
    with pytest.raises(InputError, match="3 shares for 2 devices"):
        check_settings(ServerSettings(devices=("CUDA0", "CUDA1"), tensor_split=(1, 1, 1)))


def test_case_22_memory_is_predicted_and_refused(make_gguf: Make) -> None:
    info = gguf_info(make_gguf())
    need = memory_need(info, ServerSettings(n_ctx=4096, ubatch=32), draft=info)
    assert need.weights == info.weight_bytes
    assert need.kv_cache == info.kv_cache_bytes(4096)
    assert need.draft == info.weight_bytes + info.kv_cache_bytes(4096)
    check_fits(need, need.total)
    with pytest.raises(InputError, match=r"needs .* GB of CUDA0 .* are free"):
        check_fits(need, need.total - 1, where="CUDA0")


@pytest.mark.parametrize(
    ("need", "advice"),
    [
        (MemoryNeed(9e9, 1e9, 0, 0), "smaller quantisation"),
        (MemoryNeed(2e9, 9e9, 0, 0), "Lower n_ctx"),
        (MemoryNeed(7e9, 1e9, 2e9, 0), "smaller draft model"),
    ],
)
def test_case_22_advice_is_what_would_help_most(need: MemoryNeed, advice: str) -> None:
    with pytest.raises(InputError, match=advice):
        check_fits(need, 8e9)


def test_case_22_attention_scores_outgrow_logits_without_flash_attention(make_gguf: Make) -> None:
    info = gguf_info(make_gguf())
    with_it = memory_need(info, ServerSettings(n_ctx=1024, flash_attn="on"))
    without = memory_need(info, ServerSettings(n_ctx=1024, flash_attn="off"))
    assert without.compute - with_it.compute == 4 * 512 * (4 * 1024 - 100)


def test_case_23_score_table_is_predicted_and_refused(make_gguf: Make) -> None:
    info = gguf_info(make_gguf())
    assert lookup_logits_bytes(info, 2048) == 2048 * 100 * 4
    check_lookup_fits(info, 2048, free_bytes=2048 * 100 * 4)
    with pytest.raises(InputError, match=r"0\.00 GB of logits for 2048 .* at most 1024"):
        check_lookup_fits(info, 2048, free_bytes=1024 * 100 * 4)
