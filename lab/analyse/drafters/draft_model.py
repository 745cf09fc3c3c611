"""draft-simple: acceptance of every draft length from one pass of the draft model.

While it is right a draft model stands on the recorded text, so its greedy choice after
every true prefix (measure.teacher_forcing) tells how far a draft of any length would be
accepted from anywhere, and so every step of a server for every length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

from lab.analyse.drafters.steps import ACCEPTED, DRAFTED, RecordedText, Steps, agreed, room
from lab.errors import InputError
from lab.measure.teacher_forcing import Choices

_ENDLESS = 1 << 32


@njit(cache=True)
def _walk(tokens, choice, sure, prompt_n, answered, n_predict, n_ctx, n_max, n_min, steps):
    count, generated = 0, 1
    while generated < answered:
        depth = prompt_n + generated - 1
        most = room(depth, generated, n_predict, n_ctx)
        size = min(n_max, most, sure[depth]) if most > 0 else 0
        accepted = 0
        if size > 0 and size >= n_min:
            # Up to its first wrong token a draft is made of choices along the text.
            accepted = agreed(tokens, depth + 1, choice[depth:], size, n_ctx)
            steps[count] = depth, size, accepted
            count += 1
        generated += accepted + 1
    return count


def _in_a_row(holds: NDArray[np.bool_]) -> NDArray[np.int64]:
    """At each place, how many places from it on hold one after another; past the end all do."""
    places = np.arange(len(holds))
    stops = np.where(holds, _ENDLESS, places)
    return np.minimum.accumulate(stops[::-1])[::-1] - places


def draft_steps(
    text: RecordedText,
    choices: Choices,
    *,
    n_max: int = 3,
    n_min: int = 0,
    p_min: float = 0.0,
    n_ctx: int = 2048,
) -> Steps:
    """The drafted steps of one answer; the defaults are the engine's.

    With ``p_min`` above 0 what is accepted is exact, what is drafted is not: how sure the
    draft model is after its first wrong token cannot be known from the true text, and is
    taken to be how sure it is at the same place of that.

    Raises
    ------
    InputError : the choices were made along another text.
    """
    if not np.array_equal(choices.tokens, text.tokens):
        raise InputError(
            "the draft model's choices belong to another text",
            field=f"choices[{text.key}]",
            fix="Make them along the prompt and answer of this record",
        )
    sure = _in_a_row(choices.probability >= p_min)
    steps = np.empty((max(len(text.answer), 1), 3), np.int32)
    asked = len(text.prompt), len(text.answer), text.n_predict, n_ctx
    return steps[: _walk(text.tokens, choices.choice, sure, *asked, n_max, n_min, steps)]


def accepted_share(
    texts: Sequence[RecordedText], choices: Sequence[Choices], longest: int
) -> NDArray[np.float64]:
    """Share of the answers' places where the first i tokens of a draft would all be right.

    Index 0 is i = 1. Places where fewer than i tokens were left do not count for i.
    """
    shares = np.zeros((2, longest))
    for text, one in zip(texts, choices, strict=True):
        runs = one.right_in_a_row()[len(text.prompt) : -1]
        left = np.arange(len(runs), 0, -1)
        for i in range(longest):
            shares[0, i] += np.count_nonzero(runs[left > i] > i)
            shares[1, i] += np.count_nonzero(left > i)
    reached: NDArray[np.float64] = shares[0] / np.maximum(shares[1], 1)
    return reached


def by_length(
    texts: Sequence[RecordedText], choices: Sequence[Choices], lengths: Iterable[int]
) -> pd.DataFrame:
    """What the server's counters would say for every draft length, all texts together.

    One row a length: draft_length, draft_n, draft_n_accepted, drafted_steps, target_steps,
    acceptance_rate (missing where nothing was drafted), tokens_per_step.
    """
    rows = []
    for length in lengths:
        walks = [draft_steps(t, c, n_max=length) for t, c in zip(texts, choices, strict=True)]
        drafted = sum(int(one[:, DRAFTED].sum()) for one in walks)
        accepted = sum(int(one[:, ACCEPTED].sum()) for one in walks)
        tokens = sum(len(text.answer) - 1 for text in texts)
        rows.append((length, drafted, accepted, sum(map(len, walks)), tokens - accepted))
    names = ["draft_length", "draft_n", "draft_n_accepted", "drafted_steps", "target_steps"]
    out = pd.DataFrame(rows, columns=names)
    out["acceptance_rate"] = out["draft_n_accepted"] / out["draft_n"].where(out["draft_n"] > 0)
    out["tokens_per_step"] = (out["target_steps"] + out["draft_n_accepted"]) / out[
        "target_steps"
    ].where(out["target_steps"] > 0)
    return out
