"""What a model says about text it is given, inside a child process: routing, choices, logits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.setup import ggml
from lab.setup.loaded_model import LoadedModel, settings_from
from lab.setup.logit_comparison import Comparison, Floats, scores

CANDIDATES = 10
"""Tokens that llama.cpp's draft-simple keeps before it weighs the likeliest of them."""

_ROUTING = "ffn_moe_topk-"
Text = str | Sequence[int]


def routing(
    *, file: str, settings: Mapping[str, Any], texts: Sequence[Text], pass_tokens: int, target: str
) -> Iterator[dict[str, Any]]:
    """Which experts each token of each text is sent to, a layer; to ``target`` (.npz).

    The last layer computes only rows whose logits are asked for, so all are.
    """
    seen: dict[int, list[NDArray[np.int32]]] = {}

    def keep(name: str, address: int) -> None:
        layer = int(name.removeprefix(_ROUTING))
        seen.setdefault(layer, []).append(ggml.read_tensor(address, np.int32))

    arrays: dict[str, NDArray[Any]] = {}
    with LoadedModel(
        file, settings_from(settings), wanted=lambda name: name.startswith(_ROUTING), hook=keep
    ) as model:
        for number, tokens in enumerate(_in_tokens(model, texts)):
            seen.clear()
            model.reset()
            for start in range(0, len(tokens), pass_tokens):
                model.feed(tokens[start : start + pass_tokens], logits=True)
            arrays[f"tokens{number}"] = np.asarray(tokens, np.int32)
            if seen:
                arrays["layers"] = np.array(sorted(seen))
                chosen = [np.concatenate(seen[layer]) for layer in sorted(seen)]
                arrays[f"chosen{number}"] = np.stack(chosen).astype(np.int16)
    np.savez(target, **arrays)  # type: ignore[arg-type]
    yield {"texts": len(texts)}


def choices(
    *, file: str, settings: Mapping[str, Any], texts: Sequence[Text], target: str
) -> Iterator[dict[str, Any]]:
    """The greedy choice after every token of each text, and its probability; to ``target``."""
    arrays: dict[str, NDArray[Any]] = {}
    with LoadedModel(file, settings_from(settings)) as model:
        for number, tokens in enumerate(_in_tokens(model, texts)):
            found = [_choice(logits) for logits in scores(model, tokens)]
            arrays[f"choice{number}"] = np.concatenate([choice for choice, _ in found])
            arrays[f"probability{number}"] = np.concatenate([share for _, share in found])
            yield {"text": number}
    np.savez(target, **arrays)  # type: ignore[arg-type]


def _choice(logits: Floats) -> tuple[NDArray[np.int32], Floats]:
    best = np.partition(logits, -CANDIDATES, axis=1)[:, -CANDIDATES:]
    top = best.max(axis=1)
    share: Floats = 1 / np.exp(best - top[:, None]).sum(axis=1)
    return logits.argmax(axis=1).astype(np.int32), share


def write_logits(
    *, file: str, settings: Mapping[str, Any], texts: Sequence[Text], target: str
) -> Iterator[dict[str, Any]]:
    """Logits after every token of every text, row after row, to ``target``.

    Yields {"tokens": ...}, the texts in token ids.
    """
    with LoadedModel(file, settings_from(settings)) as model, Path(target).open("wb") as sink:
        tokens = _in_tokens(model, texts)
        for text in tokens:
            for logits in scores(model, text):
                logits.tofile(sink)
    yield {"tokens": tokens}


def compare_logits(
    *, file: str, settings: Mapping[str, Any], texts: Sequence[Sequence[int]], reference: str
) -> Iterator[dict[str, Any]]:
    """Compare with logits that ``write_logits`` kept of the same texts."""
    comparison = Comparison()
    with LoadedModel(file, settings_from(settings)) as model, Path(reference).open("rb") as kept:
        for text in texts:
            for logits in scores(model, text):
                wanted = np.fromfile(kept, np.float32, logits.size).reshape(logits.shape)
                comparison.add(wanted, logits)
    yield {
        "rows": comparison.rows,
        "largest": comparison.largest,
        "agreed": comparison.agreed,
        "divergence": comparison.divergence,
    }


def _in_tokens(model: LoadedModel, texts: Sequence[Text]) -> list[list[int]]:
    """Texts in token ids, cut to what the context holds; a text without tokens is left out."""
    tokens = [model.tokenize(one) if isinstance(one, str) else list(one) for one in texts]
    return [one[: model.n_ctx] for one in tokens if one]
