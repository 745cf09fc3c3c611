from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFWriter

Shapes = Mapping[str, tuple[int, ...]]

SMALL: dict[str, Any] = {
    "block_count": 2,
    "context_length": 512,
    "embedding_length": 32,
    "feed_forward_length": 64,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}

DENSE: dict[str, tuple[int, ...]] = {
    "token_embd.weight": (100, 32),
    "output_norm.weight": (32,),
    **{
        f"blk.{block}.{name}.weight": shape
        for block in range(2)
        for name, shape in {
            "attn_norm": (32,),
            "attn_q": (32, 32),
            "attn_k": (16, 32),
            "attn_v": (16, 32),
            "attn_output": (32, 32),
            "ffn_gate": (64, 32),
            "ffn_up": (64, 32),
            "ffn_down": (32, 64),
        }.items()
    },
}
"""Row-major shapes; a file stores them reversed."""


def write_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    settings: Mapping[str, Any] | None = None,
    shapes: Shapes | None = None,
    tokens: list[str] | None = None,
    tokenizer: Mapping[str, Any] | None = None,
) -> Path:
    """A small model file with F32 zeros; settings are keys below the architecture's name."""
    writer = GGUFWriter(path, architecture)
    for key, value in ({**SMALL, **(settings or {})}).items():
        _add(writer, f"{architecture}.{key}", value)
    for key, value in {"model": "gpt2", "pre": "smollm", **(tokenizer or {})}.items():
        _add(writer, f"tokenizer.ggml.{key}", value)
    writer.add_token_list(tokens if tokens is not None else [f"t{i}" for i in range(100)])
    for name, shape in (DENSE if shapes is None else shapes).items():
        writer.add_tensor(name, np.zeros(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


@pytest.fixture
def make_gguf(tmp_path: Path) -> Callable[..., Path]:
    """Write a small model file under a name: ``make_gguf("draft.gguf", settings={...})``."""

    def make(name: str = "model.gguf", **parts: Any) -> Path:
        return write_gguf(tmp_path / name, **parts)

    return make


@pytest.fixture
def dense_shapes() -> dict[str, tuple[int, ...]]:
    return dict(DENSE)
