"""Carry out a plan: open servers, warm them up, ask, record, close; resumable anywhere.

A request is recorded once, when its answer is complete. After an interruption a series
of a drafter with memory is brought back to its state first: its earlier requests are
sent again as ``restore`` rows, which no analysis counts as measurements.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from attrs import define, field, frozen

from lab.backends.protocol import Backend, Identity, Reply, Request, Session
from lab.errors import LaunchError, RequestError
from lab.inputs.prompts import Prompt
from lab.machine.quiet import labels
from lab.machine.sampler import Sampler
from lab.measure.plan import Plan, PlannedRequest, Series
from lab.measure.records import Output, RequestRecord
from lab.measure.store import RunFolder

WARMUPS_AT_MOST = 4
WARMUP_TOKENS = 8
"""Short enough that a prompt and its answer stay out of the n-gram pool (24 + 8 tokens)."""
WARMUP_AGREEMENT = 0.05
"""Two successive warm-ups this close, as a share of the slower, end the warm-up."""
CLOCK_JUMP_S = 0.5
"""Wall clock against monotonic clock over one request; more means a suspend or a set clock."""
REOPENINGS_AT_MOST = 2
"""Times a series is opened again after its server died, before its rest is given up."""


@frozen
class Progress:
    """How far a plan is: counts of requests, seconds so far, and what comes now."""

    experiment: str
    done: int
    total: int
    arm: str
    prompt_id: str
    elapsed_s: float

    @property
    def remaining_s(self) -> float | None:
        """Seconds still to go at the present pace; None before the first request."""
        return None if not self.done else self.elapsed_s / self.done * (self.total - self.done)


@frozen
class Conditions:
    """What every request of a run has in common, from the profile."""

    seed: int
    stream: bool = False
    timeout_s: float = 600.0
    temperature: float = 0.0
    ignore_eos: bool = True


@define
class _Open:
    """A series whose server is running."""

    session: Session
    tokens: dict[str, tuple[int, ...]] = field(factory=dict)
    sent: int = 0


class Campaign:
    """One plan being carried out into one folder.

    Parameters
    ----------
    prompts : every prompt the plan names, by id. warmups : short prompts disjoint from them.
    on_progress : called before each request; may raise to stop (KeyboardInterrupt).
    """

    def __init__(
        self,
        plan: Plan,
        *,
        backend: Backend,
        folder: RunFolder,
        prompts: Mapping[str, Prompt],
        warmups: tuple[Prompt, ...],
        conditions: Conditions,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.plan, self.backend, self.folder = plan, backend, folder
        self.prompts, self.warmups, self.conditions = prompts, warmups, conditions
        self.on_progress = on_progress
        self.identities: dict[str, Identity] = {}
        self._series = {one.name: one for one in plan.series}
        self._open: dict[str, _Open] = {}
        self._lost: dict[str, tuple[str, str]] = {}
        self._openings: dict[str, int] = {}
        self._recorded = folder.recorded_keys()

    def carry_out(self) -> dict[str, Identity]:
        """Ask everything that is not recorded yet; give back what served each arm."""
        todo = [one for one in self.plan.requests if self.plan.key(one) not in self._recorded]
        last = {one.series: one for one in todo}
        started = time.monotonic()
        with ExitStack() as stack, Sampler() as sampler:
            stack.callback(self._close_all)
            for done, request in enumerate(todo):
                arm = self._series[request.series].arm
                elapsed_s = time.monotonic() - started
                self.on_progress(
                    Progress(
                        self.plan.experiment,
                        done,
                        len(todo),
                        arm.name,
                        request.prompt_id,
                        elapsed_s,
                    )
                )
                self._one(request, sampler)
                if last[request.series] is request:
                    self._close(request.series)
        return self.identities

    def _one(self, request: PlannedRequest, sampler: Sampler) -> None:
        series = self._series[request.series]
        opened = self._ready(series, request, sampler)
        if opened is None:
            kind, problem = self._lost[series.name]
            self.folder.append(self._failure(request, kind, problem))
            return
        self._ask(opened, request, request.role, self.plan.key(request), sampler)
        if not opened.session.alive():
            self._close(series.name)

    def _ready(self, series: Series, request: PlannedRequest, sampler: Sampler) -> _Open | None:
        """The running server of a series, opened, warmed up and restored if need be."""
        if series.name in self._open:
            return self._open[series.name]
        if series.name in self._lost:
            return None
        tries = self._openings.get(series.name, 0)
        if tries > REOPENINGS_AT_MOST:
            self._lost[series.name] = ("connection", f"the server died {tries} times")
            return None
        self._openings[series.name] = tries + 1
        log = f"{self.plan.experiment}-{series.name}"
        try:
            session = self.backend.open(series.arm, log=log)
        except LaunchError as error:
            self._lost[series.name] = ("launch", str(error))
            self.folder.note("launch failed", series=series.name, problem=str(error))
            return None
        opened = self._open[series.name] = _Open(session)
        self.identities.setdefault(series.arm.name, session.identity)
        self._warm_up(opened, series, sampler)
        if series.arm.drafting.outlives_request or series.arm.settings.cache_prompt:
            self._restore(opened, series, request, sampler)
        return opened

    def _warm_up(self, opened: _Open, series: Series, sampler: Sampler) -> None:
        """Short texts, disjoint from what is measured, until two agree."""
        before: float | None = None
        for number in range(WARMUPS_AT_MOST):
            prompt = self.warmups[number % len(self.warmups)]
            request = PlannedRequest(
                series.name, number, prompt.id, number, "cold", "warmup", WARMUP_TOKENS
            )
            key = self._extra_key(series, "warmup", number)
            record = self._ask(opened, request, "warmup", key, sampler)
            if record.predicted_ms is None:
                return
            slower = max(before or 0.0, record.predicted_ms)
            if before is not None and abs(before - record.predicted_ms) < WARMUP_AGREEMENT * slower:
                return
            before = record.predicted_ms

    def _restore(
        self, opened: _Open, series: Series, upto: PlannedRequest, sampler: Sampler
    ) -> None:
        """Bring a drafter with memory back to where an interruption left it."""
        earlier = (
            one
            for one in self.plan.requests
            if one.series == series.name and one.ordinal < upto.ordinal
        )
        for one in earlier:
            key = self._extra_key(series, "restore", one.ordinal)
            self._ask(opened, one, "restore", key, sampler)

    def _extra_key(self, series: Series, role: str, number: int) -> str:
        """A key that stays unique however often a series has to be opened again."""
        attempt = 0
        while True:
            key = f"{self.plan.experiment}/{series.name}#{role}{attempt}.{number}"
            if key not in self._recorded:
                return key
            attempt += 1

    def _ask(
        self, opened: _Open, planned: PlannedRequest, role: str, key: str, sampler: Sampler
    ) -> RequestRecord:
        prompt = self._prompt(planned.prompt_id)
        record = self._blank(planned, role, key)
        wall, start = time.time(), time.monotonic()
        try:
            if planned.prompt_id not in opened.tokens:
                opened.tokens[planned.prompt_id] = opened.session.encode(prompt)
            tokens = opened.tokens[planned.prompt_id]
            request = self._request(planned, prompt, tokens, series=self._series[planned.series])
            wall, start = time.time(), time.monotonic()
            reply = opened.session.generate(request)
        except RequestError as error:
            record = {**record, "status": error.kind, "problem": str(error)}
            answered = RequestRecord(**record)
            self.folder.append(answered)
        else:
            end = time.monotonic()
            jumped = abs((time.time() - wall) - (end - start)) > CLOCK_JUMP_S
            record = {
                **record,
                **_measured(
                    reply,
                    opened.session,
                    jumped=jumped,
                    cache_wanted=self._series[planned.series].arm.settings.cache_prompt,
                ),
            }
            record["prompt_tokens_n"] = len(tokens) or None
            record["machine"] = dict(sampler.window(start, end))
            record["labels"] += labels(record["machine"])
            answered = RequestRecord(**record)
            self.folder.append(answered, Output(key, tokens or None, reply.tokens, reply.text))
        self._recorded.add(key)
        opened.sent += 1
        return answered

    def _request(
        self,
        planned: PlannedRequest,
        prompt: Prompt,
        tokens: tuple[int, ...],
        *,
        series: Series,
    ) -> Request:
        common = self.conditions
        return Request(
            prompt_tokens=tokens,
            messages=tuple((one.role, one.content) for one in prompt.messages),
            n_predict=planned.n_predict,
            temperature=common.temperature,
            seed=common.seed,
            ignore_eos=common.ignore_eos,
            stream=common.stream,
            cache_prompt=series.arm.settings.cache_prompt,
            timeout_s=common.timeout_s,
        )

    def _prompt(self, prompt_id: str) -> Prompt:
        found = self.prompts.get(prompt_id)
        return found or next(one for one in self.warmups if one.id == prompt_id)

    def _blank(self, planned: PlannedRequest, role: str, key: str) -> dict[str, Any]:
        series = self._series[planned.series]
        common = self.conditions
        opened = self._open.get(series.name)
        return {
            "key": key,
            "run_id": self.folder.run_id,
            "experiment": self.plan.experiment,
            "arm": series.arm.name,
            "model": series.arm.model,
            "prompt_id": planned.prompt_id,
            "category": self._prompt(planned.prompt_id).category,
            "state": planned.state,
            "role": role,
            "block": series.block,
            "series": series.name,
            "ordinal": opened.sent if opened else planned.ordinal,
            "repeat": planned.repeat,
            "started_utc": dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
            "status": "ok",
            "n_predict": planned.n_predict,
            "temperature": common.temperature,
            "seed": common.seed,
            "ignore_eos": common.ignore_eos,
            "stream": common.stream,
        }

    def _failure(self, planned: PlannedRequest, kind: str, problem: str) -> RequestRecord:
        blank = self._blank(planned, planned.role, self.plan.key(planned))
        return RequestRecord(**{**blank, "status": kind, "problem": problem})

    def _close(self, name: str) -> None:
        opened = self._open.pop(name, None)
        if opened is not None:
            opened.session.__exit__(None, None, None)

    def _close_all(self) -> None:
        for name in list(self._open):
            self._close(name)


def _measured(
    reply: Reply, session: Session, *, jumped: bool, cache_wanted: bool
) -> dict[str, Any]:
    """The fields of a record that an answer decides."""
    timings, counters = reply.timings, reply.counters
    against = []
    status, problem = "ok", None
    if timings.cache_n and not cache_wanted:
        against.append("cache-hit")
    evidence = session.evidence
    if evidence.requested and evidence.active is False:
        against.append("inactive")
    if not evidence.requested and timings.draft_n:
        against.append("contaminated")
    if jumped:
        status, problem = "discarded", "the clock jumped or the machine slept during the request"
    drafted, accepted = timings.draft_n, timings.draft_n_accepted
    if drafted is not None and accepted is not None and accepted > drafted:
        status, problem = "invalid", f"draft_n_accepted > draft_n: {dict(reply.raw)!r}"
    gaps = [b - a for a, b in zip(reply.chunk_ms, reply.chunk_ms[1:], strict=False)]
    return {
        "status": status,
        "problem": problem,
        "labels": tuple(against),
        "cache_n": timings.cache_n,
        "prompt_n": timings.prompt_n,
        "prompt_ms": timings.prompt_ms,
        "predicted_n": timings.predicted_n,
        "predicted_ms": timings.predicted_ms,
        "draft_n": drafted,
        "draft_n_accepted": accepted,
        "drafted_steps": counters.drafted_steps,
        "accepted_per_position": counters.accepted_per_position,
        "decode_calls": counters.decode_calls,
        "speculation_active": evidence.active,
        "ttft_ms": reply.ttft_ms,
        "e2e_ms": reply.e2e_ms,
        "max_chunk_gap_ms": max(gaps, default=None),
        "reasoning_n": reply.reasoning_n,
        "stop": reply.stop,
        "output_sha256": _digest(reply),
    }


def _digest(reply: Reply) -> str:
    content = reply.text if reply.tokens is None else repr(reply.tokens)
    return hashlib.sha256(content.encode()).hexdigest()
