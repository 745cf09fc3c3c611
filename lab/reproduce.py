"""Run the experiments headless: every notebook of a profile, in order, resumable.

A run that was interrupted is continued: notebooks that left findings are skipped, and a
notebook that was cut short measures only what is not recorded yet.
"""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbconvert
import pandas as pd
from attrs import frozen
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lab import paths
from lab.analyse.findings import Finding, read_findings
from lab.errors import InputError, NotebookError
from lab.inputs.profiles import Profile, load_profile
from lab.measure.manifest import read_manifest
from lab.notebook import run_notebook

START_PAGE = "00_start_here"
POLL_S = 0.5


@frozen
class Outcome:
    """How one notebook went: "complete", "kept" (already complete) or "FAILED"."""

    notebook: str
    status: str
    seconds: float
    problem: str | None = None


def experiments() -> tuple[str, ...]:
    """Names of the experiment notebooks, in order."""
    return tuple(
        sorted(
            file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb") if file.stem != START_PAGE
        )
    )


def choose_run(profile: Profile, prompts: str, run: str, results: Path) -> Path:
    """The folder to work in.

    ``run`` empty continues the latest unfinished run of the same profile and prompts, or
    begins a new one; "new" always begins one; any other word names one.

    Raises
    ------
    InputError : the name would leave the results folder.
    """
    home = results / profile.name
    if run and run != "new":
        if Path(run).name != run or run.startswith("."):
            raise InputError("a run's name is a plain folder name", field="run", value=run)
        return home / run
    if not run:
        for folder in sorted(home.glob("*/"), reverse=True):
            if _continues(folder, profile, prompts):
                return folder
    return home / dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")


def _continues(folder: Path, profile: Profile, prompts: str) -> bool:
    manifest = read_manifest(folder)
    if manifest is None or manifest.settings.get("prompts") != (prompts or profile.prompts):
        return False
    mine = json.loads(profile.model_dump_json())
    if {**manifest.settings, "prompts": ""} != {**mine, "prompts": ""}:
        return False
    return any(not sentinel(folder, name).exists() for name in chosen(profile))


def chosen(profile: Profile) -> tuple[str, ...]:
    """The profile's notebooks, all of them when it names none.

    Raises
    ------
    InputError : the profile names a notebook that does not exist.
    """
    known = experiments()
    unknown = [name for name in profile.notebooks if name not in known]
    if unknown:
        raise InputError(
            "no such notebook", field="notebooks", value=unknown[0], fix=f"Known: {known}"
        )
    return profile.notebooks or known


def sentinel(folder: Path, notebook: str) -> Path:
    """The file whose presence means that a notebook of this run is complete."""
    return folder / "findings" / f"{notebook}.json"


def reproduce(
    profile_name: str, *, prompts: str, run: str, results: Path, console: Console
) -> tuple[Path, tuple[Outcome, ...]]:
    """Run a profile's notebooks; give back the folder and how each went.

    A notebook that fails does not stop the later ones: they measure other things.

    Raises
    ------
    InputError : profile, prompts or run name cannot be used.
    """
    profile = load_profile(profile_name)
    folder = choose_run(profile, prompts, run, results)
    console.print(f"[bold]{profile.name}[/]: {profile.description}\nresults in {folder}")
    given = {
        "profile": profile_name,
        "prompts": prompts,
        "run": folder.name,
        "results": str(results),
    }
    outcomes = []
    for number, notebook in enumerate(chosen(profile), 1):
        title = f"{number}/{len(chosen(profile))} {notebook}"
        outcomes.append(_one(notebook, title, folder, given, console))
    return folder, tuple(outcomes)


def _one(
    notebook: str, title: str, folder: Path, given: Mapping[str, object], console: Console
) -> Outcome:
    started = time.monotonic()
    done = sentinel(folder, notebook)
    executed = folder / "notebooks" / f"{notebook}.ipynb"
    if done.exists() and executed.exists():
        console.print(f"[green]kept[/]      {title}")
        return Outcome(notebook, "kept", 0.0)
    executed.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _shown(title, folder, console):
            run_notebook(paths.NOTEBOOKS / f"{notebook}.ipynb", executed, given, done)
    except NotebookError as error:
        console.print(f"[bold red]FAILED[/]    {title}: {error}", highlight=False)
        return Outcome(notebook, "FAILED", time.monotonic() - started, str(error))
    page, _ = nbconvert.HTMLExporter(exclude_input_prompt=True).from_filename(str(executed))
    executed.with_suffix(".html").write_text(page, encoding="utf-8")
    seconds = time.monotonic() - started
    console.print(f"[green]complete[/]  {title}  {seconds:.0f} s")
    return Outcome(notebook, "complete", seconds)


@contextmanager
def _shown(title: str, folder: Path, console: Console) -> Iterator[None]:
    """A live line: which notebook, which arm, how far, how long still."""
    stop = threading.Event()
    file = folder / "progress.json"
    file.unlink(missing_ok=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[now]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(title, total=None, now="starting")
        watcher = threading.Thread(target=_watch, args=(file, bars, task, stop), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()


def _watch(file: Path, bars: Progress, task: int, stop: threading.Event) -> None:
    while not stop.wait(POLL_S):
        try:
            now = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        left = now["remaining_s"]
        still = "" if left is None else f", {left:.0f} s left"
        what = f"{now['experiment']}: {now['arm']} {now['done']}/{now['total']}{still}"
        bars.update(task, total=now["total"], completed=now["done"], now=what)  # type: ignore[arg-type]


def verdicts(folder: Path, notebooks: Sequence[str]) -> tuple[Finding, ...]:
    """Everything the run found, in the order of its notebooks."""
    files = [sentinel(folder, name) for name in notebooks]
    return tuple(one for file in files if file.exists() for one in read_findings(file))


def verdict_table(findings: Sequence[Finding]) -> Table:
    """The short table a run ends with."""
    table = Table(title="What this run found", title_justify="left", show_lines=False)
    table.add_column("question", max_width=44)
    table.add_column("verdict", style="bold")
    table.add_column("answer", ratio=1)
    for one in findings:
        table.add_row(one.question, one.verdict, one.sentence)
    return table


def recorded_run(profile: str, run: str, results: Path) -> Path:
    """The folder of a recorded run; the newest with findings when ``run`` is empty.

    Raises
    ------
    InputError : there is none.
    """
    home = results / load_profile(profile).name
    named = [home / run] if run else sorted(home.glob("*/"), reverse=True)
    found = next((one for one in named if list(one.glob("findings/*.json"))), None)
    if found is None:
        raise InputError(
            "no recorded run", field="run", value=run or str(home), fix="make reproduce records one"
        )
    return found


def latest_runs(results: str = "") -> pd.DataFrame:
    """Recorded runs, newest first: profile, run, when, machine, notebooks complete."""
    home = Path(results) if results else paths.RESULTS
    rows = []
    for folder in home.glob("*/*/"):
        manifest = read_manifest(folder)
        if manifest is not None:
            rows.append(
                {
                    "profile": manifest.profile,
                    "run": manifest.run_id,
                    "started": manifest.started_utc,
                    "machine": manifest.host.get("label"),
                    "notebooks": len(list(folder.glob("findings/*.json"))),
                }
            )
    columns = ["profile", "run", "started", "machine", "notebooks"]
    return pd.DataFrame(rows, columns=columns).sort_values("started", ascending=False)
