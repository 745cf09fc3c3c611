"""Draw the figures of a recorded run again: records in, pictures out, no engine.

Each experiment names its own figures, so a notebook and this file draw the same ones.
The README's answer table is written from the same run's findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lab import paths
from lab.analyse.findings import read_findings
from lab.errors import InputError
from lab.experiments import architecture, diverse, repeat, why
from lab.experiments.sheets import Sheet
from lab.measure.manifest import read_manifest
from lab.reproduce import recorded_run
from lab.show.export import save
from lab.show.markdown import escape
from lab.workbench import Workbench


def redraw(profile: str, run: str, results: Path, target: Path) -> Iterator[str]:
    """Write every figure that the run's records allow; yields their names.

    Raises
    ------
    InputError : no such run.
    """
    folder = recorded_run(profile, run, results)
    if target == paths.FIGURES:
        write_answer(folder)
    bench = Workbench(profile, run=folder.name, results=str(results))
    for sheet in sheets_of(bench):
        save(sheet.draw, sheet.frames, sheet.words(bench.made_by()), name=sheet.name, folder=target)
        yield sheet.name


def sheets_of(bench: Workbench) -> Iterator[Sheet]:
    """The figures of every experiment that was recorded."""
    frame, outputs = bench.records(), bench.outputs()
    recorded = set(frame["experiment"].unique())
    if recorded & set(repeat.EXPERIMENTS):
        yield from repeat.sheets(repeat.read(frame, bench.profile)).values()
    if recorded & set(diverse.EXPERIMENTS):
        reading = diverse.read(frame, outputs, bench.profile)
        yield from diverse.sheets(reading).values()
        passes = bench.timed()
        if passes is not None:
            explained = why.read(frame, bench.texts(), passes, bench.profile)
            yield from why.sheets(explained).values()
    if recorded & set(architecture.EXPERIMENTS):
        yield from _architecture(bench, frame).values()


def _architecture(bench: Workbench, frame: pd.DataFrame) -> dict[str, Sheet]:
    roles = architecture.models_of(bench.profile)
    timed = {role: bench.timed(model) for role, model in roles.items()}
    passes = {role: one for role, one in timed.items() if one is not None}
    mixture = roles.get(architecture.MOE, "target")
    touched = bench.routing(mixture, architecture.curve_plan(bench.profile).widths)
    rows = frame[frame["experiment"].isin(architecture.EXPERIMENTS)]
    reading = architecture.read(rows, passes, touched, bench.experts_of(mixture), bench.profile)
    return architecture.sheets(reading)


BEGIN, END = "<!-- answer: begin -->", "<!-- answer: end -->"
"""What stands between these marks in the README is written by ``make figures``."""

HEADLINES = (
    "01/climb/ngram-mod-24-48-64",
    "01/cause",
    "02/aa",
    "02/article8/ngram-mod-24-48-64",
    "02/diverse/ngram-mod-24-48-64",
    "02/diverse/ngram-simple-4-6",
    "02/templated/ngram-mod-6-2-8",
    "02/templated/ngram-simple-4-6",
    "03/moe_over_deep",
    "05/prediction",
)
"""Findings that a newcomer reads first; the others are in the run's notebooks."""


def write_answer(folder: Path, readme: Path = paths.ROOT / "README.md") -> None:
    """Put a run's answer table into the README, and keep it beside the figures.

    Raises
    ------
    InputError : the README lacks the marks.
    """
    text = readme.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise InputError("lacks the marks of the answer table", file=readme, field=BEGIN)
    head, rest = text.split(BEGIN, 1)
    table = answer_table(folder)
    readme.write_text(f"{head}{BEGIN}\n{table}{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def answer_table(folder: Path) -> str:
    """The findings of a run as a Markdown table, with what they were measured on."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError("holds no manifest", file=folder)
    files = sorted(folder.glob("findings/*.json"))
    found = [one for file in files for one in read_findings(file)]
    headlines = [one for one in found if one.id in HEADLINES] or found
    rows = [
        f"| {escape(one.question)} | **{one.verdict}** | {escape(one.sentence)} |"
        for one in headlines
    ]
    models = ", ".join(model["file"] for model in manifest.models.values())
    day = manifest.started_utc[:10]
    label = manifest.host.get("label")
    under = f"Measured on {day}: {escape(label)}, {escape(models)}, run {manifest.run_id}."
    return "\n".join(["| question | verdict | answer |", "|---|---|---|", *rows, "", under, ""])
