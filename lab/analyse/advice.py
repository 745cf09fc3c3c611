"""Which settings would suit a person's own prompts: every setting of a grid, ranked.

The answers of one run without drafting are enough: each setting is replayed over them and
priced by the curve of their hardware. The best of many settings looks better than it is,
since luck is chosen along with merit; what the choice is worth is therefore judged on
answers that had no part in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from attrs import frozen
from numpy.typing import NDArray

from lab.analyse.drafters.replay import Setting, replay
from lab.analyse.drafters.steps import ACCEPTED, RecordedText, Steps
from lab.analyse.estimates import Estimate
from lab.analyse.ledger import Bills, Ledger, geometric_mean
from lab.analyse.stats import judge_interval
from lab.analyse.verify_cost_curve import Draws, VerifyCostCurve
from lab.errors import InputError

MATCHES = (2, 3, 4, 6, 8, 12, 16, 24)
DRAFTS = (2, 4, 6, 8, 12, 16, 32, 48)
LEAST = (1, 2, 4, 8, 16, 48)
FOLDS = 5
SHOWN = 3


def grid() -> tuple[Setting, ...]:
    """Settings worth trying, by drafter; the engine's defaults are among them."""
    sized = [
        Setting.of(kind, size_n=match, size_m=draft)
        for kind in ("ngram-simple", "ngram-map-k", "ngram-map-k4v")
        for match, draft in itertools.product(MATCHES, DRAFTS)
    ]
    chained = [
        Setting.of("ngram-mod", n_match=match, n_min=least, n_max=most)
        for match, least, most in itertools.product(MATCHES, LEAST, (*DRAFTS, 64))
        if least <= most
    ]
    return (*sized, *chained, Setting.of("ngram-cache"))


@frozen(eq=False)
class Advice:
    """Settings ranked by predicted speed-up.

    Attributes
    ----------
    settings : all of them, best first. table : one row each in the same order: rank,
        drafter, rank_in_drafter, setting, speedup, low, high, n (texts), verdict (of the
        interval), draft_coverage, acceptance_length (missing where nothing was drafted),
        tokens_per_step, texts_drafted.
    best : up to three that do not draft the same.
    held_out : what choosing the best is worth on answers that had no part in the choice.
    off_is_best : no setting can be shown to gain more than the margin.
    """

    settings: tuple[Setting, ...]
    table: pd.DataFrame
    best: tuple[Setting, ...]
    held_out: Estimate
    off_is_best: bool


def advise(
    texts: Sequence[RecordedText],
    curve: VerifyCostCurve,
    *,
    settings: Sequence[Setting] | None = None,
    margin: float = 0.02,
    state: str = "cold",
    n_ctx: int = 2048,
    level: float = 0.95,
    seed: int = 1,
) -> Advice:
    """Rank settings for these answers on this hardware.

    Parameters
    ----------
    texts : recorded without drafting, of more than one token each.
    settings : the grid; :func:`grid` when left out. state : as in :func:`replay`.

    Raises
    ------
    InputError : no text, or no setting.
    """
    chosen = list(grid() if settings is None else settings)
    for name, given in (("texts", texts), ("settings", chosen)):
        if not given:
            raise InputError("nothing to choose from", field=name, fix="Give at least one")
    ledger, rows, logs = Ledger(texts, curve), [], []

    def priced(setting: Setting) -> tuple[list[Steps], Bills, Draws]:
        steps = replay(setting, texts, state=state, n_ctx=n_ctx)
        bills = ledger.bills(steps)
        return steps, bills, ledger.log_speedups(bills)

    for setting in chosen:
        steps, bills, found = priced(setting)
        rows.append(_row(setting, steps, bills, geometric_mean(found, level=level), margin))
        logs.append(found[0])
    table = np.array(logs)
    order = sorted(range(len(chosen)), key=lambda i: (-table[i].mean(), chosen[i].longest_draft, i))
    held = [(places, chosen[pick]) for places, pick in _held_out_choices(table, seed) if pick >= 0]
    apart = np.zeros((curve.draws, len(texts)))
    for places, setting in held:
        apart[:, places] = priced(setting)[2][:, places]
    held_out = geometric_mean(apart, level=level)
    return Advice(
        settings=tuple(chosen[i] for i in order),
        table=_ranked([rows[i] for i in order]),
        best=tuple(chosen[i] for i in _unlike(table, order)),
        held_out=held_out,
        off_is_best=not _gains(held_out, margin),
    )


def _gains(found: Estimate, margin: float) -> bool:
    known = found.value is not None and found.low is not None
    return known and found.value > 1 + margin and found.low > 1  # type: ignore[operator]


def _row(
    setting: Setting, steps: Sequence[Steps], bills: Bills, speedup: Estimate, margin: float
) -> dict[str, object]:
    drafted, taken = bills.drafted.sum(), bills.taken.sum()
    accepted = sum(int(one[:, ACCEPTED].sum()) for one in steps)
    return {
        "drafter": setting.kind,
        "setting": setting.label,
        "speedup": speedup.value,
        "low": speedup.low,
        "high": speedup.high,
        "n": speedup.n,
        "verdict": judge_interval(speedup, margin),
        "draft_coverage": drafted / taken if taken else np.nan,
        "acceptance_length": 1 + accepted / drafted if drafted else np.nan,
        "tokens_per_step": bills.tokens.sum() / taken if taken else np.nan,
        "texts_drafted": int((bills.drafted > 0).sum()),
    }


def _ranked(rows: list[dict[str, object]]) -> pd.DataFrame:
    out = pd.DataFrame(rows).astype({"low": float, "high": float})
    out.insert(0, "rank", range(1, len(out) + 1))
    out.insert(2, "rank_in_drafter", out.groupby("drafter").cumcount() + 1)
    return out


def _unlike(logs: NDArray[np.float64], order: Sequence[int]) -> list[int]:
    """The first few of the order that do not come to the same on every text."""
    found: list[int] = []
    for place in order:
        if not any(np.allclose(logs[place], logs[other], atol=1e-9) for other in found):
            found.append(place)
        if len(found) == SHOWN:
            break
    return found


def _held_out_choices(logs: NDArray[np.float64], seed: int) -> list[tuple[NDArray[np.int64], int]]:
    """For each fold of the texts, the setting that is best on all others; -1 is off."""
    n = logs.shape[1]
    if n == 1:
        return []
    shuffled = np.random.default_rng(seed).permutation(n)
    choices = []
    for fold in np.array_split(shuffled, min(FOLDS, n)):
        others = np.delete(logs, fold, axis=1).mean(axis=1)
        choices.append((fold, int(others.argmax()) if others.max() > 0 else -1))
    return choices
