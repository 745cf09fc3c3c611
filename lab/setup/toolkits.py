"""Which GPU toolkits are on this machine, and which one the engine is built for."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from lab.errors import InputError

CHOICE = "LAB_GPU"
"""Environment variable: auto, none, cuda, hip, vulkan or metal."""


@frozen
class Toolkit:
    """A GPU toolkit as found.

    Attributes
    ----------
    name : "cuda", "hip", "vulkan", "metal" or "none".
    present : the compiler of the toolkit is here.
    device : a device of its kind is here; None where that cannot be told.
    cmake : options that build for it.
    reason : one sentence on what was found.
    """

    name: str
    present: bool
    device: bool | None
    cmake: tuple[str, ...]
    reason: str


NO_TOOLKIT = Toolkit("none", present=True, device=None, cmake=(), reason="processor only")


def _has(*programs: str) -> bool:
    return all(shutil.which(program) for program in programs)


def _cuda() -> Toolkit:
    nvcc = shutil.which("nvcc") or next(
        (str(file) for file in Path("/usr/local").glob("cuda*/bin/nvcc")), None
    )
    device = bool(list(Path("/dev").glob("nvidia[0-9]*"))) or Path("/dev/dxg").exists()
    architectures = ("-DCMAKE_CUDA_ARCHITECTURES=native",) if device else ()
    return Toolkit(
        "cuda",
        present=nvcc is not None,
        device=device,
        cmake=(
            "-DGGML_CUDA=ON",
            *([f"-DCMAKE_CUDA_COMPILER={nvcc}"] if nvcc else []),
            *architectures,
        ),
        reason=f"nvcc {nvcc or 'not found'}, {'a' if device else 'no'} NVIDIA device",
    )


def _hip() -> Toolkit:
    device = Path("/dev/kfd").exists()
    return Toolkit(
        "hip",
        present=_has("hipcc"),
        device=device,
        cmake=("-DGGML_HIP=ON",),
        reason=f"hipcc {'found' if _has('hipcc') else 'not found'}, "
        f"{'an' if device else 'no'} AMD compute device",
    )


def _vulkan() -> Toolkit:
    header = any(
        Path(root, "vulkan/vulkan.h").exists() for root in ("/usr/include", "/usr/local/include")
    )
    device = bool(list(Path("/dev/dri").glob("renderD*"))) if Path("/dev/dri").exists() else False
    found = _has("glslc") and header
    return Toolkit(
        "vulkan",
        present=found,
        device=device,
        cmake=("-DGGML_VULKAN=ON",),
        reason=f"glslc and headers {'found' if found else 'not both found'}, "
        f"{'a' if device else 'no'} render device",
    )


def _metal() -> Toolkit:
    apple = platform.system() == "Darwin" and platform.machine() == "arm64"
    return Toolkit(
        "metal",
        present=apple,
        device=apple,
        cmake=("-DGGML_METAL=ON",),
        reason="Apple silicon" if apple else "not Apple silicon",
    )


DETECTORS: Mapping[str, Callable[[], Toolkit]] = {
    "cuda": _cuda,
    "metal": _metal,
    "hip": _hip,
    "vulkan": _vulkan,
}
"""In order of preference."""


def detect() -> tuple[Toolkit, ...]:
    """Every known toolkit, present or not."""
    return tuple(find() for find in DETECTORS.values())


def choose(wanted: str | None = None) -> Toolkit:
    """The toolkit to build for: ``wanted``, else LAB_GPU, else the first with a device.

    A toolkit without a device (a build machine) is not chosen by itself, since building
    for it takes long and serves nothing here; forcing it by name is honoured.

    Raises
    ------
    InputError : an unknown name, or a forced toolkit whose compiler is missing.
    """
    name = (wanted or os.environ.get(CHOICE) or "auto").lower()
    if name == "none":
        return NO_TOOLKIT
    if name == "auto":
        return next((one for one in detect() if one.present and one.device), NO_TOOLKIT)
    if name not in DETECTORS:
        raise InputError(
            "unknown toolkit",
            field=CHOICE,
            value=name,
            fix=f"One of auto, none, {', '.join(DETECTORS)}",
        )
    found = DETECTORS[name]()
    if not found.present:
        raise InputError(
            f"toolkit asked for but not usable: {found.reason}",
            field=CHOICE,
            value=name,
            fix="Install it, or set LAB_GPU=none",
        )
    return found
