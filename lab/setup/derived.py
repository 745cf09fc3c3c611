"""Models made from other models: named by what they are made of, taken only when whole."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab import paths

Make = Callable[[Path, Path], Mapping[str, Any]]
"""Writes the file it is given, using a scratch folder, and says what is worth keeping."""


def recipe_digest(*parts: object) -> str:
    """First 12 hex digits over everything that decides a file's bytes."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def keep(name: str, make: Make) -> Path:
    """The derived model of this name, made now unless it is there.

    A JSON file beside it holds what ``make`` says, its size and how long it took. The
    model gets its name last of all, so a half-written or refused one is never taken.
    """
    folder = paths.MODELS / "derived"
    target = folder / name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder, prefix=".making-") as scratch:
        partial, beside = Path(scratch) / name, Path(scratch) / "facts.json"
        facts = dict(make(partial, Path(scratch)))
        facts |= {
            "file_bytes": partial.stat().st_size,
            "build_s": round(time.monotonic() - started, 1),
        }
        with partial.open("rb") as stream:
            os.fsync(stream.fileno())
        beside.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        beside.replace(facts_file(target))
        partial.replace(target)
    return target


def facts_file(model: Path) -> Path:
    """The JSON file beside a derived model."""
    return model.with_suffix(".json")


def facts(model: Path) -> dict[str, Any] | None:
    """What is kept about a derived model; None for any other file."""
    file = facts_file(model)
    if model.parent != paths.MODELS / "derived" or not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
