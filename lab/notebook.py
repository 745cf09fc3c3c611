"""One notebook run headless: checked before, watched during, stamped after.

papermill's own cell statuses cannot be trusted: a killed kernel leaves "completed" on
cells that never ran, unknown parameters only warn, and a notebook without a parameters
cell runs with its defaults. So parameters are checked here first, and afterwards a
notebook counts as complete only if it left its sentinel (findings/<name>.json).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import papermill
from attrs import frozen
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillException

from lab import paths
from lab.errors import InputError, NotebookError

TYPES = {"str": str, "int": int, "float": float, "bool": bool}
KERNEL_START_S = 300


@frozen
class Parameter:
    """One line of a parameters cell: its declared type and its default."""

    name: str
    type: type
    default: object


def parameters_of(file: Path) -> dict[str, Parameter]:
    """What a notebook's parameters cell declares, by name.

    Every line is ``name: type = literal`` with type str, int, float or bool.

    Raises
    ------
    NotebookError : no cell tagged ``parameters``, several of them, or another kind of line.
    """
    cells = [
        cell
        for cell in nbformat.read(file, as_version=4).cells
        if "parameters" in cell.metadata.get("tags", [])
    ]
    if len(cells) != 1:
        raise NotebookError(
            f"{file}: {len(cells)} cells are tagged 'parameters'. Tag exactly one, or papermill "
            "would run the notebook with its own defaults"
        )
    return {one.name: one for one in _declared(file, cells[0].source)}


def _declared(file: Path, source: str) -> Iterator[Parameter]:
    for line in ast.parse(source).body:
        match line:
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Name(id=kind), value=ast.Constant(value)
            ) if kind in TYPES:
                yield Parameter(name, TYPES[kind], value)
            case _:
                raise NotebookError(
                    f"{file}: parameters line {ast.unparse(line)!r} is not of the form "
                    "name: type = literal, with type str, int, float or bool"
                )


def check_parameters(file: Path, given: Mapping[str, object]) -> None:
    """Refuse unknown names and wrong types before a kernel is started.

    Raises
    ------
    NotebookError : the notebook's parameters cell is missing or unreadable.
    InputError : names the parameter, its value and what is known.
    """
    known = parameters_of(file)
    for name, value in given.items():
        if name not in known:
            raise InputError(
                "the notebook has no such parameter",
                file=file.name,
                field=name,
                value=value,
                fix=f"It knows {', '.join(known)}",
            )
        wanted = known[name].type
        fits = isinstance(value, wanted) or (wanted is float and isinstance(value, int))
        if not fits or (wanted is not bool and isinstance(value, bool)):
            raise InputError(
                f"parameter must be {wanted.__name__}, not {type(value).__name__}",
                file=file.name,
                field=name,
                value=value,
                fix=f"Write it without quotes, for example {known[name].default!r}",
            )


def run_notebook(source: Path, target: Path, given: Mapping[str, object], sentinel: Path) -> None:
    """Execute ``source`` into ``target``, which appears only when it is whole and stamped.

    While it runs the notebook is ``<target>.partial``; one found there later was killed.

    Raises
    ------
    NotebookError : a cell failed, the kernel is missing or died, or the sentinel is absent;
        the notebook is then kept beside the target, stamped FAILED.
    """
    check_parameters(source, given)
    partial = target.with_suffix(".partial.ipynb")
    bury_killed(partial)
    sentinel.unlink(missing_ok=True)
    try:
        with _kernel_environment():
            papermill.execute_notebook(
                source,
                partial,
                parameters=dict(given),
                kernel_name="python3",
                progress_bar=False,
                start_timeout=KERNEL_START_S,
                cwd=paths.ROOT,
            )
    except (PapermillException, DeadKernelError, RuntimeError, OSError, LookupError) as error:
        _bury(partial, f"{type(error).__name__}: {_short(error)}")
        raise NotebookError(f"{source.name}: {_short(error)}") from error
    problem = _unfinished(partial, sentinel)
    if problem:
        _bury(partial, problem)
        raise NotebookError(f"{source.name}: {problem}")
    _stamp(partial, "COMPLETE", None)
    partial.replace(target)


def bury_killed(partial: Path) -> None:
    """Stamp what a killed run left behind, so that nobody takes it for a result."""
    if partial.exists():
        _bury(partial, "the run was killed")


def _bury(partial: Path, problem: str) -> None:
    if not partial.exists():
        return
    _stamp(partial, "FAILED", problem)
    stem = partial.name.removesuffix(".partial.ipynb")
    number = len(list(partial.parent.glob(f"{stem}.FAILED-*.ipynb"))) + 1
    partial.replace(partial.with_name(f"{stem}.FAILED-{number}.ipynb"))


def _stamp(file: Path, status: str, problem: str | None) -> None:
    book = nbformat.read(file, as_version=4)
    book.metadata["lab"] = {"status": status, "problem": problem}
    if status == "FAILED":
        banner = nbformat.v4.new_markdown_cell(f"# FAILED\n\n```\n{problem}\n```")
        book.cells.insert(0, banner)
    nbformat.write(book, file)


def _unfinished(file: Path, sentinel: Path) -> str | None:
    """Why an executed notebook does not count as complete; None when it does."""
    book = nbformat.read(file, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    not_run = [index for index, cell in enumerate(code) if cell.execution_count is None]
    if not_run:
        return f"code cells {not_run} never ran, whatever their status says"
    for cell in code:
        if "figure" in cell.metadata.get("tags", []) and not _has_picture(cell):
            return f"a figure cell drew no picture: {cell.source.splitlines()[0]!r}"
    if not sentinel.exists():
        return f"it left no findings ({sentinel.name})"
    return None


def _has_picture(cell: Any) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.outputs)


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1][:500]


@contextmanager
def _kernel_environment() -> Iterator[None]:
    """Without MPLBACKEND: with Agg in it, a kernel draws no figure and nobody notices."""
    kept = os.environ.pop("MPLBACKEND", None)
    try:
        yield
    finally:
        if kept is not None:
            os.environ["MPLBACKEND"] = kept
