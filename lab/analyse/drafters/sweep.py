"""Many settings over the same texts, as one tidy frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    """What every setting would draft on every text.

    One row a setting and text: drafter, setting, then the columns of :func:`summary`.
    """
    found = []
    for one in settings:
        rows = summary(texts, replay(one, texts, state=state, n_ctx=n_ctx))
        rows.insert(0, "drafter", one.kind)
        rows.insert(1, "setting", one.label)
        found.append(rows)
    return pd.concat(found, ignore_index=True)


def accepted_per_position(steps: Steps) -> tuple[int, ...]:
    """How many drafts had their token i accepted, as the server's counters say it."""
    accepted = steps[:, ACCEPTED]
    return tuple(int((accepted > i).sum()) for i in range(accepted.max(initial=0)))


def widths(steps: Steps) -> dict[int, int]:
    """How often a drafted pass had each width (the draft and the sampled token)."""
    counts = pd.Series(steps[:, DRAFTED] + 1).value_counts().sort_index()
    return {int(str(width)): int(count) for width, count in counts.items()}
