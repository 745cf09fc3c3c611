"""What one block of a model attends to, and what its keys and values weigh."""

from __future__ import annotations

from attrs import field, frozen
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from lab.errors import InputError
from lab.inputs.gguf_file import GgufFile, Tensor

WINDOW_PERIODS = {
    "gemma2": (2, False),
    "gemma3": (6, False),
    "gemma3n": (5, False),
    "gpt-oss": (2, False),
    "cohere2": (4, False),
    "exaone4": (4, False),
    "olmo2": (4, False),
    "plamo3": (8, False),
    "smallthinker": (4, True),
}
"""Every n-th layer sees the whole context (True: the first of a period, else the last);
for files that carry a window without a pattern. From llama.cpp's src/models."""


@frozen
class CacheTypes:
    """Types of the KV cache, as llama.cpp spells them."""

    k: str = "f16"
    v: str = "f16"


F16_CACHE = CacheTypes()


@frozen
class Layer:
    """One block: its own tensors and its attention.

    Attributes
    ----------
    heads, kv_heads : attention heads; 0 where a block has no attention.
    key_length, value_length : size of one head. value_length is 0 where values are a
        view of the keys (multi-head latent attention).
    window : positions it can see; None when all.
    holds_cache : False where it reads the cache of an earlier block.
    """

    index: int
    tensors: tuple[Tensor, ...] = field(repr=False)
    heads: int
    kv_heads: int
    key_length: int
    value_length: int
    window: int | None
    holds_cache: bool = True

    def kv_bytes(self, positions: int, cache: CacheTypes) -> float:
        """Bytes of keys and values over the positions this block can see."""
        seen = positions if self.window is None else min(positions, self.window)
        return seen * self.position_bytes(cache)

    def attention_flops(self, positions: int) -> float:
        """Operations of one token over the positions this block can see: scores and sums."""
        seen = positions if self.window is None else min(positions, self.window)
        lengths = self.key_length + (self.value_length or self.key_length)
        return 2.0 * self.heads * lengths * seen

    def cache_bytes(self, n_ctx: int, cache: CacheTypes, ubatch: int = 512) -> float:
        """Memory of this block's KV cache for one sequence of ``n_ctx`` positions.

        A block with a window keeps the window and one micro-batch, padded to 256
        positions, as llama.cpp does unless ``--swa-full`` is given.
        """
        if not self.holds_cache:
            return 0.0
        positions = n_ctx
        if self.window is not None:
            positions = min(n_ctx, -(-(self.window + ubatch) // 256) * 256)
        return positions * self.position_bytes(cache)

    def position_bytes(self, cache: CacheTypes) -> float:
        """Bytes of keys and values of one position."""
        a_head = self.key_length * type_bytes(cache.k) + self.value_length * type_bytes(cache.v)
        return self.kv_heads * a_head


def type_bytes(name: str) -> float:
    """Bytes an element of a ggml type takes, scales included.

    Raises
    ------
    InputError : no such type.
    """
    try:
        block, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[name.upper()]]
    except KeyError as error:
        raise InputError("no such tensor type", value=name, fix="Try f16 or q8_0") from error
    return n_bytes / block


def read_layer(file: GgufFile, architecture: str, index: int, tensors: list[Tensor]) -> Layer:
    """Block ``index`` as the metadata and its own tensors describe it."""
    heads = _per_layer(file, f"{architecture}.attention.head_count", index) or 0
    kv_heads = _per_layer(file, f"{architecture}.attention.head_count_kv", index)
    window = _window(file, architecture, index)
    suffix = "" if window is None else "_swa"
    n_embd = file.number(f"{architecture}.embedding_length") or 0
    default = n_embd // heads if heads else 0
    lengths = {}
    for what in ("key_length", "value_length"):
        whole = file.number(f"{architecture}.attention.{what}")
        own = file.number(f"{architecture}.attention.{what}{suffix}")
        lengths[what] = own or whole or default
    if file.number(f"{architecture}.attention.key_length_mla"):
        lengths["value_length"] = 0
    shared = file.number(f"{architecture}.attention.shared_kv_layers") or 0
    n_blocks = file.number(f"{architecture}.block_count") or 0
    attends = _attends(tensors)
    return Layer(
        index=index,
        tensors=tuple(tensors),
        heads=heads if attends else 0,
        kv_heads=(heads if kv_heads is None else kv_heads) if attends else 0,
        key_length=lengths["key_length"],
        value_length=lengths["value_length"],
        window=window,
        holds_cache=index < n_blocks - shared,
    )


def _attends(tensors: list[Tensor]) -> bool:
    """True unless the block is recurrent only (``ssm_`` tensors beside a fused projection)."""
    names = {tensor.name.split(".", 2)[2] for tensor in tensors}
    recurrent = any(name.startswith(("ssm_", "shortconv", "time_mix")) for name in names)
    return not recurrent or "attn_k.weight" in names


def _window(file: GgufFile, architecture: str, index: int) -> int | None:
    window = file.number(f"{architecture}.attention.sliding_window")
    if not window:
        return None
    pattern = file.metadata.get(f"{architecture}.attention.sliding_window_pattern")
    if isinstance(pattern, tuple):
        return window if index < len(pattern) and pattern[index] else None
    period, whole_first = WINDOW_PERIODS.get(architecture, (1, False))
    if isinstance(pattern, int) and not isinstance(pattern, bool):
        period = pattern
    whole_at = 0 if whole_first else period - 1
    return None if period and index % period == whole_at else window


def _per_layer(file: GgufFile, key: str, index: int) -> int | None:
    value = file.metadata.get(key)
    if isinstance(value, tuple):
        return int(value[index]) if index < len(value) else None
    return file.number(key)
