"""The same model in other quantisations, made by the engine's own llama-quantize.

Where the source is quantised already (the embedded model is Q4_1), a result holds the
source's rounding and its own: such a ladder compares bytes and speed of the types, not
the quality that each would have if made from full precision.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from lab.errors import InputError, SetupError
from lab.inputs.gguf_file import GgufFile, read_gguf
from lab.setup.derived import keep, recipe_digest
from lab.setup.engine import Engine
from lab.setup.models import sha256_of

LADDER = (
    "Q8_0",
    "Q6_K",
    "Q5_K_M",
    "Q4_K_M",
    "Q4_0",
    "IQ4_NL",
    "IQ4_XS",
    "Q3_K_M",
    "IQ3_S",
    "Q2_K",
)
"""Types from large to small that need no importance matrix."""

UNQUANTISED = frozenset({"F32", "F16", "BF16"})
_NAME = re.compile(r"[A-Z0-9]+(_[A-Z0-9]+)*")
_FALLBACK = re.compile(r"(\d+) of (\d+) tensor\(s\) required fallback")


def quantised(source: Path, type: str, engine: Engine) -> Path:  # noqa: A002 - llama.cpp's word
    """The source in another quantisation ("Q4_K_M"), made when missing.

    The JSON file beside it says which types its tensors really have (a type whose blocks
    do not divide a row falls back to another) and what the source's were.

    Raises
    ------
    InputError : not a type's name, or one that needs an importance matrix.
    SetupError : llama-quantize is missing or failed.
    """
    name = type.upper()
    if _NAME.fullmatch(name) is None:
        raise InputError("is not a quantisation type", field="type", value=type, fix=_known())
    before = read_gguf(source)
    recipe = {"quantised": name, "source_sha256": sha256_of(source), "engine": engine.digest}

    def make(partial: Path, scratch: Path) -> dict[str, Any]:
        said = _quantise(engine, source, partial, name)
        (scratch / "log").write_text(said, encoding="utf-8")
        fallback = _FALLBACK.search(said)
        return {
            **recipe,
            "source": source.name,
            "source_types": _types(before),
            "types": _types(read_gguf(partial)),
            "fallback_tensors": int(fallback[1]) if fallback else 0,
            "note": _note(before),
        }

    return keep(f"{source.stem}.{name}.{recipe_digest(recipe)}.gguf", make)


def _quantise(engine: Engine, source: Path, target: Path, name: str) -> str:
    done = subprocess.run(
        [engine.program("llama-quantize"), "--allow-requantize", source, target, name],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    if done.returncode == 0:
        return said
    if "imatrix" in said and "requires" in said:
        raise InputError(
            "needs an importance matrix, which the lab does not make",
            field="type",
            value=name,
            fix=_known(),
        )
    if "invalid ftype" in said:
        raise InputError("is not a quantisation type", field="type", value=name, fix=_known())
    raise SetupError(f"llama-quantize failed ({done.returncode}): {said.strip()[-400:]}")


def _types(file: GgufFile) -> dict[str, int]:
    """Bytes by tensor type, largest first."""
    found: Counter[str] = Counter()
    for tensor in file.tensors:
        found[tensor.type] += tensor.n_bytes
    return dict(found.most_common())


def _note(before: GgufFile) -> str | None:
    already = [one for one in _types(before) if one not in UNQUANTISED]
    if not already:
        return None
    return (
        f"made from a file of {' and '.join(already)} weights: right for speed and bytes, worse "
        "in quality than the same type made from full precision"
    )


def _known() -> str:
    return f"Take one of {', '.join(LADDER)}"
