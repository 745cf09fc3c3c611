from __future__ import annotations

import json

import pytest
from rich.console import Console

from lab import reproduce as runner
from lab.analyse.findings import Finding, read_findings, write_findings
from lab.errors import InputError, NotComparable, NotebookError, ResultsError
from lab.inputs.profiles import load_profile
from lab.measure.manifest import (
    Manifest,
    differences,
    read_manifest,
    require_comparable,
    write_manifest,
)

FINDING = Finding("02/x", "Does it help?", "equivalent", "It does not.")


@pytest.fixture
def profile():
    return load_profile("smoke")


def manifest(profile, run="r", **changes):
    settings = json.loads(profile.model_dump_json())
    return Manifest(run, profile.name, "2026-12-01T00:00:00", settings, **changes)


def begun(home, profile, run, *, complete=()):
    folder = home / profile.name / run
    (folder / "findings").mkdir(parents=True)
    write_manifest(folder, manifest(profile, run))
    for name in complete:
        write_findings(runner.sentinel(folder, name), [FINDING])
    return folder


def test_an_unfinished_run_of_the_same_kind_is_continued(tmp_path, profile):
    old = begun(tmp_path, profile, "20260101T000000Z")
    assert runner.choose_run(profile, "", "", tmp_path) == old


def test_a_finished_run_is_left_alone(tmp_path, profile):
    old = begun(tmp_path, profile, "20260101T000000Z", complete=runner.chosen(profile))
    assert runner.choose_run(profile, "", "", tmp_path) != old


def test_a_changed_profile_or_other_prompts_begin_a_new_run(tmp_path, profile):
    old = begun(tmp_path, profile, "20260101T000000Z")
    changed = profile.model_copy(update={"stream": True})
    assert runner.choose_run(changed, "", "", tmp_path) != old
    assert runner.choose_run(profile, "templated", "", tmp_path) != old


@pytest.mark.parametrize("name", ["../elsewhere", "/etc", "a/b", ".hidden"])
def test_a_run_name_cannot_leave_the_results_folder(tmp_path, profile, name):
    with pytest.raises(InputError, match="plain folder name"):
        runner.choose_run(profile, "", name, tmp_path)


def test_an_unknown_notebook_is_refused(profile):
    wrong = profile.model_copy(update={"notebooks": ("99_no_such",)})
    with pytest.raises(InputError, match="99_no_such"):
        runner.chosen(wrong)


def test_a_failed_notebook_is_reported_and_the_others_run(tmp_path, monkeypatch):
    ran = []

    def fake(source, target, given, sentinel):
        ran.append(source.stem)
        if source.stem.startswith("01"):
            raise NotebookError("it broke")
        sentinel.parent.mkdir(parents=True, exist_ok=True)
        write_findings(sentinel, [FINDING])
        target.write_text(
            json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )

    monkeypatch.setattr(runner, "run_notebook", fake)
    folder, outcomes = runner.reproduce(
        "smoke", prompts="", run="mine", results=tmp_path, console=Console(quiet=True)
    )
    assert ran == list(runner.experiments())
    assert [one.status for one in outcomes][:2] == ["FAILED", "complete"]
    assert runner.verdicts(folder, ran)[0] == FINDING


def test_case_32_complete_notebooks_are_kept(tmp_path, monkeypatch):
    def fake(_source, target, _given, sentinel):
        sentinel.parent.mkdir(parents=True, exist_ok=True)
        write_findings(sentinel, [FINDING])
        target.write_text(
            json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )

    monkeypatch.setattr(runner, "run_notebook", fake)
    for wanted in ("complete", "kept"):
        _, outcomes = runner.reproduce(
            "smoke", prompts="", run="mine", results=tmp_path, console=Console(quiet=True)
        )
        assert {one.status for one in outcomes} == {wanted}


def test_findings_survive_writing(tmp_path):
    write_findings(tmp_path / "f.json", [FINDING])
    assert read_findings(tmp_path / "f.json") == (FINDING,)
    (tmp_path / "f.json").write_text("{")
    with pytest.raises(ResultsError, match="cannot be read"):
        read_findings(tmp_path / "f.json")


def test_a_manifest_survives_writing_and_refuses_another_plan(tmp_path, profile):
    one = manifest(profile).with_plan("climb", "abc")
    write_manifest(tmp_path, one)
    assert read_manifest(tmp_path) == one
    assert one.with_plan("climb", "abc") == one
    with pytest.raises(ResultsError, match="RUN=new"):
        one.with_plan("climb", "other")


@pytest.mark.parametrize(
    "change",
    [
        {"host": {"cpu_model": "another"}},
        {"engine": {"build": "b2"}},
        {"models": {"target": {"sha256": "ff"}}},
        {"prompt_sets": {"diverse": "ff"}},
    ],
)
def test_manifests_that_differ_forbid_a_comparison(profile, change):
    one, other = manifest(profile), manifest(profile, "s", **change)
    assert differences(one, manifest(profile, "s")) == ()
    with pytest.raises(NotComparable, match="differ in"):
        require_comparable(one, other)


def test_the_list_of_runs_is_newest_first(tmp_path, profile):
    for run in ("20260101T000000Z", "20260201T000000Z"):
        begun(tmp_path, profile, run)
    assert len(runner.latest_runs(str(tmp_path))) == 2
    assert runner.latest_runs(str(tmp_path / "none")).empty
