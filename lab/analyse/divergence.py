"""Where answers part from the baseline's: greedy drafting is exact only in exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from lab.analyse.estimates import Caution
from lab.analyse.metrics import fork_index

LOOP_TOKENS = 32
"""Tokens at the end of an answer that make a loop when one short sequence fills them."""
LOOP_LENGTH_AT_MOST = 4


def forks(
    frame: pd.DataFrame, outputs: Mapping[str, tuple[int, ...]], baseline: str = "baseline"
) -> pd.DataFrame:
    """Answers of every arm beside the baseline's on the same prompt, first ones of repeats.

    Parameters
    ----------
    outputs : token ids by record key.

    Returns
    -------
    One row a pair: experiment, prompt_id, arm, fork_index (missing where equal), diverged,
    tokens (length of the baseline's answer), degenerate (empty, or ends in a loop where
    the baseline's does not).
    """
    firsts = frame.drop_duplicates(["experiment", "prompt_id", "arm"])
    answers = {
        (str(one.experiment), str(one.prompt_id), str(one.arm)): outputs[str(one.key)]
        for one in firsts.itertuples()
        if one.key in outputs
    }
    rows = []
    for (experiment, prompt_id, arm), tokens in answers.items():
        twin = answers.get((experiment, prompt_id, baseline))
        if arm == baseline or twin is None:
            continue
        fork = fork_index(tokens, twin)
        broken = (not tokens and bool(twin)) or (loops(tokens) and not loops(twin))
        rows.append((experiment, prompt_id, arm, fork, fork is not None, len(twin), broken))
    columns = ["experiment", "prompt_id", "arm", "fork_index", "diverged", "tokens", "degenerate"]
    types = {"fork_index": float, "diverged": bool, "degenerate": bool}
    return pd.DataFrame(rows, columns=columns).astype(types)


def loops(tokens: tuple[int, ...]) -> bool:
    """True when an answer ends in one short sequence, over and over."""
    end = tokens[-LOOP_TOKENS:]
    return len(end) == LOOP_TOKENS and any(
        end[length:] == end[:-length] for length in range(1, LOOP_LENGTH_AT_MOST + 1)
    )


def check_divergence(found: pd.DataFrame, control: str = "") -> tuple[Caution, ...]:
    """Say which arms answer otherwise than the baseline, and block those that break texts.

    Parameters
    ----------
    found : from :func:`forks`. control : the second baseline of an A/A pair; where its
        answers differ too, the engine does not repeat itself and no arm is to blame.
    """
    mine = found[found["arm"] == control]
    repeats = len(mine) > 0 and not mine["diverged"].any()
    said = []
    for arm, rows in found[found["diverged"] & found["arm"].ne(control)].groupby("arm"):
        answers, broken = int((found["arm"] == arm).sum()), int(rows["degenerate"].sum())
        blamed = repeats and broken > 0
        words = f"{len(rows)} of {answers} answers differ from the baseline's, first at token "
        words += f"{rows['fork_index'].median():.0f} (median). "
        words += (
            f"{broken} of them are empty or loop though the second baseline repeats itself: "
            "compare no speeds, look at the model pair and the build."
            if blamed
            else "Batched arithmetic rounds otherwise; compare speeds by the token, and quality "
            "by its own test."
        )
        said.append(Caution("Diverged", str(arm), words, blocks=blamed))
    return tuple(said)
