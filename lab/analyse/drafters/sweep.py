"""Many settings over the same recorded answers: what each would have drafted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from lab.analyse.drafters.replay import Setting, replay, summary
from lab.analyse.drafters.steps import ACCEPTED, DRAFTED, RecordedText, Steps


def sweep(
    settings: Iterable[Setting],
    texts: Sequence[RecordedText],
    *,
    state: str = "cold",
    n_ctx: int = 2048,
) -> pd.DataFrame:
    """Replay every setting; one row a setting and text.

    Columns: setting (label), drafter, then those of ``replay.summary``.
    """
    found = [
        summary(texts, replay(one, texts, state=state, n_ctx=n_ctx)).assign(
            setting=one.label, drafter=one.kind
        )
        for one in settings
    ]
    if not found:
        return pd.DataFrame(columns=["setting", "drafter", "key"])
    whole = pd.concat(found, ignore_index=True)
    return whole[["setting", "drafter", *whole.columns.drop(["setting", "drafter"])]]


def by_width(steps: Iterable[Steps]) -> pd.DataFrame:
    """Drafted steps by the width of their pass, all texts together.

    Columns: width (tokens: the draft and one more), steps, accepted (tokens, mean),
    whole (share of the drafts that were right whole).
    """
    rows = np.concatenate([np.zeros((0, 3), np.int32), *steps])
    frame = pd.DataFrame(
        {
            "width": rows[:, DRAFTED] + 1,
            "accepted": rows[:, ACCEPTED],
            "whole": rows[:, ACCEPTED] == rows[:, DRAFTED],
        }
    )
    grouped = frame.groupby("width")
    return grouped.agg(
        steps=("accepted", "size"), accepted=("accepted", "mean"), whole=("whole", "mean")
    ).reset_index()


def accepted_per_position(steps: Iterable[Steps], longest: int) -> pd.DataFrame:
    """How often the i-th drafted token was accepted, all texts together.

    Columns: position (from 1), drafted (steps that drafted so many), accepted (steps that
    accepted so many), share (accepted of drafted; missing where none was drafted).
    """
    rows = np.concatenate([np.zeros((0, 3), np.int32), *steps])
    position = np.arange(1, longest + 1)
    drafted = (rows[:, DRAFTED, None] >= position).sum(axis=0)
    accepted = (rows[:, ACCEPTED, None] >= position).sum(axis=0)
    out = pd.DataFrame({"position": position, "drafted": drafted, "accepted": accepted})
    return out.assign(share=out["accepted"] / out["drafted"].where(out["drafted"] > 0))
