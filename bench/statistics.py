"""The statistics tested as software, at full size."""

from __future__ import annotations

from bench import Figure
from lab.analyse.simulate import WORLDS, coverage, false_positives

KEYS = ("coverage_95_n8", "coverage_95_n24", "coverage_95_n96", "aa_false_positive_rate")
TIMES = 4000


def measure() -> dict[str, Figure]:
    """Simulated coverage over all worlds, and false positives of A/A runs."""
    found = {}
    for n in (8, 24, 96):
        shares = {world.name: coverage(world, n, times=TIMES) for world in WORLDS}
        note = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        mean = sum(shares.values()) / len(shares)
        found[f"coverage_95_n{n}"] = Figure(
            mean, min(shares.values()), max(shares.values()), TIMES, f"mean of worlds: {note}"
        )
    rates = {w.name: false_positives(w, 24, times=TIMES, margin=0.02) for w in WORLDS}
    worst = max(rates.values())
    note = ", ".join(f"{name} {share:.3f}" for name, share in rates.items())
    found["aa_false_positive_rate"] = Figure(worst, min(rates.values()), worst, TIMES, note)
    return found
