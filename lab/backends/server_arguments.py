"""The command line of a llama-server for one arm, in the spelling of the build at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.inputs.arm import Arm, FlagValue, ServerSettings
from lab.setup.flags import FlagTable, as_arguments, translate


def arguments(
    arm: Arm, target: Path, draft: Path | None, table: FlagTable
) -> tuple[list[str], tuple[str, ...]]:
    """Command-line words for an arm in this build's spelling, and notes on what was translated.

    Raises
    ------
    InputError : a flag this build does not know.
    """
    types = arm.drafting.types
    drafter, notes = translate(arm.drafting.flags, types, table)
    further, more = translate(arm.settings.flags, types, table)
    flags: dict[str, FlagValue] = {
        "model": str(target),
        **_served(arm.settings, table),
        "metrics": True,
        "slots": True,
        **further,
        **drafter,
    }
    if types:
        flags["spec-type"] = ",".join(types)
    if draft is not None:
        flags["spec-draft-model" if "spec-draft-model" in table.known else "model-draft"] = str(
            draft
        )
    return as_arguments(flags), notes + more


def _served(settings: ServerSettings, table: FlagTable) -> dict[str, FlagValue]:
    """Settings as flags; what is None is left to the engine."""
    flash: FlagValue = settings.flash_attn
    if table.bare_flash_attn:
        flash = settings.flash_attn == "on"
    maybe: dict[str, FlagValue | None] = {
        "ctx-size": settings.n_ctx,
        "n-gpu-layers": settings.n_gpu_layers,
        "flash-attn": flash,
        "threads": settings.threads,
        "threads-batch": settings.threads_batch,
        "batch-size": settings.batch,
        "ubatch-size": settings.ubatch,
        "cache-type-k": settings.cache_type_k,
        "cache-type-v": settings.cache_type_v,
        "split-mode": settings.split_mode,
        "tensor-split": ",".join(f"{share:g}" for share in settings.tensor_split) or None,
        "parallel": settings.parallel,
        "no-mmap": not settings.mmap,
        "mlock": settings.mlock,
        "cache-ram": settings.cache_ram_mib,
        "fit": "off",
    }
    maybe |= _devices(settings.devices)
    optional = {"fit", "cache-ram"}
    return {
        name: value
        for name, value in maybe.items()
        if value is not None and (name not in optional or name in table.known)
    }


def _devices(devices: Sequence[str]) -> dict[str, FlagValue | None]:
    """Device names, with host:port entries as RPC servers of the engine."""
    remote = [one for one in devices if ":" in one]
    names = [f"RPC{remote.index(one)}" if one in remote else one for one in devices]
    return {"rpc": ",".join(remote) or None, "device": ",".join(names) or None}
