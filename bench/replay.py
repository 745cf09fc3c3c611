"""How fast are a thousand settings replayed over the diverse set, on one core?"""

from __future__ import annotations

import itertools
import time

import numpy as np

from bench import Figure
from lab.analyse.drafters.replay import Setting, replay
from lab.analyse.drafters.steps import RecordedText

KEYS = ("replay_settings_s",)
PROMPTS, SETTINGS = 96, 1000
PROMPT_TOKENS, ANSWER_TOKENS = 160, 128


def texts(seed: int = 1) -> list[RecordedText]:
    """Texts that repeat themselves about as much as real answers do: runs from a small stock."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(PROMPTS):
        stock = [rng.integers(0, 49_000, rng.integers(3, 20)).tolist() for _ in range(24)]
        tokens: list[int] = []
        while len(tokens) < PROMPT_TOKENS + ANSWER_TOKENS:
            fresh = rng.integers(0, 49_000, 8).tolist()
            tokens += stock[rng.integers(24)] if rng.random() < 0.4 else fresh  # noqa: PLR2004
        whole = tokens[: PROMPT_TOKENS + ANSWER_TOKENS]
        made.append(
            RecordedText(str(number), whole[:PROMPT_TOKENS], whole[PROMPT_TOKENS:], ANSWER_TOKENS)
        )
    return made


def settings() -> list[Setting]:
    """A thousand settings over the five drafters."""
    sized = [
        Setting.of(kind, size_n=n, size_m=m)
        for kind in ("ngram-simple", "ngram-map-k", "ngram-map-k4v")
        for n, m in itertools.product(range(1, 25), range(2, 65, 6))
    ]
    chained = [
        Setting.of("ngram-mod", n_match=n, n_min=least, n_max=most)
        for n, least, most in itertools.product(range(2, 26), (1, 2, 4, 8, 16), (8, 64))
    ]
    found = [Setting.of("ngram-cache"), *chained, *sized]
    return found[:SETTINGS]


def measure() -> dict[str, Figure]:
    """Time the sweep after the kernels are compiled (their compilation is cached on disk)."""
    chosen, recorded = settings(), texts()
    started = time.perf_counter()
    for kind in ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"):
        replay(Setting.of(kind), recorded[:1])
    compiled = time.perf_counter()
    for setting in chosen:
        replay(setting, recorded)
    seconds = time.perf_counter() - compiled
    loading_s = compiled - started
    note = f"{len(chosen)} settings, {len(recorded)} texts; loading the kernels {loading_s:.1f} s"
    return {"replay_settings_s": Figure(seconds, note=note)}
