"""How far is a predicted speed-up from the one measured, prompt by prompt?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

import numpy as np
import pandas as pd
from attrs import evolve

from bench import Figure
from lab.analyse.drafters.replay import replay, setting_of
from lab.analyse.drafters.steps import RecordedText
from lab.analyse.speculation import VerifyCostCurve, curve_from, price
from lab.analyse.stats import pairs
from lab.analyse.tables import measured
from lab.experiments.shared_servers import shared_servers
from lab.experiments.synthetic import with_server
from lab.experiments.why import recorded_texts
from lab.inputs.prompts import Prompt, named_set, stratified_sample
from lab.measure.curve_plan import CurvePlan
from lab.workbench import Workbench

KEYS = ("prediction_abs_error_median", "prediction_abs_error_p90")
MODELS = ("target", "moe")
SHORT = ("ngram-mod-6-2-8", "ngram-simple-4-6", "ngram-map-k-4-6", "ngram-map-k4v-4-6")
ARMS = (*SHORT, "ngram-cache")
A_SET, TOKENS, BLOCKS, ROUNDS = 8, 96, 3, 16


def prompts() -> tuple[list[Prompt], list[Prompt]]:
    """Prompts whose baseline says what a server spends on a step, and prompts held out."""
    seen, held = [], []
    for name in ("templated", "diverse"):
        both = stratified_sample(named_set(name), 2 * A_SET, 1).prompts
        seen += both[A_SET:]
        held += both[:A_SET]
    return seen, held


def misses(workbench: Workbench, model: str) -> pd.DataFrame:
    """Predicted over measured speed-up of each held-out prompt and arm.

    Predicted from the baseline's text and passes timed before and after; of the servers'
    times only the baseline's on other prompts are used. Columns: model, arm, prompt_id,
    log_miss, drafted (steps).
    """
    profile, experiment = workbench.profile, f"prediction-{model}"
    seen, held = prompts()
    arms = [profile.baseline(model), *(profile.arm(name, model) for name in ARMS)]
    passes = CurvePlan(widths=(*range(1, 10), 16, 17), depths=(64, 256), rounds=ROUNDS // 2)
    workbench.curve(passes, model)
    plan = shared_servers(
        experiment, profile, arms, [*held, *seen], blocks=BLOCKS, n_predict=TOKENS
    )
    frame = measured(workbench.measure(plan))
    curve = curve_from(workbench.curve(evolve(passes, rounds=ROUNDS), model))
    outputs = workbench.texts()
    baseline = frame[frame["arm"] == "baseline"]
    ids = [one.id for one in seen]
    curve = with_server(curve, baseline[baseline["prompt_id"].isin(ids)], outputs)
    texts = recorded_texts(frame, outputs, experiment)
    return pd.concat(
        [
            _arm_misses(workbench, frame, arm.name, texts=texts, curve=curve, held=held)
            for arm in arms[1:]
        ]
    ).assign(model=model)


def _arm_misses(
    workbench: Workbench,
    frame: pd.DataFrame,
    name: str,
    *,
    texts: dict[str, RecordedText],
    curve: VerifyCostCurve,
    held: Sequence[Prompt],
) -> pd.DataFrame:
    setting = setting_of(workbench.profile.arm(name).drafting)
    # The servers met the held-out prompts first, in this order, and remembered them.
    chosen = [texts[one.id] for one in held if one.id in texts]
    n_ctx = workbench.profile.settings.n_ctx
    steps = replay(setting, chosen, state="warm-other", n_ctx=n_ctx)
    logs = {t.key: price(t, s, curve).log_speedup for t, s in zip(chosen, steps, strict=True)}
    found = pairs(frame, name).set_index("prompt_id")["log_ratio"]
    counts = {text.key: len(one) for text, one in zip(chosen, steps, strict=True)}
    rows = [(name, key, logs[key] - found[key], counts[key]) for key in logs if key in found]
    return pd.DataFrame(rows, columns=["arm", "prompt_id", "log_miss", "drafted"])


def measure() -> dict[str, Figure]:
    """Absolute relative errors over held-out prompts, short-match settings, dense and mixture."""
    with tempfile.TemporaryDirectory() as folder:
        workbench = Workbench("embedded", results=folder)
        table = pd.concat([misses(workbench, model) for model in MODELS], ignore_index=True)
    errors = np.abs(np.expm1(table["log_miss"]))
    groups = errors.groupby([table["model"], table["arm"]]).median()
    drafting = errors[table["drafted"] > 0]
    note = (
        f"{len(drafting)} of {len(errors)} pairs drafted, their median {drafting.median():.3f}; "
        f"too optimistic on {(table['log_miss'] > 0).mean():.0%}; medians by model and arm: "
        + ", ".join(f"{model} {arm} {value:.3f}" for (model, arm), value in groups.items())
    )
    values = errors.quantile([0.5, 0.9]).tolist()
    return {
        key: Figure(value, n=len(errors), note=note)
        for key, value in zip(KEYS, values, strict=True)
    }
