"""What a device's memory sustains, through the engine's own backend: copies on the device.

A copy of n bytes reads n and writes n, so it moves 2 n; on a GPU the two streams share
one bus and the sum is what its bandwidth figure means. The engine's libraries are loaded
in a child process, so that nothing they hold outlives the measurement::

    python -m lab.machine.device_copy LIB_DIR DEVICE MIB PASSES
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from ctypes import c_bool, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from lab.errors import SetupError
from lab.machine.bandwidth import median_interval

MIB = 512
PASSES = 15
WARM_UPS = 3
_F32 = 0


@frozen
class DeviceBandwidth:
    """Bytes moved a second by copies within one device.

    Attributes
    ----------
    device, description : as the engine names it.
    gb_s : median over the passes, reads and writes together, 1e9 bytes a second.
    low, high : interval of the median at 95 %; None below 6 passes.
    """

    device: str
    description: str
    gb_s: float
    low: float | None
    high: float | None
    passes_gb_s: tuple[float, ...]


def device_bandwidth(
    lib_dir: Path, device: str = "CPU", *, mib: int = MIB, passes: int = PASSES
) -> DeviceBandwidth:
    """Measure copies on one device of the engine in ``lib_dir``.

    Raises
    ------
    SetupError : the libraries or the device are not there, or the copy failed; names the
        devices there are.
    """
    command = [sys.executable, "-m", __name__, str(lib_dir), device, str(mib), str(passes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise SetupError(f"bandwidth of device {device!r} was not measured: {last[0]}")
    seen: dict[str, Any] = json.loads(done.stdout)
    rates = tuple(2 * seen["n_bytes"] / 1e9 / one for one in seen["seconds"])
    low, high = median_interval(rates)
    return DeviceBandwidth(
        seen["device"], seen["description"], float(np.median(rates)), low, high, rates
    )


class _Parameters(ctypes.Structure):
    """``ggml_init_params`` of ggml.h."""

    _fields_ = (("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool))


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "ggml_init": (c_void_p, [_Parameters]),
    "ggml_free": (None, [c_void_p]),
    "ggml_new_tensor_1d": (c_void_p, [c_void_p, c_int, c_int64]),
    "ggml_tensor_overhead": (c_size_t, []),
    "ggml_backend_dev_name": (c_char_p, [c_void_p]),
    "ggml_backend_dev_description": (c_char_p, [c_void_p]),
    "ggml_backend_dev_init": (c_void_p, [c_void_p, c_char_p]),
    "ggml_backend_alloc_ctx_tensors": (c_void_p, [c_void_p, c_void_p]),
    "ggml_backend_tensor_copy": (None, [c_void_p, c_void_p]),
    "ggml_backend_tensor_memset": (None, [c_void_p, ctypes.c_uint8, c_size_t, c_size_t]),
    "ggml_backend_synchronize": (None, [c_void_p]),
    "ggml_backend_buffer_free": (None, [c_void_p]),
    "ggml_backend_free": (None, [c_void_p]),
    "ggml_backend_load_all_from_path": (None, [c_char_p]),
    "ggml_backend_dev_count": (c_size_t, []),
    "ggml_backend_dev_get": (c_void_p, [c_size_t]),
}


class _Ggml:
    """The functions of the engine's libggml that a copy needs."""

    def __init__(self, lib_dir: Path) -> None:
        suffix = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
        prefix = "" if sys.platform == "win32" else "lib"
        names = [lib_dir / f"{prefix}{name}.{suffix}" for name in ("ggml-base", "ggml")]
        self._libraries = [ctypes.CDLL(str(name)) for name in names]
        self.ggml_backend_load_all_from_path(os.fsencode(lib_dir))

    def __getattr__(self, name: str) -> Any:
        result, arguments = _SIGNATURES[name]
        library = next(one for one in self._libraries if hasattr(one, name))
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
        return function

    def devices(self) -> dict[str, Any]:
        """Handles by name, in the engine's order."""
        handles = [self.ggml_backend_dev_get(i) for i in range(self.ggml_backend_dev_count())]
        return {self.ggml_backend_dev_name(one).decode(): one for one in handles}


def _time_copies(ggml: _Ggml, handle: Any, n_bytes: int, passes: int) -> list[float]:
    backend = ggml.ggml_backend_dev_init(handle, None)
    context = ggml.ggml_init(_Parameters(mem_size=2 * ggml.ggml_tensor_overhead(), no_alloc=True))
    source, target = (ggml.ggml_new_tensor_1d(context, _F32, n_bytes // 4) for _ in range(2))
    buffer = ggml.ggml_backend_alloc_ctx_tensors(context, backend)
    if not buffer:
        sys.exit(f"{2 * n_bytes / 1e6:.0f} MB could not be had on the device")
    for tensor in (source, target):
        ggml.ggml_backend_tensor_memset(tensor, 1, 0, n_bytes)
    seconds = []
    for _ in range(WARM_UPS + passes):
        ggml.ggml_backend_synchronize(backend)
        began = time.perf_counter()
        ggml.ggml_backend_tensor_copy(source, target)
        ggml.ggml_backend_synchronize(backend)
        seconds.append(time.perf_counter() - began)
    ggml.ggml_backend_buffer_free(buffer)
    ggml.ggml_free(context)
    ggml.ggml_backend_free(backend)
    return seconds[WARM_UPS:]


def _main(lib_dir: str, device: str, mib: str, passes: str) -> None:
    try:
        ggml = _Ggml(Path(lib_dir))
    except OSError as error:
        sys.exit(f"no engine library to load: {error}")
    found = ggml.devices()
    if device not in found:
        sys.exit(f"no such device; there are {', '.join(found)}")
    n_bytes = int(mib) * 2**20
    seconds = _time_copies(ggml, found[device], n_bytes, int(passes))
    description = ggml.ggml_backend_dev_description(found[device]).decode()
    answer = {
        "device": device,
        "description": description,
        "n_bytes": n_bytes,
        "seconds": seconds,
    }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    _main(*sys.argv[1:])
