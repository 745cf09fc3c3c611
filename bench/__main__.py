"""``python -m bench [KEY ...]``: measure, one benchmark at a time, and write docs/measured.json."""

from __future__ import annotations

import csv
import datetime as dt
import importlib
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from attrs import asdict
from rich.console import Console

from bench import Figure
from lab import paths
from lab.machine.hardware import machine_facts
from lab.machine.quiet import check_quiet
from lab.measure.manifest import commit

HERE = Path(__file__).parent
TARGET = paths.ROOT / "docs" / "measured.json"
console = Console()


def keys() -> dict[str, dict[str, str]]:
    """The figures an issue or a document names, by key: op, target, unit, meaning."""
    with (HERE / "keys.csv").open(encoding="utf-8") as stream:
        return {row["key"]: row for row in csv.DictReader(stream)}


def modules() -> dict[str, Any]:
    """Every benchmark module by name."""
    names = sorted(file.stem for file in HERE.glob("[a-z]*.py"))
    return {name: importlib.import_module(f"bench.{name}") for name in names}


def main(wanted: list[str]) -> int:
    """Run the benchmarks that measure the wanted keys (all when none is named)."""
    known = keys()
    unknown = [key for key in wanted if key not in known]
    if unknown:
        console.print(f"[red]unknown key {unknown[0]!r}[/]; known: {', '.join(known)}")
        return 2
    failed = 0
    for name, module in modules().items():
        asked = [key for key in module.KEYS if not wanted or key in wanted]
        if asked:
            failed += not _run(name, module, asked, known)
    return 1 if failed else 0


def _run(name: str, module: Any, asked: list[str], known: dict[str, dict[str, str]]) -> bool:
    console.rule(f"bench.{name}: {', '.join(asked)}")
    quiet = check_quiet()
    try:
        figures: dict[str, Figure] = module.measure()
    except Exception:  # noqa: BLE001 - one broken benchmark must not hide the others
        console.print_exception()
        return False
    still_quiet = check_quiet()
    entries = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
    for key in asked:
        entries[key] = asdict(figures[key]) | {
            "unit": known[key]["unit"],
            "target": f"{known[key]['op']} {known[key]['target']}".strip(),
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "commit": commit(),
            "machine": machine_facts().label,
            "quiet": quiet.quiet and still_quiet.quiet,
            "quiet_reasons": [*quiet.reasons, *still_quiet.reasons],
            "command": shlex.join(["python", "-m", "bench", key]),
        }
        console.print(f"{key} = {figures[key].value} {known[key]['unit']}")
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n", encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
