"""The few calls of the engine's tensor library that llama-cpp-python does not bind.

Import this in a child process only. Everything goes through public accessor functions,
never through the layout of a structure, so that another build does not break it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from gguf.constants import GGMLQuantizationType
from numpy.typing import NDArray

from lab.errors import InputError
from lab.setup.child import LIBRARY_VARIABLE

_CARDS = (1, 2)
"""ggml_backend_dev_type: a graphics card, and one that shares the host's memory."""


def _library(name: str) -> ctypes.CDLL:
    folder = Path(os.environ[LIBRARY_VARIABLE])
    found = next(iter(sorted(folder.glob(f"lib{name}.so*")) + sorted(folder.glob(f"lib{name}.d*"))))
    return ctypes.CDLL(str(found))


_BASE, _REGISTRY = _library("ggml-base"), _library("ggml")


def _bind(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function  # type: ignore[no-any-return]


_POINTER = ctypes.c_void_p
_get_name = _bind(_BASE, "ggml_get_name", ctypes.c_char_p, _POINTER)
_n_bytes = _bind(_BASE, "ggml_nbytes", ctypes.c_size_t, _POINTER)
_n_rows = _bind(_BASE, "ggml_nrows", ctypes.c_int64, _POINTER)
_n_elements = _bind(_BASE, "ggml_nelements", ctypes.c_int64, _POINTER)
_element_size = _bind(_BASE, "ggml_element_size", ctypes.c_size_t, _POINTER)
_copy_out = _bind(
    _BASE, "ggml_backend_tensor_get", None, _POINTER, _POINTER, ctypes.c_size_t, ctypes.c_size_t
)
_device_by_name = _bind(_REGISTRY, "ggml_backend_dev_by_name", _POINTER, ctypes.c_char_p)
_device_count = _bind(_REGISTRY, "ggml_backend_dev_count", ctypes.c_size_t)
_device_get = _bind(_REGISTRY, "ggml_backend_dev_get", _POINTER, ctypes.c_size_t)
_device_type = _bind(_BASE, "ggml_backend_dev_type", ctypes.c_int, _POINTER)
_device_name = _bind(_BASE, "ggml_backend_dev_name", ctypes.c_char_p, _POINTER)
_registry_by_name = _bind(_REGISTRY, "ggml_backend_reg_by_name", _POINTER, ctypes.c_char_p)
_registry_address = _bind(
    _BASE, "ggml_backend_reg_get_proc_address", _POINTER, _POINTER, ctypes.c_char_p
)
_registry_device = _bind(_BASE, "ggml_backend_reg_dev_get", _POINTER, _POINTER, ctypes.c_size_t)


def read_tensor(address: int, dtype: type[np.float32 | np.int32]) -> NDArray[Any]:
    """A computed tensor as rows by columns, wherever it lives; rows may be strided views.

    Columns are the fastest dimension. ``dtype`` is what the caller knows it to hold.
    """
    rows, size = _n_rows(address), _element_size(address)
    columns = _n_elements(address) // rows
    n_bytes = _n_bytes(address)
    buffer = np.empty(n_bytes, np.uint8)
    _copy_out(address, buffer.ctypes.data, 0, n_bytes)
    # Bytes from the first element to the last: the stride follows from that.
    stride = columns * size if rows == 1 else (n_bytes - columns * size) // (rows - 1)
    return np.ndarray((rows, columns), dtype, buffer, strides=(stride, size)).copy()


def eval_callback(wanted: Callable[[str], bool], hook: Callable[[str, int], None]) -> Any:
    """The engine's evaluation callback: ``hook`` for every computed tensor ``wanted`` accepts."""

    def watch(address: int, ask: bool, _user: int) -> bool:
        name = _get_name(address).decode()
        if ask:
            return wanted(name)
        hook(name, address)
        return True

    return llama_cpp.ggml_backend_sched_eval_callback(watch)


def type_id(name: str) -> int:
    """Number of a tensor type as llama.cpp's command line spells it ("f16", "q8_0").

    Raises
    ------
    InputError : there is no such type.
    """
    try:
        return int(GGMLQuantizationType[name.upper()])
    except KeyError as error:
        raise InputError("no such tensor type", field="cache_type", value=name) from error


def devices(names: Sequence[str]) -> Any:
    """A null-terminated list of devices: names as the engine lists them, or host:port (RPC).

    Raises
    ------
    InputError : a device is not there.
    """
    found = [_remote(name) if ":" in name else _local(name) for name in names]
    return (ctypes.c_void_p * (len(found) + 1))(*found, None)


def has_card() -> bool:
    """True when the engine can keep layers on a card of this machine.

    llama_supports_gpu_offload() is no answer: it is True for every build with RPC.
    """
    return any(_device_type(_device_get(i)) in _CARDS for i in range(_device_count()))


def _local(name: str) -> int:
    device: int | None = _device_by_name(name.encode())
    if device is None:
        known = [_device_name(_device_get(i)).decode() for i in range(_device_count())]
        raise InputError(
            "no such device",
            field="devices",
            value=name,
            fix=f"This engine has {', '.join(known)}",
        )
    return device


def _remote(address: str) -> int:
    registry = _registry_by_name(b"RPC")
    add = registry and _registry_address(registry, b"ggml_backend_rpc_add_server")
    if not add:
        raise InputError(
            "this engine is built without RPC", field="devices", value=address, fix="Build it anew"
        )
    server = ctypes.CFUNCTYPE(_POINTER, ctypes.c_char_p)(add)(address.encode())
    device = _registry_device(server, 0) if server else None
    if not device:
        raise InputError("no RPC server answers there", field="devices", value=address)
    return int(device)
