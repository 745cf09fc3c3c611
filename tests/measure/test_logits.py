from __future__ import annotations

import numpy as np
import pytest

from lab.inputs.arm import ServerSettings
from lab.measure.logits import logit_shift
from lab.setup.engine import find_engine
from lab.setup.logit_comparison import Comparison

TEXTS = ("The harbour was quiet, and the keeper counted ships.", "def area(width, height):")


def test_the_divergence_is_that_of_the_distributions():
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    comparison = Comparison()
    comparison.add(np.log(p)[None].astype(np.float32) + 7, np.log(q)[None].astype(np.float32) - 3)
    assert comparison.divergence == pytest.approx([float((p * np.log(p / q)).sum())], abs=1e-6)
    assert comparison.agreed == 0
    assert comparison.largest == pytest.approx(10 + np.log(2), abs=1e-5)


@pytest.mark.engine
def test_a_model_does_not_differ_from_itself_and_does_with_a_coarse_cache(shallow_model):
    plain = ServerSettings(n_ctx=256, flash_attn="on")
    coarse = ServerSettings(n_ctx=256, flash_attn="on", cache_type_k="q4_0", cache_type_v="q4_0")
    same, other = logit_shift(
        find_engine(),
        (shallow_model, plain),
        [(shallow_model, plain), (shallow_model, coarse)],
        TEXTS,
    )
    assert same.mean_kl_nats == 0
    assert same.top1_agreement == 1
    assert same.max_abs_difference == 0
    assert other.tokens == same.tokens == len(other.kl_divergence_nats)
    assert other.mean_kl_nats > 1e-6
    assert other.max_abs_difference > 0
