"""A model loaded through the engine's own C interface. Import this in a child process only.

Thinner than llama-cpp-python's ``Llama`` on purpose: one sequence, one pass at a time,
logits for the rows asked for, the KV cache trimmed back, and a look at any tensor of the
graph. Nothing is cached or copied that a measurement does not ask for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import llama_cpp
import numpy as np
import psutil
from attrs import evolve
from numpy.typing import NDArray

from lab.errors import BackendError, InputError
from lab.inputs.arm import ServerSettings
from lab.setup import ggml
from lab.setup.child import CONVERTER

Floats = NDArray[np.float32]
Tokens = Sequence[int] | NDArray[np.int32]
TensorHook = Callable[[str, int], None]
"""Called with a tensor's name and address once it is computed."""

FLASH = {"auto": -1, "off": 0, "on": 1}
SPLIT = {"none": 0, "layer": 1, "row": 2, "tensor": 3}
_SEQUENCE = 0


class LoadedModel:
    """A model with one context; a context manager.

    Parameters
    ----------
    wanted, hook : ``hook`` is called for every graph tensor whose name ``wanted`` accepts,
        after it was computed. Watching splits the graph: never time a watched pass.

    Raises
    ------
    BackendError : the engine could not load the file or make a context.
    """

    def __init__(
        self,
        file: Path | str,
        settings: ServerSettings,
        *,
        wanted: Callable[[str], bool] | None = None,
        hook: TensorHook | None = None,
    ) -> None:
        self.file, self.settings = Path(file), settings
        llama_cpp.llama_backend_init()
        self._kept: list[Any] = []  # what the engine holds pointers to
        self._model = llama_cpp.llama_model_load_from_file(
            str(file).encode(), self._model_parameters()
        )
        if not self._model:
            raise BackendError(f"{file}: the engine could not load it; see its log")
        self._context = llama_cpp.llama_init_from_model(
            self._model, self._context_parameters(wanted, hook)
        )
        if not self._context:
            llama_cpp.llama_model_free(self._model)
            raise BackendError(f"{file}: the engine could not make a context; see its log")
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocabulary = llama_cpp.llama_model_get_vocab(self._model)
        self.n_vocab: int = llama_cpp.llama_vocab_n_tokens(self._vocabulary)
        self.n_batch: int = llama_cpp.llama_n_batch(self._context)
        self.n_ctx: int = llama_cpp.llama_n_ctx(self._context)
        self._batch = llama_cpp.llama_batch_init(self.n_batch, 0, 1)
        self._greedy = llama_cpp.llama_sampler_init_greedy()
        self.position = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        llama_cpp.llama_sampler_free(self._greedy)
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)

    def _model_parameters(self) -> Any:
        settings, parameters = self.settings, llama_cpp.llama_model_default_params()
        if settings.n_gpu_layers is not None:
            parameters.n_gpu_layers = settings.n_gpu_layers
        if settings.split_mode is not None:
            parameters.split_mode = SPLIT[settings.split_mode]
        if settings.tensor_split:
            shares = (ctypes.c_float * llama_cpp.LLAMA_MAX_DEVICES)(*settings.tensor_split)
            self._kept.append(shares)
            parameters.tensor_split = shares
        if settings.devices:
            devices = ggml.devices(settings.devices)
            self._kept.append(devices)
            parameters.devices = ctypes.cast(devices, ctypes.c_void_p)
        parameters.load_mode = _load_mode(settings)
        return parameters

    def _context_parameters(
        self, wanted: Callable[[str], bool] | None, hook: TensorHook | None
    ) -> Any:
        settings, parameters = self.settings, llama_cpp.llama_context_default_params()
        threads = settings.threads or default_threads()
        parameters.n_ctx = settings.n_ctx
        parameters.n_batch = min(settings.batch or 2048, settings.n_ctx)
        parameters.n_ubatch = min(settings.ubatch or 512, parameters.n_batch)
        parameters.n_seq_max = 1
        parameters.n_threads = threads
        parameters.n_threads_batch = settings.threads_batch or threads
        parameters.flash_attn_type = FLASH[settings.flash_attn]
        parameters.no_perf = True
        for side in ("k", "v"):
            name = getattr(settings, f"cache_type_{side}")
            if name is not None:
                setattr(parameters, f"type_{side}", ggml.type_id(name))
        if wanted is not None and hook is not None:
            watch = ggml.eval_callback(wanted, hook)
            self._kept.append(watch)
            parameters.cb_eval = watch
        return parameters

    def tokenize(self, text: str, *, add_special: bool = False) -> list[int]:
        """Token ids of a text; special tokens written in it are taken as such."""
        data = text.encode()
        room = len(data) + 8
        buffer = (llama_cpp.llama_token * room)()
        parse_special = True
        count = llama_cpp.llama_tokenize(
            self._vocabulary, data, len(data), buffer, room, add_special, parse_special
        )
        return list(buffer[:count])

    def prepare(self, tokens: Tokens, *, logits: bool) -> None:
        """Fill the batch of the next pass: tokens at the positions that follow.

        ``logits`` asks for every row, else for the last one only.

        Raises
        ------
        InputError : more tokens than a batch or the context holds.
        """
        count = len(tokens)
        if not 0 < count <= self.n_batch or self.position + count > self.n_ctx:
            raise InputError(
                f"a pass of {count} tokens at position {self.position} does not fit "
                f"(batch {self.n_batch}, context {self.n_ctx})",
                field="n_ctx",
                fix="Raise n_ctx, or ask for less",
            )
        batch = self._batch
        batch.n_tokens = count
        _view(batch.token, count)[:] = tokens
        _view(batch.pos, count)[:] = np.arange(self.position, self.position + count)
        _view(batch.n_seq_id, count)[:] = 1
        for row in range(count):
            batch.seq_id[row][0] = _SEQUENCE
        wanted = _view(batch.logits, count)
        wanted[:] = logits
        wanted[-1] = 1

    def run(self) -> None:
        """Carry out the prepared pass and wait for its logits.

        Raises
        ------
        BackendError : the engine refused or failed.
        """
        code = llama_cpp.llama_decode(self._context, self._batch)
        llama_cpp.llama_synchronize(self._context)
        if code:
            raise BackendError(f"llama_decode returned {code} for {self._batch.n_tokens} tokens")
        self.position += self._batch.n_tokens

    def feed(self, tokens: Tokens, *, logits: bool = False) -> None:
        """Pass tokens through in batches; logits of the last batch stay readable."""
        step = self.n_batch
        for start in range(0, len(tokens), step):
            self.prepare(tokens[start : start + step], logits=logits)
            self.run()

    def logits(self, rows: int) -> Floats:
        """Logits of the last pass, a row a token asked for; a view, valid until the next."""
        pointer = llama_cpp.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, shape=(rows, self.n_vocab))

    def sample(self, row: int) -> int:
        """Greedy choice of the engine's own sampler at a row of the last pass."""
        return int(llama_cpp.llama_sampler_sample(self._greedy, self._context, row))

    def trim(self, position: int) -> None:
        """Forget everything from ``position`` on.

        Raises
        ------
        BackendError : this model's memory cannot be cut (recurrent state), so that
            speculation is not possible with it either.
        """
        if not llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, position, -1):
            raise BackendError(
                f"{self.file.name}: its memory cannot be trimmed to {position} tokens; models with "
                "recurrent state cannot verify drafts"
            )
        self.position = position

    def reset(self) -> None:
        """Forget everything."""
        llama_cpp.llama_memory_clear(self._memory, False)  # noqa: FBT003 - the C signature
        self.position = 0

    def generate(self, prompt: Tokens, count: int) -> list[int]:
        """Greedy continuation of exactly ``count`` tokens, end tokens left out of the choice."""
        self.reset()
        self.feed(prompt)
        ends = [t for t in range(self.n_vocab) if llama_cpp.llama_vocab_is_eog(self._vocabulary, t)]
        chosen: list[int] = []
        for _ in range(count):
            scores = self.logits(1)[0]
            scores[ends] = -np.inf
            chosen.append(int(scores.argmax()))
            self.feed(chosen[-1:])
        return chosen


def default_threads() -> int:
    """Threads that llama-server takes when none are set: the physical cores."""
    return psutil.cpu_count(logical=False) or psutil.cpu_count() or 1


def settings_from(values: Mapping[str, Any], *, n_ctx: int | None = None) -> ServerSettings:
    """Settings as they travelled to the child in JSON; ``n_ctx`` replaces theirs."""
    settings = CONVERTER.structure(values, ServerSettings)
    return settings if n_ctx is None else evolve(settings, n_ctx=n_ctx)


def _load_mode(settings: ServerSettings) -> int:
    if settings.mmap and settings.mlock:
        return int(llama_cpp.LLAMA_LOAD_MODE_MMAP_MLOCK)
    if settings.mlock:
        return int(llama_cpp.LLAMA_LOAD_MODE_MLOCK)
    return int(llama_cpp.LLAMA_LOAD_MODE_MMAP if settings.mmap else llama_cpp.LLAMA_LOAD_MODE_NONE)


def _view(pointer: Any, count: int) -> NDArray[Any]:
    return np.ctypeslib.as_array(pointer, shape=(count,))
