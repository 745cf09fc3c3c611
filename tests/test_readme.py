"""The README says what the committed example run says, and names what exists."""

from __future__ import annotations

import json
import re

import pytest

from lab import paths
from lab.analyse.findings import Finding, write_findings
from lab.errors import InputError
from lab.inputs.profiles import load_profile
from lab.measure.manifest import Manifest, write_manifest
from lab.redraw import BEGIN, END, answer_table, write_answer

README = (paths.ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    settings = json.loads(load_profile("smoke").model_dump_json())
    host = {"label": "CPU <b>x</b>"}
    models = {"target": {"file": "m.gguf", "sha256": "0"}}
    write_manifest(
        tmp_path,
        Manifest("r1", "smoke", "2026-12-01T00:00:00", settings, host=host, models=models),
    )
    (tmp_path / "findings").mkdir()
    found = Finding("02/x", "Does it help | me?", "equivalent", "1.00 <script>")
    write_findings(tmp_path / "findings" / "02.json", [found])
    return tmp_path


def test_the_answer_table_is_computed_and_escaped(folder):
    table = answer_table(folder)
    assert "**equivalent**" in table
    assert "2026-12-01" in table
    assert "<script>" not in table
    assert "<b>" not in table
    (row,) = [line for line in table.splitlines() if "equivalent" in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == 4


def test_the_answer_replaces_what_stood_between_the_marks(folder, tmp_path):
    file = tmp_path / "R.md"
    file.write_text(f"top\n{BEGIN}\nold\n{END}\nbottom\n")
    write_answer(folder, file)
    text = file.read_text()
    assert text.startswith("top\n")
    assert text.endswith("bottom\n")
    assert "old" not in text
    file.write_text("no marks")
    with pytest.raises(InputError, match="marks"):
        write_answer(folder, file)


def test_the_readme_starts_with_the_question_and_names_the_two_commands():
    lines = README.splitlines()
    assert lines[0].endswith("?")
    assert "make reproduce" in README
    assert README.index(BEGIN) < README.index("## How to read it")


def test_every_local_link_leads_somewhere():
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "data/prompts/README.md",
        "data/reference/README.md",
    ):
        file = paths.ROOT / name
        if not file.exists():
            continue
        for target in re.findall(r"\]\(([^)#]+)\)", file.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (file.parent / target).exists(), f"{name}: {target}"
