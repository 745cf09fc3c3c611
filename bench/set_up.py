"""How long a clean checkout takes: environment, engine, and a first measurement."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench import Figure
from lab import paths

KEYS = ("setup_engine_s", "setup_total_s", "smoke_s")


def measure() -> dict[str, Figure]:
    """Clone the committed state, set it up with no cache of ours, run the smoke profile."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        _run(["git", "clone", "-q", str(paths.ROOT), str(clone)], Path(folder))
        started = time.monotonic()
        _run(["make", "setup"], clone)
        ready = time.monotonic()
        _run(["make", "reproduce", "PROFILE=smoke"], clone)
        done = time.monotonic()
        stamp = next((clone / ".engine").glob("*/built.json"))
        engine_s = float(json.loads(stamp.read_text(encoding="utf-8"))["seconds"])
    return {
        "setup_engine_s": Figure(engine_s, note="fetch of the source included"),
        "setup_total_s": Figure(round(ready - started, 1), note="packages from the registry"),
        "smoke_s": Figure(round(done - ready, 1)),
    }


def _run(command: list[str], where: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    subprocess.run(command, cwd=where, env=clean, check=True)
