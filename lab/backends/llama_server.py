"""llama-server: the only file that knows its JSON.

One process an arm, on a free loopback port with a key of its own, so that nothing but
the lab talks to it and the lab talks to nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import httpx2
from attrs import evolve

from lab.backends import server_log
from lab.backends.events import EventParser, json_object
from lab.backends.process import (
    LOOPBACK,
    ServerProcess,
    free_port,
    random_key,
)
from lab.backends.protocol import (
    Counters,
    Evidence,
    Identity,
    Reply,
    Request,
)
from lab.backends.server_answers import evidence, http_error, ok, reply_of, request_body
from lab.backends.server_arguments import arguments
from lab.backends.server_counters import Scrape, moved, parse_metrics
from lab.errors import InputError, LaunchError, RequestError, StrangerError
from lab.inputs.arm import Arm
from lab.inputs.gguf_info import gguf_info
from lab.inputs.preflight import check_draft, check_settings
from lab.inputs.prompts import Prompt
from lab.setup.clean_environment import scrubbed_environment
from lab.setup.engine import Engine
from lab.setup.flags import flag_table
from lab.setup.models import sha256_of

POLL_S = 0.02
CONTROL_TIMEOUT_S = 30.0
KEY_VARIABLE = "LLAMA_API_KEY"


class LlamaServerBackend:
    """Serves arms with llama-server.

    Parameters
    ----------
    models : model files by the names that arms use.
    log_dir : where server logs are kept, one file a series.
    ready_timeout_s : how long a server may take to load, seconds.
    on_wait : called while a server loads, with the seconds waited so far.
    """

    name = "llama-server"

    def __init__(
        self,
        engine: Engine,
        models: Mapping[str, Path],
        log_dir: Path,
        *,
        ready_timeout_s: float = 600.0,
        on_wait: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.engine, self.models, self.log_dir = engine, models, log_dir
        self.ready_timeout_s, self.on_wait = ready_timeout_s, on_wait

    def open(self, arm: Arm, *, log: str) -> LlamaServerSession:
        """Start a server for ``arm`` and wait until it answers.

        Raises
        ------
        InputError : a flag, setting or model file that this engine cannot use.
        LaunchError : the server ended or was not ready in time.
        """
        target = self._file(arm.model)
        draft = None if arm.drafting.draft_model is None else self._file(arm.drafting.draft_model)
        check_settings(arm.settings)
        info = gguf_info(target)
        if draft is not None:
            check_draft(info, gguf_info(draft))
        words, notes = arguments(arm, target, draft, flag_table(self.engine.server))
        port, key = free_port(), random_key()
        environment = scrubbed_environment({KEY_VARIABLE: key})
        argv = (str(self.engine.server), *words, "--host", LOOPBACK, "--port", str(port))
        process = ServerProcess.start(argv, environment, self.log_dir / f"{log}.log")
        session = LlamaServerSession(process, port, key, arm)
        try:
            session.wait_until_ready(self.ready_timeout_s, self.on_wait)
            session.refuse_stranger(target)
            session.identify(
                model_sha256=digest(target),
                draft_sha256=None if draft is None else digest(draft),
                model_file=target.name,
                removed_env=environment.removed,
                notes=notes,
            )
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


@lru_cache
def _digest(file: Path, _size: int, _changed_ns: int) -> str:
    return sha256_of(file)


def digest(file: Path) -> str:
    """SHA-256 of a model file, computed once while the file stays as it is."""
    stat = file.stat()
    return _digest(file, stat.st_size, stat.st_mtime_ns)


class LlamaServerSession:
    """One running llama-server."""

    identity: Identity
    evidence: Evidence

    def __init__(self, process: ServerProcess, port: int, key: str, arm: Arm) -> None:
        self.process, self.arm, self._key = process, arm, key
        self._http = httpx2.Client(
            base_url=f"http://{LOOPBACK}:{port}",
            headers={"Authorization": f"Bearer {key}"},
            timeout=CONTROL_TIMEOUT_S,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server; safe to call twice."""
        self._http.close()
        if self.process.returncode is None or not self.process.log.closed:
            self.process.stop()

    def alive(self) -> bool:
        """True while the process runs."""
        return self.process.returncode is None

    def wait_until_ready(self, timeout_s: float, on_wait: Callable[[float], None]) -> None:
        """Wait for /health, telling a loading server (503) from a dead process.

        Raises
        ------
        LaunchError : the process ended, or the deadline passed.
        """
        started = time.monotonic()
        state = "not listening"
        while (waited := time.monotonic() - started) < timeout_s:
            if self.process.returncode is not None:
                raise self._launch_error("llama-server ended before it was ready")
            try:
                status = self._http.get("/health").status_code
            except httpx2.TransportError:
                status = 0
            if status == httpx2.codes.OK:
                return
            state = "loading the model" if status else state
            on_wait(waited)
            time.sleep(POLL_S)
        raise self._launch_error(f"llama-server was still {state} after {timeout_s:.0f} s")

    def _launch_error(self, problem: str) -> LaunchError:
        lines = self.process.log_lines()
        return LaunchError(
            f"{problem} (exit status {self.process.returncode})",
            returncode=self.process.returncode,
            log_tail=tuple(lines[-server_log.TAIL_LINES :]),
            cause=server_log.cause_of(lines),
        )

    def refuse_stranger(self, target: Path) -> None:
        """Make sure that it is our process that answers.

        The key is random and ours; a server that takes it but serves another model, or
        answers while our process is dead, is not the one we started.

        Raises
        ------
        StrangerError : it is another server.
        """
        props = self._get("/props")
        served = props.get("model_path")
        if not self.alive() or (served is not None and Path(served).name != target.name):
            raise StrangerError(
                f"the port is answered by another server (it serves {served!r}, our process "
                f"{self.process.pid} is {'alive' if self.alive() else 'dead'})"
            )
        self._props = props

    def identify(
        self,
        *,
        model_sha256: str,
        draft_sha256: str | None,
        model_file: str,
        removed_env: tuple[str, ...],
        notes: tuple[str, ...],
    ) -> None:
        """Keep what this server is, and whether speculation is really on."""
        lines = self.process.log_lines()
        slots = self._slots()
        n_ctx = slots[0].get("n_ctx") if slots else None
        self.identity = Identity(
            backend=LlamaServerBackend.name,
            build=self._props.get("build_info"),
            model_sha256=model_sha256,
            draft_sha256=draft_sha256,
            model_file=model_file,
            n_ctx=n_ctx,
            offloaded_layers=server_log.offloaded_layers(lines),
            argv=self.process.argv,
            removed_env=removed_env,
            notes=notes,
        )
        self.evidence = evidence(self.arm.drafting.types, slots, lines)

    def _slots(self) -> list[dict[str, Any]]:
        try:
            return list(self._ask("GET", "/slots").json())
        except RequestError:
            return []  # an older build, or one started without --slots

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """Token ids after the chat template, as the server's own tokenizer gives them."""
        messages = [{"role": one.role, "content": one.content} for one in prompt.messages]
        text = self._post("/apply-template", {"messages": messages})["prompt"]
        # The template writes the special tokens itself; add_special only adds what the
        # model's own settings demand (BOS), once.
        words = {"content": text, "add_special": True, "parse_special": True}
        return tuple(self._post("/tokenize", words)["tokens"])

    def generate(self, request: Request) -> Reply:
        """Answer one request; counters are read outside the timed part.

        Raises
        ------
        RequestError : see its kinds.
        """
        # Reading the counters also wakes the kept-alive connection: llama-server closes an
        # idle one after five seconds, and a generation must never be sent twice.
        before = self._metrics()
        body = request_body(request)
        if request.stream:
            reply = self._streamed(body, request.timeout_s)
        else:
            reply = self._whole(body, request.timeout_s)
        return self._with_counters(reply, moved(before, self._metrics()))

    def _whole(self, body: Mapping[str, Any], timeout_s: float) -> Reply:
        sent = time.perf_counter()
        try:
            answer = self._http.post("/completion", json=body, timeout=timeout_s)
        except httpx2.TransportError as error:
            raise self._transport_error(error) from error
        e2e_ms = (time.perf_counter() - sent) * 1000
        event = json_object(ok(answer).content)
        return reply_of(event, event.get("content", ""), event.get("tokens"), e2e_ms=e2e_ms)

    def _streamed(self, body: Mapping[str, Any], timeout_s: float) -> Reply:
        parser = EventParser()
        text, tokens, arrivals = [], [], []
        last: dict[str, Any] = {}
        sent = time.perf_counter()
        try:
            with self._http.stream("POST", "/completion", json=body, timeout=timeout_s) as answer:
                if answer.status_code != httpx2.codes.OK:
                    answer.read()
                    raise http_error(answer)
                for data in answer.iter_raw():
                    for event in parser.feed(data):
                        if event.get("content") or event.get("tokens"):
                            arrivals.append((time.perf_counter() - sent) * 1000)
                            text.append(event.get("content", ""))
                            tokens += event.get("tokens", [])
                        last = event
        except httpx2.TransportError as error:
            raise self._transport_error(error) from error
        e2e_ms = (time.perf_counter() - sent) * 1000
        if not last.get("stop"):
            raise RequestError("truncated", "the stream ended before its last event")
        return reply_of(last, "".join(text), tokens, e2e_ms=e2e_ms, arrivals=tuple(arrivals))

    def _with_counters(self, reply: Reply, counters: Counters) -> Reply:
        """Absent draft counts mean nothing drafted where speculation is on, else unknown."""
        timings = reply.timings
        if timings.draft_n is None and self.evidence.active:
            timings = evolve(timings, draft_n=0, draft_n_accepted=0)
        return evolve(reply, timings=timings, counters=counters)

    def _metrics(self) -> Scrape:
        return parse_metrics(self._ask("GET", "/metrics").text)

    def _get(self, path: str) -> dict[str, Any]:
        return json_object(self._ask("GET", path).content)

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return json_object(self._ask("POST", path, json=body).content)

    def _ask(self, method: str, path: str, **kwargs: Any) -> httpx2.Response:
        """Ask something that changes nothing, once more if the idle connection was closed."""
        try:
            try:
                answer = self._http.request(method, path, **kwargs)
            except httpx2.RemoteProtocolError:
                answer = self._http.request(method, path, **kwargs)
        except httpx2.TransportError as error:
            raise self._transport_error(error) from error
        return ok(answer)

    def _transport_error(self, error: httpx2.TransportError) -> RequestError:
        if isinstance(error, httpx2.TimeoutException):
            return RequestError("timeout", f"no answer in time: {error}")
        if isinstance(error, httpx2.RemoteProtocolError):
            return RequestError("truncated", f"the answer was cut off: {error}")
        code = self.process.returncode
        return RequestError("connection", f"{error} (server exit status {code})")
