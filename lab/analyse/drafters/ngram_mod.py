"""ngram-mod: one hash table from n tokens to the next, shared by all requests of a server.

Two things empty it by themselves: a quarter of it being filled when a request begins,
and five drafts in a row of which less than a quarter was right, a streak that is counted
across requests. A chain shorter than n_min is thrown away whole. Generated tokens enter
the table in chunks, once more than 32 are waiting.
"""

from __future__ import annotations

import numpy as np
from attrs import define, field
from numba import njit
from numpy.typing import NDArray

from lab.analyse.drafters.steps import Steps, Tokens, agreed, room

ENTRIES = 4 * 1024 * 1024
EMPTY = -1
FULL = 0.25
LOW = 0.25
LOW_STREAK = 5
CHUNK = 32
_FACTOR = np.uint64(6364136223846793005)
_USED, _STREAK, _ADDED, _TOUCHED = 0, 1, 2, 3


def _table() -> Tokens:
    return np.full(ENTRIES, EMPTY, np.int32)


@define(eq=False)
class Pool:
    """The table and what is known of it; survives from request to request.

    Attributes
    ----------
    table : next token by hash, EMPTY where nothing was learnt.
    facts : filled entries, low-acceptance streak, place up to which the present text was
        added, and how many entries of ``touched`` count.
    touched : entries written since the table was last known empty, so that emptying it
        need not sweep 16 MB.
    """

    table: Tokens = field(factory=_table)
    facts: NDArray[np.int64] = field(factory=lambda: np.zeros(4, np.int64))
    touched: NDArray[np.int64] = field(factory=lambda: np.zeros(1 << 20, np.int64))

    def forget(self) -> None:
        """As a fresh server."""
        self.table[self.touched[: self.facts[_TOUCHED]]] = EMPTY
        self.facts[:] = 0

    def make_room(self, tokens: int) -> None:
        """Let ``touched`` hold what ``tokens`` more tokens can write."""
        needed = int(self.facts[_TOUCHED]) + 2 * tokens
        if needed > len(self.touched):
            self.touched = np.concatenate([self.touched, np.zeros(needed, np.int64)])


@njit(cache=True)
def _slot(tokens: Tokens, at: int, n: int) -> int:
    mixed = np.uint64(0)
    for place in range(n):
        mixed = mixed * _FACTOR + np.uint64(tokens[at + place])
    return int(mixed % np.uint64(ENTRIES))


@njit(cache=True)
def _learn(tokens, start, end, n, table, facts, touched):
    """Add the n-grams that begin in start..end-1, each with the token after it."""
    for at in range(start, end):
        slot = _slot(tokens, at, n)
        if table[slot] == EMPTY:
            facts[_USED] += 1
            touched[facts[_TOUCHED]] = slot
            facts[_TOUCHED] += 1
        table[slot] = tokens[at + n]


@njit(cache=True)
def _empty(table, facts, touched):
    for place in range(facts[_TOUCHED]):
        table[touched[place]] = EMPTY
    facts[_USED] = 0
    facts[_TOUCHED] = 0


@njit(cache=True)
def _chain(tokens, depth, n, n_min, n_max, table, window):
    """Follow the table from the last n tokens; the draft begins at window[n]."""
    for place in range(n):
        window[place] = tokens[depth - n + 1 + place]
    for place in range(n_max):
        token = table[_slot(window, place, n)]
        if token == EMPTY:
            return 0 if place < n_min else place
        window[n + place] = token
    return n_max


@njit(cache=True)
def replay_mod(
    tokens: Tokens,
    prompt_n: int,
    n_predict: int,
    n_ctx: int,
    n: int,
    n_min: int,
    n_max: int,
    table: Tokens,
    facts: NDArray[np.int64],
    touched: NDArray[np.int64],
    steps: Steps,
) -> int:
    """Walk through a recorded answer with a pool; write drafted steps, return how many."""
    facts[_ADDED] = 0
    if prompt_n >= n:
        _learn(tokens, 0, prompt_n - n, n, table, facts, touched)
        facts[_ADDED] = prompt_n - n
        if facts[_USED] / ENTRIES > FULL:
            _empty(table, facts, touched)
    window = np.empty(n + n_max, np.int32)
    count, generated, answered = 0, 1, len(tokens) - prompt_n
    while generated < answered:
        depth = prompt_n + generated - 1
        most = room(depth, generated, n_predict, n_ctx)
        chained = 0
        if most > 0 and depth >= n:
            if facts[_ADDED] + CHUNK < depth:
                _learn(tokens, facts[_ADDED], depth - n, n, table, facts, touched)
                facts[_ADDED] = depth - n
            chained = _chain(tokens, depth, n, n_min, n_max, table, window)
        size = min(chained, most)
        if size > 0:
            right = agreed(tokens, depth + 1, window[n:], size, n_ctx)
            steps[count] = depth, size, right
            count += 1
            generated += right
            # Judged by what was chained, also where the end of the answer cut it.
            if right / chained < LOW:
                facts[_STREAK] += 1
                if facts[_STREAK] >= LOW_STREAK:
                    _empty(table, facts, touched)
                    facts[_STREAK] = 0
                    facts[_ADDED] = 0
            else:
                facts[_STREAK] = 0
        generated += 1
    return count
