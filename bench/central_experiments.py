"""The figures of the two central experiments, from a whole run of the embedded profile."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from attrs import evolve
from rich.console import Console

from bench import Figure
from lab import paths
from lab.analyse.findings import Finding, read_findings
from lab.reproduce import reproduce, sentinel

KEYS = (
    "embedded_two_notebooks_s",
    "warm_same_tenth_run_low",
    "cold_diverse_ratio",
    "aa_median_abs_log_ratio",
)
NOTEBOOKS = ("01_cache_warmup_trap", "02_diverse_prompts")


def measure() -> dict[str, Figure]:
    """Run both notebooks of the embedded profile; the run is kept with the others."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "two.toml"
        wanted = ", ".join(f'"{name}"' for name in NOTEBOOKS)
        profile.write_text(f'extends = "embedded"\nname = "embedded"\nnotebooks = [{wanted}]\n')
        started = time.monotonic()
        run, outcomes = reproduce(
            str(profile), prompts="", run="new", results=Path(folder), console=Console()
        )
        seconds = time.monotonic() - started
        failed = [one.notebook for one in outcomes if one.status != "complete"]
        if failed:
            raise RuntimeError(f"these notebooks failed: {failed}")
        found = {one.id: one for name in NOTEBOOKS for one in read_findings(sentinel(run, name))}
        kept = paths.RESULTS / "embedded" / run.name
        shutil.copytree(run, kept, dirs_exist_ok=True)
    warm = _figure(found["01/climb/ngram-mod-24-48-64"])
    return {
        "embedded_two_notebooks_s": Figure(round(seconds, 1)),
        "warm_same_tenth_run_low": evolve(warm, value=warm.low, note=f"estimate {warm.value:.3f}"),
        "cold_diverse_ratio": _figure(found["02/diverse/ngram-mod-24-48-64"]),
        "aa_median_abs_log_ratio": _figure(found["02/aa"]),
    }


def _figure(finding: Finding) -> Figure:
    one = finding.estimate
    if one is None:
        return Figure(None, note=finding.sentence)
    return Figure(one.value, one.low, one.high, one.n, finding.verdict)
