"""Keywords of llama-cpp-python's constructor, checked because it swallows any others."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from lab.errors import InputError

_OURS = frozenset({"model_path", "draft_model", "logits_all", "verbose", "embedding", "vocab_only"})
"""Keywords that the lab sets itself: another value would make the run something else."""


def check_keywords(constructor: Callable[..., Any], given: Mapping[str, object]) -> None:
    """Refuse keywords that would be ignored without a word, or that spoil a measurement.

    Raises
    ------
    InputError : not a parameter of ``constructor``; one the lab sets; or seed 0, which is
        taken for "no seed".
    """
    parameters = inspect.signature(constructor).parameters.values()
    named = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}
    for name, value in given.items():
        if name not in named:
            near = difflib.get_close_matches(name, named, n=3)
            raise InputError(
                "is no keyword of llama-cpp-python and would be ignored",
                field=f"flags.{name}",
                value=value,
                fix=f"Did you mean {' or '.join(near)}?" if near else "Leave it out",
            )
        if name in _OURS:
            raise InputError("is set by the lab", field=f"flags.{name}", value=value)
        if name == "seed" and value in (0, -1):
            raise InputError(
                "is taken for no seed at all",
                field="flags.seed",
                value=value,
                fix="Leave it out: a seed goes with every request",
            )
