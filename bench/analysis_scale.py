"""One million records: tables, estimates, cautions; time and memory in a fresh process."""

from __future__ import annotations

import json
import multiprocessing as mp
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import cattrs
import numpy as np

from bench import Figure
from lab.analyse.cautions import check_comparison, check_drift, check_rows
from lab.analyse.stats import by_category, compare, margin_above, noise_floor
from lab.analyse.tables import measured, read_frame, write_parquet
from lab.measure.records import RequestRecord

KEYS = ("analysis_1e6_s", "analysis_1e6_mib")
RECORDS = 1_000_000
ARMS = ("baseline", "baseline-again", *(f"drafter-{n}" for n in range(8)))
PROMPTS = 1000
CATEGORIES = 20
MACHINE = (
    "cpu_other_fraction",
    "cpu_steal_fraction",
    "gpu_power_w",
    "gpu_temperature_c",
    "energy_j",
)


def measure() -> dict[str, Figure]:
    """Write the records, then analyse them in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.jsonl"
        write_records(file, RECORDS)
        size = file.stat().st_size / 2**20
        with mp.get_context("spawn").Pool(1) as pool:
            found = pool.apply(analyse, (file,))
    parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found["parts"].items())
    note = f"{RECORDS} records, {size:.0f} MiB of JSON lines; {parts}"
    return {
        "analysis_1e6_s": Figure(sum(found["parts"].values()), n=1, note=note),
        "analysis_1e6_mib": Figure(found["peak_mib"], n=1, note="peak resident, " + note),
    }


def analyse(file: Path) -> dict[str, Any]:
    """Everything between records and pictures, timed."""
    parts = {}
    clock = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal clock
        parts[name] = time.perf_counter() - clock
        clock = time.perf_counter()

    frame = read_frame(file)
    lap("tables")
    write_parquet(frame, file.with_suffix(".parquet"))
    lap("parquet")
    check_rows(frame)
    check_drift(frame)
    lap("cautions")
    rows = measured(frame)
    margin = margin_above(noise_floor(rows, "baseline", "baseline-again"), 0.02)
    for one in compare(rows, [arm for arm in ARMS if arm != "baseline"], margin=margin):
        by_category(one)
        check_comparison(one)
    lap("estimates")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"parts": parts, "peak_mib": peak}


def write_records(file: Path, n: int, seed: int = 1) -> None:
    """Records as a long campaign would leave them: arms in turn, noise, drafts, labels."""
    rng = np.random.default_rng(seed)
    base = cattrs.unstructure(_record())
    pace = 10 * np.exp(rng.normal(0, 0.05, n))
    drafted = rng.integers(0, 20, n)
    busy = rng.random(n) < 0.02  # noqa: PLR2004 - one in fifty
    with file.open("w", encoding="utf-8", buffering=1 << 22) as stream:
        for place in range(n):
            turn, arm = divmod(place, len(ARMS))
            repeat, prompt = divmod(turn, PROMPTS)
            count = int(drafted[place]) if arm > 1 else None
            base |= {
                "key": f"scale/b{repeat:03d}-{ARMS[arm]}#{place:07d}",
                "arm": ARMS[arm],
                "prompt_id": f"prompt-{prompt:04d}",
                "category": f"kind-{prompt % CATEGORIES:02d}",
                "block": repeat,
                "series": f"b{repeat:03d}-{ARMS[arm]}",
                "ordinal": prompt,
                "repeat": repeat,
                "started_utc": f"2026-12-01T{place // 3600 % 24:02d}:{place // 60 % 60:02d}:"
                f"{place % 60:02d}.{place % 1000:03d}+00:00",
                "labels": ["busy"] if busy[place] else [],
                "predicted_ms": round(127 * float(pace[place]), 3),
                "draft_n": count,
                "draft_n_accepted": None if count is None else count // 2,
                "drafted_steps": None if count is None else count // 3,
                "accepted_per_position": None if count is None else [count // 3, count // 4],
                "speculation_active": arm > 1,
                "output_sha256": f"{place:064x}",
                "machine": dict.fromkeys(MACHINE, float(pace[place])),
            }
            stream.write(json.dumps(base) + "\n")


def _record() -> RequestRecord:
    return RequestRecord(
        key="",
        run_id="20261201T000000Z",
        experiment="scale",
        arm="",
        model="target",
        prompt_id="",
        category="",
        state="cold",
        role="measure",
        block=0,
        series="",
        ordinal=0,
        repeat=0,
        started_utc="",
        status="ok",
        n_predict=128,
        temperature=0.0,
        seed=20261201,
        ignore_eos=True,
        stream=False,
        prompt_tokens_n=40,
        cache_n=0,
        prompt_n=40,
        prompt_ms=123.4,
        predicted_n=128,
        e2e_ms=1500.0,
        stop="limit",
    )
