"""What a pass over w tokens costs against a pass over one: measured in process, raw times kept.

A pass is one ``llama_decode`` over w tokens of real text at a given context depth with
logits for every row, as verifying a draft needs (llama-bench asks for the last row only).
After each the KV cache is trimmed back. Widths take turns in random order, each round
holding every width once, so that the ratio to one token is taken within a round and slow
drift falls out. There are two modes (curve_plan), since a server's steps cost more than
passes of one width: a server without drafting repeats passes of width one, a server with
drafting alternates.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
from attrs import asdict

from lab.errors import InputError, ResultsError
from lab.inputs.arm import ServerSettings
from lab.measure.curve_plan import ALTERNATING, REPEATED, CurvePlan
from lab.setup.child import CONVERTER, run_in_child
from lab.setup.engine import Engine
from lab.setup.models import sha256_of

# File format history:
# 1: a header line, then one line a (round, depth, mode) (2026-12)
FORMAT = 1


def measure_curve(
    engine: Engine,
    model: Path,
    texts: Sequence[str | Sequence[int]],
    file: Path,
    *,
    settings: ServerSettings,
    plan: CurvePlan | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Path:
    """Time passes into ``file`` (JSON lines); what it already holds is not timed again.

    Parameters
    ----------
    texts : real text, as strings or token ids: which experts a mixture reads depends on it.
        Short ones are continued by those after them.
    settings : as for a server. ``n_ctx`` must hold the greatest depth and width together.
    on_progress : called with lines done and lines in all.

    Raises
    ------
    ResultsError : the file was begun with another model, engine, text, plan or settings.
    InputError : the context is too small, or width 1 is missing.
    BackendError : the engine failed, or the model's memory cannot be trimmed.
    """
    plan = plan or CurvePlan()
    _check(plan, settings)
    header = {
        "format": FORMAT,
        "model": model.name,
        "model_sha256": sha256_of(model),
        "engine": engine.build,
        "settings": CONVERTER.unstructure(settings),
        "plan": {key: value for key, value in asdict(plan).items() if key != "rounds"},
        "texts_sha256": sha256(json.dumps(list(map(list, texts))).encode()).hexdigest(),
    }
    done = _begun(file, json.loads(json.dumps(header)))
    on_progress(len(done), plan.lines)
    if len(done) >= plan.lines:
        return file
    answers = run_in_child(
        engine,
        "lab.measure.verify_passes:passes",
        timed=True,
        file=str(model),
        settings=CONVERTER.unstructure(settings),
        texts=texts,
        done=done,
        **asdict(plan),
    )
    count = len(done)
    with file.open("a", encoding="utf-8") as stream:
        for line in answers:
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
            count += "passes" in line
            on_progress(count, plan.lines)
    return file


def _check(plan: CurvePlan, settings: ServerSettings) -> None:
    if 1 not in plan.widths:
        raise InputError("a curve needs passes over one token", field="widths", value=plan.widths)
    needed = max(plan.depths) + max(plan.widths)
    if needed > settings.n_ctx:
        raise InputError(
            f"a pass of {max(plan.widths)} tokens at depth {max(plan.depths)} does not fit",
            field="n_ctx",
            value=settings.n_ctx,
            fix=f"Give at least {needed}, or leave out the greatest depth",
        )


def _begun(file: Path, header: dict[str, Any]) -> list[tuple[int, int, str]]:
    """Keys of what the file holds, its torn end cut off; begins the file if there is none.

    Raises
    ------
    ResultsError : it holds something else.
    """
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(header) + "\n", encoding="utf-8")
        return []
    data = file.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):  # a writer was killed inside its last line
        os.truncate(file, whole)
    first, *lines = data[:whole].splitlines() or [b"{}"]
    before = json.loads(first)
    differs = [key for key in header if before.get(key) != header[key]]
    if differs:
        raise ResultsError(
            f"{file}: was begun with another {' and '.join(differs)}. Name another file, or "
            "remove this one to measure anew"
        )
    return [(one["round"], one["depth"], one["mode"]) for one in _timed(lines)]


def _timed(lines: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """The lines that hold passes; the others say with how many threads they were timed."""
    return (line for line in map(json.loads, lines) if "passes" in line)


def read_curve(file: Path) -> pd.DataFrame:
    """Every timed pass as a row.

    Columns: model, depth (tokens of context), mode, round, width (tokens), place (in a run
    of one width; 0 directly after a change of width), ms (the pass), sample_ms (choosing a
    token for every row), trim_ms, and two ratios to a pass over one token of the same
    round and depth: verify_cost within the same mode, over_steady_one to the repeated mode,
    where an undisturbed decode lives (missing where that mode was not measured).

    In the repeated mode the one-token pass is the median of its run without place 0.

    Raises
    ------
    ResultsError : the file is not one of these, or is empty.
    """
    first, *lines = file.read_text(encoding="utf-8").splitlines()
    header = json.loads(first)
    if header.get("format") != FORMAT:
        raise ResultsError(f"{file}: is not a verify-cost file of format {FORMAT}")
    columns = ["width", "place", "ms", "sample_ms", "trim_ms"]
    rows = [
        {"model": header["model"], "depth": line["depth"], "mode": line["mode"]}
        | {"round": line["round"], **dict(zip(columns, one, strict=True))}
        for line in _timed(lines)
        for one in line["passes"]
    ]
    frame = pd.DataFrame(rows, columns=["model", "depth", "mode", "round", *columns])
    return frame if frame.empty else _with_ratios(frame)


def _with_ratios(frame: pd.DataFrame) -> pd.DataFrame:
    single = frame[(frame["width"] == 1) & ((frame["mode"] == ALTERNATING) | (frame["place"] > 0))]
    one_ms = single.groupby(["depth", "round", "mode"])["ms"].median().rename("one_ms")
    frame = frame.join(one_ms, on=["depth", "round", "mode"])
    frame["verify_cost"] = frame["ms"] / frame.pop("one_ms")
    steady = one_ms[one_ms.index.get_level_values("mode") == REPEATED].droplevel("mode")
    frame = frame.join(steady, on=["depth", "round"])
    frame["over_steady_one"] = frame["ms"] / frame.pop("one_ms")
    return frame


def read_header(file: Path) -> dict[str, Any]:
    """What a verify-cost file was measured with: model, engine, settings, plan."""
    with file.open(encoding="utf-8") as stream:
        header: dict[str, Any] = json.loads(stream.readline())
    return header
