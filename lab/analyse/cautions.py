"""What a reader must know before believing a number: checks that return cautions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from lab.analyse.estimates import Caution
from lab.analyse.stats import CLAIM_N, Comparison
from lab.backends.protocol import Identity

FAILURES_AT_MOST = 0.1
SPREAD_AT_MOST = 0.10
LENGTHS_APART = 0.10
DRIFT_P = 0.01
DRIFT_AT_LEAST = 0.02
PLATEAU_MS = (100.0, 125.0, 200.0, 250.0, 500.0, 1000.0)
PLATEAU_TOLERANCE = 0.002
SKEWED = 1.5
REASONING_AT_MOST = 0.9
CLOCKS_APART = 0.05
TREND_N = 12
TREND_POINTS = 200


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
        found += _cut_short(str(arm), mine)
        found += _clocks(str(arm), mine)
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
    "lost": ("DeviceLost", "a device vanished during the request. Look at the driver's log"),
    "clock-jump": ("ClockJump", "the clock jumped or the machine slept; keep it awake, run again"),
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
    for quantity in ("ms_per_token", "ms_per_step"):
        pace = rows[quantity].dropna()
        for plateau in PLATEAU_MS if len(pace) >= CLAIM_N else ():
            near = (pace - plateau).abs() <= PLATEAU_TOLERANCE * plateau
            if near.mean() > 0.5:  # noqa: PLR2004 - more than half
                unit = quantity.removeprefix("ms_per_")
                return [
                    Caution(
                        "SuspiciousConstantStep",
                        arm,
                        f"{pace.median():.1f} ms a {unit} nearly everywhere: a time-out or a "
                        "sleeping thread, not the model. Try another build of the engine.",
                        blocks=True,
                    )
                ]
    return []


def _cut_short(arm: str, rows: pd.DataFrame) -> list[Caution]:
    """Answers that the limit ended, that ended early, or that are all reasoning."""
    answered = rows[rows["status"] == "ok"]
    fixed = answered["ignore_eos"].astype(bool)
    cut = int((~fixed & answered["stop"].eq("limit")).sum())
    early = int((fixed & (answered["predicted_n"] < answered["n_predict"])).sum())
    thinking = int((answered["reasoning_n"] > REASONING_AT_MOST * answered["predicted_n"]).sum())
    said = (
        (cut, "were cut by the limit: a longer n_predict shows whole answers"),
        (early, "ended before the fixed length: read their stop column"),
        (thinking, "are reasoning nearly to the end: raise n_predict, or switch reasoning off"),
    )
    return [
        Caution("Truncated", arm, f"{count} of {len(answered)} answers {words}.")
        for count, words in said
        if count
    ]


def _clocks(arm: str, rows: pd.DataFrame) -> list[Caution]:
    """The server's clock against the client's."""
    answered = rows[rows["status"] == "ok"]
    alone = answered["predicted_ms"].isna() & answered["e2e_ms"].notna()
    longer = answered["prompt_ms"].fillna(0) + answered["predicted_ms"]
    impossible = longer > (1 + CLOCKS_APART) * answered["e2e_ms"]
    found = []
    if alone.any():
        found.append(
            Caution(
                "ClientTimed",
                arm,
                f"{int(alone.sum())} answers came without the server's timings: only wall-clock "
                "times are known, no decoding speed and no acceptance. Use a server that sends "
                "timings.",
            )
        )
    if impossible.any():
        found.append(
            Caution(
                "ClockJump",
                arm,
                f"in {int(impossible.sum())} requests the server counted more time than passed "
                "here: one of the clocks is wrong. Compare no times of these rows.",
                blocks=impossible.mean() > FAILURES_AT_MOST,
            )
        )
    return found


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
    found = []
    if (rows["temperature"] > 0).any():
        words = "temperature above 0: arms answer with different texts. Use more repeats, or greedy"
        found.append(Caution("Stochastic", "all arms", f"{words}."))
        if rows["seed"].isin([0, -1]).any():
            words = "seed 0 and -1 mean a new seed each time. Name another one"
            found.append(Caution("Stochastic", "all arms", f"{words}."))
    return found


def check_states(frame: pd.DataFrame, remembering: Collection[str]) -> tuple[Caution, ...]:
    """Was a drafter with memory as fresh as its rows say?

    Parameters
    ----------
    frame : every row of the experiment. remembering : arms whose drafter keeps what it saw
        from one request to the next (Drafting.outlives_request).
    """
    rows = frame[frame["arm"].isin(list(remembering)) & ~frame["role"].eq("warmup")]
    rows = rows.sort_values(["series", "ordinal"], kind="stable")
    seen = rows["series"].duplicated()
    same = rows.duplicated(["series", "prompt_id"])
    wrong = (rows["state"].eq("cold") & seen) | (~rows["state"].eq("warm-same") & same)
    wrong &= rows["role"].eq("measure")
    return tuple(
        Caution(
            "WarmPool",
            str(arm),
            f"{int(count)} rows are called fresher than they are: the same server had answered "
            "before. Start a new server a prompt.",
            blocks=True,
        )
        for arm, count in wrong.groupby(rows["arm"].astype(str)).sum().items()
        if count
    )


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
    skew = float(stats.skew(logs)) if spread > 0 else 0.0
    # Cochran, Sampling Techniques (1977), 2.15: fewer than 25 G1^2 values are too few.
    needed = math.ceil(25 * skew**2)
    if abs(skew) > SKEWED and len(logs) < needed:
        found.append(
            Caution(
                "TooFewPrompts",
                comparison.arm,
                f"the difference sits in few of {len(logs)} prompts: the interval may be too "
                f"narrow. Use {needed} prompts or more, or look at kinds of prompt.",
            )
        )
    return tuple(found)


def check_drift(frame: pd.DataFrame, baseline: str = "baseline") -> tuple[Caution, ...]:
    """Did the machine change pace over the run? Spearman of the baseline's pace over time."""
    rows = frame[frame["arm"].eq(baseline) & frame["ms_per_token"].notna()]
    if len(rows) < TREND_N:
        return ()
    rows = rows.sort_values("started_utc")
    pace = np.log(rows["ms_per_token"])
    own = pace - pace.groupby(rows["prompt_id"], observed=True).transform("median")
    again = rows["prompt_id"].duplicated(keep=False)
    # What prompts differ by is no drift; where too few were repeated, it cannot be told apart.
    told_apart = again.sum() >= TREND_N
    residual = (own[again] if told_apart else pace).to_numpy()
    if np.ptp(residual) == 0:
        return ()
    trend = stats.spearmanr(np.arange(len(residual)), residual)
    # Theil and Sen's slope looks at every pair of points: medians of stretches keep it quick.
    stretches = np.array_split(residual, min(len(residual), TREND_POINTS))
    slope = float(stats.theilslopes([float(np.median(one)) for one in stretches]).slope)
    change = math.expm1(slope * (len(stretches) - 1))
    if trend.pvalue > DRIFT_P or abs(change) < DRIFT_AT_LEAST:
        return ()
    return (
        Caution(
            "Drift",
            baseline,
            f"the baseline's time a token changed by {change:+.1%} over the run"
            + ("" if told_apart else " (or later prompts are slower: each was asked once)")
            + ". Interleaved pairs withstand it; do not compare rows across the run.",
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


def blocking(cautions: Sequence[Caution], arm: str, baseline: str = "baseline") -> Caution | None:
    """The first caution that forbids a headline for an arm; None when none does.

    What is wrong with the baseline is wrong with everything compared with it.
    """
    return next((one for one in cautions if one.blocks and one.subject in {arm, baseline}), None)
