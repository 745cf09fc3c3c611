"""Which flags this llama-server knows, and what older spellings are called by it.

llama.cpp renamed its speculation flags in 2026; a removed flag stops the server. So the
``--help`` of the very server is read once, names are checked against it before launch,
and every translation is said in words.
"""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from lab.errors import InputError, SetupError
from lab.inputs.arm import FlagValue
from lab.setup.clean_environment import scrubbed_environment

_OPTION = re.compile(r"^(-{1,2}[a-zA-Z][\w-]*(?:,\s+-{1,2}[a-zA-Z][\w-]*)*)(.*)$")
_REMOVED = "the argument has been removed"

_SIZED = ("ngram-simple", "ngram-map-k", "ngram-map-k4v")

_OLD_NAMES = {
    "length": ("draft-max", "draft", "draft-n", "draft-n-max"),
    "least": ("draft-min", "draft-n-min"),
    "match": ("spec-ngram-size-n",),
    "continuation": ("spec-ngram-size-m",),
    "hits": ("spec-ngram-min-hits",),
}
"""What a setting of a drafter was called before every drafter had flags of its own."""

_NEW_NAMES = {
    "ngram-mod": {
        "length": "spec-ngram-mod-n-max",
        "least": "spec-ngram-mod-n-min",
        "match": "spec-ngram-mod-n-match",
    },
    "draft": {"length": "spec-draft-n-max", "least": "spec-draft-n-min"},
} | {
    kind: {
        "match": f"spec-{kind}-size-n",
        "continuation": f"spec-{kind}-size-m",
        "hits": f"spec-{kind}-min-hits",
    }
    for kind in _SIZED
}
"""What the same settings are called today, by drafter; "draft" stands for every draft model."""

LONGEST_SHORT = 3
"""Letters of the longest one-dash flags worth giving by hand (-ngl)."""


@frozen
class FlagTable:
    """What ``--help`` says: known names and removed ones with the server's advice.

    Names are without leading dashes.
    """

    known: frozenset[str]
    removed: Mapping[str, str]
    bare_flash_attn: bool
    """True when this build's --flash-attn takes no value."""


@lru_cache
def flag_table(server: Path) -> FlagTable:
    """The flags of a server.

    Raises
    ------
    SetupError : the program does not answer ``--help`` like a llama-server.
    """
    done = subprocess.run(
        [server, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=dict(scrubbed_environment().values),
    )
    table = parse_help(done.stdout + done.stderr)
    if "model" not in table.known:
        raise SetupError(f"{server} --help does not read like that of a llama-server")
    return table


def parse_help(text: str) -> FlagTable:
    """The flag table from the text of ``--help``."""
    known: set[str] = set()
    removed: dict[str, str] = {}
    names: list[str] = []
    bare = False
    for line in text.splitlines():
        option = _OPTION.match(line)
        if option:
            names = [name.lstrip("-") for name in re.split(r",\s+", option[1])]
            known.update(names)
            if "flash-attn" in names:
                bare = "on|off" not in line
        if _REMOVED in line:
            removed |= dict.fromkeys(names, line.split(_REMOVED, 1)[1].strip(". "))
        elif names and names[0] in removed and line.startswith(" "):
            removed |= {name: f"{removed[name]} {line.strip()}" for name in names}
    return FlagTable(frozenset(known - set(removed)), removed, bare)


def counterparts(name: str, spec_type: str) -> tuple[str, ...]:
    """What another era calls a drafter's setting, today's name first; empty when nothing fits."""
    kind = "draft" if spec_type.startswith("draft-") else spec_type
    today = _NEW_NAMES.get(kind, {})
    for setting, old_names in _OLD_NAMES.items():
        new_name = today.get(setting)
        if name in old_names or name == new_name:
            return tuple(filter(None, (new_name, *old_names)))
    return ()


def translate(
    flags: Mapping[str, FlagValue], spec_types: Sequence[str], table: FlagTable
) -> tuple[dict[str, FlagValue], tuple[str, ...]]:
    """Flags in the spelling of this build, and a note for each that was changed.

    A flag of an older era whose drafter has no such setting any more is left out, with a
    note. Names are given and returned without leading dashes.

    Raises
    ------
    InputError : this build knows neither the flag nor a counterpart; names the nearest.
    """
    spelled: dict[str, FlagValue] = {}
    notes: list[str] = []
    for given, value in flags.items():
        name = given.lstrip("-")
        if name in table.known:
            spelled[name] = value
            continue
        found = [
            next(filter(table.known.__contains__, counterparts(name, spec_type)), "")
            for spec_type in spec_types
        ]
        found = [one for one in found if one]
        if found:
            spelled |= dict.fromkeys(found, value)
            notes.append(f"--{name} is --{', --'.join(found)} in this build")
        elif name in table.removed and spec_types:
            notes.append(f"--{name} left out: {', '.join(spec_types)} has no such setting here")
        else:
            raise InputError(
                "this llama-server does not know the flag",
                field=f"--{name}",
                value=value,
                fix=_advice(name, table),
            )
    return spelled, tuple(notes)


def _advice(name: str, table: FlagTable) -> str:
    if name in table.removed:
        return f"It was removed: {table.removed[name]}"
    near = difflib.get_close_matches(name, table.known, n=3, cutoff=0.5)
    return f"Nearest: --{', --'.join(near)}" if near else "See llama-server --help"


def as_arguments(flags: Mapping[str, FlagValue]) -> list[str]:
    """Command-line words of flags: True is the bare flag, False leaves it out."""
    words: list[str] = []
    for name, value in flags.items():
        dash = "-" if len(name) <= LONGEST_SHORT else "--"
        if value is True:
            words.append(dash + name)
        elif value is not False:
            words += [dash + name, str(value)]
    return words
