"""Kill a smoke run at random points, over and over; does it end with every record once?"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from bench import Figure
from lab import paths
from lab.experiments import diverse, repeat
from lab.inputs.profiles import load_profile
from lab.inputs.prompts import named_set

KEYS = ("kills_resumed_of_50",)
KILLS = 50
LONGEST_S = 12.0
VICTIMS = ("runner", "kernel", "server")


def planned_keys() -> set[str]:
    """Every record key that the smoke profile plans."""
    profile = load_profile("smoke")
    prompts = named_set(profile.prompts)
    asked, others = repeat.chosen_prompts(profile, prompts)
    plans = [
        repeat.climb_plan(profile, asked),
        repeat.forget_plan(profile, asked[0], others),
        *diverse.plans(profile, lambda name: named_set(name or profile.prompts)),
    ]
    return {plan.key(one) for plan in plans if plan is not None for one in plan.requests}


def _victim(runner: psutil.Process, kind: str) -> psutil.Process:
    """The process to kill: the runner itself, its kernel, or a server; else the runner."""
    marks = {"kernel": "ipykernel_launcher", "server": "llama-server"}
    for child in runner.children(recursive=True):
        if kind in marks and any(marks[kind] in word for word in child.cmdline()[:3]):
            return child
    return runner


def _killed_once(results: Path, draw: random.Random) -> str:
    """Start or resume the run, kill something after a random while, wait until all is quiet."""
    words = ["-m", "lab", "reproduce", "--profile", "smoke", "--results", str(results)]
    with subprocess.Popen(
        [sys.executable, *words, "--run", "killed"],
        cwd=paths.ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as started:
        time.sleep(draw.uniform(0.5, LONGEST_S))
        kind = draw.choice(VICTIMS)
        try:
            victim = _victim(psutil.Process(started.pid), kind)
            os.kill(victim.pid, signal.SIGKILL)
        except (psutil.NoSuchProcess, ProcessLookupError):
            kind = "none (it had ended)"
        if kind in {"server", "kernel"}:
            started.terminate()
    time.sleep(0.5)
    return kind


def _left_behind() -> list[int]:
    mine = str(paths.ENGINE)
    return [
        one.pid
        for one in psutil.process_iter(["cmdline"])
        if any(mine in word for word in one.info["cmdline"] or [])
    ]


def measure() -> dict[str, Figure]:
    """Kill KILLS times, then let the run end; count the kills after which nothing was lost."""
    draw = random.Random(11)  # noqa: S311 - an experimental design
    planned = planned_keys()
    sound, killed = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        records = results / "smoke" / "killed" / "records.jsonl"
        for _ in range(KILLS):
            killed[_killed_once(results, draw)] += 1
            keys = _keys(records)
            once = max(Counter(keys).values(), default=1) == 1
            sound += once and not _left_behind()
            if planned <= set(keys):
                records.unlink()  # complete: begin anew, so that later kills hit a run too
                for done in (records.parent / "findings").glob("*.json"):
                    done.unlink()
        words = ["-m", "lab", "reproduce", "--profile", "smoke", "--results", str(results)]
        subprocess.run([sys.executable, *words, "--run", "killed"], cwd=paths.ROOT, check=True)
        keys = _keys(records)
        complete = planned <= set(keys) and max(Counter(keys).values()) == 1
    note = ", ".join(f"{count} x {kind}" for kind, count in killed.items())
    return {"kills_resumed_of_50": Figure(sound if complete else 0, n=KILLS, note=note)}


def _keys(records: Path) -> list[str]:
    if not records.exists():
        return []
    whole = records.read_bytes().rpartition(b"\n")[0]
    return [json.loads(line)["key"] for line in whole.splitlines()]
