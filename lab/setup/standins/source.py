"""The model a stand-in is made of, and whether it can be."""

from __future__ import annotations

from pathlib import Path

from lab.errors import InputError
from lab.inputs.gguf_file import GgufFile, read_gguf
from lab.setup.engine import Engine, find_engine

ARCHITECTURE = "llama"

# Recipe history; raise it when the same recipe gives other bytes:
# 1: first (2026-12)
VERSION = 1


def read_source(source: Path) -> GgufFile:
    """The model to make a stand-in of.

    Raises
    ------
    InputError : not a dense model of the llama architecture in one file.
    """
    file = read_gguf(source)
    problem = _problem(file)
    if problem is not None:
        raise InputError(
            f"no stand-in can be made of it: {problem}",
            file=source,
            fix="Take a dense model of the llama architecture in one file",
        )
    return file


def _problem(file: GgufFile) -> str | None:
    architecture = file.text("general.architecture")
    if architecture != ARCHITECTURE:
        return f"its architecture is {architecture!r}"
    if len(file.parts) > 1:
        return f"it is split into {len(file.parts)} files"
    if file.number(f"{ARCHITECTURE}.expert_count"):
        return "it is a mixture of experts already"
    listed = [key for key, value in file.metadata.items() if isinstance(value, tuple)]
    by_layer = [key for key in listed if key.startswith(f"{ARCHITECTURE}.")]
    return f"{by_layer[0]} differs by layer" if by_layer else None


def label(file: GgufFile) -> str:
    """The name a model gives itself, else the file's."""
    return file.text("general.name") or file.path.stem


def usable_engine(engine: Engine | None) -> Engine | None:
    """The engine that can run in process, to calibrate and to check; None when it cannot."""
    engine = find_engine() if engine is None else engine
    return None if engine.lib_dir is None else engine
