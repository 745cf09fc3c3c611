"""Is a drafted step priced right? Acceptance prescribed by the engine, synthetic throughout."""

from __future__ import annotations

import tempfile

import numpy as np
from attrs import evolve

from bench import Figure
from lab.analyse.speculation import curve_from
from lab.experiments import synthetic
from lab.inputs.prompts import named_set, stratified_sample
from lab.measure.curve_plan import CurvePlan
from lab.workbench import Workbench

KEYS = ("synthetic_abs_error_max",)
PROMPTS, TOKENS = 6, 96
ROUNDS = 20


def measure() -> dict[str, Figure]:
    """Worst of twelve points of width and acceptance.

    Half of the passes are timed before the servers run and half after, so that a machine
    that changes pace meanwhile does so in both. Nothing is fitted to the measured points.
    """
    with tempfile.TemporaryDirectory() as folder:
        workbench = Workbench("embedded", results=folder)
        why = workbench.profile.experiments.why.model_copy(update={"n_predict": TOKENS})
        experiments = workbench.profile.experiments.model_copy(update={"why": why})
        profile = workbench.profile.model_copy(update={"experiments": experiments})
        passes = CurvePlan(widths=(1, *why.synthetic_widths), depths=(64, 192), rounds=ROUNDS // 2)
        prompts = stratified_sample(named_set("templated"), PROMPTS, 1).prompts
        workbench.curve(passes)
        frame = workbench.measure(synthetic.plan(profile, prompts))
        curve = curve_from(workbench.curve(evolve(passes, rounds=ROUNDS)))
        table = synthetic.read(frame, workbench.texts(), curve, profile)
    errors = np.abs(table["residual"] - 1)
    worst = table.loc[errors.idxmax()]
    note = (
        f"{len(table)} points, median {errors.median():.3f}; worst {worst['arm']}: measured "
        f"{worst['measured']:.3f}, predicted {worst['predicted']:.3f}"
    )
    return {KEYS[0]: Figure(float(errors.max()), n=len(table), note=note)}
