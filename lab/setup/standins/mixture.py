"""The mixture-of-experts stand-in: every feed-forward network copied into E equal experts.

Tensors are those of a Mixtral in llama.cpp's ``llama`` architecture: merged experts
(``ffn_gate_exps`` and so on, expert the slowest dimension) and a router in F32. Its graph
divides the chosen experts' weights by their sum, so with equal experts the function stays
the source's for any k, and with k = 1 the weight is exactly 1.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import InputError
from lab.inputs.gguf_file import GgufFile, Tensor
from lab.setup.derived import keep, recipe_digest
from lab.setup.engine import Engine
from lab.setup.models import sha256_of
from lab.setup.standins import source as sources
from lab.setup.standins.check import (
    NO_LIBRARIES,
    Check,
    calibration_texts,
    check_standin,
    run_source,
)
from lab.setup.standins.gguf_copy import Copied, Given, NewTensor, write_gguf
from lab.setup.standins.router import RouterSpec, plain_router

_FFN = re.compile(r"^(blk\.(\d+)\.ffn_(?:gate|up|down))\.weight$")


def moe(
    source: Path,
    *,
    experts: int = 8,
    used: int = 1,
    seed: int = 7,
    engine: Engine | None = None,
) -> Path:
    """A mixture of ``experts`` equal experts, ``used`` a token, with the text of ``source``.

    Made when missing; the result is named by a digest of the source and these settings.
    What its check found is in the JSON file beside it. With an engine that cannot run in
    process the router is drawn blindly and nothing is checked, which the file says.

    Raises
    ------
    InputError : the source is not a dense one-file llama model, or used > experts.
    SetupError : the result does not compute what the source does.
    """
    if not 0 < used <= experts:
        raise InputError("must be between 1 and the experts", field="experts_used", value=used)
    file = sources.read_source(source)
    runs = sources.usable_engine(engine)
    spec = RouterSpec(experts, seed)
    texts = json.dumps(calibration_texts()) if runs else ""
    recipe = {
        "stand_in": "moe",
        "version": sources.VERSION,
        "source_sha256": sha256_of(source),
        "experts": experts,
        "experts_used": used,
        "seed": seed,
        "router": "calibrated" if runs else "random",
        "calibration_sha256": hashlib.sha256(texts.encode()).hexdigest()[:16],
    }

    def make(partial: Path, scratch: Path) -> dict[str, Any]:
        if runs is None:
            layers = file.number("llama.block_count") or 0
            rows = plain_router(spec, layers, file.number("llama.embedding_length") or 0)
            _write(partial, file, spec, used, rows)
            return {**recipe, "source": source.name, "check": Check(reason=NO_LIBRARIES).summary()}
        reference = run_source(runs, source, scratch, spec)
        _write(partial, file, spec, used, np.load(scratch / "router.npy"))
        check = check_standin(runs, reference, partial)
        return {**recipe, "source": source.name, "check": check.summary()}

    name = f"{source.stem}.moe-{experts}x{used}.{recipe_digest(recipe)}.gguf"
    return keep(name, make)


def _write(
    target: Path, file: GgufFile, spec: RouterSpec, used: int, rows: NDArray[np.float32]
) -> None:
    tensors = [new for one in file.tensors for new in _replaced(one, spec.experts, rows)]
    write_gguf(
        target,
        file,
        tensors,
        texts={"general.name": f"{sources.label(file)} (stand-in: MoE {spec.experts}, top {used})"},
        counts={"llama.expert_count": spec.experts, "llama.expert_used_count": used},
    )


def _replaced(tensor: Tensor, experts: int, rows: NDArray[np.float32]) -> list[NewTensor]:
    """What stands for a source tensor; the router goes in front of each block's first expert."""
    match = _FFN.match(tensor.name)
    if match is None:
        if ".ffn_" in tensor.name and tensor.name.endswith(".bias"):
            raise InputError(
                "its feed-forward network has a bias, which experts of this architecture lack",
                field=tensor.name,
            )
        return [NewTensor(tensor.name, tensor.type, tensor.shape, Copied(tensor))]
    merged = NewTensor(
        f"{match[1]}_exps.weight",
        tensor.type,
        (*tensor.shape, experts),
        Copied(tensor, times=experts),
    )
    if not match[1].endswith("gate"):
        return [merged]
    layer = int(match[2])
    weights = rows[layer]
    router = NewTensor(
        f"blk.{layer}.ffn_gate_inp.weight",
        "F32",
        (weights.shape[1], weights.shape[0]),
        Given(weights.astype("<f4").tobytes()),
    )
    return [router, merged]
