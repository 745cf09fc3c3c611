from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from lab.inputs.gguf_info import gguf_info
from lab.inputs.placement import HOST, Split, place
from lab.setup.engine import Engine, find_engine
from lab.setup.models import embedded_model

LOAD = """
import ctypes, json, sys
from pathlib import Path
import llama_cpp

libraries, model, shares, *addresses = sys.argv[1:]
lines = []
note = llama_cpp.llama_log_callback(lambda level, text, data: lines.append(text.decode()))
llama_cpp.llama_log_set(note, ctypes.c_void_p(0))
folder = Path(libraries)
ggml, rpc = (ctypes.CDLL(str(folder / f"lib{name}.so")) for name in ("ggml", "ggml-rpc"))
ggml.ggml_backend_load_all()
rpc.ggml_backend_rpc_add_server.restype = ctypes.c_void_p
rpc.ggml_backend_rpc_add_server.argtypes = [ctypes.c_char_p]
ggml.ggml_backend_register.argtypes = [ctypes.c_void_p]
for address in addresses:
    ggml.ggml_backend_register(rpc.ggml_backend_rpc_add_server(address.encode()))
settings = llama_cpp.llama_model_default_params()
settings.n_gpu_layers = 99
given = (ctypes.c_float * 128)(*map(float, shares.split(",")))
settings.tensor_split = given
loaded = llama_cpp.llama_model_load_from_file(model.encode(), settings)
assert loaded
print(json.dumps("".join(lines)))
"""


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def engine() -> Engine:
    return find_engine()


@pytest.fixture(scope="module")
def devices(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Addresses of two devices on this machine, each a server of the engine."""
    program, ports = engine.program("ggml-rpc-server"), [_free_port(), _free_port()]
    folder = tmp_path_factory.mktemp("rpc")
    with ExitStack() as stack:
        for port in ports:
            log = stack.enter_context((folder / f"{port}.log").open("w"))
            words = [program, "-H", "127.0.0.1", "-p", str(port)]
            server = stack.enter_context(subprocess.Popen(words, stdout=log, stderr=log))
            stack.callback(server.terminate)
        for _ in range(200):
            if all(map(_answers, ports)):
                break
            time.sleep(0.05)
        yield [f"127.0.0.1:{port}" for port in ports]


@pytest.mark.engine
@pytest.mark.parametrize("shares", [(1, 1), (3, 1)])
def test_engine_places_blocks_and_bytes_as_predicted(
    engine: Engine, devices: list[str], shares: tuple[int, int]
) -> None:
    model = embedded_model()
    log = _load(engine, model, shares, devices)
    info = gguf_info(model)
    predicted = place(info, Split(tuple(devices), shares))
    owners = re.findall(r"layer +\d+ assigned to device (\S+?),", log)
    counts = [owners.count(device) for device in dict.fromkeys(owners)]
    assert counts == [len(part.blocks) + part.output for part in predicted if part.device != HOST]
    held = {
        name: float(mib) for name, mib in re.findall(r"\[(\S+)\] model buffer size = +(\S+)", log)
    }
    assert held == {
        part.device: pytest.approx(part.weight_bytes / 2**20, abs=0.01)
        for part in predicted
        if part.device != HOST
    }


def _load(engine: Engine, model: Path, shares: tuple[int, int], devices: list[str]) -> str:
    assert engine.lib_dir is not None
    words = [str(engine.lib_dir), str(model), ",".join(map(str, shares)), *devices]
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *words],
        env=os.environ | {"LLAMA_CPP_LIB_PATH": str(engine.lib_dir)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout))
