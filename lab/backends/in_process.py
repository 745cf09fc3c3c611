"""llama-cpp-python in a process of its own, one an arm: the second way into the engine.

It shows what a Python program gets: no server, no slots, and for drafting the package's
prompt lookup only (a draft model cannot be attached). The same libraries as the server's
are loaded, and everything whose default differs from the server's is set explicitly.

Drafting is asked for by the type ``prompt-lookup`` with the flags ``max-ngram-size`` (2)
and ``num-pred-tokens`` (10), the package's own names and defaults.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from lab.backends.in_process_arm import check_arm, check_memory, check_offload, lookup_settings
from lab.backends.protocol import Counters, Evidence, Identity, Reply, Request, Timings
from lab.errors import BackendError, InputError, LaunchError, RequestError
from lab.inputs.arm import Arm
from lab.inputs.prompts import Prompt
from lab.setup.child import CONVERTER, TAIL_LINES, Child, removed_variables
from lab.setup.engine import Engine
from lab.setup.models import sha256_of

_LIMITS = (
    "no server: times are taken in the process that generates",
    "drafts by prompt lookup only; llama-cpp-python cannot attach a draft model",
    "one sequence at a time",
)


def no_guard() -> Callable[[], None]:
    """Watch nothing (a machine without cards)."""
    return lambda: None


class InProcessBackend:
    """Serves arms with llama-cpp-python.

    Parameters
    ----------
    models : model files by the names that arms use.
    log_dir : where the engine's own output is kept, one file a series.
    guard : called before a model is loaded; what it returns is called once its process
        has ended, and raises if card memory is still held (machine.vram).
    """

    name = "in-process"

    def __init__(
        self,
        engine: Engine,
        models: Mapping[str, Path],
        log_dir: Path,
        *,
        guard: Callable[[], Callable[[], None]] = no_guard,
    ) -> None:
        self.engine, self.models, self.log_dir, self.guard = engine, models, log_dir, guard

    def open(self, arm: Arm, *, log: str) -> InProcessSession:
        """Load the arm's model in a new process.

        Raises
        ------
        InputError : the arm asks for what llama-cpp-python does not have, or for more
            memory than is free.
        LaunchError : the model could not be loaded.
        SetupError : the engine has no shared libraries.
        """
        file = self._file(arm.model)
        lookup = lookup_settings(arm)
        check_arm(arm)
        notes = check_memory(file, arm)
        released = self.guard()
        self.log_dir.mkdir(parents=True, exist_ok=True)
        child = Child(
            self.engine,
            "lab.backends.in_process_worker:serve",
            {
                "file": str(file),
                "settings": CONVERTER.unstructure(arm.settings),
                "lookup": lookup,
            },
            log_file=self.log_dir / f"{log}.log",
            timed=True,
        )
        session = InProcessSession(child, released)
        try:
            ready = session.wait_until_ready()
            check_offload(arm, card=ready["card"])
            if not ready["card"]:
                notes += ("CPU build, or no card that it knows",)
            session.identity = Identity(
                backend=self.name,
                build=self.engine.build,
                model_sha256=sha256_of(file),
                model_file=file.name,
                n_ctx=ready["n_ctx"],
                removed_env=removed_variables(),
                limits=_LIMITS,
                notes=(*notes, f"{ready['threads']} threads"),
            )
            session.evidence = _evidence(arm)
        except BaseException:
            session.close()
            raise
        return session

    def _file(self, model: str) -> Path:
        if model not in self.models:
            raise InputError(
                "the profile has no such model",
                field="model",
                value=model,
                fix=f"Known: {', '.join(self.models)}",
            )
        return self.models[model]


class InProcessSession:
    """One process that holds one model."""

    identity: Identity
    evidence: Evidence

    def __init__(self, child: Child, released: Callable[[], None]) -> None:
        self._child, self._released, self._closed = child, released, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and see that it gave its memory back; safe to call twice.

        Raises
        ------
        BackendError : card memory is still held.
        """
        if self._closed:
            return
        self._closed = True
        self._child.close()
        self._released()

    def alive(self) -> bool:
        """True while the process runs."""
        return not self._closed and self._child.alive()

    def wait_until_ready(self) -> dict[str, Any]:
        """What the process says once the model is loaded.

        Raises
        ------
        LaunchError : it could not be.
        """
        try:
            ready: dict[str, Any] = next(self._child.answers())["ready"]
        except BackendError as error:
            raise LaunchError(
                f"llama-cpp-python could not load the model: {error}",
                returncode=self._child.popen.poll(),
                log_tail=tuple(self._child.log_lines()[-TAIL_LINES:]),
                cause=None,
            ) from error
        return ready

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """Token ids after the model's own chat template."""
        messages = [{"role": one.role, "content": one.content} for one in prompt.messages]
        return tuple(self._ask({"encode": messages}, timeout_s=60)["tokens"])

    def generate(self, request: Request) -> Reply:
        """Answer one request from a clean state (unless ``cache_prompt``).

        Raises
        ------
        RequestError : see its kinds. After a timeout the process is gone.
        """
        if not request.prompt_tokens or request.seed in (0, -1):
            raise RequestError("client", "needs prompt tokens and a seed other than 0 and -1")
        asked = {
            "prompt": request.prompt_tokens,
            "n_predict": request.n_predict,
            "temperature": request.temperature,
            "seed": request.seed,
            "ignore_eos": request.ignore_eos,
            "cache_prompt": request.cache_prompt,
        }
        sent = time.perf_counter()
        answer = self._ask({"generate": asked}, timeout_s=request.timeout_s)
        return _reply(request, answer, e2e_ms=(time.perf_counter() - sent) * 1000)

    def _ask(self, message: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._child.popen.kill()

        timer = threading.Timer(timeout_s, give_up)
        timer.start()
        try:
            answer = self._child.ask(message)
        except BackendError as error:
            if late.is_set():
                raise RequestError("timeout", f"no answer in {timeout_s:.0f} s") from error
            raise RequestError("connection", str(error)) from error
        finally:
            timer.cancel()
        for key, kind in (("context", "context"), ("problem", "server")):
            if key in answer:
                raise RequestError(kind, answer[key])
        return answer


def _evidence(arm: Arm) -> Evidence:
    drafts = not arm.is_baseline
    reason = (
        "a prompt-lookup drafter is attached, and counts what it proposes"
        if drafts
        else "no drafter is attached"
    )
    return Evidence(arm.drafting.types, None, (), drafts, reason)


def _reply(request: Request, answer: Mapping[str, Any], *, e2e_ms: float) -> Reply:
    arrivals, tokens = answer["arrival_ms"], answer["tokens"]
    drafts: Mapping[str, Any] | None = answer.get("drafts")
    timings = Timings(
        cache_n=answer["cache_n"],
        prompt_n=len(request.prompt_tokens) - answer["cache_n"],
        prompt_ms=arrivals[0] if arrivals else None,
        predicted_n=len(tokens),
        predicted_ms=arrivals[-1] - arrivals[0] if arrivals else None,
        draft_n=drafts["proposed"] if drafts else None,
        draft_n_accepted=drafts["accepted"] if drafts else None,
    )
    counters = Counters(decode_calls=answer["passes"])
    if drafts:
        counters = Counters(
            drafted_steps=drafts["steps"],
            draft_tokens=drafts["proposed"],
            accepted_tokens=drafts["accepted"],
            accepted_per_position=tuple(drafts["per_position"]),
            decode_calls=answer["passes"],
        )
    return Reply(
        text=answer["text"],
        tokens=tuple(tokens),
        timings=timings,
        counters=counters,
        stop=answer["stop"],
        e2e_ms=e2e_ms,
        ttft_ms=arrivals[0] if request.stream and arrivals else None,
        chunk_ms=tuple(arrivals) if request.stream else (),
        raw={"lookup_ms": drafts["lookup_ms"]} if drafts else {},
    )
