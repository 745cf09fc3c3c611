"""Provenance of a run, and what must match before two runs may be compared."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import cattrs
from attrs import evolve, field, frozen

from lab import paths
from lab.backends.protocol import Identity
from lab.errors import NotComparable, ResultsError

_CONVERTER = cattrs.Converter()

PACKAGES = ("llama-cpp-python", "numpy", "scipy", "pandas", "papermill", "matplotlib")
"""Versions that can change a number or a picture."""


@frozen
class Manifest:
    """What made a run's numbers.

    Attributes
    ----------
    run_id, profile : which run. started_utc : ISO 8601.
    settings : the profile's values, as read.
    host : hardware facts (machine.hardware). quiet : verdict of the quiet-machine check.
    engine : build string, source, options and compiler of the engine.
    models : file name and SHA-256 by model name.
    prompt_sets : fingerprint by set name.
    plans : plan fingerprint by experiment.
    served : identity by "experiment/arm", as found when it was first opened.
    packages : versions. commit : of this project; None outside a checkout.
    """

    run_id: str
    profile: str
    started_utc: str
    settings: Mapping[str, Any]
    host: Mapping[str, Any] = field(factory=dict)
    quiet: Mapping[str, Any] = field(factory=dict)
    engine: Mapping[str, Any] = field(factory=dict)
    models: Mapping[str, Mapping[str, str]] = field(factory=dict)
    prompt_sets: Mapping[str, str] = field(factory=dict)
    plans: Mapping[str, str] = field(factory=dict)
    served: Mapping[str, Identity] = field(factory=dict)
    packages: Mapping[str, str] = field(factory=dict)
    commit: str | None = None

    def with_plan(self, experiment: str, fingerprint: str) -> Manifest:
        """Add an experiment's plan.

        Raises
        ------
        ResultsError : the run already holds another plan of that name.
        """
        known = self.plans.get(experiment)
        if known not in (None, fingerprint):
            raise ResultsError(
                f"run {self.run_id} was begun with another plan of {experiment!r} "
                "(profile, prompts or code changed). Start a new run: make reproduce RUN=new"
            )
        return evolve(self, plans={**self.plans, experiment: fingerprint})

    def with_models(self, models: Mapping[str, Mapping[str, str]]) -> Manifest:
        """Add the models that an experiment uses."""
        return evolve(self, models={**self.models, **models})

    def with_served(self, experiment: str, identities: Mapping[str, Identity]) -> Manifest:
        """Add what served each arm; the first identity of an arm stays."""
        new = {f"{experiment}/{arm}": identity for arm, identity in identities.items()}
        return evolve(self, served={**new, **self.served})


def packages() -> dict[str, str]:
    """Installed versions of the packages that matter to a number."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in PACKAGES
    }


def commit() -> str | None:
    """Commit of the checkout with "+changes" when it differs; None outside a checkout."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(paths.ROOT), *words],  # noqa: S607 - git is where PATH says
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the folder's manifest in one step, so that a kill leaves the old or the new."""
    target, partial = folder / "manifest.json", folder / "manifest.json.partial"
    content = json.dumps(_CONVERTER.unstructure(manifest), indent=1, ensure_ascii=False)
    with partial.open("w", encoding="utf-8") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(target)


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest; None where there is none yet.

    Raises
    ------
    ResultsError : it cannot be read.
    """
    file = folder / "manifest.json"
    if not file.exists():
        return None
    try:
        return _CONVERTER.structure(json.loads(file.read_text(encoding="utf-8")), Manifest)
    except (ValueError, KeyError, TypeError, cattrs.errors.BaseValidationError) as error:
        raise ResultsError(
            f"{file}: cannot be read ({error}). The run needs its manifest"
        ) from error


def differences(a: Manifest, b: Manifest) -> tuple[str, ...]:
    """What keeps two runs from being compared, in words; empty when nothing does.

    Host, engine build, model digests and sampling must agree (design: statistics).
    """
    pairs = {
        "processor": (a.host.get("cpu_model"), b.host.get("cpu_model")),
        "devices": (a.host.get("gpus"), b.host.get("gpus")),
        "engine build": (a.engine.get("build"), b.engine.get("build")),
        "models": (_digests(a), _digests(b)),
        "prompt sets": (dict(a.prompt_sets), dict(b.prompt_sets)),
        "decision seed and margin": (a.settings.get("decision"), b.settings.get("decision")),
    }
    return tuple(
        f"{name}: {left!r} against {right!r}"
        for name, (left, right) in pairs.items()
        if left != right
    )


def require_comparable(a: Manifest, b: Manifest) -> None:
    """Refuse a comparison that the manifests do not allow.

    Raises
    ------
    NotComparable : names everything that differs.
    """
    found = differences(a, b)
    if found:
        raise NotComparable(f"runs {a.run_id} and {b.run_id} differ in {'; '.join(found)}")


def _digests(manifest: Manifest) -> dict[str, str | None]:
    return {name: model.get("sha256") for name, model in manifest.models.items()}
