"""What is there, what is missing, and what each missing thing costs.

It looks at engine, files and machine alike, so it stands above the stages.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib import metadata

import pandas as pd
from attrs import asdict, frozen
from rich.table import Table

from lab import paths
from lab.errors import LabError
from lab.machine.hardware import machine_facts
from lab.machine.quiet import check_quiet
from lab.setup.engine import find_engine
from lab.setup.models import embedded_model
from lab.setup.toolkits import detect

DISK_WANTED_GB = 6.0
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@frozen
class Examined:
    """One thing looked at.

    Attributes
    ----------
    what : name. found : what is there, in words. state : "ok", "note" or "missing".
    cost : what cannot be done, or is less certain, without it; empty when ok.
    """

    what: str
    found: str
    state: str
    cost: str = ""


def examine() -> tuple[Examined, ...]:
    """Look at everything; never raises for something that is missing."""
    return (
        _compiler(),
        _engine(),
        _attempt("model", lambda: embedded_model().name, "the embedded profile cannot run"),
        *_toolkits(),
        *_packages(),
        _disk(),
        _results(),
        _browser(),
        *_machine(),
    )


def _attempt(what: str, find: Callable[[], str], cost: str) -> Examined:
    try:
        return Examined(what, find(), "ok")
    except LabError as error:
        return Examined(what, str(error), "missing", cost)


def _compiler() -> Examined:
    found = next((one for one in ("c++", "g++", "clang++") if shutil.which(one)), None)
    if found:
        return Examined("C++ compiler", found, "ok")
    return Examined(
        "C++ compiler",
        "none",
        "missing",
        "llama.cpp cannot be built; a llama-server of your own (LLAMA_SERVER=) still serves "
        "notebooks 01 and 02, but the verify-cost curve and the stand-ins need the built one",
    )


def _engine() -> Examined:
    def describe() -> str:
        engine = find_engine()
        seconds = engine.options.get("seconds")
        built = f", built in {seconds:.0f} s" if seconds else ""
        toolkit = engine.options.get("toolkit", "unknown")
        return f"{engine.source}, {engine.build}, for {toolkit}{built}"

    return _attempt("engine", describe, "nothing can be measured")


def _toolkits() -> Iterator[Examined]:
    for one in detect():
        if one.present and one.device:
            yield Examined(one.name, one.reason, "ok")
        elif one.present:
            yield Examined(
                one.name,
                one.reason,
                "note",
                f"not used by itself; LAB_GPU={one.name} builds for it",
            )
        elif one.device:
            yield Examined(
                one.name,
                one.reason,
                "missing",
                "the card is not used until its toolkit is installed",
            )


def _packages() -> Iterator[Examined]:
    installed = {dist.metadata["Name"].lower() for dist in metadata.distributions()}
    if "pynvml" in installed:
        yield Examined(
            "pynvml",
            "the deprecated distribution of that name is installed",
            "note",
            "it shares the module name with nvidia-ml-py; uninstall it if readings look wrong",
        )


def _disk() -> Examined:
    free_gb = shutil.disk_usage(paths.ROOT).free / 1e9
    enough = free_gb >= DISK_WANTED_GB
    return Examined(
        "disk",
        f"{free_gb:.0f} GB free",
        "ok" if enough else "missing",
        "" if enough else f"{DISK_WANTED_GB:.0f} GB are wanted: environment, build, stand-ins",
    )


def _results() -> Examined:
    nearest = next(one for one in (paths.RESULTS, *paths.RESULTS.parents) if one.exists())
    writable = os.access(nearest, os.W_OK)
    return Examined(
        "results folder",
        str(paths.RESULTS),
        "ok" if writable else "missing",
        "" if writable else "not writable: name another with RESULTS=",
    )


def _browser() -> Examined:
    found = next((one for one in CHROMIUM if shutil.which(one)), None)
    if found:
        return Examined("browser", found, "ok")
    return Examined("browser", "no Chromium", "note", "the browser tests of `make test` fail")


def _machine() -> Iterator[Examined]:
    facts = machine_facts()
    yield Examined("processor", f"{facts.cpu.model}, {facts.cpu.threads} threads", "ok")
    if facts.gpus:
        yield Examined("cards", facts.label, "ok")
    else:
        yield Examined(
            "cards",
            facts.gpu_problem or "none",
            "note",
            "claims about graphics cards are not tested",
        )
    for note in facts.notes:
        yield Examined("machine", note, "note", "read it before trusting numbers from here")
    quiet = check_quiet(facts)
    yield Examined(
        "quiet",
        "yes" if quiet.quiet else "; ".join(quiet.reasons),
        "ok" if quiet.quiet else "note",
        "" if quiet.quiet else "measurements are labelled busy and their intervals are wide",
    )


def table(found: tuple[Examined, ...]) -> Table:
    """The findings as a terminal table."""
    colours = {"ok": "green", "note": "yellow", "missing": "red"}
    shown = Table(title="What this machine has", title_justify="left")
    for column in ("", "what", "found", "what it costs"):
        shown.add_column(column, overflow="fold")
    for one in found:
        shown.add_row(f"[{colours[one.state]}]{one.state}[/]", one.what, one.found, one.cost)
    return shown


def frame(found: tuple[Examined, ...]) -> pd.DataFrame:
    """The findings as a data frame, for a notebook."""
    return pd.DataFrame([asdict(one) for one in found])
