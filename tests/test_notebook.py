from __future__ import annotations

import os

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lab import paths
from lab.errors import InputError, NotebookError
from lab.notebook import check_parameters, parameters_of, run_notebook

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
ORDER = (
    "title",
    "parameters",
    "setup",
    "plan",
    "records",
    "checks",
    "estimates",
    "figure",
    "conclusion",
    "limits",
)
SENTINEL = "import pathlib\npathlib.Path(done).write_text('[]')"
PICTURE = """from IPython.display import Image, display
import base64
dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhg"
dot += "GAWjR9awAAAABJRU5ErkJggg=="
display(Image(base64.b64decode(dot)))"""


def book(path, *cells, parameters='done: str = ""'):
    """A notebook of code cells; a cell is its source, or (tag, source)."""
    made = new_notebook()
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "x", "language": "python"}
    first = [] if parameters is None else [("parameters", parameters)]
    for cell in [*first, *cells]:
        tag, source = cell if isinstance(cell, tuple) else ("", cell)
        made.cells.append(new_code_cell(source, metadata={"tags": [tag]} if tag else {}))
    nbformat.write(made, path)
    return path


def run(tmp_path, source, **given):
    target, sentinel = tmp_path / "out.ipynb", tmp_path / "done.json"
    run_notebook(source, target, {"done": str(sentinel)} | given, sentinel)
    return nbformat.read(target, as_version=4)


def buried(tmp_path):
    (file,) = tmp_path.glob("out.FAILED-*.ipynb")
    return nbformat.read(file, as_version=4)


def test_a_whole_notebook_is_stamped_complete(tmp_path):
    done = run(tmp_path, book(tmp_path / "a.ipynb", SENTINEL))
    assert done.metadata["lab"]["status"] == "COMPLETE"


def test_case_29_without_a_parameters_cell_it_is_refused(tmp_path):
    with pytest.raises(NotebookError, match="tagged 'parameters'"):
        run(tmp_path, book(tmp_path / "a.ipynb", SENTINEL, parameters=None))


@pytest.mark.parametrize(
    ("declared", "given", "words"),
    [
        ("n: int = 3", {"m": 4}, "no such parameter"),
        ("n: int = 3", {"n": "8"}, "must be int, not str"),
        ("n: int = 3", {"n": True}, "must be int, not bool"),
        ("on: bool = True", {"on": 1}, "must be bool"),
        ('s: str = "a=b"  # has = in it', {"t": "x"}, "no such parameter"),
    ],
)
def test_case_29_unknown_names_and_wrong_types_are_refused(tmp_path, declared, given, words):
    file = book(tmp_path / "a.ipynb", parameters=declared)
    with pytest.raises(InputError, match=words):
        check_parameters(file, given)


def test_case_29_a_default_with_an_equals_sign_is_no_trap(tmp_path):
    file = book(tmp_path / "a.ipynb", parameters='s: str = "a=b"  # c=d')
    assert parameters_of(file)["s"].default == "a=b"
    check_parameters(file, {"s": "x=y"})


def test_case_29_a_cell_that_raises_is_a_failure_with_the_notebook_kept(tmp_path):
    source = book(tmp_path / "a.ipynb", "1 / 0", SENTINEL)
    with pytest.raises(NotebookError, match="division"):
        run(tmp_path, source)
    kept = buried(tmp_path)
    assert kept.metadata["lab"]["status"] == "FAILED"
    assert kept.cells[0].source.startswith("# FAILED")
    assert not (tmp_path / "out.ipynb").exists()


def test_case_29_a_killed_kernel_is_a_failure_whatever_the_cells_say(tmp_path):
    source = book(tmp_path / "a.ipynb", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(NotebookError):
        run(tmp_path, source)
    assert buried(tmp_path).metadata["lab"]["status"] == "FAILED"


def test_case_29_a_notebook_that_leaves_no_findings_is_not_complete(tmp_path):
    with pytest.raises(NotebookError, match="left no findings"):
        run(tmp_path, book(tmp_path / "a.ipynb", "1 + 1"))


def test_case_29_what_a_killed_runner_left_is_stamped_when_it_runs_again(tmp_path):
    source = book(tmp_path / "a.ipynb", SENTINEL)
    book(tmp_path / "out.partial.ipynb", "half done")
    run(tmp_path, source)
    assert "killed" in buried(tmp_path).metadata["lab"]["problem"]


def test_case_30_a_figure_cell_without_a_picture_is_a_failure(tmp_path):
    with pytest.raises(NotebookError, match="drew no picture"):
        run(tmp_path, book(tmp_path / "a.ipynb", ("figure", "1 + 1"), SENTINEL))


def test_case_30_a_backend_in_the_environment_does_not_reach_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    check = (
        "import os\nassert 'MPLBACKEND' not in os.environ or 'inline' in os.environ['MPLBACKEND']"
    )
    run(tmp_path, book(tmp_path / "a.ipynb", check, ("figure", PICTURE), SENTINEL))
    assert os.environ["MPLBACKEND"] == "Agg"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebooks_hold_no_logic_and_no_outputs(file):
    cells = nbformat.read(file, as_version=4).cells
    assert len({cell.id for cell in cells}) == len(cells)
    for cell in cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
            assert len(cell.source.splitlines()) <= 12
            for word in ("def ", "class ", "sys.path", "\n!", "%pip"):
                assert word not in f"\n{cell.source}"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebooks_have_their_cells_in_order_and_explain_their_parameters(file):
    cells = nbformat.read(file, as_version=4).cells
    (cell,) = [one for one in cells if "parameters" in one.metadata.get("tags", [])]
    assert all("  # " in line for line in cell.source.splitlines())
    parameters_of(file)
    assert cells[0].source.startswith("# ")
    if file.stem.startswith("00"):
        return
    assert cells[0].source.splitlines()[0].endswith("?")
    tags = [tag for one in cells for tag in one.metadata.get("tags", [])]
    assert sorted(tags, key=ORDER.index) == tags
    assert set(tags) == set(ORDER)


def test_a_markdown_cell_may_stand_anywhere(tmp_path):
    file = book(tmp_path / "a.ipynb", SENTINEL)
    made = nbformat.read(file, as_version=4)
    made.cells.insert(0, new_markdown_cell("# Title"))
    nbformat.write(made, file)
    assert run(tmp_path, file).metadata["lab"]["status"] == "COMPLETE"
