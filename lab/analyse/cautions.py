"""What a reader must know before believing a number: checks that return cautions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from lab.analyse.estimates import Caution
from lab.analyse.stats import CLAIM_N, SKEW_N, Comparison
from lab.backends.protocol import Identity

FAILURES_AT_MOST = 0.1
SPREAD_AT_MOST = 0.10
LENGTHS_APART = 0.10
DRIFT_P = 0.01
DRIFT_AT_LEAST = 0.02
PLATEAU_MS = (100.0, 125.0, 200.0, 250.0, 500.0, 1000.0)
PLATEAU_TOLERANCE = 0.002
SKEWED = 1.5


def check_rows(frame: pd.DataFrame, baseline: str = "baseline") -> tuple[Caution, ...]:
    """Everything the rows of an experiment say about themselves.

    Parameters
    ----------
    frame : every row of the experiment, also failed and labelled ones.
    """
    rows = frame[frame["role"] == "measure"]
    found: list[Caution] = []
    for arm, mine in rows.groupby("arm", observed=True, sort=True):
        found += _failures(str(arm), mine)
        found += _labels(str(arm), mine)
        found += _plateau(str(arm), mine)
        found += _speculation(str(arm), mine)
    found += _contaminated(rows, baseline)
    found += _lengths(rows, baseline)
    found += _stochastic(rows)
    return tuple(found)


def _failures(arm: str, rows: pd.DataFrame) -> list[Caution]:
    failed = rows[rows["status"] != "ok"]
    if failed.empty:
        return []
    kinds = ", ".join(f"{n} {kind}" for kind, n in failed["status"].value_counts().items() if n)
    share = len(failed) / len(rows)
    return [
        Caution(
            "ErrorsPresent",
            arm,
            f"{len(failed)} of {len(rows)} requests failed ({kinds}). Read their problem column.",
            blocks=share > FAILURES_AT_MOST,
        )
    ]


_LABELS = {
    "cache-hit": (
        "CacheHit",
        "the prompt cache answered part of a prompt; serve with --cache-ram 0 and -np 1",
    ),
    "busy": ("Busy", "other work ran on the machine. Stop it and run again"),
    "throttled": ("Throttled", "a clock was held back (heat, power or cap). Cool down, then again"),
    "inactive": (
        "InactiveSpeculation",
        "speculation was asked for and was not on; read the server log",
    ),
    "contaminated": ("ContaminatedBaseline", "a drafter was on in an arm that has none"),
    "lost": ("Throttled", "a device vanished during the request"),
}


def _labels(arm: str, rows: pd.DataFrame) -> list[Caution]:
    counted = rows["labels"].explode().value_counts()
    return [
        Caution(
            kind,
            arm,
            f"{counted[label]} of {len(rows)} requests: {words}.",
            blocks=label == "contaminated",
        )
        for label, (kind, words) in _LABELS.items()
        if label in counted
    ]


def _plateau(arm: str, rows: pd.DataFrame) -> list[Caution]:
    """A step time that is the same round number everywhere is a timer, not a model."""
    pace = rows["ms_per_token"].dropna()
    if len(pace) < CLAIM_N:
        return []
    typical = float(pace.median())
    for plateau in PLATEAU_MS:
        near = (pace - plateau).abs() <= PLATEAU_TOLERANCE * plateau
        if near.mean() > 0.5:  # noqa: PLR2004 - more than half
            return [
                Caution(
                    "SuspiciousConstantStep",
                    arm,
                    f"{typical:.1f} ms a token nearly everywhere: a time-out or a sleeping thread, "
                    "not the model. Try another build of the engine.",
                    blocks=True,
                )
            ]
    return []


def _speculation(arm: str, rows: pd.DataFrame) -> list[Caution]:
    on = rows[rows["speculation_active"].eq(True) & (rows["status"] == "ok")]  # noqa: FBT003
    if on.empty or on["draft_n"].fillna(0).sum() > 0:
        return []
    return [
        Caution(
            "InactiveSpeculation",
            arm,
            f"the drafter was on and proposed nothing in {len(on)} requests: the ratio is the cost "
            "of an idle drafter, no evidence about drafting.",
        )
    ]


def _contaminated(rows: pd.DataFrame, baseline: str) -> list[Caution]:
    drafted = rows[rows["arm"].eq(baseline) & rows["draft_n"].fillna(0).gt(0)]
    if drafted.empty:
        return []
    return [
        Caution(
            "ContaminatedBaseline",
            baseline,
            f"{len(drafted)} baseline requests show drafted tokens: nothing to compare with. "
            "Start the baseline without any speculative flag.",
            blocks=True,
        )
    ]


def _lengths(rows: pd.DataFrame, baseline: str) -> list[Caution]:
    lengths = rows.pivot_table("predicted_n", "prompt_id", "arm", "median", observed=True)
    if baseline not in lengths:
        return []
    found = []
    for arm in lengths.columns.drop(baseline):
        apart = int(((lengths[arm] / lengths[baseline] - 1).abs() > LENGTHS_APART).sum())
        if apart:
            found.append(
                Caution(
                    "LengthsDiffer",
                    str(arm),
                    f"answers differ in length by more than 10 % on {apart} prompts. "
                    "Compare with a fixed length (ignore_eos).",
                )
            )
    return found


def _stochastic(rows: pd.DataFrame) -> list[Caution]:
    if not (rows["temperature"] > 0).any():
        return []
    return [
        Caution(
            "Stochastic",
            "all arms",
            "temperature above 0: arms answer with different texts. Use more repeats, or greedy.",
        )
    ]


def check_comparison(comparison: Comparison) -> tuple[Caution, ...]:
    """What the pairs of a comparison say about its interval."""
    logs = comparison.pairs["log_ratio"].to_numpy()
    found = []
    if len(logs) < CLAIM_N:
        found.append(
            Caution(
                "TooFewPrompts",
                comparison.arm,
                f"{len(logs)} pairs; at least {CLAIM_N} for a verdict. Add prompts.",
            )
        )
        return tuple(found)
    spread = float(np.std(logs, ddof=1))
    if spread > SPREAD_AT_MOST:
        found.append(
            Caution(
                "HighSpread",
                comparison.arm,
                f"ratios of single prompts spread by {spread:.0%}: look at the kinds of prompt, "
                "not only at the mean.",
            )
        )
    if len(logs) < SKEW_N and spread > 0 and abs(stats.skew(logs)) > SKEWED:
        found.append(
            Caution(
                "TooFewPrompts",
                comparison.arm,
                f"the gain sits in few of {len(logs)} prompts: the interval may be too narrow. "
                f"Use {SKEW_N} prompts or more.",
            )
        )
    return tuple(found)


def check_drift(frame: pd.DataFrame, baseline: str = "baseline") -> tuple[Caution, ...]:
    """Did the machine change pace over the run? Spearman of the baseline's pace over time."""
    rows = frame[frame["arm"].eq(baseline) & frame["ms_per_token"].notna()]
    rows = rows.sort_values("started_utc")
    residual = np.log(rows["ms_per_token"]) - np.log(
        rows.groupby("prompt_id", observed=True)["ms_per_token"].transform("median")
    )
    if len(rows) < SKEW_N // 2 or np.ptp(residual.to_numpy()) == 0:
        residual = np.log(rows["ms_per_token"])
    if len(rows) < SKEW_N // 2 or np.ptp(residual.to_numpy()) == 0:
        return ()
    order = np.arange(len(rows))
    trend = stats.spearmanr(order, residual)
    slope = float(stats.theilslopes(residual, order).slope)
    change = math.expm1(slope * (len(rows) - 1))
    if trend.pvalue > DRIFT_P or abs(change) < DRIFT_AT_LEAST:
        return ()
    return (
        Caution(
            "Drift",
            baseline,
            f"the baseline's time a token changed by {change:+.1%} over the run. Interleaved pairs "
            "withstand it; do not compare rows across the run.",
        ),
    )


def check_served(served: Mapping[str, Identity], baseline: str = "baseline") -> tuple[Caution, ...]:
    """Were all arms served alike? Context, offload, model and build must agree.

    Parameters
    ----------
    served : identity by arm, of one experiment.
    """
    if baseline not in served:
        return ()
    reference = served[baseline]
    found = []
    for arm, mine in served.items():
        differing = [
            f"{name} {getattr(reference, name)} against {getattr(mine, name)}"
            for name in ("build", "n_ctx", "offloaded_layers", "model_sha256")
            if getattr(reference, name) != getattr(mine, name)
        ]
        if differing:
            found.append(
                Caution(
                    "NotComparable",
                    arm,
                    f"served otherwise than the baseline: {'; '.join(differing)}.",
                    blocks=True,
                )
            )
    return tuple(found)


def blocking(cautions: Sequence[Caution], arm: str) -> Caution | None:
    """The first caution that forbids a headline for an arm; None when none does."""
    return next((one for one in cautions if one.blocks and one.subject == arm), None)
