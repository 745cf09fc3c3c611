"""What one arm of an experiment is: a model, how it is served, and what drafts for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs
from attrs import field, frozen

FlagValue = str | int | float | bool
"""Value of an engine flag; True is a bare flag, False its absence."""

NO_FLAGS: Mapping[str, FlagValue] = MappingProxyType({})


@frozen
class ServerSettings:
    """How a model is served. None leaves the engine's own default in force.

    Attributes
    ----------
    n_ctx : context, tokens.
    n_gpu_layers : layers kept on the devices; None on a machine without one.
    flash_attn : "on", "off" or "auto".
    threads, threads_batch : CPU threads for one token and for several.
    batch, ubatch : logical and physical batch, tokens.
    cache_type_k, cache_type_v : KV-cache types, as llama.cpp spells them ("f16", "q8_0").
    devices : device names as ``--list-devices`` prints them, or RPC addresses (host:port).
    split_mode : "none", "layer", "row" or "tensor".
    tensor_split : share of each device, any positive scale.
    parallel : slots.
    cache_prompt : reuse the previous request's KV prefix.
    cache_ram_mib : host-memory prompt cache; 0 is off.
    mmap, mlock : how weights are held.
    flags : any further engine flags by canonical name without leading dashes.
    """

    n_ctx: int = 2048
    n_gpu_layers: int | None = None
    flash_attn: str = "auto"
    threads: int | None = None
    threads_batch: int | None = None
    batch: int | None = None
    ubatch: int | None = None
    cache_type_k: str | None = None
    cache_type_v: str | None = None
    devices: tuple[str, ...] = ()
    split_mode: str | None = None
    tensor_split: tuple[float, ...] = ()
    parallel: int = 1
    cache_prompt: bool = False
    cache_ram_mib: int = 0
    mmap: bool = True
    mlock: bool = False
    flags: Mapping[str, FlagValue] = field(default=NO_FLAGS)


STATEFUL_TYPES = frozenset({"ngram-mod", "ngram-cache", "ngram-map-k", "ngram-map-k4v"})
"""Drafters whose memory outlives a request: one pool a process, or one table a slot.

The maps are meant to follow one conversation. When another prompt comes they keep the
places they indexed in the earlier one, which hides matches in the beginning of the new.
"""


@frozen
class Drafting:
    """What proposes tokens for the target.

    Attributes
    ----------
    types : llama.cpp's ``--spec-type`` values ("ngram-mod", "draft-simple", ...); empty is none.
    flags : drafter flags in this engine's spelling without leading dashes,
        for example {"spec-ngram-mod-n-match": 24}.
    draft_model : name of a model in the profile; None when the drafter needs none.
    """

    types: tuple[str, ...] = ()
    flags: Mapping[str, FlagValue] = field(default=NO_FLAGS)
    draft_model: str | None = None

    @property
    def outlives_request(self) -> bool:
        """True when an earlier request can change what is drafted for a later one."""
        return bool(STATEFUL_TYPES.intersection(self.types))


@frozen
class Arm:
    """One server configuration, compared with others on the same prompts.

    Attributes
    ----------
    name : short, unique within an experiment, fit for a file name ("ngram-mod-24-48-64").
    label : what figures show.
    model : name of the target model in the profile.
    """

    name: str
    label: str
    model: str = "target"
    settings: ServerSettings = field(factory=ServerSettings)
    drafting: Drafting = field(factory=Drafting)

    @property
    def is_baseline(self) -> bool:
        """True when nothing drafts."""
        return not self.drafting.types

    def with_name(self, name: str, label: str) -> Arm:
        """Give the same configuration another name (the second baseline of an A/A pair)."""
        return attrs.evolve(self, name=name, label=label)
