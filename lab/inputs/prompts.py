"""Prompts and sets of prompts: the unit of every experiment."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path

from attrs import field, frozen

from lab import paths
from lab.errors import InputError

SHINGLE = 5
"""Words of a shingle when two prompts are compared."""


@frozen
class Message:
    """One turn of a conversation; ``role`` is "system", "user" or "assistant"."""

    role: str
    content: str


@frozen
class Prompt:
    """One thing to ask a model.

    Attributes
    ----------
    id : unique within a set.
    category : what kind of text it asks for ("code-python", "summary", ...).
    messages : the conversation up to the answer; at least one, the last from the user.
    licence : SPDX id or "user" for a person's own prompts.
    source : where it comes from.
    language : BCP 47 tag of the text.
    """

    id: str
    category: str
    messages: tuple[Message, ...]
    licence: str = "user"
    source: str = ""
    language: str = "en"

    @property
    def text(self) -> str:
        """All turns as one text."""
        return "\n\n".join(message.content for message in self.messages)


@frozen
class PromptSet:
    """An ordered set of prompts with a fingerprint of its content.

    Attributes
    ----------
    name : file stem. prompts : in file order, ids unique.
    fingerprint : SHA-256 over ids and messages, hex; the same content has the same one.
    """

    name: str
    prompts: tuple[Prompt, ...]
    fingerprint: str = field(init=False)

    @fingerprint.default
    def _digest(self) -> str:
        content = [
            [one.id, one.category, [[turn.role, turn.content] for turn in one.messages]]
            for one in self.prompts
        ]
        text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def named_set(name: str | Path) -> PromptSet:
    """A prompt set shipped in data/prompts by its name, or a file in any known format.

    Raises
    ------
    InputError : no such set, or a file that cannot be read; names line and field.
    """
    from lab.inputs.prompt_files import read_prompt_file  # noqa: PLC0415 - it needs this file

    shipped = paths.PROMPTS / f"{name}.jsonl"
    file = shipped if shipped.is_file() else Path(name)
    if not file.exists():
        known = sorted(one.stem for one in paths.PROMPTS.glob("*.jsonl"))
        raise InputError(
            "no such prompt set", field="prompts", value=str(name), fix=f"A file, or one of {known}"
        )
    return read_prompt_file(file)


def near_duplicates(
    prompts: Sequence[Prompt], threshold: float = 0.8
) -> tuple[tuple[str, str, float], ...]:
    """Pairs of prompts whose texts share most of their word shingles.

    Similarity is Jaccard's index over shingles of SHINGLE words (Broder 1997). Only pairs
    that share a shingle are compared, so a thousand prompts take a moment.
    """
    shingles = {one.id: _shingles(one.text) for one in prompts}
    holders: dict[Hashable, list[str]] = defaultdict(list)
    shared: dict[tuple[str, str], int] = defaultdict(int)
    for prompt in prompts:
        for shingle in shingles[prompt.id]:
            for other in holders[shingle]:
                shared[other, prompt.id] += 1
            holders[shingle].append(prompt.id)
    found = []
    for (a, b), common in shared.items():
        similarity = common / len(shingles[a] | shingles[b])
        if similarity >= threshold:
            found.append((a, b, similarity))
    return tuple(sorted(found, key=lambda pair: -pair[2]))


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()
    if len(words) <= SHINGLE:
        return {tuple(words)}
    return {tuple(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1)}


def repetition(tokens: Sequence[Hashable], n: int = 8) -> float | None:
    """How much of a text repeats itself: the share of n-grams that occurred before.

    1 - distinct / all n-grams, the rep-n of Welleck et al. (2020), for tokens or words.
    None when the text is shorter than n.
    """
    total = len(tokens) - n + 1
    if total < 1:
        return None
    distinct = {tuple(tokens[start : start + n]) for start in range(total)}
    return 1 - len(distinct) / total


def stratified_sample(prompts: PromptSet, n: int, seed: int) -> PromptSet:
    """At most ``n`` prompts, categories taking turns in random order.

    The sample for n is the beginning of the sample for n + 1 with the same seed, so a
    larger run contains the smaller one.
    """
    draw = random.Random(seed)  # noqa: S311 - an experimental design, not a secret
    groups: dict[str, list[Prompt]] = defaultdict(list)
    for prompt in prompts.prompts:
        groups[prompt.category].append(prompt)
    names = sorted(groups)
    draw.shuffle(names)
    for name in names:
        draw.shuffle(groups[name])
    picked: list[Prompt] = []
    while len(picked) < n and any(groups.values()):
        picked += [groups[name].pop() for name in names if groups[name]]
    return PromptSet(prompts.name, tuple(picked[:n]))
