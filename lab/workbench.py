"""What a notebook holds in its hands: profile, prompts, engine, one results folder.

Everything a notebook does goes through a :class:`Workbench`, so that the same cells run
under ``make reproduce`` and by Run All in JupyterLab.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd
from attrs import asdict
from IPython.display import DisplayHandle, Markdown, display
from matplotlib.figure import Figure

from lab import paths
from lab.analyse.cautions import check_drift, check_rows, check_served, check_states
from lab.analyse.estimates import Caution
from lab.analyse.findings import Finding, write_findings
from lab.analyse.tables import read_frame
from lab.backends.llama_server import LlamaServerBackend
from lab.backends.protocol import Backend, Identity
from lab.experiments.sheets import Sheet
from lab.inputs.gguf_info import gguf_info
from lab.inputs.profiles import load_profile
from lab.inputs.prompts import Prompt, PromptSet, named_set
from lab.machine.hardware import machine_facts
from lab.machine.quiet import check_quiet
from lab.measure.curve_plan import CurvePlan
from lab.measure.experts import experts_touched, routing
from lab.measure.manifest import Manifest, commit, packages, read_manifest, write_manifest
from lab.measure.plan import Plan, outline
from lab.measure.records import Output
from lab.measure.run import Campaign, Conditions, Progress
from lab.measure.store import RunFolder
from lab.measure.verify_cost import measure_curve, read_curve
from lab.reproduce import choose_run, sentinel
from lab.setup.engine import Engine, find_engine
from lab.setup.models import Models, sha256_of
from lab.show.export import save
from lab.show.files import write_whole
from lab.show.markdown import escape
from lab.show.style import LIGHT

SHOW_EVERY_S = 0.5
ROUTED_TEXTS = 24
"""Texts over which experts are counted."""


class Workbench:
    """One run of one profile.

    Parameters
    ----------
    profile : name or path. prompts : set name or path; empty takes the profile's.
    run : run folder; empty continues the latest unfinished one or begins a new one.
    results : results folder; empty is results/ in the checkout.

    Raises
    ------
    InputError, SetupError, ResultsError : each says what to do.
    """

    def __init__(
        self, profile: str = "embedded", prompts: str = "", run: str = "", results: str = ""
    ) -> None:
        read = load_profile(profile)
        self.profile = read.model_copy(update={"prompts": prompts or read.prompts})
        home = Path(results) if results else paths.RESULTS
        self.path = choose_run(self.profile, prompts, run, home)
        self._last_shown = 0.0
        self._handle: DisplayHandle | None = None

    @cached_property
    def engine(self) -> Engine:
        """The llama.cpp build in use."""
        return find_engine()

    @cached_property
    def models(self) -> Models:
        """Model files of the profile by name, made or fetched when first asked for."""
        return Models(self.profile, self.engine)

    @cached_property
    def backend(self) -> Backend:
        """What serves the arms."""
        return LlamaServerBackend(
            self.engine,
            self.models,
            self.path / "logs",
            ready_timeout_s=self.profile.ready_timeout_s,
        )

    def __str__(self) -> str:
        served = ", ".join(spec.label or name for name, spec in self.profile.models.items())
        return (
            f"{self.profile.name}: {self.profile.description}\n"
            f"engine {self.engine.build} ({self.engine.source}); {served}\n"
            f"results in {self.path}"
        )

    def outline(self, *plans: Plan | None) -> pd.DataFrame:
        """What plans amount to, as a table."""
        return pd.DataFrame(outline(*plans))

    def prompts(self, name: str = "") -> PromptSet:
        """A prompt set by name or path; the profile's own when ``name`` is empty."""
        return named_set(name or self.profile.prompts)

    def measure(self, *plans: Plan | None) -> pd.DataFrame:
        """Carry out plans (None is skipped) and give back their records, tidy.

        What is already recorded is not asked again.
        """
        known = {one.id: one for name in self._sets() for one in named_set(name).prompts}
        warmups = named_set("warmup").prompts
        wanted = [plan for plan in plans if plan is not None]
        with RunFolder(self.path) as folder:
            manifest = self._manifest()
            for plan in wanted:
                used = {arm.model for arm in plan.arms} - set(manifest.models)
                manifest = manifest.with_models({name: self._described(name) for name in used})
                manifest = manifest.with_plan(plan.experiment, plan.fingerprint)
                write_manifest(self.path, manifest)
                served = self._campaign(plan, folder, known, warmups)
                manifest = manifest.with_served(plan.experiment, served)
                write_manifest(self.path, manifest)
        return self.records(*(plan.experiment for plan in wanted))

    def _campaign(
        self, plan: Plan, folder: RunFolder, known: dict[str, Prompt], warmups: tuple[Prompt, ...]
    ) -> dict[str, Identity]:
        return Campaign(
            plan,
            backend=self.backend,
            folder=folder,
            prompts=known,
            warmups=warmups,
            conditions=Conditions(
                seed=self.profile.decision.seed,
                stream=self.profile.stream,
                timeout_s=self.profile.request_timeout_s,
            ),
            on_progress=self._show,
        ).carry_out()

    def routing(self, model: str, widths: Sequence[int]) -> pd.DataFrame:
        """Distinct experts by pass width of a mixture on real text; empty for a dense model.

        Counted once a run.
        """
        file = self.path / "curves" / f"routing-{model}.csv"
        if not file.exists():
            touched = self._count_experts(model, widths)
            write_whole(file, touched.to_csv(index=False).encode())
        return pd.read_csv(file)

    def _count_experts(self, model: str, widths: Sequence[int]) -> pd.DataFrame:
        if self.experts_of(model) is None:
            return pd.DataFrame(columns=["model", "width", "layer", "experts"])
        texts = [one.text for one in named_set("diverse").prompts[:ROUTED_TEXTS]]
        settings = self.profile.settings.served()
        found = routing(self.engine, self.models[model], texts, settings=settings)
        return experts_touched(found, widths)

    def timed(self, model: str = "target") -> pd.DataFrame | None:
        """Passes that were timed in this run; None where none were."""
        file = self.path / "curves" / f"{model}.jsonl"
        return read_curve(file) if file.exists() else None

    def experts_of(self, model: str) -> tuple[int, int] | None:
        """Experts of a model and how many a token is sent to; None for a dense one."""
        info = gguf_info(self.models[model])
        if info.experts is None or info.experts_used is None:
            return None
        return info.experts, round(info.experts_used)

    def records(self, *experiments: str) -> pd.DataFrame:
        """Records of this run as a tidy frame with every metric of the vocabulary."""
        frame = read_frame(self.path / "records.jsonl")
        return frame[frame["experiment"].isin(experiments)] if experiments else frame

    def texts(self) -> dict[str, Output]:
        """Prompt and answer of every record of this run, by its key."""
        return {one.key: one for one in RunFolder(self.path).outputs()}

    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Token ids of every answer of this run, by record key."""
        return {key: one.tokens for key, one in self.texts().items() if one.tokens is not None}

    def curve(self, plan: CurvePlan, model: str = "target") -> pd.DataFrame:
        """Time passes over several tokens in process; what is recorded is not timed again."""
        file = self.path / "curves" / f"{model}.jsonl"
        texts = [one.text for one in named_set("diverse").prompts]
        settings = self.profile.settings.served()
        measure_curve(
            self.engine,
            self.models[model],
            texts,
            file,
            settings=settings,
            plan=plan,
            on_progress=lambda done, total: self._show(
                Progress("verify cost", done, total, model, "", 0.0)
            ),
        )
        return read_curve(file)

    def cautions(self, frame: pd.DataFrame) -> tuple[Caution, ...]:
        """What a reader must know about these rows, over each of their experiments."""
        manifest = self._manifest()
        found: list[Caution] = []
        known = [self.profile.arm(name) for name in self.profile.arms]
        memory = {arm.name for arm in known if arm.drafting.outlives_request}
        for name, rows in frame.groupby("experiment", observed=True):
            served = {
                key.split("/", 1)[1]: one
                for key, one in manifest.served.items()
                if key.startswith(f"{name}/")
            }
            # "+" marks a variant of an arm (another cache), with the same drafter.
            remembering = {arm for arm in map(str, rows["arm"]) if arm.split("+")[0] in memory}
            found += [*check_rows(rows), *check_drift(rows)]
            found += [*check_states(rows, remembering), *check_served(served)]
        return tuple(dict.fromkeys(found))

    def show_cautions(self, cautions: tuple[Caution, ...]) -> pd.DataFrame | str:
        """Cautions as a table, those that forbid a headline first."""
        if not cautions:
            return "Nothing speaks against these rows."
        table = pd.DataFrame([asdict(one) for one in cautions])
        return table.sort_values("blocks", ascending=False, kind="stable").reset_index(drop=True)

    def made_by(self) -> dict[str, str]:
        """What stands under every figure of this run."""
        manifest = self._manifest()
        return {
            "run": manifest.run_id,
            "profile": manifest.profile,
            "engine": str(manifest.engine.get("build")),
            "machine": str(manifest.host.get("label")),
            "date": manifest.started_utc,
        }

    def figure(self, sheet: Sheet) -> Figure:
        """Keep a figure's publishable files in this run, and show it."""
        words, folder = sheet.words(self.made_by()), self.path / "figures"
        save(sheet.draw, sheet.frames, words, name=sheet.name, folder=folder)
        return sheet.draw(**sheet.frames, theme=LIGHT)

    def conclude(self, notebook: str, findings: Iterable[Finding]) -> Markdown:
        """Keep a notebook's findings, which also marks it complete, and show them."""
        found = tuple(findings)
        file = sentinel(self.path, notebook)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_findings(file, found)
        lines = [f"- **{one.verdict}**: {escape(one.sentence)}" for one in found]
        return Markdown("\n".join(lines) or "Nothing could be concluded.")

    def _described(self, model: str) -> dict[str, str]:
        file = self.models[model]
        return {"file": file.name, "sha256": sha256_of(file)}

    def _sets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.profile.prompts, "diverse", "article8", "templated")))

    def _manifest(self) -> Manifest:
        known = read_manifest(self.path)
        if known is not None:
            return known
        return Manifest(
            run_id=self.path.name,
            profile=self.profile.name,
            started_utc=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            settings=json.loads(self.profile.model_dump_json()),
            host=machine_facts().summary(),
            quiet=asdict(check_quiet()),
            engine=self.engine.summary(),
            prompt_sets={name: named_set(name).fingerprint for name in self._sets()},
            packages=packages(),
            commit=commit(),
        )

    def _show(self, now: Progress) -> None:
        """Progress for the runner (a file) and for a person (one line that is replaced)."""
        if now.done and time.monotonic() - self._last_shown < SHOW_EVERY_S:
            return
        self._last_shown = time.monotonic()
        partial = self.path / "progress.partial"
        partial.write_text(json.dumps(asdict(now) | {"remaining_s": now.remaining_s}))
        partial.replace(self.path / "progress.json")
        left = "" if now.remaining_s is None else f", about {now.remaining_s:.0f} s left"
        line = Markdown(f"`{now.experiment}` {now.done}/{now.total} `{now.arm}`{left}")
        if self._handle is None:
            self._handle = display(line, display_id=True)
        else:
            self._handle.update(line)
