from __future__ import annotations

import json

import pytest

from lab.errors import InputError, ResultsError
from lab.inputs.arm import ServerSettings
from lab.measure.curve_plan import ALTERNATING, REPEATED, CurvePlan
from lab.measure.verify_cost import measure_curve, read_curve, read_header
from lab.setup.engine import find_engine

SETTINGS = ServerSettings(n_ctx=256, flash_attn="on")
SMALL = CurvePlan(widths=(1, 2, 9), depths=(8, 64), rounds=2, repeats=1)
TEXTS = ("The sea was calm that night, and nobody in the harbour", "def area(width, height):")


@pytest.fixture(scope="module")
def engine():
    return find_engine()


def written(tmp_path, lines, header=None):
    file = tmp_path / "curve.jsonl"
    header = header or {"format": 1, "model": "m.gguf"}
    file.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    return file


def test_ratios_are_taken_within_a_round(tmp_path):
    lines = [
        {
            "round": 0,
            "depth": 8,
            "mode": ALTERNATING,
            "passes": [[1, 0, 10, 1, 0], [4, 0, 20, 1, 0]],
        },
        {
            "round": 1,
            "depth": 8,
            "mode": ALTERNATING,
            "passes": [[4, 0, 60, 1, 0], [1, 0, 20, 1, 0]],
        },
        {"ready": {"threads": 2}},
        {
            "round": 0,
            "depth": 8,
            "mode": REPEATED,
            "passes": [[1, 0, 99, 1, 0], [1, 1, 8, 1, 0], [4, 0, 24, 1, 0], [4, 1, 16, 1, 0]],
        },
    ]
    frame = read_curve(written(tmp_path, lines))
    four = frame[frame["width"] == 4].set_index(["mode", "round", "place"])
    assert four["verify_cost"].to_dict() == {
        (ALTERNATING, 0, 0): 2.0,
        (ALTERNATING, 1, 0): 3.0,
        (REPEATED, 0, 0): 3.0,
        (REPEATED, 0, 1): 2.0,
    }
    assert four.loc[(ALTERNATING, 0, 0), "over_steady_one"] == 2.5
    assert four["over_steady_one"].isna().to_list() == [False, True, False, False]


def test_a_file_with_only_a_header_gives_an_empty_frame(tmp_path):
    assert read_curve(written(tmp_path, [])).empty


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(ResultsError, match="not a verify-cost file"):
        read_curve(written(tmp_path, [], header={"key": 1}))


@pytest.mark.engine
def test_every_round_holds_every_width_in_every_mode(engine, shallow_model, tmp_path):
    steps = []
    file = measure_curve(
        engine,
        shallow_model,
        TEXTS,
        tmp_path / "curve.jsonl",
        settings=SETTINGS,
        plan=SMALL,
        on_progress=lambda done, total: steps.append((done, total)),
    )
    frame = read_curve(file)
    assert steps[0] == (0, 8)
    assert steps[-1] == (8, 8)
    counted = frame.groupby(["mode", "round", "depth"])["width"].apply(sorted)
    assert set(map(tuple, counted[ALTERNATING])) == {(1, 2, 9)}
    assert set(map(tuple, counted[REPEATED])) == {(1, 1, 2, 2, 9, 9)}
    assert (frame["ms"] > 0).all()
    assert frame["verify_cost"].notna().all()
    assert frame["model"].unique() == [shallow_model.name]
    assert read_header(file)["engine"] == engine.build


@pytest.mark.engine
def test_a_curve_cut_off_anywhere_is_continued(engine, shallow_model, tmp_path):
    whole = tmp_path / "whole.jsonl"
    measure_curve(engine, shallow_model, TEXTS, whole, settings=SETTINGS, plan=SMALL)
    cut = tmp_path / "cut.jsonl"
    lines = whole.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    measure_curve(engine, shallow_model, TEXTS, cut, settings=SETTINGS, plan=SMALL)
    assert cut.read_bytes().startswith(b"".join(lines[:4]))

    def order(file):
        frame = read_curve(file)
        return frame[["round", "depth", "mode", "width", "place"]]

    assert order(cut).equals(order(whole))


@pytest.mark.engine
def test_more_rounds_are_added_to_a_finished_curve(engine, shallow_model, tmp_path):
    file = tmp_path / "curve.jsonl"
    for rounds in (1, 1, 2):
        plan = CurvePlan(widths=(1, 3), depths=(8,), rounds=rounds, modes=(ALTERNATING,))
        measure_curve(engine, shallow_model, TEXTS, file, settings=SETTINGS, plan=plan)
        assert sorted(read_curve(file)["round"].unique()) == list(range(rounds))


@pytest.mark.engine
def test_a_curve_of_something_else_is_not_continued(engine, shallow_model, tmp_path):
    file = tmp_path / "curve.jsonl"
    plan = CurvePlan(widths=(1,), depths=(8,), rounds=1, modes=(ALTERNATING,))
    measure_curve(engine, shallow_model, TEXTS, file, settings=SETTINGS, plan=plan)
    with pytest.raises(ResultsError, match="texts_sha256"):
        measure_curve(engine, shallow_model, TEXTS[:1], file, settings=SETTINGS, plan=plan)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (CurvePlan(widths=(1, 9), depths=(250,)), "at least 259"),
        (CurvePlan(widths=(2, 9)), "passes over one token"),
    ],
)
def test_a_plan_that_cannot_be_timed_is_refused_first(plan, words, shallow_model, tmp_path):
    file = tmp_path / "curve.jsonl"
    with pytest.raises(InputError, match=words):
        measure_curve(None, shallow_model, TEXTS, file, settings=SETTINGS, plan=plan)
    assert not file.exists()
