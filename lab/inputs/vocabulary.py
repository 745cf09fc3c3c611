"""The vocabulary a model file carries, and where two of them differ."""

from __future__ import annotations

import hashlib
from itertools import islice

from attrs import field, frozen

from lab.inputs.gguf_file import GgufFile, Strings


@frozen
class Vocabulary:
    """What two models must share for one to draft for the other.

    Attributes
    ----------
    kind, pre : tokenizer and pre-tokenizer ("gpt2", "smollm").
    size : number of tokens; None when the file carries none.
    bos_id, eos_id : None when the file does not say.
    add_bos, add_eos : None when the file leaves it to the engine's default for ``pre``.
    tokens : the token texts, left in the file.
    """

    kind: str | None
    pre: str | None
    size: int | None
    bos_id: int | None
    eos_id: int | None
    add_bos: bool | None
    add_eos: bool | None
    tokens: Strings | None = field(default=None, repr=False)

    def sha256(self) -> str | None:
        """Digest over the token texts in order, hex; None when the file carries none."""
        if self.tokens is None:
            return None
        digest = hashlib.sha256()
        for text in self.tokens:
            digest.update(len(text).to_bytes(4, "little") + text)
        return digest.hexdigest()

    def first_difference(self, other: Vocabulary, start: int = 0) -> int | None:
        """Lowest token id from ``start`` whose text differs, over the ids both have."""
        if self.tokens is None or other.tokens is None:
            return None
        shared = min(self.tokens.count, other.tokens.count)
        pairs = zip(islice(self.tokens, shared), islice(other.tokens, shared), strict=True)
        return next((i for i, (a, b) in enumerate(pairs) if i >= start and a != b), None)


def read_vocabulary(file: GgufFile, architecture: str) -> Vocabulary:
    """The vocabulary of a file; fields it does not state are None."""
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    texts = tokens if isinstance(tokens, Strings) else None
    size = texts.count if texts else file.number(f"{architecture}.vocab_size")
    add_bos = file.metadata.get("tokenizer.ggml.add_bos_token")
    add_eos = file.metadata.get("tokenizer.ggml.add_eos_token")
    return Vocabulary(
        kind=file.text("tokenizer.ggml.model"),
        pre=file.text("tokenizer.ggml.pre"),
        size=size,
        bos_id=file.number("tokenizer.ggml.bos_token_id"),
        eos_id=file.number("tokenizer.ggml.eos_token_id"),
        add_bos=add_bos if isinstance(add_bos, bool) else None,
        add_eos=add_eos if isinstance(add_eos, bool) else None,
        tokens=texts,
    )
