"""Experiments with a known truth, to test the statistics themselves.

A request's time is simulated, not its ratio: log-normal noise, then what makes real
measurements hard. Repeats are reduced to their median and paired by prompt as in
analyse.stats, and the verdicts are the ones that experiments get.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from attrs import field, frozen
from scipy.stats import norm

from lab.analyse.location import locate, verdicts

NOISE = 0.055
"""Coefficient of variation of one request on a two-core virtual machine, as seen: 4 to 7 %."""
CATEGORIES = 12
REPEATS = 1

Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
Gains = Callable[[np.random.Generator, int, np.ndarray], np.ndarray]


def _plain(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(0, NOISE, shape)


def _heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(rng.standard_t(3, shape)) * (NOISE / math.sqrt(2))


def _slow_first(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """One request in fifty is the first after a start, and twice as slow."""
    slow = rng.random(shape) < 0.02  # noqa: PLR2004
    return _plain(rng, shape) + np.where(slow, math.log(2), 0.0)


def _rounded(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A clock so coarse that many ratios tie."""
    return np.asarray(np.round(_plain(rng, shape) / 0.02) * 0.02)


def _same(_rng: np.random.Generator, times: int, codes: np.ndarray) -> np.ndarray:
    return np.zeros((times, len(codes)))


def _by_category(rng: np.random.Generator, times: int, codes: np.ndarray) -> np.ndarray:
    """Kinds of text gain from -10 % to +35 %, and prompts of a kind differ by 5 %."""
    effects = np.linspace(-0.1, 0.3, codes.max() + 1)
    effects -= effects[codes].mean()
    return np.asarray(effects[codes] + rng.normal(0, 0.05, (times, len(codes))))


def _uneven(rng: np.random.Generator, times: int, codes: np.ndarray) -> np.ndarray:
    """Prompts of every third kind differ by 20 %, the others by 3 %."""
    return rng.normal(0, np.where(codes % 3 == 0, 0.2, 0.03), (times, len(codes)))


def _few_gain(rng: np.random.Generator, times: int, codes: np.ndarray) -> np.ndarray:
    """One prompt in five gains, by 49 % on average: what drafters of n-grams do."""
    shape = (times, len(codes))
    return (rng.random(shape) < 0.2) * rng.exponential(0.4, shape) - 0.08  # noqa: PLR2004


@frozen
class World:
    """How requests come about around a true mean log speed-up.

    Attributes
    ----------
    name : shown in tables. noise : log-noise of requests, (generator, shape) -> values.
    gains : log speed-up of prompts around the mean, (generator, times, categories) -> values.
    fair : False where no interval can hold its level with few prompts; shown, not tested.
    """

    name: str
    noise: Noise = _plain
    gains: Gains = _same
    fair: bool = True

    def draw(
        self, rng: np.random.Generator, times: int, n: int, repeats: int = REPEATS
    ) -> np.ndarray:
        """Log-ratios of ``n`` prompts in ``times`` experiments, mean zero; (times, n)."""
        gains = self.gains(rng, times, categories(n))
        shape = (times, n, repeats)
        baseline, arm = self.noise(rng, shape), self.noise(rng, shape)
        return np.asarray(gains + np.median(baseline, axis=2) - np.median(arm, axis=2))


def categories(n: int) -> np.ndarray:
    """Category codes of ``n`` prompts: at least two prompts in each, twelve at most."""
    return np.arange(n) % min(CATEGORIES, max(n // 2, 1))


WORLDS = (
    World("log-normal noise"),
    World("heavy tails", noise=_heavy),
    World("slow first requests", noise=_slow_first),
    World("rounded clock", noise=_rounded),
    World("categories gain differently", gains=_by_category),
    World("categories spread differently", gains=_uneven),
    World("one prompt in five gains", gains=_few_gain, fair=False),
)


Interval = Callable[[np.ndarray, np.ndarray, float, np.random.Generator], np.ndarray]
"""(log-ratios (times, n), categories, level, generator) -> low and high, (2, times)."""


def _student(
    logs: np.ndarray, codes: np.ndarray, level: float, _rng: np.random.Generator
) -> np.ndarray:
    at = locate(logs, codes)
    half = at.half_width(level)
    return np.stack([at.mean - half, at.mean + half])


@frozen
class Bootstrap:
    """Bootstrap interval of the mean, to compare with.

    Attributes
    ----------
    bca : bias-corrected and accelerated (Efron 1987); else the percentiles.
    by_category : resample within categories, else over all prompts.
    """

    bca: bool
    by_category: bool
    resamples: int = 999

    def __call__(
        self, logs: np.ndarray, codes: np.ndarray, level: float, rng: np.random.Generator
    ) -> np.ndarray:
        """Ends of the intervals of all experiments."""
        groups = codes if self.by_category else np.zeros_like(codes)
        return np.array([self._one(row, groups, level, rng) for row in logs]).T

    def _one(
        self, row: np.ndarray, groups: np.ndarray, level: float, rng: np.random.Generator
    ) -> np.ndarray:

        means, deviations = np.zeros(self.resamples), []
        for group in np.unique(groups):
            mine = row[groups == group]
            drawn = mine[rng.integers(0, len(mine), (self.resamples, len(mine)))]
            means += drawn.sum(axis=1) / len(row)
            deviations.append(mine - mine.mean())
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        if self.bca:
            below = (np.mean(means < row.mean()) + np.mean(means <= row.mean())) / 2
            bias = norm.ppf(np.clip(below, 1 / self.resamples, 1 - 1 / self.resamples))
            # Davison and Hinkley (1997), eq. 5.26: influence values of a stratified mean.
            influence = np.concatenate(deviations)
            scale = float((influence**2).sum()) ** 1.5
            speed = float((influence**3).sum()) / (6 * scale) if scale else 0.0
            z = bias + norm.ppf(tails)
            tails = norm.cdf(bias + z / (1 - speed * z))
        return np.asarray(np.quantile(means, np.clip(tails, 0, 1)))


METHODS: dict[str, Interval] = {
    "t by category (used)": _student,
    "t over all": lambda logs, codes, level, rng: _student(logs, codes * 0, level, rng),
    "BCa over all": Bootstrap(bca=True, by_category=False),
    "BCa by category": Bootstrap(bca=True, by_category=True),
    "percentile over all": Bootstrap(bca=False, by_category=False),
}
"""Ways to an interval, by name; the first is the one used."""


def coverage(
    world: World,
    n: int,
    *,
    times: int,
    method: Interval = _student,
    level: float = 0.95,
    repeats: int = REPEATS,
    seed: int = 1,
) -> float:
    """Share of simulated experiments whose interval holds the true log speed-up."""
    rng = np.random.default_rng(seed)
    low, high = method(world.draw(rng, times, n, repeats), categories(n), level, rng)
    return float(np.mean((low <= 0) & (high >= 0)))


def verdict_shares(
    world: World,
    n: int,
    *,
    times: int,
    margin: float,
    truth: float = 0.0,
    level: float = 0.95,
    repeats: int = REPEATS,
    seed: int = 2,
) -> dict[str, float]:
    """Share of experiments by verdict when the true log speed-up is ``truth``.

    At 0, "equivalent" is the power of the equivalence test, at log(1 + margin) its size.
    """
    logs = truth + world.draw(np.random.default_rng(seed), times, n, repeats)
    given = verdicts(locate(logs, categories(n)), margin=margin, level=level)
    names = ("equivalent", "faster", "slower", "inconclusive")
    return {name: float(np.mean(given == name)) for name in names}


def false_positives(world: World, n: int, *, times: int, margin: float, seed: int = 2) -> float:
    """Share of experiments without a true difference that are called faster or slower.

    In a world without gains these are A/A runs.
    """
    shares = verdict_shares(world, n, times=times, margin=margin, seed=seed)
    return shares["faster"] + shares["slower"]


@frozen
class DriftBias:
    """Mean error of the log speed-up when the machine slows down during a run."""

    sequential: float
    interleaved: float
    samples: tuple[np.ndarray, np.ndarray] = field(repr=False, eq=False)
    """Errors of single experiments, sequential and interleaved, to draw."""


def drift_bias(drift: float, n: int, *, times: int, seed: int = 4) -> DriftBias:
    """A machine that becomes slower by ``drift`` (log) over a run, two equal arms.

    Sequential: all of one arm, then all of the other. Interleaved: the arms take turns
    on each prompt, in random order. The truth is no difference.
    """
    rng = np.random.default_rng(seed)
    clock = drift * np.arange(2 * n) / (2 * n)
    pace = clock + rng.normal(0, NOISE, (times, 2 * n))
    sequential = (pace[:, :n] - pace[:, n:]).mean(axis=1)
    first = rng.random((times, n)) < 0.5  # noqa: PLR2004 - a coin a prompt
    even, odd = pace[:, 0::2], pace[:, 1::2]
    interleaved = np.where(first, even - odd, odd - even).mean(axis=1)
    return DriftBias(float(sequential.mean()), float(interleaved.mean()), (sequential, interleaved))
