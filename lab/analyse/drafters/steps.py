"""The rhythm all drafters share: how the server takes steps through an answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import field, frozen
from numba import njit
from numpy.typing import NDArray

Tokens = NDArray[np.int32]
Steps = NDArray[np.int32]
"""Drafted steps as rows of (depth, drafted, accepted); depth is the length of the context
before the pass, drafted what was sent for verification, accepted how much was right."""

DEPTH, DRAFTED, ACCEPTED = 0, 1, 2


def as_tokens(ids: Sequence[int]) -> Tokens:
    """Token ids as the array the replay works on."""
    return np.asarray(ids, dtype=np.int32)


@frozen(eq=False)
class RecordedText:
    """A prompt and the answer that was recorded for it.

    Attributes
    ----------
    key : of the record. prompt, answer : token ids; the answer's first token came out of
        the prompt pass. n_predict : tokens that were asked for; the answer is shorter when
        it ended by itself.
    """

    key: str
    prompt: Tokens = field(converter=as_tokens)
    answer: Tokens = field(converter=as_tokens)
    n_predict: int

    @property
    def tokens(self) -> Tokens:
        """Prompt and answer in one."""
        return np.concatenate([self.prompt, self.answer])


@njit(cache=True)
def room(depth: int, generated: int, n_predict: int, n_ctx: int) -> int:
    """Most tokens the server lets be drafted now.

    The answer may not grow past what was asked for, of which the pass itself gives one
    token; two places of the context stay free.
    """
    return min(n_ctx - depth - 2, n_predict - generated - 1)


@njit(cache=True)
def agreed(tokens: Tokens, at: int, draft: Tokens, size: int, n_ctx: int) -> int:
    """How many of the first ``size`` drafted tokens the server counts as accepted.

    Those that are the recorded ones from ``at`` on, with two rules for the end of an
    answer. A draft that goes on past it has met the token that ended it; the server takes
    that one for the pass's own choice and does not count it. And a draft that is right
    whole up to the end of the context counts whole, though the server then sends only its
    first token.
    """
    count = 0
    while count < size and at + count < len(tokens) and tokens[at + count] == draft[count]:
        count += 1
    if not 0 < count < size or at + count < len(tokens):
        return count
    fills = count == 1 and size == n_ctx - at - 1
    return size if fills else count - 1


@njit(cache=True)
def same(tokens: Tokens, at: int, other: int, length: int) -> bool:
    """True when the ``length`` tokens from ``at`` are those from ``other``."""
    for place in range(length):
        if tokens[at + place] != tokens[other + place]:
            return False
    return True
