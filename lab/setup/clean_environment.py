"""The environment engine programs get: nothing in it configures them behind our back.

llama.cpp reads LLAMA_ARG_* variables as if they were flags, and a removed flag left in
the shell stops even ``--help``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from attrs import frozen

_SCRUBBED = ("LLAMA_ARG_", "LLAMA_API_KEY", "LLAMA_LOG_", "LLAMA_OFFLINE", "HF_TOKEN")
"""Prefixes of environment variables that could change what a server does, or are secret."""


@frozen
class Environment:
    """The environment a server gets, and the names of what was kept from it."""

    values: Mapping[str, str]
    removed: tuple[str, ...]


def scrubbed_environment(extra: Mapping[str, str] | None = None) -> Environment:
    """The environment without what would configure a server behind our back."""
    removed = tuple(sorted(name for name in os.environ if name.startswith(_SCRUBBED)))
    kept = {name: value for name, value in os.environ.items() if name not in removed}
    return Environment(kept | dict(extra or {}), removed)
