"""Sustained bandwidth against an independent STREAM-like program, in turns."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from bench import Figure
from lab.machine.bandwidth import array_bytes, default_threads, median_interval, read_bandwidth

KEYS = ("bandwidth_vs_stream",)
ROUNDS = 9
PASSES = 11


def measure() -> dict[str, Figure]:
    """Ratio of the lab's median to the other's, minus one, over rounds that alternate."""
    threads, n_bytes = default_threads()[-1], array_bytes()
    with tempfile.TemporaryDirectory() as folder:
        program = _compile(Path(folder))
        rounds = [_round(program, threads, n_bytes, first=bool(i % 2)) for i in range(ROUNDS)]
    ratios = [ours / theirs - 1 for ours, theirs in rounds]
    low, high = median_interval(ratios)
    medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
    note = f"{threads} threads: {medians[0]:.1f} GB/s against {medians[1]:.1f}"
    return {KEYS[0]: Figure(statistics.median(ratios), low, high, ROUNDS, note)}


def _compile(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        raise RuntimeError("a C compiler is needed for the program to compare with")
    program = folder / "stream_read"
    source = Path(__file__).with_name("stream_read.c")
    flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp"]
    subprocess.run([compiler, *flags, "-o", program, source], check=True)
    return program


def _round(program: Path, threads: int, n_bytes: int, *, first: bool) -> tuple[float, float]:
    """(ours, theirs) in GB/s; which goes first changes from round to round."""
    words = [str(program), str(threads), str(n_bytes), str(PASSES)]
    ours = read_bandwidth(threads, passes=PASSES, n_bytes=n_bytes).gb_s if first else None
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    theirs = statistics.median(float(line) for line in done.stdout.split())
    return ours or read_bandwidth(threads, passes=PASSES, n_bytes=n_bytes).gb_s, theirs
