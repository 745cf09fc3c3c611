"""Build llama.cpp once, for both llama-server and llama-cpp-python.

The source is the copy inside the pinned llama-cpp-python source package, so that the
Python binding and the programs are of one commit. A build is cached under a digest of
source, options and compiler; it counts only when its stamp was written, last of all.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from attrs import frozen
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lab import paths
from lab.errors import SetupError
from lab.setup.prebuilt import fetch_prebuilt
from lab.setup.toolkits import Toolkit, choose

PACKAGE = "llama-cpp-python"
TARGETS = (
    "llama-server",
    "llama-bench",
    "llama-batched-bench",
    "llama-quantize",
    "llama-perplexity",
    "ggml-rpc-server",
)
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
    "-DGGML_RPC=ON",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
)
UNITY_HOOK = paths.ROOT / "cmake" / "lab_unity.cmake"
STAMP = "built.json"
LOG_LINES = 30
_STATUS = re.compile(r"\[(\d+)/(\d+)\]")


@frozen
class Recipe:
    """Everything that decides what a build is."""

    source_sha256: str
    options: tuple[str, ...]
    toolkit: str
    compiler: str

    @property
    def digest(self) -> str:
        """Name of the build's folder."""
        parts = (self.source_sha256, *self.options, self.toolkit, self.compiler)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def finished_build(home: Path) -> Path | None:
    """Stamp of the newest finished build under ``home``; None when there is none."""
    stamps = sorted(home.glob(f"*/{STAMP}"), key=lambda file: file.stat().st_mtime)
    wanted = metadata.version(PACKAGE)
    fitting = [file for file in stamps if json.loads(file.read_text())["version"] == wanted]
    return fitting[-1] if fitting else None


def build(home: Path, console: Console) -> Path:
    """Stamp of a finished build for this machine, built now if there is none.

    Without a C++ compiler the prebuilt server of another build takes its place.

    Raises
    ------
    SetupError : no source, nothing prebuilt either, or the compiler failed; says what to do.
    """
    toolkit = choose()
    compiler = _compiler()
    if compiler is None:
        return fetch_prebuilt(home, STAMP, console)
    options = (*OPTIONS, *toolkit.cmake)
    recipe = Recipe(_locked_sha256(), options, toolkit.name, compiler)
    folder = home / recipe.digest
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one(folder, console):
        stamp = folder / STAMP
        if not stamp.exists():
            _make(recipe, folder, toolkit, console)
        return stamp


def _make(recipe: Recipe, folder: Path, toolkit: Toolkit, console: Console) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="source-") as scratch:
        source = fetch_source(Path(scratch))
        fetched = time.monotonic()
        console.print(f"building llama.cpp for {toolkit.name} ({toolkit.reason})")
        unity = True
        try:
            _compile(source, folder / "tree", recipe.options, console, unity=True)
        except SetupError:
            console.print("[yellow]compiling many files as one failed; once more, file by file[/]")
            shutil.rmtree(folder / "tree", ignore_errors=True)
            unity = False
            _compile(source, folder / "tree", recipe.options, console, unity=False)
    _keep_products(folder)
    facts = {
        "version": metadata.version(PACKAGE),
        "source": "built",
        "source_sha256": recipe.source_sha256,
        "options": list(recipe.options),
        "compiler": recipe.compiler,
        "toolkit": toolkit.name,
        "unity": unity,
        "cores": os.cpu_count(),
        "fetch_seconds": round(fetched - started, 1),
        "seconds": round(time.monotonic() - started, 1),
    }
    partial = folder / (STAMP + ".partial")
    partial.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    partial.replace(folder / STAMP)


def _keep_products(folder: Path) -> None:
    """Keep programs and libraries, drop the 300 MB of object files."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    shutil.move(folder / "tree" / "bin", folder / "bin")
    shutil.rmtree(folder / "tree")


def fetch_source(scratch: Path) -> Path:
    """The llama.cpp folder of the pinned source package, checked against the lock's hash.

    Raises
    ------
    SetupError : it could not be fetched or does not have the locked digest.
    """
    version = metadata.version(PACKAGE)
    # The build backend is installed already: without isolation pip need not fetch it anew.
    words = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--no-cache-dir", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *words, "-d", scratch, f"{PACKAGE}=={version}"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"CMAKE_ARGS": "-DLLAMA_BUILD=OFF"},
    )
    packed = next(scratch.glob("llama_cpp_python-*.tar.gz"), None)
    if packed is None:
        raise SetupError(
            f"the source of {PACKAGE} {version} could not be fetched:\n{done.stderr[-800:]}"
        )
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    if digest != _locked_sha256():
        raise SetupError(
            f"{packed.name} has SHA-256 {digest}, requirements.lock says {_locked_sha256()}"
        )
    with tarfile.open(packed) as archive:
        archive.extractall(scratch, filter="data")
    packed.unlink()
    return next(scratch.glob("llama_cpp_python-*")) / "vendor" / "llama.cpp"


def _locked_sha256() -> str:
    lock = (paths.ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = re.search(rf"^{PACKAGE}==\S+ \\\n\s+--hash=sha256:([0-9a-f]{{64}})", lock, re.MULTILINE)
    if found is None:
        raise SetupError(f"requirements.lock holds no hash for {PACKAGE}. Make it anew: make lock")
    return found.group(1)


def _compile(
    source: Path, tree: Path, options: Sequence[str], console: Console, *, unity: bool
) -> None:
    hook = [f"-DCMAKE_PROJECT_INCLUDE={UNITY_HOOK}"] if unity else []
    ninja = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={_program('ninja')}"]
    configure = [_program("cmake"), *ninja, "-S", source, "-B", tree, *options, *hook]
    _watched([str(word) for word in configure], "configuring", tree.with_suffix(".log"), console)
    make = [_program("cmake"), "--build", str(tree), "--target", *TARGETS]
    _watched(make, "compiling", tree.with_suffix(".log"), console)


def _watched(command: list[str], what: str, log: Path, console: Console) -> None:
    """Run a build step with a progress line; its whole output goes to ``log``."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
    )
    tail: list[str] = []
    with (
        log.open("a", encoding="utf-8") as kept,
        Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bars,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as running,
    ):
        task = bars.add_task(what, total=None)
        for line in running.stdout or ():
            kept.write(line)
            tail = [*tail[-LOG_LINES:], line]
            if at := _STATUS.match(line):
                bars.update(task, completed=int(at[1]), total=int(at[2]))
    if running.returncode:
        raise SetupError(f"{what} llama.cpp failed; whole log in {log}:\n{''.join(tail)}")


def _program(name: str) -> str:
    """Path of cmake or ninja in the virtual environment; a system's own may be too old."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise SetupError(f"{name} is missing from the virtual environment: run `make setup`")
    return found


def _compiler() -> str | None:
    """Name and version of the C++ compiler; None where there is none."""
    named = os.environ.get("CXX")
    known = (named, "c++", "g++", "clang++")
    found = next((one for one in known if one and shutil.which(one)), None)
    if found is None:
        return None
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    return f"{done.stdout.splitlines()[0]} on {platform.machine()} {_processor()}"


def _processor() -> str:
    """The engine is compiled for the very processor: another one needs another build."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    flags = re.search(r"^(?:flags|Features)\s*: (.*)$", text, re.MULTILINE)
    return hashlib.sha256(flags[1].encode()).hexdigest()[:8] if flags else "unknown"


@contextmanager
def _only_one(folder: Path, console: Console) -> Iterator[None]:
    """Two builds of the same thing at once would only spoil each other."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            console.print("another process is building this engine; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
