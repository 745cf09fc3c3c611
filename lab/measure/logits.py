"""What a setting costs in quality: how far its logits move from a reference's on real text."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from lab.inputs.arm import ServerSettings
from lab.setup.child import CONVERTER, run_in_child
from lab.setup.engine import Engine

PASSES = "lab.measure.text_passes"


@frozen
class LogitShift:
    """How a model or setting differs from a reference on the same text.

    Attributes
    ----------
    tokens : rows compared.
    kl_divergence_nats : Kullback-Leibler divergence from the reference, a row each.
    top1_agreement : fraction of rows whose likeliest token is the reference's.
    max_abs_difference : greatest difference of two logits.
    """

    tokens: int
    kl_divergence_nats: NDArray[np.float64]
    top1_agreement: float
    max_abs_difference: float

    @property
    def mean_kl_nats(self) -> float:
        """Mean divergence over the rows, nats a token."""
        return float(self.kl_divergence_nats.mean())


def logit_shift(
    engine: Engine,
    reference: tuple[Path, ServerSettings],
    others: Sequence[tuple[Path, ServerSettings]],
    texts: Sequence[str | Sequence[int]],
) -> tuple[LogitShift, ...]:
    """Compare models or settings with a reference, one loaded at a time.

    The reference's logits are kept in a temporary file meanwhile: 4 bytes for every token
    of the text and of the vocabulary (a thousand tokens of a vocabulary of 150 000: 0.6 GB).

    Raises
    ------
    BackendError : the engine failed, or the vocabularies differ in size.
    """
    with tempfile.TemporaryDirectory() as scratch:
        kept = str(Path(scratch) / "logits.f32")
        answers = run_in_child(
            engine, f"{PASSES}:write_logits", **_model(reference), texts=texts, target=kept
        )
        (written,) = answers
        shifts = []
        for other in others:
            answers = run_in_child(
                engine,
                f"{PASSES}:compare_logits",
                **_model(other),
                texts=written["tokens"],
                reference=kept,
            )
            (found,) = answers
            shifts.append(
                LogitShift(
                    found["rows"],
                    np.asarray(found["divergence"]),
                    found["agreed"] / found["rows"],
                    found["largest"],
                )
            )
    return tuple(shifts)


def _model(one: tuple[Path, ServerSettings]) -> dict[str, Any]:
    file, settings = one
    return {"file": str(file), "settings": CONVERTER.unstructure(settings)}
