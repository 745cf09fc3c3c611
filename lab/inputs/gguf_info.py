"""What a model file says about its cost: bytes read for one token, KV bytes, experts, vocabulary.

Decoding one token reads every weight once, apart from tables of which only a row is
looked up and experts that are not routed to, and the keys and values of all earlier
tokens. Writes (one position of the KV cache) and activations are left out: both are
below a thousandth of the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from attrs import field, frozen

from lab.errors import InputError
from lab.inputs.gguf_file import GgufFile, Tensor, read_gguf
from lab.inputs.layers import F16_CACHE, CacheTypes, Layer, read_layer
from lab.inputs.vocabulary import Vocabulary, read_vocabulary

LOOKED_UP = frozenset(
    {
        "token_embd.weight",
        "per_layer_token_embd.weight",
        "position_embd.weight",
        "token_types.weight",
    }
)
"""Tables of which a token reads one row. Without an output head the first is one as well."""

_BLOCK = re.compile(r"^blk\.(\d+)\.")
_EXPERTS = re.compile(r"_(?:ch)?exps\.")


@frozen
class TokenBytes:
    """Bytes read by one pass that yields one token, by what they are.

    Attributes
    ----------
    head : output projection (the embedding table itself where the two are tied).
    shared : all other weights that every token reads: attention, dense FFN, norms, routers.
    experts : routed experts, at the number used.
    rows : rows looked up in embedding tables.
    kv : keys and values of the positions before.
    """

    head: float
    shared: float
    experts: float
    rows: float
    kv: float

    @property
    def weights(self) -> float:
        """Everything but the KV cache."""
        return self.head + self.shared + self.experts + self.rows

    @property
    def total(self) -> float:
        """All bytes of the pass."""
        return self.weights + self.kv


@frozen
class GgufInfo:
    """The facts of one model file that speed and memory follow from.

    Attributes
    ----------
    file_bytes : size on disk, all parts. weight_bytes : all tensors.
    n_layers : blocks that every token passes. n_blocks : the same with the blocks for
        multi-token prediction, which plain decoding leaves out.
    n_ctx_train : context it was trained for, tokens; None when the file does not say.
    experts, experts_used : routed experts a block, and how many a token visits; None in a
        dense model. ``experts_used`` is the mean where it differs by block.
    tied : True when the output projection is the embedding table.
    layers, outer : tensors by block, and those outside of blocks.
    notes : what is not counted, in words.
    """

    path: Path
    parts: tuple[Path, ...]
    file_bytes: int
    weight_bytes: int
    architecture: str
    name: str | None
    n_layers: int
    n_blocks: int
    n_embd: int | None
    n_ctx_train: int | None
    experts: int | None
    experts_used: float | None
    tied: bool
    vocabulary: Vocabulary
    layers: tuple[Layer, ...] = field(repr=False)
    outer: tuple[Tensor, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Name in the file, or else the file's own."""
        return self.name or self.path.stem

    def token_bytes(
        self,
        depth: int = 0,
        *,
        experts_used: float | None = None,
        cache: CacheTypes = F16_CACHE,
    ) -> TokenBytes:
        """Bytes one decoded token reads at ``depth`` earlier positions.

        ``experts_used`` is the number of distinct experts read a block, where it was
        measured or where several tokens share a pass; the file's own number when None.
        """
        blocks = [tensor for layer in self.layers for tensor in layer.tensors]
        routed = [tensor for tensor in blocks if is_expert(tensor)]
        head = self.head
        return TokenBytes(
            head=head.n_bytes if head else 0,
            shared=_size(tensor for tensor in blocks if not is_expert(tensor))
            + _size(t for t in self.outer if t.name not in LOOKED_UP and t is not head),
            experts=sum(one.n_bytes * self.share_used(one, experts_used) for one in routed),
            rows=sum(tensor.row_bytes for tensor in self.outer if tensor.name in LOOKED_UP),
            kv=sum(layer.kv_bytes(depth, cache) for layer in self.layers),
        )

    def kv_cache_bytes(
        self, n_ctx: int, *, cache: CacheTypes = F16_CACHE, ubatch: int = 512
    ) -> float:
        """Memory the KV cache takes for one sequence of ``n_ctx`` positions, bytes."""
        return sum(layer.cache_bytes(n_ctx, cache, ubatch) for layer in self.layers)

    def token_flops(
        self, depth: int = 0, *, experts_used: float | None = None, logits: bool = True
    ) -> float:
        """Floating-point operations of one token: two a weight, and attention over ``depth``.

        Reading a prompt needs ``logits`` for its last token only.
        """
        blocks = (tensor for layer in self.layers for tensor in layer.tensors)
        weights = sum(self.tensor_flops(tensor, experts_used) for tensor in blocks)
        head = 2.0 * self.head.n_elements if self.head and logits else 0.0
        return weights + head + sum(layer.attention_flops(depth) for layer in self.layers)

    def tensor_flops(self, tensor: Tensor, experts_used: float | None = None) -> float:
        """Operations of one token in one tensor; 0 unless it is a matrix."""
        if not is_matrix(tensor):
            return 0.0
        share = self.share_used(tensor, experts_used) if is_expert(tensor) else 1.0
        return 2.0 * tensor.n_elements * share

    def share_used(self, tensor: Tensor, experts_used: float | None = None) -> float:
        """Share of an expert tensor that a token reads; its last dimension is the experts."""
        used = self.experts_used if experts_used is None else experts_used
        return 1.0 if used is None else min(used / tensor.shape[-1], 1.0)

    @property
    def head(self) -> Tensor | None:
        """The tensor that gives the logits; None when the file has neither head nor table."""
        return _find_head(self.outer)


def gguf_info(path: Path | str) -> GgufInfo:
    """Read a model's facts from its header.

    Raises
    ------
    InputError : as ``read_gguf``, and for files with a vocabulary but no weights or
        without an architecture.
    """
    file = read_gguf(path)
    if not file.tensors:
        what = "only a vocabulary" if "tokenizer.ggml.tokens" in file.metadata else "no tensors"
        raise InputError(
            f"holds {what}, no weights", file=file.path, fix="Name a file with the model's weights"
        )
    architecture = file.text("general.architecture")
    n_blocks = file.number(f"{architecture}.block_count")
    if architecture is None or n_blocks is None:
        raise InputError(
            "is not a language model: no architecture or block count in its metadata",
            file=file.path,
            field="general.architecture",
            value=architecture,
        )
    return _described(file, architecture, n_blocks)


def is_expert(tensor: Tensor) -> bool:
    """True for a tensor that holds one slice an expert."""
    return _EXPERTS.search(tensor.name) is not None


def _described(file: GgufFile, architecture: str, n_blocks: int) -> GgufInfo:
    extra = file.number(f"{architecture}.nextn_predict_layers") or 0
    n_layers = n_blocks - extra
    by_block: dict[int, list[Tensor]] = {}
    outer = []
    for tensor in file.tensors:
        match = _BLOCK.match(tensor.name)
        if match is None:
            outer.append(tensor)
        else:
            by_block.setdefault(int(match[1]), []).append(tensor)
    notes = []
    if extra:
        notes.append(f"{extra} multi-token-prediction block(s), which plain decoding does not read")
    if any(".ssm_" in tensor.name for tensor in file.tensors):
        notes.append("recurrent state, read and written with every token")
    used = _number_or_mean(file, f"{architecture}.expert_used_count")
    return GgufInfo(
        path=file.path,
        parts=file.parts,
        file_bytes=file.file_bytes,
        weight_bytes=sum(tensor.n_bytes for tensor in file.tensors),
        architecture=architecture,
        name=file.text("general.name"),
        n_layers=n_layers,
        n_blocks=n_blocks,
        n_embd=file.number(f"{architecture}.embedding_length"),
        n_ctx_train=file.number(f"{architecture}.context_length"),
        experts=file.number(f"{architecture}.expert_count") or None,
        experts_used=used or None,
        tied="output.weight" not in {tensor.name for tensor in outer},
        vocabulary=read_vocabulary(file, architecture),
        layers=tuple(
            read_layer(file, architecture, i, by_block.get(i, [])) for i in range(n_layers)
        ),
        outer=tuple(outer),
        notes=tuple(notes),
    )


def _number_or_mean(file: GgufFile, key: str) -> float | None:
    value = file.metadata.get(key)
    if isinstance(value, tuple):
        counts = [count for count in value if count]
        return sum(counts) / len(counts) if counts else None
    return file.number(key)


def _find_head(outer: Iterable[Tensor]) -> Tensor | None:
    named = {tensor.name: tensor for tensor in outer}
    return named.get("output.weight") or named.get("token_embd.weight")


def is_matrix(tensor: Tensor) -> bool:
    """True for a tensor that takes part in a matrix product."""
    return len(tensor.shape) > 1 and min(tensor.shape[:2]) > 1


def _size(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.n_bytes for tensor in tensors)
