"""Two models, or two settings of one, compared by their logits on the same text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

Floats = NDArray[np.float32]

BATCH = 32
"""Tokens a pass: logits of a pass are held in memory, a megabyte a token for large vocabularies."""


class Scoring(Protocol):
    """What is asked of a loaded model (or of one made up in a test)."""

    def reset(self) -> None: ...  # noqa: D102
    def feed(self, tokens: Sequence[int], *, logits: bool = False) -> None: ...  # noqa: D102
    def logits(self, rows: int) -> Floats: ...  # noqa: D102


def scores(model: Scoring, tokens: Sequence[int]) -> Iterator[Floats]:
    """Logits after every token of a text, from its start, a batch at a time."""
    model.reset()
    for start in range(0, len(tokens), BATCH):
        batch = tokens[start : start + BATCH]
        model.feed(batch, logits=True)
        yield model.logits(len(batch))


@define
class Comparison:
    """Running comparison of logits with a reference's, row by row.

    Attributes
    ----------
    rows : rows compared. largest : greatest absolute difference of two logits.
    divergence : Kullback-Leibler divergence from the reference, nats, by row.
    agreed : rows whose likeliest token is the reference's.
    """

    rows: int = 0
    largest: float = 0.0
    agreed: int = 0
    divergence: list[float] = field(factory=list)

    def add(self, reference: Floats, other: Floats) -> None:
        """Compare the same rows of both."""
        self.rows += len(reference)
        self.largest = max(self.largest, float(np.abs(other - reference).max()))
        self.agreed += int((reference.argmax(axis=1) == other.argmax(axis=1)).sum())
        p, q = _log_softmax(reference), _log_softmax(other)
        self.divergence += (np.exp(p) * (p - q)).sum(axis=1).tolist()


def _log_softmax(logits: Floats) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted
