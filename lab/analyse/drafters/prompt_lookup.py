"""llama-cpp-python's prompt lookup: what followed the first place where the last tokens stood.

Unlike the server's drafters it takes the oldest match, falls back to shorter n-grams down
to a single token, so that it drafts nearly always, and does not know how long the answer
may become: its last draft may reach past the end.
"""

from __future__ import annotations

from numba import njit

from lab.analyse.drafters.steps import Steps, Tokens, same


@njit(cache=True)
def _lookup(tokens, length, longest):
    """Place after the oldest match for the end of tokens[:length]; ``length`` when none."""
    for n in range(min(longest, length - 1), 0, -1):
        for at in range(length - n):
            if same(tokens, at, length - n, n):
                return at + n
    return length


@njit(cache=True)
def replay_lookup(
    tokens: Tokens,
    prompt_n: int,
    n_ctx: int,
    longest: int,
    most: int,
    steps: Steps,
) -> int:
    """Walk through a recorded answer; write drafted steps, return how many.

    A run that the answer's end cuts counts whole as accepted, though the pass then gives
    no token of its own: there ``tokens = passes + accepted`` is off by one.
    """
    count, at, total = 0, prompt_n + 1, len(tokens)
    while at < total:
        start = _lookup(tokens, at, longest)
        size = min(most, at - start, n_ctx - at)
        right = 0
        if size > 0:
            while right < size and at + right < total:
                if tokens[start + right] != tokens[at + right]:
                    break
                right += 1
            steps[count] = at - 1, size, right
            count += 1
        at += right + 1
    return count
