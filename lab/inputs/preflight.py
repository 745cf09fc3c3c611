"""What can be known to fail before anything is loaded.

Each check reads headers and settings only and raises one InputError that says what to
change; what cannot be decided beforehand is left to the engine.
"""

from __future__ import annotations

from attrs import frozen

from lab.errors import InputError
from lab.inputs.arm import ServerSettings
from lab.inputs.gguf_info import GgufInfo
from lab.inputs.layers import CacheTypes

VOCABULARY_SLACK = 128
VOCABULARY_START = 5
"""How far sizes may differ, and the first token id whose text must agree: the limits of
llama.cpp's common/speculative.cpp (SPEC_VOCAB_MAX_SIZE_DIFFERENCE and _CHECK_START_TOKEN_ID)."""

UNQUANTISED = frozenset({"f32", "f16", "bf16"})
UBATCH = 512
"""Micro-batch the engine takes when none is set, tokens."""

_GB = 1e9


@frozen
class MemoryNeed:
    """Memory that serving takes, bytes; every part predicted, ``compute`` estimated.

    Attributes
    ----------
    weights : tensors of the target. kv_cache : over the whole context, all slots.
    draft : weights and cache of the draft model; 0 without one.
    compute : activations and logits of one micro-batch.
    """

    weights: float
    kv_cache: float
    draft: float
    compute: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.kv_cache + self.draft + self.compute


def cache_types(settings: ServerSettings) -> CacheTypes:
    """The KV-cache types in force; f16 where none is set."""
    return CacheTypes(settings.cache_type_k or "f16", settings.cache_type_v or "f16")


def check_settings(settings: ServerSettings) -> None:
    """Refuse settings that the engine cannot serve together.

    Raises
    ------
    InputError : a quantised V cache without flash attention; a tensor split with a
        quantised KV cache or without flash attention; shares that do not match the devices.
    """
    cache = cache_types(settings)
    if cache.v not in UNQUANTISED and settings.flash_attn == "off":
        raise InputError(
            "a quantised V cache needs flash attention",
            field="cache_type_v",
            value=cache.v,
            fix='Set flash_attn = "on", or cache_type_v = "f16"',
        )
    if settings.split_mode == "tensor":
        _check_tensor_split(settings, cache)
    shares, devices = settings.tensor_split, settings.devices
    if shares and devices and len(shares) != len(devices):
        raise InputError(
            f"{len(shares)} shares for {len(devices)} devices",
            field="tensor_split",
            value=shares,
            fix="Give one share a device",
        )


def _check_tensor_split(settings: ServerSettings, cache: CacheTypes) -> None:
    quantised = [one for one in (cache.k, cache.v) if one not in UNQUANTISED]
    if quantised:
        raise InputError(
            "a tensor split cannot hold a quantised KV cache",
            field="split_mode",
            value="tensor",
            fix=f'Use f16 instead of {quantised[0]}, or split_mode = "layer"',
        )
    if settings.flash_attn == "off":
        raise InputError(
            "a tensor split needs flash attention",
            field="split_mode",
            value="tensor",
            fix='Set flash_attn = "on", or split_mode = "layer"',
        )


def check_draft(target: GgufInfo, draft: GgufInfo) -> None:
    """Refuse a draft model that cannot draft for this target, or cannot pay.

    Raises
    ------
    InputError : the vocabularies do not agree as the engine demands, or the draft reads
        more bytes a token than its target, so that drafting costs more than decoding.
    """
    problem = vocabulary_problem(target, draft)
    if problem is not None:
        raise InputError(
            f"cannot draft for {target.path.name}: {problem}",
            file=draft.path,
            fix="Take a draft model of the same family",
        )
    ours, theirs = draft.token_bytes().total, target.token_bytes().total
    if ours > theirs:
        raise InputError(
            f"reads {ours / 1e6:.0f} MB a token, its target {theirs / 1e6:.0f} MB: "
            "drafting with it costs more than decoding without",
            file=draft.path,
            fix="Take a smaller draft model",
        )


def vocabulary_problem(target: GgufInfo, draft: GgufInfo) -> str | None:
    """Why the engine would refuse the pair, or translate between them; None when it would not."""
    ours, theirs = target.vocabulary, draft.vocabulary
    if ours.kind != theirs.kind:
        return f"tokenizer {theirs.kind} against {ours.kind}"
    for name, adds, token in (("BOS", "add_bos", "bos_id"), ("EOS", "add_eos", "eos_id")):
        wanted, given = getattr(ours, adds), getattr(theirs, adds)
        if None not in (wanted, given) and wanted != given:
            return f"{adds} is {given} against {wanted}"
        if wanted and getattr(ours, token) != getattr(theirs, token):
            return f"{name} is token {getattr(theirs, token)} against {getattr(ours, token)}"
    if ours.size is None or theirs.size is None:
        return "one of the files carries no vocabulary"
    if abs(ours.size - theirs.size) > VOCABULARY_SLACK:
        return f"{theirs.size} tokens against {ours.size}"
    differs = ours.first_difference(theirs, VOCABULARY_START)
    return None if differs is None else f"token {differs} is another text"


def memory_need(
    target: GgufInfo, settings: ServerSettings, draft: GgufInfo | None = None
) -> MemoryNeed:
    """Memory that serving ``target`` will take, before loading it."""
    cache = cache_types(settings)
    ubatch = settings.ubatch or UBATCH
    beside = 0.0
    if draft is not None:
        beside = draft.weight_bytes + draft.kv_cache_bytes(settings.n_ctx, ubatch=ubatch)
    return MemoryNeed(
        weights=target.weight_bytes,
        kv_cache=target.kv_cache_bytes(settings.n_ctx, cache=cache, ubatch=ubatch),
        draft=beside,
        compute=_compute_bytes(target, settings, ubatch),
    )


def _compute_bytes(target: GgufInfo, settings: ServerSettings, ubatch: int) -> float:
    """Logits of a micro-batch, or attention scores where those are larger, and activations.

    The engine reserves logits for every row and reuses that memory inside the layers.
    Its buffer for SmolLM2 at 512 rows is 99.4 MiB, of which logits are 96; this gives 100.5.
    """
    logits = 4.0 * ubatch * (target.vocabulary.size or 0)
    scores = 0.0
    if settings.flash_attn == "off":
        heads = max((layer.heads for layer in target.layers), default=0)
        scores = 4.0 * ubatch * heads * settings.n_ctx
    return max(logits, scores) + 4.0 * ubatch * 4 * (target.n_embd or 0)


def check_fits(need: MemoryNeed, free_bytes: float, *, where: str = "memory") -> None:
    """Refuse to load what will not fit.

    Raises
    ------
    InputError : ``need`` exceeds ``free_bytes``; says by how much and what weighs most.
    """
    if need.total <= free_bytes:
        return
    parts = {
        "weights": (need.weights, "Take a smaller quantisation"),
        "KV cache": (need.kv_cache, "Lower n_ctx or quantise the KV cache"),
        "draft model": (need.draft, "Take a smaller draft model, or a drafter without one"),
        "compute buffer": (need.compute, "Lower ubatch"),
    }
    listed = ", ".join(f"{name} {size / _GB:.2f}" for name, (size, _) in parts.items() if size)
    # The draft is named first where leaving it out would be enough.
    largest = max(parts, key=lambda name: parts[name][0])
    if need.draft and need.total - need.draft <= free_bytes:
        largest = "draft model"
    raise InputError(
        f"needs {need.total / _GB:.2f} GB of {where} ({listed}) and "
        f"{free_bytes / _GB:.2f} GB are free",
        fix=parts[largest][1],
    )


def lookup_logits_bytes(info: GgufInfo, n_ctx: int) -> float:
    """Memory of llama-cpp-python's score table under prompt-lookup drafting, bytes.

    One 32-bit float for every token of the vocabulary at every position, whatever the
    quantisation, since that drafter needs ``logits_all=True``.
    """
    return float(n_ctx) * (info.vocabulary.size or 0) * 4


def check_lookup_fits(info: GgufInfo, n_ctx: int, free_bytes: float) -> None:
    """Refuse prompt-lookup drafting whose score table would not fit into host memory.

    Raises
    ------
    InputError : says what the table takes and which context would fit.
    """
    table = lookup_logits_bytes(info, n_ctx)
    if table <= free_bytes:
        return
    fitting = int(free_bytes / (table / n_ctx))
    raise InputError(
        f"prompt-lookup drafting keeps {table / _GB:.2f} GB of logits for {n_ctx} positions and "
        f"{free_bytes / _GB:.2f} GB are free",
        field="n_ctx",
        value=n_ctx,
        fix=f"Lower n_ctx to at most {fitting}",
    )
