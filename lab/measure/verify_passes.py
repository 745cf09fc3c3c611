"""Passes of given widths, timed one by one, inside a child process."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lab.measure.curve_plan import ALTERNATING
from lab.setup.child import CONVERTER
from lab.setup.loaded_model import LoadedModel, default_threads, settings_from


def passes(
    *,
    file: str,
    settings: Mapping[str, Any],
    texts: Sequence[str | Sequence[int]],
    widths: Sequence[int],
    depths: Sequence[int],
    modes: Sequence[str],
    rounds: int,
    repeats: int,
    seed: int,
    done: Sequence[Sequence[Any]],
) -> Iterator[dict[str, Any]]:
    """Time every width at every depth in every mode, round after round.

    Yields {"ready": ...} once, then one object a (round, depth, mode): "passes" holds
    [width, place in a run of the same width, pass ms, sampling ms, trimming ms]. What is
    in ``done`` is left out; the order of everything else does not depend on it.
    """
    known = {tuple(one) for one in done}
    with LoadedModel(file, settings_from(settings)) as model:
        yield {
            "ready": {
                "threads": model.settings.threads or default_threads(),
                "n_ctx": model.n_ctx,
                "settings": CONVERTER.unstructure(model.settings),
            }
        }
        tokens = _long_enough(model, texts, max(depths) + max(widths))
        _time_all(model, tokens[0], min(depths), _alternating(widths, _draw(seed)))  # warm-up
        for number in range(rounds):
            model.reset()
            for depth in sorted(depths):
                for mode in _draw(seed, number, depth).sample(modes, len(modes)):
                    if (number, depth, mode) in known:
                        continue
                    draw = _draw(seed, number, depth, mode)
                    order = (
                        _alternating(widths, draw)
                        if mode == ALTERNATING
                        else _repeated(widths, repeats, draw)
                    )
                    rows = _time_all(model, tokens[number % len(tokens)], depth, order)
                    yield {"round": number, "depth": depth, "mode": mode, "passes": rows}


def _draw(*parts: object) -> random.Random:
    """A generator that depends on these parts only."""
    return random.Random("/".join(map(str, parts)))  # noqa: S311 - the order of a design


def _long_enough(
    model: LoadedModel, texts: Sequence[str | Sequence[int]], needed: int
) -> list[list[int]]:
    """Each text in tokens, continued by the ones after it until it is long enough."""
    tokens = [model.tokenize(one) if isinstance(one, str) else list(one) for one in texts]
    long = []
    for start in range(len(tokens)):
        joined: list[int] = []
        following = 0
        while len(joined) < needed:
            joined += tokens[(start + following) % len(tokens)]
            following += 1
        long.append(joined)
    return long


def _alternating(widths: Sequence[int], draw: random.Random) -> list[tuple[int, int]]:
    """Every width once, none after itself: as in a server whose drafts vary in length."""
    return [(width, 0) for width in draw.sample(list(widths), len(widths))]


def _repeated(widths: Sequence[int], repeats: int, draw: random.Random) -> list[tuple[int, int]]:
    """Runs of one width; place 0 of a run still pays for the change of width."""
    order = draw.sample(list(widths), len(widths))
    return [(width, place) for width in order for place in range(repeats + 1)]


def _time_all(
    model: LoadedModel, text: Sequence[int], depth: int, order: Sequence[tuple[int, int]]
) -> list[list[float]]:
    if model.position < depth:
        model.feed(text[model.position : depth])
    gc.collect()
    gc.disable()
    try:
        return [[width, place, *_time_one(model, text, depth, width)] for width, place in order]
    finally:
        gc.enable()


def _time_one(
    model: LoadedModel, text: Sequence[int], depth: int, width: int
) -> tuple[float, float, float]:
    """Milliseconds of the pass, of choosing a token for every row, and of trimming back."""
    model.prepare(text[depth : depth + width], logits=True)
    start = time.perf_counter_ns()
    model.run()
    decoded = time.perf_counter_ns()
    for row in range(width):
        model.sample(row)
    sampled = time.perf_counter_ns()
    model.trim(depth)
    trimmed = time.perf_counter_ns()
    stamps = (start, decoded, sampled, trimmed)
    pass_ms, sample_ms, trim_ms = (round((b - a) / 1e6, 5) for a, b in pairwise(stamps))
    return pass_ms, sample_ms, trim_ms
