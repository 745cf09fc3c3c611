"""Replay any setting over recorded texts: the front of the drafters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from attrs import frozen

from lab.analyse.drafters.ngram_cache import DRAFT_MAX, Counts, replay_cache
from lab.analyse.drafters.ngram_map import Index, replay_map
from lab.analyse.drafters.ngram_mod import Pool, replay_mod
from lab.analyse.drafters.ngram_simple import replay_simple
from lab.analyse.drafters.prompt_lookup import replay_lookup
from lab.analyse.drafters.steps import ACCEPTED, DRAFTED, RecordedText, Steps, Tokens
from lab.errors import InputError
from lab.inputs.arm import Drafting, FlagValue

Memory = Pool | Index | Counts | None

PARAMETERS: Mapping[str, Mapping[str, int]] = {
    "ngram-simple": {"size-n": 12, "size-m": 48},
    "ngram-map-k": {"size-n": 12, "size-m": 48},
    "ngram-map-k4v": {"size-n": 12, "size-m": 48, "min-hits": 1},
    "ngram-mod": {"n-match": 24, "n-min": 48, "n-max": 64},
    "ngram-cache": {},
    "prompt-lookup": {"max-ngram-size": 2, "num-pred-tokens": 10},
}
"""The settings of each drafter and its defaults: llama-server's, but for prompt lookup, which
is llama-cpp-python's own."""


@frozen
class Setting:
    """A drafter with its parameters, hashable.

    Attributes
    ----------
    kind : a key of PARAMETERS. values : (parameter, value) for every parameter, in order.
    """

    kind: str
    values: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, kind: str, **parameters: int) -> Setting:
        """A setting by keyword, ``size_n=4``; what is left out has the engine's default.

        Raises
        ------
        InputError : no such drafter or parameter.
        """
        if kind not in PARAMETERS:
            raise InputError(
                "cannot be replayed", field="drafter", value=kind, fix=f"One of {list(PARAMETERS)}"
            )
        given = {name.replace("_", "-"): value for name, value in parameters.items()}
        unknown = sorted(set(given) - set(PARAMETERS[kind]))
        if unknown:
            raise InputError(
                f"{kind} has no such parameter",
                field=unknown[0],
                value=given[unknown[0]],
                fix=f"It has {list(PARAMETERS[kind])}",
            )
        return cls(kind, tuple({**PARAMETERS[kind], **given}.items()))

    def __getitem__(self, name: str) -> int:
        return dict(self.values)[name]

    def flags(self) -> dict[str, FlagValue]:
        """Flags that ask for this setting, as an arm spells them: without leading dashes."""
        prefix = _prefix(self.kind)
        return {f"{prefix}{name}": value for name, value in self.values}

    @property
    def longest_draft(self) -> int:
        """Most tokens it ever drafts at once."""
        known = dict(self.values)
        names = ("size-m", "n-max", "num-pred-tokens")
        return next((known[name] for name in names if name in known), DRAFT_MAX)

    @property
    def label(self) -> str:
        """Short name for a figure: "ngram-mod 24/48/64"."""
        numbers = "/".join(str(value) for name, value in self.values if name != "min-hits")
        return f"{self.kind} {numbers}".strip()


def _prefix(kind: str) -> str:
    return "" if kind == "prompt-lookup" else f"spec-{kind}-"


def setting_of(drafting: Drafting) -> Setting | None:
    """The setting of an arm; None when it drafts with something that cannot be replayed."""
    if len(drafting.types) != 1 or drafting.types[0] not in PARAMETERS:
        return None
    kind = drafting.types[0]
    prefix = _prefix(kind)
    given = {
        name.removeprefix(prefix): int(value)
        for name, value in drafting.flags.items()
        if name.startswith(prefix) and name.removeprefix(prefix) in PARAMETERS[kind]
    }
    return Setting(kind, tuple({**PARAMETERS[kind], **given}.items()))


def fresh_memory(kind: str) -> Memory:
    """What a drafter knows when its server has just started; None for one that keeps nothing."""
    if kind == "ngram-mod":
        return Pool()
    if kind in {"ngram-map-k", "ngram-map-k4v"}:
        return Index()
    return Counts() if kind == "ngram-cache" else None


def walk(setting: Setting, text: RecordedText, memory: Memory, n_ctx: int) -> Steps:
    """The drafted steps of one answer; ``memory`` is changed as the server's would be."""
    tokens = text.tokens
    if isinstance(memory, Pool | Index | Counts):
        memory.make_room(len(tokens))
    steps = np.empty((max(len(text.answer), 1), 3), np.int32)
    count = _WALKS[setting.kind](setting, text, tokens, memory, n_ctx, steps)
    return steps[:count]


_Walk = Callable[[Setting, RecordedText, Tokens, Memory, int, Steps], int]


def _simple(
    setting: Setting, text: RecordedText, tokens: Tokens, _: Memory, n_ctx: int, steps: Steps
) -> int:
    asked = len(text.prompt), text.n_predict, n_ctx
    return int(replay_simple(tokens, *asked, setting["size-n"], setting["size-m"], steps))


def _mod(
    setting: Setting, text: RecordedText, tokens: Tokens, pool: Memory, n_ctx: int, steps: Steps
) -> int:
    assert isinstance(pool, Pool)  # noqa: S101 - fresh_memory gave it
    asked = len(text.prompt), text.n_predict, n_ctx
    numbers = setting["n-match"], setting["n-min"], setting["n-max"]
    return int(replay_mod(tokens, *asked, *numbers, pool.table, pool.facts, pool.touched, steps))


def _map(
    setting: Setting, text: RecordedText, tokens: Tokens, index: Memory, n_ctx: int, steps: Steps
) -> int:
    assert isinstance(index, Index)  # noqa: S101 - fresh_memory gave it
    asked = len(text.prompt), text.n_predict, n_ctx
    key_only = setting.kind == "ngram-map-k"
    min_hits = 1 if key_only else setting["min-hits"]
    state = index.buckets, index.touched, index.keys, index.facts
    sizes = setting["size-n"], setting["size-m"]
    return int(replay_map(tokens, *asked, *sizes, min_hits, key_only, *state, steps))


def _cache(
    _: Setting, text: RecordedText, tokens: Tokens, counts: Memory, n_ctx: int, steps: Steps
) -> int:
    assert isinstance(counts, Counts)  # noqa: S101 - fresh_memory gave it
    asked = len(text.prompt), text.n_predict, n_ctx
    return int(replay_cache(tokens, *asked, counts.tokens, counts.starts, counts.facts, steps))


def _lookup(
    setting: Setting, text: RecordedText, tokens: Tokens, _: Memory, n_ctx: int, steps: Steps
) -> int:
    sizes = setting["max-ngram-size"], setting["num-pred-tokens"]
    return int(replay_lookup(tokens, len(text.prompt), n_ctx, *sizes, steps))


_WALKS: Mapping[str, _Walk] = {
    "ngram-simple": _simple,
    "ngram-map-k": _map,
    "ngram-map-k4v": _map,
    "ngram-mod": _mod,
    "ngram-cache": _cache,
    "prompt-lookup": _lookup,
}


def replay(
    setting: Setting, texts: Sequence[RecordedText], *, state: str = "cold", n_ctx: int = 2048
) -> list[Steps]:
    """The drafted steps of every text.

    Parameters
    ----------
    state : "cold", a fresh server for each text; "warm-other", one server for all in the
        order given; "warm-same", each text a second time on the server that just gave it.
    """
    memory = fresh_memory(setting.kind)
    found = []
    for text in texts:
        if memory is not None and state != "warm-other":
            memory.forget()
        if state == "warm-same":
            walk(setting, text, memory, n_ctx)
        found.append(walk(setting, text, memory, n_ctx))
    return found


def summary(texts: Sequence[RecordedText], steps: Iterable[Steps]) -> pd.DataFrame:
    """What the server's counters would say: one row a text.

    Columns: key, draft_n, draft_n_accepted, drafted_steps, target_steps, draft_coverage,
    acceptance_rate, acceptance_length, tokens_per_step; missing where nothing was drafted.
    """
    rows = []
    for text, one in zip(texts, steps, strict=True):
        drafted, accepted = int(one[:, DRAFTED].sum()), int(one[:, ACCEPTED].sum())
        rows.append((text.key, drafted, accepted, len(one), len(text.answer) - 1 - accepted))
    names = ["key", "draft_n", "draft_n_accepted", "drafted_steps", "target_steps"]
    out = pd.DataFrame(rows, columns=names)
    steps_taken = out["target_steps"].where(out["target_steps"] > 0)
    fired = out["drafted_steps"].where(out["drafted_steps"] > 0)
    out["draft_coverage"] = out["drafted_steps"] / steps_taken
    out["acceptance_rate"] = out["draft_n_accepted"] / out["draft_n"].where(out["draft_n"] > 0)
    out["acceptance_length"] = 1 + out["draft_n_accepted"] / fired
    out["tokens_per_step"] = (out["target_steps"] + out["draft_n_accepted"]) / steps_taken
    return out
