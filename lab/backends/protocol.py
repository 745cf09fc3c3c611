"""The one seam between experiments and whatever serves a model.

A backend opens an arm and hands back a session; a session answers requests. Every
field that a backend cannot know is None, never 0, and ``Identity.limits`` says in
words what it cannot control, so that a claim which needs it can be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self

from attrs import field, frozen

from lab.inputs.arm import Arm
from lab.inputs.prompts import Prompt


@frozen
class Request:
    """One generation to ask for.

    Attributes
    ----------
    prompt_tokens : token ids after the chat template, as ``Session.encode`` gave them.
    messages : used instead where the backend cannot tokenise (``prompt_tokens`` empty).
    n_predict : tokens to generate; exactly this many when ``ignore_eos``.
    temperature : 0 is greedy.
    seed : passed with every call; never 0 or -1, which engines take for "unset".
    stream : read the answer as a stream, which gives ttft_ms and chunk times.
    timeout_s : client deadline of the whole request, seconds.
    """

    prompt_tokens: tuple[int, ...]
    messages: tuple[tuple[str, str], ...] = ()
    n_predict: int = 128
    temperature: float = 0.0
    seed: int = 42
    ignore_eos: bool = True
    stream: bool = False
    cache_prompt: bool = False
    timeout_s: float = 600.0


@frozen
class Timings:
    """The server's own account of one request. Times in ms, counts in tokens.

    ``draft_n`` and ``draft_n_accepted`` are 0 when a drafter was on and drafted
    nothing, and None when it is not known whether one was on.
    """

    cache_n: int | None = None
    prompt_n: int | None = None
    prompt_ms: float | None = None
    predicted_n: int | None = None
    predicted_ms: float | None = None
    draft_n: int | None = None
    draft_n_accepted: int | None = None


@frozen
class Counters:
    """What the server's counters moved by during one request; None where it has none.

    ``accepted_per_position[i]`` counts steps whose draft token i was accepted.
    """

    drafted_steps: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] | None = None
    decode_calls: int | None = None


@frozen
class Reply:
    """One answered request.

    Attributes
    ----------
    tokens : generated token ids; None where the backend does not return them.
    text : generated text (reasoning first, where the server separates it).
    stop : "limit", "eos", "word", or None where unknown.
    ttft_ms : sent -> first chunk with content, client clock; None unless streamed.
    e2e_ms : sent -> last byte, client clock.
    chunk_ms : arrival of every content chunk after sending, client clock; empty unless streamed.
    reasoning_n : tokens spent on reasoning; None where unknown.
    raw : the server's last event as received, kept for invalid records.
    """

    text: str
    tokens: tuple[int, ...] | None
    timings: Timings
    counters: Counters
    stop: str | None
    e2e_ms: float
    ttft_ms: float | None = None
    chunk_ms: tuple[float, ...] = ()
    reasoning_n: int | None = None
    raw: Mapping[str, object] = field(factory=dict)


@frozen
class Evidence:
    """Was speculation really on? Every source that could be asked, and the verdict.

    Attributes
    ----------
    requested : drafter types the arm asked for.
    slots_speculative : what GET /slots said; None where there is no such answer.
    log_lines : server log lines that mention a drafter.
    active : True, False, or None when nothing could be asked.
    reason : one sentence that says what the verdict rests on.
    """

    requested: tuple[str, ...]
    slots_speculative: bool | None
    log_lines: tuple[str, ...]
    active: bool | None
    reason: str


@frozen
class Identity:
    """What served an arm: enough to say whether two runs may be compared.

    Attributes
    ----------
    backend : "llama-server", "in-process", "endpoint", "llmkube" or "replay".
    build : the engine's build string; None where it does not say.
    model_sha256, draft_sha256 : digests of the files served; None where not at hand.
    n_ctx : context the server really has, tokens.
    offloaded_layers : as the log says; None where it does not.
    argv : the full command with secrets masked; empty where the lab did not start it.
    removed_env : names of environment variables kept from the server.
    limits : what this backend cannot control, in words.
    notes : anything a reader must know (a translated flag, another build).
    """

    backend: str
    build: str | None = None
    model_sha256: str | None = None
    draft_sha256: str | None = None
    model_file: str | None = None
    n_ctx: int | None = None
    offloaded_layers: str | None = None
    argv: tuple[str, ...] = ()
    removed_env: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Session(Protocol):
    """A model being served for one arm; a context manager that leaves nothing behind."""

    identity: Identity
    evidence: Evidence

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """Token ids of a prompt after the chat template; empty where the backend cannot."""

    def generate(self, request: Request) -> Reply:
        """Answer one request.

        Raises
        ------
        RequestError : the request failed; the session may still be usable.
        """

    def alive(self) -> bool:
        """True while further requests can be answered."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class Backend(Protocol):
    """Something that can serve an arm from a clean state."""

    name: str

    def open(self, arm: Arm, *, log: str) -> Session:
        """Serve ``arm`` afresh; ``log`` is the name its server log is kept under.

        Raises
        ------
        LaunchError : it never became ready.
        InputError : the arm asks for something this backend or build does not have.
        """
