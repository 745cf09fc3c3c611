"""What an arm may ask of llama-cpp-python, checked before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import psutil

from lab.errors import InputError
from lab.inputs.arm import Arm
from lab.inputs.gguf_info import gguf_info
from lab.inputs.preflight import check_lookup_fits, check_settings, lookup_logits_bytes

LOOKUP = "prompt-lookup"
_FLAGS = {"max-ngram-size": 2, "num-pred-tokens": 10}


def lookup_settings(arm: Arm) -> dict[str, int] | None:
    """Settings of the prompt-lookup drafter; None when nothing drafts.

    Raises
    ------
    InputError : another drafter, or a flag it does not have.
    """
    types = arm.drafting.types
    if not types:
        return None
    if types != (LOOKUP,) or arm.drafting.draft_model is not None:
        raise InputError(
            "llama-cpp-python drafts by prompt lookup only",
            field=f"arms.{arm.name}.spec_type",
            value=list(types),
            fix=f'Use spec_type = ["{LOOKUP}"], or the llama-server backend',
        )
    unknown = [name for name in arm.drafting.flags if name not in _FLAGS]
    if unknown:
        raise InputError(
            "is not a setting of prompt lookup",
            field=f"arms.{arm.name}.flags",
            value=unknown[0],
            fix=f"Known: {', '.join(_FLAGS)}",
        )
    wanted = {**_FLAGS, **arm.drafting.flags}
    return {name.replace("-", "_"): int(value) for name, value in wanted.items()}


def check_arm(arm: Arm) -> None:
    """Refuse settings that have no meaning in process.

    Raises
    ------
    InputError : devices by name, several slots, or what no engine serves together.
    """
    settings = arm.settings
    check_settings(settings)
    for field, value, plain in (
        ("devices", settings.devices, ()),
        ("parallel", settings.parallel, 1),
    ):
        if value != plain:
            raise InputError(
                "cannot be set in process",
                field=field,
                value=value,
                fix="Leave it out, or use the llama-server backend",
            )


def check_memory(file: Path, arm: Arm) -> tuple[str, ...]:
    """What must be known of an arm; refuses one whose score table would not fit.

    Raises
    ------
    InputError : it would not.
    """
    notes: tuple[str, ...] = ()
    if arm.settings.flash_attn == "auto":
        notes = ("flash_attn auto was taken as on: llama-cpp-python knows on and off only",)
    if arm.is_baseline:
        return notes
    info, n_ctx = gguf_info(file), arm.settings.n_ctx
    check_lookup_fits(info, n_ctx, psutil.virtual_memory().available)
    table = lookup_logits_bytes(info, n_ctx) / 1e9
    return (*notes, f"prompt lookup keeps up to {table:.2f} GB of logits in memory")


def check_offload(arm: Arm, *, card: bool) -> None:
    """Refuse layers on a card where the engine has no code for one.

    Raises
    ------
    InputError : ``card`` is False and the arm asks for some.
    """
    if arm.settings.n_gpu_layers and not card:
        raise InputError(
            "this engine is a CPU build, or finds no card: no layer can be kept on one",
            field="n_gpu_layers",
            value=arm.settings.n_gpu_layers,
            fix="Build the engine with a GPU toolkit (make setup says what it found), or set 0",
        )
