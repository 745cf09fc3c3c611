"""How long the eight-expert stand-in takes to make, and how much memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

from bench import Figure
from lab.setup.models import embedded_model

KEYS = ("standin_build_s", "standin_build_rss_mib")
REPEATS = 3

_BUILD = """
import json, resource, sys, time
from pathlib import Path
from lab.setup import standins
start = time.monotonic()
standins.moe(Path(sys.argv[1]))
seconds = time.monotonic() - start
both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
kib = [resource.getrusage(who).ru_maxrss for who in both]
print(json.dumps({"seconds": seconds, "mib": sum(kib) / 1024}))
"""


def measure() -> dict[str, Figure]:
    """Builds from nothing, calibration and check included; memory of the two processes added."""
    runs = [_build() for _ in range(REPEATS)]
    note = "copying, router calibration and the check against the source"
    return {
        key: Figure(
            statistics.median(values), min(values), max(values), REPEATS, f"{note}; {extra}"
        )
        for key, values, extra in (
            (KEYS[0], [run["seconds"] for run in runs], "interval is the range"),
            (KEYS[1], [run["mib"] for run in runs], "peak of parent and of child, added"),
        )
    }


def _build() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as models:
        done = subprocess.run(
            [sys.executable, "-c", _BUILD, str(embedded_model())],
            env={**os.environ, "LAB_MODELS": models},
            check=True,
            capture_output=True,
            text=True,
        )
    found: dict[str, float] = json.loads(done.stdout)
    return found
