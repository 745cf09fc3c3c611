"""The architecture one can see from the folder names is the one the imports have."""

from __future__ import annotations

import ast
import subprocess

import pytest

from lab import paths

STAGES = {
    "setup": set(),
    "inputs": set(),
    "backends": {"setup", "inputs"},
    "machine": {"setup", "inputs"},
    "measure": {"setup", "inputs", "backends", "machine"},
    "analyse": {"setup", "inputs", "backends", "machine", "measure"},
    "show": {"inputs", "analyse"},
}
"""What each stage may import besides itself and the files at the top."""

SETUP_READS = {"inputs"}
"""Setup resolves the models that a profile names, so it reads profiles."""

FILES = sorted((paths.ROOT / "lab").rglob("*.py"))
LONGEST = 400


def imported(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def stage(module):
    parts = module.split(".")
    return parts[1] if parts[0] == "lab" and len(parts) > 1 and parts[1] in STAGES else None


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(paths.ROOT)))
def test_imports_go_one_way_and_files_are_read_in_a_sitting(file):
    mine = file.relative_to(paths.ROOT / "lab").parts[0]
    assert len(file.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert file.stem not in {"utils", "helpers", "common", "misc"}
    if mine not in STAGES:
        return
    allowed = STAGES[mine] | {mine} | (SETUP_READS if mine == "setup" else set())
    used = {stage(module) for module in imported(file)} - {None}
    assert used <= allowed, f"{mine} imports {sorted(used - allowed)}"


def test_analysis_draws_nothing_and_pictures_read_no_records():
    for file in FILES:
        modules = set(imported(file))
        if "analyse" in file.parts:
            assert not any(one.split(".")[0] in {"matplotlib", "seaborn"} for one in modules), file
        if "show" in file.parts:
            assert not any(one.startswith("lab.measure") for one in modules), file


def test_only_one_file_knows_llama_servers_json():
    knowing = [file for file in FILES if '"/completion"' in file.read_text(encoding="utf-8")]
    assert [file.name for file in knowing] == ["llama_server.py"]


def test_no_path_of_a_machine_is_committed():
    search = r"(^|[^\w])/(home|work|root|Users)/\w+/"
    done = subprocess.run(
        ["git", "-C", str(paths.ROOT), "grep", "-nIE", search],  # noqa: S607 - git is where PATH says
        capture_output=True,
        text=True,
        check=False,
    )
    examples = ("data/prompts/", "tests/")
    assert [line for line in done.stdout.splitlines() if not line.startswith(examples)] == []
