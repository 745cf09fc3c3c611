"""Experts that passes of the eight-expert stand-in touch, against what an even router would."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bench import Figure
from lab.analyse.roofline import expected_experts
from lab.inputs.prompts import named_set
from lab.measure.experts import experts_touched, routing
from lab.setup import standins
from lab.setup.engine import find_engine
from lab.setup.models import embedded_model

KEYS = ("experts_touched_rel_error",)
WIDTHS = (2, 3, 4, 6, 8, 16, 32)
SETS = ("edits", "templated", "article8")
"""Prompts whose text the router was not calibrated on."""
RESAMPLES = 1000


def measure() -> dict[str, Figure]:
    """Worst width's relative error of the mean over layers; interval by resampling texts."""
    texts = [prompt.text for name in SETS for prompt in named_set(name).prompts]
    found = routing(find_engine(), standins.moe(embedded_model()), texts)
    touched = experts_touched(found, WIDTHS)
    sums = touched.pivot_table(
        index="text", columns="width", values="experts", aggfunc=["sum", "count"], fill_value=0
    )
    expected = np.array([expected_experts(found.experts, found.used, w) for w in WIDTHS])
    errors = _errors(sums, expected)
    worst = int(np.abs(errors).argmax())
    draw = np.random.default_rng(1)
    drawn = [
        abs(_errors(sums.iloc[draw.integers(0, len(sums), len(sums))], expected)[worst])
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    by_width = ", ".join(f"{w}: {e:+.3f}" for w, e in zip(WIDTHS, errors, strict=True))
    note = f"by tokens in the pass {by_width}; equal tokens go to equal experts, so always below"
    return {KEYS[0]: Figure(float(abs(errors[worst])), float(low), float(high), len(texts), note)}


def _errors(sums: pd.DataFrame, expected: np.ndarray) -> np.ndarray:
    mean = sums["sum"].sum() / sums["count"].sum()
    return np.asarray(mean[list(WIDTHS)]) / expected - 1
