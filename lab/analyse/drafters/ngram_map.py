"""ngram-map-k and ngram-map-k4v: an index of n-grams in the history, with a memory of success.

A key is an n-gram that was looked up and found before. What was accepted after it last
time caps what is drafted the next time, so a key that once failed whole never drafts
again. k4v also counts which of up to four continuations follows and drafts only when one
is at least twice as frequent as the others together; the tokens it drafts are those after
the latest match all the same.

The index belongs to a server's slot and is only trimmed when a request begins: places of
an earlier prompt stay in it, so these drafters, too, depend on what was asked before.
"""

from __future__ import annotations

import numpy as np
from attrs import define, field
from numba import njit
from numpy.typing import NDArray

from lab.analyse.drafters.steps import Steps, Tokens, agreed, room, same

BUCKETS = 262_144
VALUES = 4
MOST_COUNTED = 16_380
_FACTOR = np.uint64(2654435761)
_BEGUN, _CHECKED, _INDEXED, _KEYS, _TOUCHED = 0, 1, 2, 3, 4
_AT, _HITS, _COUNTED = 0, 1, 2
_VALUE_AT, _VALUE_HITS, _VALUE_ACCEPTED = 3, 3 + VALUES, 3 + 2 * VALUES
_WIDTH = 3 + 3 * VALUES


@define(eq=False)
class Index:
    """The index of one slot; survives from request to request.

    Attributes
    ----------
    buckets : place of an n-gram by hash, 0 where there is none.
    touched : buckets written since the index was last known empty.
    keys : one row a key: its place, times found, place up to which its continuations were
        counted, then place, count and last acceptance of each of its VALUES.
    facts : length of the history when the request began and when it was last looked at,
        place up to which n-grams are indexed, number of keys, entries of ``touched``.
    """

    buckets: NDArray[np.int64] = field(factory=lambda: np.zeros(BUCKETS, np.int64))
    touched: NDArray[np.int64] = field(factory=lambda: np.zeros(1 << 14, np.int64))
    keys: NDArray[np.int64] = field(factory=lambda: np.zeros((256, _WIDTH), np.int64))
    facts: NDArray[np.int64] = field(factory=lambda: np.zeros(5, np.int64))

    def forget(self) -> None:
        """As a fresh server."""
        self.buckets[self.touched[: self.facts[_TOUCHED]]] = 0
        self.facts[:] = 0

    def make_room(self, tokens: int) -> None:
        """Let the arrays hold what a text of ``tokens`` tokens can add."""
        if int(self.facts[_TOUCHED]) + tokens > len(self.touched):
            self.touched = np.concatenate([self.touched, np.zeros(tokens + 1, np.int64)])
        if int(self.facts[_KEYS]) + tokens > len(self.keys):
            more = np.zeros((tokens + 1, _WIDTH), np.int64)
            self.keys = np.concatenate([self.keys, more])


@njit(cache=True)
def _bucket(tokens, at, n):
    mixed = np.uint64(0)
    for place in range(n):
        mixed = (mixed * _FACTOR + np.uint64(tokens[at + place])) & np.uint64(0xFFFFFFFF)
    return int(mixed % np.uint64(BUCKETS))


@njit(cache=True)
def _begin(prompt_n, n, m, key_only, buckets, touched, keys, facts):
    """Trim what lies past the part of the history believed to be kept."""
    keep = facts[_BEGUN]
    if keep > prompt_n:
        keep = prompt_n - n - m if prompt_n > n + m else 0
    if prompt_n < facts[_CHECKED]:
        for place in range(facts[_TOUCHED]):
            if buckets[touched[place]] >= keep:
                buckets[touched[place]] = 0
        facts[_INDEXED] = max(keep - 1, 0)
        _trim_keys(keep, key_only, keys, facts)
    facts[_CHECKED] = prompt_n
    facts[_BEGUN] = prompt_n


@njit(cache=True)
def _trim_keys(keep, key_only, keys, facts):
    kept = 0
    for row in range(facts[_KEYS]):
        if keys[row, _AT] >= keep:
            continue
        if not key_only:
            for value in range(VALUES - 1, -1, -1):
                if keys[row, _VALUE_AT + value] >= keep and keys[row, _VALUE_AT + value] != 0:
                    for later in range(value, VALUES - 1):
                        for part in (_VALUE_AT, _VALUE_HITS, _VALUE_ACCEPTED):
                            keys[row, part + later] = keys[row, part + later + 1]
                    keys[row, _VALUE_AT + VALUES - 1] = 0
                    keys[row, _VALUE_HITS + VALUES - 1] = 0
            if keys[row, _VALUE_AT] == 0:
                continue
        keys[kept] = keys[row]
        kept += 1
    facts[_KEYS] = kept


@njit(cache=True)
def _find(tokens, depth, n, m, buckets, facts):
    """Place of an earlier occurrence of the last n tokens; 0 when none is found."""
    last = depth - n + 1
    end = depth - n - m - 1
    at = buckets[_bucket(tokens, last, n)]
    if at != 0 and at < end and same(tokens, at, last, n):
        return at
    begun, indexed = facts[_BEGUN], facts[_INDEXED]
    if begun > n + m + 1:
        for at in range(begun - n - m - 1, indexed, -1):
            if same(tokens, at, last, n):
                return at
    for at in range(end, max(begun, indexed), -1):
        if same(tokens, at, last, n):
            return at
    return 0


@njit(cache=True)
def _index(tokens, depth, n, m, buckets, touched, facts):
    """Enter the n-grams that became old enough, latest first; the first in a bucket stays."""
    begun, indexed = facts[_BEGUN], facts[_INDEXED]
    end = depth - n - m - 1
    if begun > n + m + 1:
        for at in range(begun - n - m - 1, indexed, -1):
            _enter(tokens, at, n, buckets, touched, facts)
    for at in range(end, max(begun, indexed), -1):
        _enter(tokens, at, n, buckets, touched, facts)
    facts[_INDEXED] = max(end, indexed)


@njit(cache=True)
def _enter(tokens, at, n, buckets, touched, facts):
    bucket = _bucket(tokens, at, n)
    if buckets[bucket] == 0:
        buckets[bucket] = at
        if facts[_TOUCHED] < len(touched):
            touched[facts[_TOUCHED]] = bucket
            facts[_TOUCHED] += 1


@njit(cache=True)
def _key_row(tokens, depth, n, m, at, keys, facts):
    """Row of the key that the last n tokens are, added at place ``at`` when it is new."""
    last = depth - n + 1
    for row in range(facts[_KEYS]):
        # A key of an earlier, longer history may stand where this one does not reach yet.
        if keys[row, _AT] + n <= depth and same(tokens, keys[row, _AT], last, n):
            return row
    row = facts[_KEYS]
    keys[row] = 0
    keys[row, _AT] = at
    keys[row, _VALUE_ACCEPTED : _VALUE_ACCEPTED + VALUES] = m
    facts[_KEYS] += 1
    return row


@njit(cache=True)
def _count_values(tokens, depth, n, m, at, key):
    """Count the continuations of a key up to the match at ``at``."""
    last = depth - n + 1
    for start in range(key[_COUNTED], at + 1):
        if not same(tokens, start, last, n):
            continue
        for value in range(VALUES):
            if key[_VALUE_AT + value] == 0:
                key[_VALUE_AT + value] = start + n
                key[_VALUE_HITS + value] = 0
                key[_VALUE_ACCEPTED + value] = m
            elif key[_VALUE_AT + value] + m > depth or not same(
                tokens, start + n, key[_VALUE_AT + value], m
            ):
                continue
            key[_VALUE_HITS + value] = min(key[_VALUE_HITS + value] + 1, MOST_COUNTED)
            break
    key[_COUNTED] = at


@njit(cache=True)
def _chosen(key):
    """The value to draft; -1 when none is twice as frequent as the others together."""
    best, others = 0, 0
    for value in range(1, VALUES):
        if key[_VALUE_HITS + value] > key[_VALUE_HITS + best]:
            best = value
    for value in range(VALUES):
        if value != best:
            others += key[_VALUE_HITS + value]
    return -1 if others > 0 and key[_VALUE_HITS + best] < 2 * others else best


@njit(cache=True)
def replay_map(
    tokens: Tokens,
    prompt_n: int,
    n_predict: int,
    n_ctx: int,
    n: int,
    m: int,
    min_hits: int,
    key_only: bool,
    buckets: NDArray[np.int64],
    touched: NDArray[np.int64],
    keys: NDArray[np.int64],
    facts: NDArray[np.int64],
    steps: Steps,
) -> int:
    """Walk through a recorded answer with an index; write drafted steps, return how many."""
    _begin(prompt_n, n, m, key_only, buckets, touched, keys, facts)
    count, generated, answered = 0, 1, len(tokens) - prompt_n
    while generated < answered:
        depth = prompt_n + generated - 1
        most = room(depth, generated, n_predict, n_ctx)
        size, row, value = 0, 0, 0
        if most > 0 and depth >= 2 * n + m:
            facts[_CHECKED] = depth
            at = _find(tokens, depth, n, m, buckets, facts)
            _index(tokens, depth, n, m, buckets, touched, facts)
            if at > 0:
                row = _key_row(tokens, depth, n, m, at, keys, facts)
                keys[row, _HITS] = min(keys[row, _HITS] + 1, MOST_COUNTED)
                if not key_only:
                    value = -1
                    if keys[row, _HITS] >= min_hits:
                        _count_values(tokens, depth, n, m, at, keys[row])
                        value = _chosen(keys[row])
                if value >= 0:
                    size = min(m, keys[row, _VALUE_ACCEPTED + value], most)
                    at += n
        if size > 0:
            right = agreed(tokens, depth + 1, tokens[at:], size, n_ctx)
            keys[row, _VALUE_ACCEPTED + value] = right
            steps[count] = depth, size, right
            count += 1
            generated += right
        generated += 1
    return count
