"""Experiments with a known truth, to test the statistics themselves.

Worlds differ in what makes measurements hard: plain noise, categories that gain
differently, heavy tails, a slow first request, rounded clocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from attrs import frozen

from lab.analyse.stats import judge, mean_log, p_no_difference

NOISE = 0.055
"""Coefficient of variation of one request on a two-core virtual machine, as seen: 4 to 7 %."""


@frozen
class World:
    """How log-ratios of prompts come about around a true log speed-up.

    Attributes
    ----------
    name : "plain", "categories", "heavy", "outliers" or "rounded".
    draw : (random generator, shape) -> deviations of log-ratios with mean zero.
    """

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def _plain(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.normal(0, NOISE * math.sqrt(2), shape)


def _categories(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return _plain(rng, shape) + rng.normal(0, 0.05, shape)


def _heavy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_t(3, shape) * NOISE


def _outliers(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """One request in fifty is twice as slow, in either arm."""
    slow = (rng.random(shape) < 0.02).astype(float) - (rng.random(shape) < 0.02)  # noqa: PLR2004
    return _plain(rng, shape) + slow * math.log(2)


def _rounded(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.round(_plain(rng, shape) / 0.02) * 0.02


WORLDS = (
    World("plain", _plain),
    World("categories", _categories),
    World("heavy", _heavy),
    World("outliers", _outliers),
    World("rounded", _rounded),
)


def coverage(
    world: World, n: int, *, times: int, level: float = 0.95, truth: float = 0.1, seed: int = 1
) -> float:
    """Share of simulated experiments whose interval holds the true log speed-up."""
    rng = np.random.default_rng(seed)
    logs = truth + world.draw(rng, (times, n))
    inside = 0
    for row in logs:
        one = mean_log(row, level=level)
        if one.low is not None and one.high is not None:
            inside += one.low <= math.exp(truth) <= one.high
    return inside / times


def false_positives(world: World, n: int, *, times: int, margin: float, seed: int = 2) -> float:
    """Share of A/A experiments that are called faster or slower."""
    rng = np.random.default_rng(seed)
    verdicts = [judge(row, margin=margin) for row in world.draw(rng, (times, n))]
    return sum(one in {"faster", "slower"} for one in verdicts) / times


def equivalences(
    world: World, n: int, *, times: int, margin: float, truth: float, seed: int = 3
) -> float:
    """Share of experiments called equivalent when the true log speed-up is ``truth``.

    At ``truth`` = log(1 + margin) this is the size of the test, at 0 its power.
    """
    rng = np.random.default_rng(seed)
    verdicts = [judge(row, margin=margin) for row in truth + world.draw(rng, (times, n))]
    return sum(one == "equivalent" for one in verdicts) / times


@frozen
class DriftBias:
    """Mean error of the log speed-up when the machine slows down during a run."""

    sequential: float
    interleaved: float


def drift_bias(drift: float, n: int, *, times: int, seed: int = 4) -> DriftBias:
    """A machine that becomes slower by ``drift`` (log) over a run, two equal arms.

    Sequential: all of one arm, then all of the other. Interleaved: the arms take turns
    on each prompt, in random order. The truth is no difference.
    """
    rng = np.random.default_rng(seed)
    clock = drift * np.arange(2 * n) / (2 * n)
    noise = rng.normal(0, NOISE, (times, 2 * n))
    pace = clock + noise
    sequential = (pace[:, :n] - pace[:, n:]).mean()
    first = rng.random((times, n)) < 0.5  # noqa: PLR2004 - a coin a prompt
    even, odd = pace[:, 0::2], pace[:, 1::2]
    interleaved = np.where(first, even - odd, odd - even).mean()
    return DriftBias(float(sequential), float(interleaved))


def power(effect: float, n: int, *, noise: float, times: int = 2000, seed: int = 5) -> float:
    """Share of experiments of n prompts that show a true log effect, at 5 %."""
    rng = np.random.default_rng(seed)
    found = 0
    for row in rng.normal(effect, noise, (times, n)):
        p_value = p_no_difference(row)
        found += p_value is not None and p_value < 0.05 and row.mean() > 0  # noqa: PLR2004 - alpha
    return found / times
