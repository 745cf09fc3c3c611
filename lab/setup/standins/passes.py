"""What a stand-in is made and checked with, run inside a child process.

The source is run once: its greedy texts, its logits on them, and (for a router) its
hidden states. The stand-in is then run over the same texts in the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.inputs.arm import ServerSettings
from lab.setup import ggml
from lab.setup.loaded_model import LoadedModel
from lab.setup.logit_comparison import BATCH, Comparison, Floats, scores
from lab.setup.standins.router import WINDOW, RouterCalibration, RouterSpec

assert BATCH % WINDOW == 0  # noqa: S101 - of two constants: no window across two passes


def source_run(
    *,
    file: str,
    prompts: Sequence[str],
    n_predict: int,
    calibration: Sequence[str],
    experts: int,
    seed: int,
    folder: str,
) -> Iterator[dict[str, Any]]:
    """Run the source; logits and router rows go to files in ``folder``.

    ``experts`` 0 asks for no router. Yields {"texts": [[prompt, continuation], ...]} in
    token ids.
    """
    router = RouterCalibration(RouterSpec(experts, seed))
    hidden: dict[int, Floats] = {}
    with LoadedModel(file, _settings(n_predict)) as model:
        texts = []
        for prompt in prompts:
            tokens = model.tokenize(prompt)
            texts.append([tokens, model.generate(tokens, n_predict)])

    def keep(name: str, address: int) -> None:
        hidden[_layer(name)] = ggml.read_tensor(address, np.float32)

    watched = {"wanted": _starts("ffn_norm-"), "hook": keep} if experts else {}
    with (
        LoadedModel(file, _settings(n_predict), **watched) as model,
        (Path(folder) / "logits.f32").open("wb") as sink,
    ):
        for tokens, continuation in texts:
            for logits in scores(model, [*tokens, *continuation]):
                logits.tofile(sink)
                _add_all(router, hidden)
        for text in calibration:
            for _ in scores(model, model.tokenize(text)):
                _add_all(router, hidden)
    if experts:
        np.save(Path(folder) / "router.npy", router.rows())
    yield {"texts": texts}


def standin_run(
    *, file: str, texts: Sequence[Sequence[Sequence[int]]], folder: str
) -> Iterator[dict[str, Any]]:
    """Run the stand-in over the source's texts and compare logits row by row.

    Yields one object: differences, agreement, forks and, for a mixture, how often each
    expert was chosen a layer.
    """
    chosen: dict[int, list[NDArray[np.int32]]] = {}

    def keep(name: str, address: int) -> None:
        chosen.setdefault(_layer(name), []).append(ggml.read_tensor(address, np.int32))

    comparison = Comparison()
    forks: list[int | None] = []
    n_predict = max(len(continuation) for _, continuation in texts)
    with (
        LoadedModel(
            file, _settings(n_predict), wanted=_starts("ffn_moe_topk-"), hook=keep
        ) as model,
        (Path(folder) / "logits.f32").open("rb") as reference,
    ):
        for prompt, continuation in texts:
            mine, theirs = [], []
            for got in scores(model, [*prompt, *continuation]):
                wanted = np.fromfile(reference, np.float32, got.size).reshape(got.shape)
                comparison.add(wanted, got)
                mine += got.argmax(axis=1).tolist()
                theirs += wanted.argmax(axis=1).tolist()
            forks.append(_fork(mine[len(prompt) - 1 : -1], theirs[len(prompt) - 1 : -1]))
    yield {
        "max_abs_logit_difference": comparison.largest,
        "kl_divergence_nats": sum(comparison.divergence) / comparison.rows,
        "top1_agreement": comparison.agreed / comparison.rows,
        "tokens": comparison.rows,
        "forks": forks,
        "expert_counts": [
            np.bincount(np.concatenate(chosen[layer]).ravel()).tolist() for layer in sorted(chosen)
        ],
    }


def _settings(n_predict: int) -> ServerSettings:
    return ServerSettings(
        n_ctx=max(1024, 2 * n_predict), flash_attn="on", batch=BATCH, ubatch=BATCH, n_gpu_layers=0
    )


def _add_all(router: RouterCalibration, hidden: dict[int, Floats]) -> None:
    for layer, states in hidden.items():
        router.add(layer, states)


def _fork(mine: Sequence[int], theirs: Sequence[int]) -> int | None:
    """First position where the greedy choices differ; None where they never do."""
    pairs = zip(mine, theirs, strict=True)
    return next((i for i, (ours, other) in enumerate(pairs) if ours != other), None)


def _layer(name: str) -> int:
    return int(name.rsplit("-", 1)[1])


def _starts(prefix: str) -> Any:
    return lambda name: name.startswith(prefix)
