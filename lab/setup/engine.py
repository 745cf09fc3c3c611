"""Which llama.cpp is in use: a person's own, the one built here, or a prebuilt one."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import field, frozen
from rich.console import Console

from lab import paths
from lab.errors import SetupError
from lab.setup import build
from lab.setup.clean_environment import scrubbed_environment

NAMED = "LAB_LLAMA_SERVER"
"""Environment variable that names a person's own llama-server."""


_TOLD = ("options", "compiler", "seconds", "toolkit", "package")
"""What a manifest is told of how an engine was made."""


@frozen
class Engine:
    """A llama.cpp on this machine.

    Attributes
    ----------
    bin_dir, lib_dir : where programs and shared libraries are; lib_dir None when a
        named server comes without libraries the lab can load.
    source : "built" here, "named" by a person, or "xllamacpp" (prebuilt, another build).
    digest : of source and options ("built"), of the server file otherwise; names caches.
    options : how it was built, as far as known.
    """

    bin_dir: Path
    lib_dir: Path | None
    source: str
    digest: str
    server: Path
    options: Mapping[str, Any] = field(factory=dict)

    def program(self, name: str) -> Path:
        """A program of this engine ("llama-bench", "llama-quantize", ...).

        Raises
        ------
        SetupError : this engine comes without it.
        """
        if name == "llama-server":
            return self.server
        found = self.bin_dir / name
        if not found.is_file():
            raise SetupError(
                f"{name} is not beside {self.server} (a {self.source} engine). "
                "Unset LLAMA_SERVER to use the engine that the lab builds"
            )
        return found

    @property
    def build(self) -> str:
        """The build string that the server states about itself."""
        return _version(self.server)

    def summary(self) -> dict[str, Any]:
        """What a manifest keeps: build, source, options."""
        return {"build": self.build, "source": self.source, "digest": self.digest, **self.options}


@lru_cache
def _version(server: Path) -> str:
    done = subprocess.run(
        [server, "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(scrubbed_environment().values),
    )
    text = done.stdout + done.stderr
    if done.returncode:
        raise SetupError(f"{server} --version failed ({done.returncode}): {text.strip()[-300:]}")
    found = re.search(r"version: (.+)", text)
    compiler = re.search(r"built with (.+)", text)
    said = [found.group(1) if found else "unknown", compiler.group(1) if compiler else ""]
    return ", ".join(filter(None, said))


def find_engine(server: Path | None = None) -> Engine:
    """The engine to use: ``server``, else the one named by LAB_LLAMA_SERVER, else the built one.

    Raises
    ------
    SetupError : a named server cannot be run, or nothing has been built yet.
    """
    named = server or (Path(text) if (text := os.environ.get(NAMED, "")) else None)
    if named is not None:
        return _named(named)
    stamp = build.finished_build(paths.ENGINE)
    if stamp is None:
        raise SetupError("no engine yet: run `make setup`, or name your own with LLAMA_SERVER=")
    return _from_stamp(stamp)


def ensure_engine(console: Console) -> Engine:
    """The engine to use, built first where there is none.

    Raises
    ------
    SetupError : it cannot be built; says what is missing.
    """
    if os.environ.get(NAMED):
        engine = find_engine()
        console.print(f"engine: your own {engine.server} ({engine.build})")
        return engine
    engine = _from_stamp(build.build(paths.ENGINE, console))
    console.print(f"engine: {engine.source}, {engine.build}")
    return engine


def _named(server: Path) -> Engine:
    if not server.is_file() or not os.access(server, os.X_OK):
        raise SetupError(f"{server} is not a program. Name a llama-server with LLAMA_SERVER=")
    server = server.resolve()
    stat = server.stat()
    beside = [server.parent, server.parent.parent / "lib"]
    libraries = next((d for d in beside if any(d.glob("libllama.*"))), None)
    digest = f"named-{server.name}-{stat.st_size}-{stat.st_mtime_ns}"
    return Engine(server.parent, libraries, "named", digest, server)


def _from_stamp(stamp: Path) -> Engine:
    facts = json.loads(stamp.read_text(encoding="utf-8"))
    bin_dir = stamp.parent / "bin"
    return Engine(
        bin_dir,
        bin_dir if facts["source"] == "built" else None,
        facts["source"],
        stamp.parent.name,
        bin_dir / "llama-server",
        {
            key: facts[key]
            for key in ("options", "compiler", "seconds", "toolkit", "package")
            if key in facts
        },
    )


def library_dir(engine: Engine) -> Path:
    """Where this engine's shared libraries are.

    Raises
    ------
    SetupError : the engine has none, so nothing can run in process.
    """
    if engine.lib_dir is None:
        raise SetupError(
            f"the {engine.source} engine {engine.server} has no shared libraries beside it: the "
            "verify-cost curve, the stand-ins' checks and in-process runs need the built engine"
        )
    return engine.lib_dir


def use_libraries(engine: Engine) -> None:
    """Make ``import llama_cpp`` load this engine's libraries; call before the import.

    Raises
    ------
    SetupError : the engine has no shared libraries.
    """
    os.environ["LLAMA_CPP_LIB_PATH"] = str(library_dir(engine))
