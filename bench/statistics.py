"""The statistics tested as software, at full size; also writes the tables of docs/statistics.md."""

from __future__ import annotations

import math
from pathlib import Path

from bench import Figure
from lab import paths
from lab.analyse.simulate import (
    METHODS,
    WORLDS,
    coverage,
    drift_bias,
    false_positives,
    verdict_shares,
)

KEYS = ("coverage_95_n8", "coverage_95_n24", "coverage_95_n96", "aa_false_positive_rate")
SIZES = (8, 24, 96)
TIMES = 20_000
TIMES_OF_A_BOOTSTRAP = 1000
MARGIN = 0.02
DRIFT = 0.06
PAGE = paths.ROOT / "docs" / "statistics.md"
BEGIN, END = "<!-- simulated: begin -->", "<!-- simulated: end -->"

FAIR = [world for world in WORLDS if world.fair]
ALIKE = [world for world in FAIR if world.gains is WORLDS[0].gains]
"""Worlds where nothing but noise tells the arms apart: A/A runs."""


def measure() -> dict[str, Figure]:
    """Simulated coverage over all fair worlds, and false positives of A/A runs."""
    found = {
        f"coverage_95_n{n}": _over({w.name: coverage(w, n, times=TIMES) for w in FAIR})
        for n in SIZES
    }
    rates = {
        f"{w.name}, n = {n}": false_positives(w, n, times=TIMES, margin=MARGIN)
        for w in ALIKE
        for n in SIZES
    }
    found["aa_false_positive_rate"] = _over(rates)
    write_tables(PAGE)
    return found


def _over(shares: dict[str, float]) -> Figure:
    """Mean over worlds; the interval is the smallest and the largest of them."""
    note = ", ".join(f"{name}: {share:.3f}" for name, share in shares.items())
    mean = sum(shares.values()) / len(shares)
    least, most = min(shares.values()), max(shares.values())
    return Figure(mean, least, most, TIMES, f"mean of worlds, least and most ({note})")


def write_tables(page: Path) -> None:
    """Replace what stands between the marks of the page."""
    head, rest = page.read_text(encoding="utf-8").split(BEGIN)
    tail = rest.split(END)[1]
    tables = f"{_coverage_table()}\n\n{_verdict_table()}\n\n{_drift_sentence()}"
    page.write_text(f"{head}{BEGIN}\n{tables}\n{END}{tail}", encoding="utf-8")


def _coverage_table() -> str:
    columns = " / ".join(map(str, SIZES))
    rows = [
        f"| {world.name} | "
        + " | ".join(
            " / ".join(
                f"{coverage(world, n, times=_times(name), method=method):.1%}" for n in SIZES
            )
            for name, method in METHODS.items()
        )
        + " |"
        for world in WORLDS
    ]
    title = f"| coverage of the 95 % interval with {columns} prompts | {' | '.join(METHODS)} |"
    return "\n".join((title, "|---|" + "---|" * len(METHODS), *rows))


def _times(method: str) -> int:
    return TIMES if method.startswith("t ") else TIMES_OF_A_BOOTSTRAP


def _verdict_table() -> str:
    title = "| true speed-up, prompts | faster | slower | equivalent | inconclusive |"
    rows = []
    for truth in (1.0, 1 + MARGIN, 1.1):
        for n in SIZES:
            shares = verdict_shares(WORLDS[0], n, times=TIMES, margin=MARGIN, truth=math.log(truth))
            cells = [shares[name] for name in ("faster", "slower", "equivalent", "inconclusive")]
            rows.append(f"| {truth:.2f}, {n} | " + " | ".join(f"{x:.1%}" for x in cells) + " |")
    return "\n".join((title, "|---|---|---|---|---|", *rows))


def _drift_sentence() -> str:
    bias = drift_bias(DRIFT, 24, times=TIMES)
    return (
        f"A machine that becomes {DRIFT:.0%} slower over a run of 24 prompts makes the arm that "
        f"is measured first look {-math.expm1(bias.sequential):.2%} better than it is; with arms "
        f"taking turns the error is {abs(math.expm1(bias.interleaved)):.2%}."
    )
