"""Draw the figures of a recorded run again: records in, pictures out, no engine.

Each experiment names its own figures, so a notebook and this file draw the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lab.experiments import diverse, repeat
from lab.experiments.sheets import Sheet
from lab.reproduce import recorded_run
from lab.show.export import save
from lab.workbench import Workbench


def redraw(profile: str, run: str, results: Path, target: Path) -> Iterator[str]:
    """Write every figure that the run's records allow; yields their names.

    Raises
    ------
    InputError : no such run.
    """
    folder = recorded_run(profile, run, results)
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
