"""Requests to llama-server as JSON, and what its answers mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
from attrs import fields

from lab.backends import server_log
from lab.backends.protocol import Counters, Evidence, Reply, Request, Timings
from lab.errors import RequestError

TIMINGS = tuple(one.name for one in fields(Timings))


def request_body(request: Request) -> dict[str, Any]:
    """The body of a completion request; everything that could vary is stated."""
    return {
        "prompt": list(request.prompt_tokens),
        "n_predict": request.n_predict,
        "temperature": request.temperature,
        "seed": request.seed,
        "ignore_eos": request.ignore_eos,
        "stream": request.stream,
        "cache_prompt": request.cache_prompt,
        "return_tokens": True,
    }


def reply_of(
    event: Mapping[str, Any],
    text: str,
    tokens: Sequence[int] | None,
    *,
    e2e_ms: float,
    arrivals: tuple[float, ...] = (),
) -> Reply:
    """A reply from the server's last event."""
    told = event.get("timings") or {}
    timings = Timings(**{name: told.get(name) for name in TIMINGS})
    return Reply(
        text=text,
        tokens=None if tokens is None else tuple(tokens),
        timings=timings,
        counters=Counters(),
        stop=event.get("stop_type"),
        e2e_ms=e2e_ms,
        ttft_ms=arrivals[0] if arrivals else None,
        chunk_ms=arrivals,
        raw=dict(told),
    )


def ok(answer: httpx2.Response) -> httpx2.Response:
    """The answer itself when it is one.

    Raises
    ------
    RequestError : any status but 200.
    """
    if answer.status_code != httpx2.codes.OK:
        raise http_error(answer)
    return answer


def http_error(answer: httpx2.Response) -> RequestError:
    """A typed failure from an HTTP status; the body's own message is kept."""
    text = answer.text[:300]
    if "exceed_context_size" in text:
        kind = "context"
    else:
        kind = "server" if answer.is_server_error else "client"
    return RequestError(kind, f"HTTP {answer.status_code}: {text}")


def evidence(
    requested: tuple[str, ...], slots: Sequence[Mapping[str, Any]], lines: Sequence[str]
) -> Evidence:
    """Whether speculation is on, from the slots and the log."""
    said = slots[0].get("speculative") if slots else None
    refused = server_log.refused_speculation(lines)
    if refused is not None:
        active: bool | None = False
        reason = f"the log says: {refused.strip()}"
    elif said is None:
        active, reason = None, "this server's /slots does not say"
    else:
        active, reason = bool(said), f"/slots says speculative = {str(said).lower()}"
    return Evidence(requested, said, server_log.drafter_lines(lines), active, reason)
