from __future__ import annotations

import numpy as np
import pytest

from lab.setup.standins.router import RouterCalibration, RouterSpec, plain_router

EXPERTS, WIDTH, TOKENS = 8, 96, 4096


def drifting_states(seed: int) -> np.ndarray:
    """Hidden states as models have them: a large mean, a slow drift, and what is the token's."""
    draw = np.random.default_rng(seed)
    mean = 3 * np.random.default_rng(0).standard_normal(WIDTH)
    mixing = np.random.default_rng(1).standard_normal((12, WIDTH))
    slow = np.repeat(draw.standard_normal((TOKENS // 64, 12)), 64, axis=0) @ mixing
    fast = draw.standard_normal((TOKENS, WIDTH)) * np.linspace(0.2, 2, WIDTH)
    return (mean + slow + fast).astype(np.float32)


def distinct_against_chance(rows: np.ndarray, states: np.ndarray, width: int = 8) -> float:
    chosen = (states @ rows.T).argmax(axis=1).reshape(-1, width)
    touched = np.mean([len(set(window)) for window in chosen.tolist()])
    return float(touched / (EXPERTS * (1 - (1 - 1 / EXPERTS) ** width)))


def calibrated(seed: int = 7) -> np.ndarray:
    calibration = RouterCalibration(RouterSpec(EXPERTS, seed))
    states = drifting_states(2)
    for start in range(0, TOKENS, 32):
        calibration.add(0, states[start : start + 32])
    return calibration.rows()[0]


def test_text_never_seen_is_spread_as_chance_would():
    assert distinct_against_chance(calibrated(), drifting_states(3)) == pytest.approx(1, abs=0.05)


def test_a_blind_router_is_not_enough():
    rows = plain_router(RouterSpec(EXPERTS, 7), 1, WIDTH)[0]
    assert distinct_against_chance(rows, drifting_states(3)) < 0.8


def test_no_expert_is_favoured():
    chosen = (drifting_states(3) @ calibrated().T).argmax(axis=1)
    shares = np.bincount(chosen, minlength=EXPERTS) / TOKENS
    assert shares.min() > 0.08
    assert shares.max() < 0.18


def test_the_seed_decides_the_rows():
    np.testing.assert_array_equal(calibrated(7), calibrated(7))
    assert not np.allclose(calibrated(7), calibrated(8))


def test_more_experts_than_kept_directions_still_get_a_row_each():
    calibration = RouterCalibration(RouterSpec(32, 7))
    calibration.add(0, drifting_states(2))
    rows = calibration.rows()[0]
    assert rows.shape == (32, WIDTH)
    assert np.isfinite(rows).all()
