"""Which experts a mixture really uses on real text, seen in its routing tensors.

Where a token goes depends on the text before it and on nothing else: not on how many
tokens share its pass. One run over a text therefore gives the experts of passes of every
width at once, a pass of w tokens being any w consecutive ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from attrs import frozen
from numpy.typing import NDArray

from lab.errors import InputError
from lab.inputs.arm import ServerSettings
from lab.inputs.gguf_info import gguf_info
from lab.setup.child import CONVERTER, run_in_child
from lab.setup.engine import Engine

PASS_TOKENS = 64


@frozen
class Routing:
    """The experts chosen for every token of some texts.

    Attributes
    ----------
    model : file name. experts : routed experts a layer.
    layers : numbers of the layers that have a router.
    tokens : token ids, a text an array.
    chosen : by text, layer by token by rank: the experts a token is sent to.
    """

    model: str
    experts: int
    layers: tuple[int, ...]
    tokens: tuple[NDArray[np.int32], ...]
    chosen: tuple[NDArray[np.int16], ...]

    @property
    def used(self) -> int:
        """Experts a token is sent to."""
        return int(self.chosen[0].shape[2])


def routing(
    engine: Engine,
    model: Path,
    texts: Sequence[str | Sequence[int]],
    *,
    settings: ServerSettings | None = None,
    pass_tokens: int = PASS_TOKENS,
) -> Routing:
    """Watch a mixture's routers while it reads texts (strings or token ids).

    Parameters
    ----------
    pass_tokens : tokens a pass; changes nothing but the time it takes.

    Raises
    ------
    InputError : the model has no experts.
    BackendError : the engine failed.
    """
    experts = gguf_info(model).experts
    if experts is None:
        raise InputError("is a dense model: it has no experts", file=model)
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "routing.npz"
        answers = run_in_child(
            engine,
            "lab.measure.text_passes:routing",
            file=str(model),
            settings=CONVERTER.unstructure(settings or ServerSettings()),
            texts=texts,
            pass_tokens=pass_tokens,
            target=str(target),
        )
        list(answers)
        with np.load(target) as found:
            count = sum(name.startswith("chosen") for name in found.files)
            if not count:
                raise InputError("names no routing tensor that is known", file=model)
            return Routing(
                model.name,
                experts,
                tuple(int(layer) for layer in found["layers"]),
                tuple(found[f"tokens{i}"] for i in range(count)),
                tuple(found[f"chosen{i}"] for i in range(count)),
            )


def experts_touched(found: Routing, widths: Sequence[int]) -> pd.DataFrame:
    """Distinct experts of each pass of ``width`` tokens, passes side by side, none overlapping.

    Columns: model, width, layer, text, place (of the pass in the text), experts (distinct),
    tokens (distinct token ids in the pass: equal ones tend to go to equal experts).
    """
    frames = [
        _touched(found, number, width)
        for width in widths
        for number in range(len(found.tokens))
        if len(found.tokens[number]) >= width
    ]
    columns = ["model", "width", "layer", "text", "place", "experts", "tokens"]
    if not frames:
        return pd.DataFrame(columns=columns)
    return pd.concat(frames, ignore_index=True)[columns]


def _touched(found: Routing, number: int, width: int) -> pd.DataFrame:
    chosen, tokens = found.chosen[number], found.tokens[number]
    passes = len(tokens) // width
    windows = chosen[:, : passes * width].reshape(len(found.layers), passes, -1)
    experts = _distinct(windows)
    unique = _distinct(tokens[: passes * width].reshape(passes, width))
    layer, place = np.indices(experts.shape)
    return pd.DataFrame(
        {
            "model": found.model,
            "width": width,
            "layer": np.asarray(found.layers)[layer.ravel()],
            "text": number,
            "place": place.ravel(),
            "experts": experts.ravel(),
            "tokens": np.tile(unique, len(found.layers)),
        }
    )


def _distinct(values: NDArray[np.int16] | NDArray[np.int32]) -> NDArray[np.int64]:
    """Distinct values along the last axis."""
    ordered = np.sort(values, axis=-1)
    distinct: NDArray[np.int64] = 1 + (np.diff(ordered, axis=-1) != 0).sum(axis=-1)
    return distinct


def expert_shares(found: Routing) -> pd.DataFrame:
    """How the load is spread: model, layer, expert, share (fraction of choices; 1/E is even)."""
    rows = []
    for index, layer in enumerate(found.layers):
        chosen = np.concatenate([text[index].ravel() for text in found.chosen])
        counts = np.bincount(chosen, minlength=found.experts)
        rows += [
            {"model": found.model, "layer": layer, "expert": expert, "share": n / len(chosen)}
            for expert, n in enumerate(counts.tolist())
        ]
    return pd.DataFrame(rows, columns=["model", "layer", "expert", "share"])
