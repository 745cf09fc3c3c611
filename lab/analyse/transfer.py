"""Other people's hardware: the same recorded answers priced by a curve that is not ours.

What a text allows does not depend on the machine, so steps replayed here can be priced
by a published or a modelled curve (analyse.other_curves). The same arithmetic tells the
explanations of a missing speed-up apart: too little idle compute, or nothing drafted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from lab.analyse.drafters.replay import Setting, replay
from lab.analyse.drafters.steps import DRAFTED, RecordedText
from lab.analyse.estimates import Estimate
from lab.analyse.ledger import Ledger, geometric_mean
from lab.analyse.verify_cost_curve import VerifyCostCurve
from lab.errors import InputError

_ANSWERS = "These answers are drafted as often, and as rightly, as the ones recorded here."

NOTHING_DRAFTED = "nothing drafted"
NOTHING_RIGHT = "drafts too rarely right"
NO_IDLE_COMPUTE = "too little idle compute"
A_GAIN = "a gain is expected"
UNDECIDED = "too few answers to tell"


@frozen(eq=False)
class Transfer:
    """What one setting would give on a curve that is not ours.

    Attributes
    ----------
    speedup : predicted, over texts; its interval is of the texts alone where the curve has
        none of its own.
    if_free : speed-up if verifying cost nothing: tokens per step. No card can give more.
    width : tokens of a drafted pass, the median; of the longest draft the setting allows
        when nothing was drafted. if_right : speed-up if every step were as wide and right.
    coverage : drafted steps over all steps, all texts together.
    logs : predicted log speed-up of each text. assumptions : what must be believed.
    """

    setting: Setting
    curve: VerifyCostCurve
    speedup: Estimate
    if_free: Estimate
    width: int
    if_right: float
    coverage: float
    logs: tuple[float, ...]
    assumptions: tuple[str, ...]


def transfer(
    setting: Setting,
    texts: Sequence[RecordedText],
    curve: VerifyCostCurve,
    *,
    state: str = "cold",
    n_ctx: int = 8192,
    level: float = 0.95,
) -> Transfer:
    """Price recorded answers on another curve.

    Raises
    ------
    InputError : no text was recorded.
    """
    if not texts:
        raise InputError("no text was recorded", field="texts", fix="Record answers first")
    steps = replay(setting, texts, state=state, n_ctx=n_ctx)
    ledger = Ledger(texts, curve)
    bills = ledger.bills(steps)
    logs = ledger.log_speedups(bills)
    drafts = np.concatenate([one[:, DRAFTED] for one in steps])
    width = 1 + (int(np.median(drafts)) if len(drafts) else setting.longest_draft)
    cost = curve.ratio(width, float(np.median(curve.depths)), changed=False).value
    free = np.log(bills.tokens_per_step)[None]
    return Transfer(
        setting=setting,
        curve=curve,
        speedup=geometric_mean(logs, level=level),
        if_free=geometric_mean(free, name="tokens_per_step", level=level),
        width=width,
        if_right=width / (cost or math.inf),
        coverage=float(bills.drafted.sum() / max(bills.taken.sum(), 1)),
        logs=tuple(logs[0].tolist()),
        assumptions=(_ANSWERS, *curve.assumptions, *_beyond(curve, drafts.max(initial=0) + 1)),
    )


def _beyond(curve: VerifyCostCurve, widest: int) -> tuple[str, ...]:
    last = curve.widths[-1]
    if widest <= last:
        return ()
    return (f"Beyond {last:.0f} tokens, where nothing is known, the last slope goes on.",)


@frozen
class Explanation:
    """Which reason for a missing speed-up the arithmetic supports.

    Attributes
    ----------
    supported : NOTHING_DRAFTED, NOTHING_RIGHT, NO_IDLE_COMPUTE, A_GAIN or UNDECIDED.
    sentences : the steps of the argument, with their numbers.
    """

    supported: str
    sentences: tuple[str, ...]


def explain(found: Transfer, *, margin: float = 0.02) -> Explanation:
    """Tell the explanations apart by asking what would change the result.

    Free verification leaves it as it is when nothing is drafted or nothing is right; right
    drafts leave it as it is when verifying costs what it saves.
    """
    speedup, free = found.speedup.value or 1.0, found.if_free.value or 1.0
    spare = found.if_right > 1 + margin
    wide = f"Were every step to draft {found.width - 1} tokens, all right, it would be"
    return Explanation(
        _supported(found, speedup, free, spare=spare, margin=margin),
        (
            f"On {found.curve.label}, {found.setting.label}: {speedup:.3f} times the baseline.",
            f"{found.coverage:.1%} of the steps draft; free verification would make it {free:.3f}.",
            f"{wide} {found.if_right:.2f}: there is {'' if spare else 'no '}compute to spare.",
        ),
    )


def _supported(found: Transfer, speedup: float, free: float, *, spare: bool, margin: float) -> str:
    if speedup > 1 + margin:
        return A_GAIN if found.speedup.low is not None and found.speedup.low > 1 else UNDECIDED
    if not spare:
        return NO_IDLE_COMPUTE
    drafts = free > 1 + margin or found.coverage > margin
    return NOTHING_RIGHT if drafts else NOTHING_DRAFTED
