"""Which device holds and reads what when a model is split over several.

Layers are handed out as llama.cpp does (``load_tensors``): the blocks and, after the
last, the output head are laid along the cumulative shares of the devices; embedding
tables stay with the host. The three modes differ in what is read at once:

``layer``   a block and its KV cache live on one device; devices take turns.
``row``     matrices are cut by rows over all devices, read at once; experts, norms and
            KV caches stay with the block's device.
``tensor``  matrices and KV caches are cut, read at once; norms are on every device.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from lab.errors import InputError
from lab.inputs.gguf_file import Tensor
from lab.inputs.gguf_info import LOOKED_UP, GgufInfo, is_expert, is_matrix
from lab.inputs.layers import F16_CACHE, CacheTypes

HOST = "host"
MODES = ("none", "layer", "row", "tensor")


@frozen
class DeviceBytes:
    """What one device has of a model.

    Attributes
    ----------
    device : its name, or "host".
    blocks : indices of the blocks it runs (all of them in tensor mode).
    output : True where it computes the logits.
    weight_bytes, kv_cache_bytes : held in its memory.
    token_weight_bytes, token_kv_bytes : read for one token.
    token_flops : operations it does for one token.
    """

    device: str
    blocks: tuple[int, ...]
    output: bool
    weight_bytes: float
    kv_cache_bytes: float
    token_weight_bytes: float
    token_kv_bytes: float
    token_flops: float

    @property
    def token_bytes(self) -> float:
        """All bytes it reads for one token."""
        return self.token_weight_bytes + self.token_kv_bytes


@frozen
class Split:
    """How a model is spread: devices in the engine's order and their shares.

    Attributes
    ----------
    devices : names; empty keeps everything on the host.
    shares : any positive scale, one a device; equal when empty. An engine that is given
        none uses the free memory of each device.
    mode : one of MODES. n_gpu_layers : blocks on devices, the output head counted as one
        more; None is all.
    """

    devices: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    mode: str = "layer"
    n_gpu_layers: int | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse shares that fit no device and modes that do not exist."""
        if self.mode not in MODES:
            raise InputError("no such split mode", value=self.mode, fix=f"One of {MODES}")
        if self.shares and len(self.shares) != len(self.devices):
            raise InputError(
                f"{len(self.shares)} shares for {len(self.devices)} devices",
                field="tensor_split",
                value=self.shares,
                fix="Give one share a device",
            )
        if self.shares and not sum(self.shares) > 0:
            raise InputError("shares add up to nothing", field="tensor_split", value=self.shares)

    @property
    def fractions(self) -> tuple[float, ...]:
        """Shares that add up to one."""
        if not self.devices:
            return ()
        if self.mode == "none":
            return (1.0, *(0.0 for _ in self.devices[1:]))
        shares = self.shares or tuple(1.0 for _ in self.devices)
        return tuple(share / sum(shares) for share in shares)

    def owners(self, n_blocks: int) -> list[str]:
        """Device of each block, the output head last.

        Single precision and the search are those of the engine, so that ties fall alike.
        """
        if not self.devices:
            return [HOST] * (n_blocks + 1)
        wanted = n_blocks + 1 if self.n_gpu_layers is None else max(self.n_gpu_layers, 0)
        on_devices = min(wanted, n_blocks + 1)
        start = max(n_blocks + 1 - wanted, 0)
        points = np.cumsum(np.array(self.fractions, dtype=np.float32), dtype=np.float32)
        points = (points / points[-1]).astype(np.float32)
        owners = []
        for block in range(n_blocks + 1):
            if block < start or on_devices == 0:
                owners.append(HOST)
                continue
            place = np.float32(block - start) / np.float32(on_devices)
            owners.append(self.devices[int(np.searchsorted(points, place, side="right"))])
        return owners


def place(
    info: GgufInfo,
    split: Split,
    *,
    n_ctx: int = 2048,
    depth: int = 0,
    cache: CacheTypes = F16_CACHE,
    experts_used: float | None = None,
) -> tuple[DeviceBytes, ...]:
    """Bytes held and read by every device, the host last."""
    owners = split.owners(info.n_blocks)
    return tuple(
        _device(info, split, name, owners, (n_ctx, depth, cache, experts_used))
        for name in (*split.devices, HOST)
    )


def _device(
    info: GgufInfo,
    split: Split,
    device: str,
    owners: list[str],
    state: tuple[int, int, CacheTypes, float | None],
) -> DeviceBytes:
    n_ctx, depth, cache, experts_used = state
    portion = _portion(split, device)
    held = read = kv_held = kv_read = flops = 0.0
    for layer in info.layers:
        owner = owners[layer.index]
        for tensor in layer.tensors:
            part = portion(tensor, owner) * tensor.n_bytes
            held += part
            read += part * (info.share_used(tensor, experts_used) if is_expert(tensor) else 1.0)
            flops += portion(tensor, owner) * info.tensor_flops(tensor)
        part = _kv_portion(split, device, owner)
        kv_held += part * layer.cache_bytes(n_ctx, cache)
        kv_read += part * layer.kv_bytes(depth, cache)
        flops += part * layer.attention_flops(depth)
    for tensor in info.outer:
        part = portion(tensor, owners[-1])
        outer_held, outer_read = _outer(info, tensor, device, part)
        held += outer_held
        read += outer_read
        flops += part * 2.0 * tensor.n_elements if tensor is info.head else 0.0
    whole = split.mode == "tensor" and device in split.devices
    blocks = tuple(
        layer.index
        for layer in info.layers
        if owners[layer.index] == device or (whole and owners[layer.index] != HOST)
    )
    return DeviceBytes(device, blocks, owners[-1] == device, held, kv_held, read, kv_read, flops)


def _outer(info: GgufInfo, tensor: Tensor, device: str, part: float) -> tuple[float, float]:
    """(held, read) of a tensor outside of blocks; tables stay with the host."""
    held = read = 0.0
    if tensor.name in LOOKED_UP and device == HOST:
        held, read = float(tensor.n_bytes), float(tensor.row_bytes)
    if tensor is info.head or tensor.name not in LOOKED_UP:
        # A tied head on a device is a second copy of the table there.
        copy = part if device != HOST or tensor.name not in LOOKED_UP else 0.0
        held += copy * tensor.n_bytes
        read += part * tensor.n_bytes
    return held, read


def _portion(split: Split, device: str) -> Callable[[Tensor, str], float]:
    """Share of a tensor that ``device`` has, given the owner of its block."""
    share = dict(zip(split.devices, split.fractions, strict=True)).get(device, 0.0)

    def portion(tensor: Tensor, owner: str) -> float:
        if owner != HOST and split.mode == "tensor":
            return share if is_matrix(tensor) else float(device != HOST)
        if owner != HOST and split.mode == "row" and is_matrix(tensor) and not is_expert(tensor):
            return share
        return float(owner == device)

    return portion


def _kv_portion(split: Split, device: str, owner: str) -> float:
    if owner != HOST and split.mode == "tensor":
        return dict(zip(split.devices, split.fractions, strict=True)).get(device, 0.0)
    return float(owner == device)
