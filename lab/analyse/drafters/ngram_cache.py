"""ngram-cache: counts of what followed 1 to 4 tokens, kept for the life of a server's slot.

Two quirks of the engine decide what it can do. Nothing is told to it when a request
begins, so a prompt shorter than what it has already counted is never read. And each time
only the tokens since the last count are read, by themselves: an n-gram that begins before
them is not counted, and a single new token teaches nothing.
"""

from __future__ import annotations

import numpy as np
from attrs import define, field
from numba import njit
from numpy.typing import NDArray

from lab.analyse.drafters.steps import Steps, Tokens, agreed, room

LONGEST = 4
DRAFT_MAX = 8
LEAST_SAMPLE = np.array([2, 2, 1, 1])
LEAST_PERCENT = np.array([66, 50, 50, 50])
_FOLLOWERS = 64


@define(eq=False)
class Counts:
    """Everything counted so far, as the pieces of text it was counted from.

    Attributes
    ----------
    tokens : the pieces one after another. starts : for each token, where its piece begins.
    facts : tokens held, and how long the engine believes the counted text to be.
    """

    tokens: Tokens = field(factory=lambda: np.zeros(1 << 14, np.int32))
    starts: NDArray[np.int64] = field(factory=lambda: np.zeros(1 << 14, np.int64))
    facts: NDArray[np.int64] = field(factory=lambda: np.zeros(2, np.int64))

    def forget(self) -> None:
        """As a fresh server."""
        self.facts[:] = 0

    def make_room(self, tokens: int) -> None:
        """Let the arrays hold ``tokens`` more."""
        needed = int(self.facts[0]) + tokens + 1
        if needed > len(self.tokens):
            self.tokens = np.concatenate([self.tokens, np.zeros(needed, np.int32)])
            self.starts = np.concatenate([self.starts, np.zeros(needed, np.int64)])


@njit(cache=True)
def _read(tokens, depth, held, starts, facts):
    """Take in the tokens since the last count, up to the sampled one at ``depth``."""
    if facts[1] >= depth + 1:
        return
    start = facts[0]
    for at in range(facts[1], depth + 1):
        held[facts[0]] = tokens[at]
        starts[facts[0]] = start
        facts[0] += 1
    facts[1] = depth + 1


@njit(cache=True)
def _likely(window, end, held, starts, total):
    """The token to draft after window[:end]; -1 when none is likely enough."""
    followers = np.empty(_FOLLOWERS, np.int32)
    counts = np.empty(_FOLLOWERS, np.int64)
    for length in range(min(LONGEST, end), 0, -1):
        distinct, sample = 0, 0
        for at in range(length, total):
            if at - length < starts[at]:
                continue
            matching = True
            for place in range(length):
                if held[at - length + place] != window[end - length + place]:
                    matching = False
                    break
            if not matching:
                continue
            sample += 1
            slot = 0
            while slot < distinct and followers[slot] != held[at]:
                slot += 1
            if slot == distinct:
                if distinct == len(followers):
                    followers = np.concatenate((followers, np.empty_like(followers)))
                    counts = np.concatenate((counts, np.empty_like(counts)))
                followers[slot] = held[at]
                counts[slot] = 0
                distinct += 1
            counts[slot] += 1
        if distinct == 0:
            continue
        best = 0
        for slot in range(1, distinct):
            # Of equals the one first seen later wins: it stands first in the engine's map.
            if counts[slot] >= counts[best]:
                best = slot
        if sample >= LEAST_SAMPLE[length - 1]:
            if 100 * counts[best] >= LEAST_PERCENT[length - 1] * sample:
                return followers[best]
    return np.int32(-1)


@njit(cache=True)
def replay_cache(
    tokens: Tokens,
    prompt_n: int,
    n_predict: int,
    n_ctx: int,
    held: Tokens,
    starts: NDArray[np.int64],
    facts: NDArray[np.int64],
    steps: Steps,
) -> int:
    """Walk through a recorded answer with counts; write drafted steps, return how many."""
    draft = np.empty(DRAFT_MAX, np.int32)
    window = np.empty(LONGEST + DRAFT_MAX, np.int32)
    count, generated, answered = 0, 1, len(tokens) - prompt_n
    while generated < answered:
        depth = prompt_n + generated - 1
        most = room(depth, generated, n_predict, n_ctx)
        size = 0
        if most > 0:
            _read(tokens, depth, held, starts, facts)
            known = min(LONGEST, depth + 1)
            for place in range(known):
                window[place] = tokens[depth + 1 - known + place]
            while size < DRAFT_MAX:
                token = _likely(window, known + size, held, starts, facts[0])
                if token < 0:
                    break
                window[known + size] = token
                draft[size] = token
                size += 1
        size = min(size, most)
        if size > 0:
            right = agreed(tokens, depth + 1, draft, size, n_ctx)
            steps[count] = depth, size, right
            count += 1
            generated += right
        generated += 1
    return count
