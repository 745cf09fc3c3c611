"""ngram-simple: the latest earlier place where the last n tokens stood, and what followed it."""

from __future__ import annotations

import numpy as np
from numba import njit

from lab.analyse.drafters.steps import Steps, Tokens, agreed, room, same


@njit(cache=True)
def draft_simple(tokens: Tokens, depth: int, n: int, m: int, draft: Tokens) -> int:
    """Fill ``draft`` and return its size; 0 is no draft.

    ``tokens[depth]`` is the token just sampled, the tokens before it are the history. A
    history of n + m + 1 tokens is too short; place 0 is never matched; and a match whose
    continuation is shorter than n tokens is not used.
    """
    if depth <= n + m + 1:
        return 0
    last = depth - n + 1
    for at in range(depth - n - 1, 0, -1):
        if same(tokens, at, last, n):
            size = min(m, depth - (at + n))
            if size < n:
                return 0
            for place in range(size):
                draft[place] = tokens[at + n + place]
            return size
    return 0


@njit(cache=True)
def replay_simple(
    tokens: Tokens, prompt_n: int, n_predict: int, n_ctx: int, n: int, m: int, steps: Steps
) -> int:
    """Walk through a recorded answer; write drafted steps, return how many."""
    draft = np.empty(m, np.int32)
    count, generated, answered = 0, 1, len(tokens) - prompt_n
    while generated < answered:
        depth = prompt_n + generated - 1
        most = room(depth, generated, n_predict, n_ctx)
        size = min(draft_simple(tokens, depth, n, m, draft), most) if most > 0 else 0
        if size > 0:
            right = agreed(tokens, depth + 1, draft, size, n_ctx)
            steps[count] = depth, size, right
            count += 1
            generated += right
        generated += 1
    return count
