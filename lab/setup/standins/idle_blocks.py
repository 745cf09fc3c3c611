"""The deep stand-in: blocks that add nothing between the real ones.

A block whose attention output and feed-forward output projections are nought adds 0 to
the residual stream, so the function is exactly the source's, while every byte of it is
read and every product computed. Its other tensors are copies of the real block before it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lab.errors import InputError
from lab.inputs.gguf_file import GgufFile, Tensor
from lab.setup.derived import keep, recipe_digest
from lab.setup.engine import Engine
from lab.setup.models import sha256_of
from lab.setup.standins import source as sources
from lab.setup.standins.check import NO_LIBRARIES, Check, check_standin, run_source
from lab.setup.standins.gguf_copy import Copied, NewTensor, Zeros, write_gguf

LAYERS_AT_MOST = 512
"""LLAMA_MAX_LAYERS of llama.cpp."""

_BLOCK = re.compile(r"^blk\.(\d+)\.(.+)$")
_OUTPUTS = ("attn_output.", "ffn_down.")


def deep(source: Path, *, factor: int = 5, engine: Engine | None = None) -> Path:
    """A dense model of ``factor`` times the blocks, with the text of ``source``.

    Made when missing; the result is named by a digest of the source and the factor. What
    its check found is in the JSON file beside it.

    Raises
    ------
    InputError : the source is not a dense one-file llama model, or too many blocks result.
    SetupError : the result does not compute what the source does.
    """
    file = sources.read_source(source)
    blocks = (file.number("llama.block_count") or 0) * factor
    if factor < 1 or blocks > LAYERS_AT_MOST:
        raise InputError(
            f"{blocks} blocks result; the engine takes up to {LAYERS_AT_MOST}",
            field="factor",
            value=factor,
        )
    runs = sources.usable_engine(engine)
    recipe = {
        "stand_in": "deep",
        "version": sources.VERSION,
        "source_sha256": sha256_of(source),
        "factor": factor,
    }

    def make(partial: Path, scratch: Path) -> dict[str, Any]:
        _write(partial, file, factor, blocks)
        check = Check(reason=NO_LIBRARIES)
        if runs is not None:
            check = check_standin(runs, run_source(runs, source, scratch), partial)
        return {**recipe, "source": source.name, "check": check.summary()}

    return keep(f"{source.stem}.deep-x{factor}.{recipe_digest(recipe)}.gguf", make)


def _write(target: Path, file: GgufFile, factor: int, blocks: int) -> None:
    tensors = [new for one in file.tensors for new in _repeated(one, factor)]
    write_gguf(
        target,
        file,
        tensors,
        texts={"general.name": f"{sources.label(file)} (stand-in: dense, {factor} times as deep)"},
        counts={"llama.block_count": blocks},
    )


def _repeated(tensor: Tensor, factor: int) -> list[NewTensor]:
    """A source tensor at its new place, and once for every idle block after it."""
    match = _BLOCK.match(tensor.name)
    if match is None:
        return [NewTensor(tensor.name, tensor.type, tensor.shape, Copied(tensor))]
    first, part = int(match[1]) * factor, match[2]
    idle = Zeros(tensor.n_bytes) if part.startswith(_OUTPUTS) else Copied(tensor)
    return [
        NewTensor(
            f"blk.{first + i}.{part}", tensor.type, tensor.shape, idle if i else Copied(tensor)
        )
        for i in range(factor)
    ]
