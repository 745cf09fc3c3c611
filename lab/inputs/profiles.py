"""Profiles: everything a person decides about a run, in one TOML file.

Values are checked when the file is read; an error names the file, the key and what
is allowed. Old llama.cpp flag spellings are kept as written here and translated when
the engine's ``--help`` is known (see setup.flags).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lab import paths
from lab.errors import InputError
from lab.inputs.arm import Arm, Drafting, FlagValue, ServerSettings

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
"""Fit for a file name: lower-case letters, digits, dot, dash, underscore."""

Positive = Annotated[int, Field(gt=0)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ModelSpec(_Table):
    """Where a model comes from.

    ``source`` decides which other keys are needed: "embedded" none; "file" path;
    "hub" repo, file and sha256; "moe" and "deep" (stand-ins) of; "quantised" of and type.
    """

    source: Literal["embedded", "file", "hub", "moe", "deep", "quantised"]
    label: str = ""
    path: str | None = None
    repo: str | None = None
    file: str | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    of: Name | None = None
    type: str | None = None
    experts: Positive = 8
    experts_used: Positive = 1
    factor: Positive = 5
    seed: int = 7

    @model_validator(mode="after")
    def _needs(self) -> ModelSpec:
        needed = {
            "file": ("path",),
            "hub": ("repo", "file", "sha256"),
            "moe": ("of",),
            "deep": ("of",),
            "quantised": ("of", "type"),
        }.get(self.source, ())
        missing = [key for key in needed if getattr(self, key) is None]
        if missing:
            raise ValueError(f"source = {self.source!r} needs {', '.join(missing)}")
        return self


class Settings(_Table):
    """How models are served; each key as in inputs.arm.ServerSettings."""

    n_ctx: Positive = 2048
    n_gpu_layers: int | None = None
    flash_attn: Literal["on", "off", "auto"] = "auto"
    threads: Positive | None = None
    threads_batch: Positive | None = None
    batch: Positive | None = None
    ubatch: Positive | None = None
    cache_type_k: str | None = None
    cache_type_v: str | None = None
    devices: tuple[str, ...] = ()
    split_mode: Literal["none", "layer", "row", "tensor"] | None = None
    tensor_split: tuple[Annotated[float, Field(ge=0)], ...] = ()
    flags: dict[str, FlagValue] = {}

    def served(self) -> ServerSettings:
        """The settings as the value that backends take."""
        return ServerSettings(**self.model_dump())


class ArmSpec(_Table):
    """One drafting arm: what drafts, and with which engine flags."""

    label: str
    spec_type: tuple[str, ...] = Field(min_length=1)
    flags: dict[str, FlagValue] = {}
    draft: Name | None = None
    settings: dict[str, object] = {}


class RepeatPlan(_Table):
    """Notebook 01: one prompt again and again on one server."""

    prompts: Positive = 3
    runs: Positive = 10
    n_predict: Positive = 160
    series_per_prompt: Positive = 1
    arms: tuple[Name, ...] = ()
    gaps: tuple[Annotated[int, Field(ge=0)], ...] = (0, 1, 4, 12)


class DiversePlan(_Table):
    """Notebook 02: many different prompts, each unseen."""

    prompts: Positive = 24
    article: Annotated[int, Field(ge=0, le=8)] = 8
    templated: Annotated[int, Field(ge=0)] = 8
    n_predict: Positive = 128
    repeats: Positive = 1
    prompts_per_server: Positive = 8
    arms: tuple[Name, ...] = ()


class WhyPlan(_Table):
    """Notebook 05: the verify-cost curve and the prediction checked against measurement."""

    widths: tuple[Positive, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 24, 32, 33, 48, 64, 65)
    depths: tuple[Positive, ...] = (64, 256, 1024)
    rounds: Positive = 7
    synthetic_widths: tuple[Positive, ...] = (2, 4, 8)
    synthetic_rates: tuple[Annotated[float, Field(ge=0, le=1)], ...] = (0.2, 0.5, 0.8, 1.0)
    prompts: Positive = 12
    n_predict: Positive = 128


class ArchitecturePlan(_Table):
    """Notebook 03: models that differ only in architecture, or two real ones."""

    moe: Name = "moe"
    dense_active: Name = "target"
    dense_total: Name = "deep"
    prompts: Positive = 8
    n_predict: Positive = 96
    rounds: Positive = 5
    arms: tuple[Name, ...] = ()


class DraftsPlan(_Table):
    """Notebook 06: draft models on one target, over draft lengths."""

    target: Name = "deep"
    drafts: tuple[Name, ...] = ()
    lengths: tuple[Positive, ...] = (1, 2, 3, 4, 6, 8)
    prompts: Positive = 6
    n_predict: Positive = 64


class LeversPlan(_Table):
    """Notebook 07: one factor at a time against the default."""

    prompts: Positive = 6
    n_predict: Positive = 64
    quantisations: tuple[str, ...] = ()
    streams: tuple[Positive, ...] = (1, 2, 4, 8, 16)
    power_limits_w: tuple[Positive, ...] = ()


class Experiments(_Table):
    """Size of each experiment; a table that is left out takes its defaults."""

    repeat: RepeatPlan = RepeatPlan()
    diverse: DiversePlan = DiversePlan()
    why: WhyPlan = WhyPlan()
    architecture: ArchitecturePlan = ArchitecturePlan()
    drafts: DraftsPlan = DraftsPlan()
    levers: LeversPlan = LeversPlan()


class Decision(_Table):
    """What counts as a difference, fixed before measuring."""

    margin: Annotated[float, Field(gt=0, lt=1)] = 0.02
    level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    seed: Annotated[int, Field(gt=0)] = 20261201


class Profile(_Table):
    """A whole run."""

    name: Name
    description: str
    notebooks: tuple[str, ...] = ()
    prompts: str = "diverse"
    one_server_at_a_time: bool = False
    request_timeout_s: Positive = 600
    ready_timeout_s: Positive = 600
    stream: bool = False
    models: dict[Name, ModelSpec]
    settings: Settings = Settings()
    arms: dict[Name, ArmSpec]
    experiments: Experiments = Experiments()
    decision: Decision = Decision()

    @model_validator(mode="after")
    def _names_exist(self) -> Profile:
        if "target" not in self.models:
            raise ValueError("models needs an entry named target")
        for name, spec in self.models.items():
            if spec.of is not None and spec.of not in self.models:
                raise ValueError(f"models.{name}.of names no model: {spec.of!r}")
        for name, arm in self.arms.items():
            if arm.draft is not None and arm.draft not in self.models:
                raise ValueError(f"arms.{name}.draft names no model: {arm.draft!r}")
            Settings.model_validate(self.settings.model_dump() | arm.settings)
        for table in ("repeat", "diverse", "architecture"):
            unknown = set(getattr(self.experiments, table).arms) - set(self.arms)
            if unknown:
                raise ValueError(f"experiments.{table}.arms names no arm: {sorted(unknown)}")
        return self

    def baseline(self, model: str = "target", name: str = "baseline") -> Arm:
        """The arm in which nothing drafts."""
        return Arm(name=name, label="no drafting", model=model, settings=self.settings.served())

    def arm(self, name: str, model: str = "target") -> Arm:
        """A drafting arm by its name, on any model of the profile."""
        spec = self.arms[name]
        merged = Settings.model_validate(self.settings.model_dump() | spec.settings)
        return Arm(
            name=name,
            label=spec.label,
            model=model,
            settings=merged.served(),
            drafting=Drafting(types=spec.spec_type, flags=spec.flags, draft_model=spec.draft),
        )

    def chosen_arms(self, names: tuple[str, ...], model: str = "target") -> tuple[Arm, ...]:
        """Arms by name; all arms that need no draft model when ``names`` is empty."""
        picked = names or tuple(name for name, spec in self.arms.items() if spec.draft is None)
        return tuple(self.arm(name, model) for name in picked)


def load_profile(name_or_path: str | Path) -> Profile:
    """Read a profile by its name in profiles/ or by path.

    Raises
    ------
    InputError : no such profile, not TOML, an unknown key, or a value out of range;
        names the file and the key.
    """
    path = _find(str(name_or_path))
    return _validated(_read(path), path)


def _read(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The tables of a profile over those of the one it extends, key by key."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("not readable as TOML", file=path, fix=str(error)) from error
    base: str | None = raw.pop("extends", None)
    if base is None:
        return raw
    if path in seen:
        raise InputError("profiles extend each other in a circle", file=path, field="extends")
    return _over(_read(_find(str(base)), (*seen, path)), raw)


def _over(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _over(below, value)
        else:
            merged[key] = value
    return merged


def _find(name: str) -> Path:
    shipped = paths.PROFILES / f"{name}.toml"
    if shipped.is_file():
        return shipped
    path = Path(name)
    if path.is_file():
        return path
    known = sorted(file.stem for file in paths.PROFILES.glob("*.toml"))
    raise InputError(
        "no such profile", field="profile", value=name, fix=f"Name a file or one of: {known}"
    )


def _validated(raw: Mapping[str, object], path: Path) -> Profile:
    try:
        return Profile.model_validate(_tuples(raw))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "(whole file)"
        more = len(error.errors()) - 1
        fix = f"{more} more problem(s) after this one" if more else None
        got = first["input"]
        value = got if isinstance(got, str | int | float | bool) else None
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(problem, file=path, field=key, value=value, fix=fix) from error


def _tuples(value: object) -> object:
    """TOML arrays as tuples: profiles are values, and strict validation wants the type."""
    if isinstance(value, Mapping):
        return {key: _tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    return value
