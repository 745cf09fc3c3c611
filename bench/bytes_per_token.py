"""Bytes read per decoded token against llama-roofline's count on the same file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from bench import Figure
from lab.inputs.gguf_info import gguf_info
from lab.setup.models import embedded_model

KEYS = ("bytes_per_token_vs_llama_roofline",)
PEER = "llama-roofline==0.2.3"


def measure() -> dict[str, Figure]:
    """Ratio of the lab's weights per token to the peer's, minus one; a count, so no interval."""
    model = embedded_model()
    ours, theirs = gguf_info(model).token_bytes().weights, _peer_bytes(model)
    note = f"{ours:.0f} bytes against {theirs}: the row looked up in the table is counted as well"
    ratio = ours / theirs - 1
    return {KEYS[0]: Figure(ratio, ratio, ratio, 1, note)}


def _peer_bytes(model: Path) -> int:
    """What the peer says, from an environment of its own that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([str(programs / "pip"), "install", "--quiet", PEER], check=True)
        words = [str(programs / "llama-roofline"), "inspect", "--json", str(model)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    return int(_find(json.loads(done.stdout), "streamed_bytes"))


def _find(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        return next((found for one in value if (found := _find(one, key)) is not None), None)
    return None
