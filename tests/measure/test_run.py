from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.backends.protocol import Counters, Evidence, Identity, Reply, Timings
from lab.errors import LaunchError, RequestError
from lab.inputs.arm import Arm, Drafting
from lab.inputs.prompts import Message, Prompt
from lab.measure import run
from lab.measure.plan import Plan, PlannedRequest, Series, interleave, requests_for
from lab.measure.run import Campaign, Conditions
from lab.measure.store import RunFolder

BASELINE = Arm("baseline", "no drafting")
POOL = Arm("pool", "pool", drafting=Drafting(types=("ngram-mod",)))
PROMPTS = {f"p{n}": Prompt(f"p{n}", "c", (Message("user", f"question {n}"),)) for n in range(4)}
WARMUPS = (Prompt("w0", "warmup", (Message("user", "hi"),)),)


class Killed(BaseException):
    """Stands for SIGKILL: no handler of the lab may swallow it."""


class FakeSession:
    def __init__(self, backend, arm):
        self.backend, self.arm, self.asked = backend, arm, []
        self.identity = Identity("fake", build="b1")
        active = True if arm.drafting.types else None
        self.evidence = Evidence(arm.drafting.types, active, (), active, "told so")
        self.dead = False

    def encode(self, prompt):
        return tuple(map(ord, prompt.id))

    def generate(self, request):
        if self.dead:
            raise RequestError("connection", "server is gone")
        self.asked.append(request.prompt_tokens)
        event = self.backend.next_event()
        if event == "die":
            self.dead = True
            raise RequestError("connection", "server is gone")
        if event == "500":
            raise RequestError("server", "HTTP 500")
        if event == "kill":
            raise Killed
        seen = sum(one == request.prompt_tokens for one in self.asked)
        return evolve(self.backend.reply, tokens=(seen,), text=str(seen))

    def alive(self):
        return not self.dead

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.backend.open_now -= 1


class FakeBackend:
    name = "fake"

    def __init__(self, events=(), *, launches=True, timings=None):
        self.events, self.launches = iter(events), launches
        self.open_now, self.sessions = 0, []
        timings = timings or Timings(0, 3, 5.0, 8, 70.0, None, None)
        self.reply = Reply("", (), timings, Counters(), "limit", 75.0)

    def next_event(self):
        return next(self.events, None)

    def open(self, arm, *, log):
        if not self.launches:
            raise LaunchError("no", returncode=1, log_tail=(), cause="out of memory")
        self.open_now += 1
        self.sessions.append(FakeSession(self, arm))
        return self.sessions[-1]


def plan_of(*arms, runs=4):
    lanes = [
        (
            Series(arm.name, arm, 0),
            requests_for(
                arm.name, [f"p{n}" for n in range(runs)], states=["cold"] * runs, n_predict=8
            ),
        )
        for arm in arms
    ]
    return interleave("x", lanes, 1)


def carry_out(folder, backend, plan, **conditions):
    return Campaign(
        plan,
        backend=backend,
        folder=folder,
        prompts=PROMPTS,
        warmups=WARMUPS,
        conditions=Conditions(seed=7, **conditions),
    ).carry_out()


def measured(folder):
    return [one for one in folder.records() if one.role == "measure"]


def test_every_planned_request_is_recorded_once_and_nothing_stays_open(tmp_path):
    plan, backend = plan_of(BASELINE, POOL), FakeBackend()
    with RunFolder(tmp_path / "r") as folder:
        served = carry_out(folder, backend, plan)
        assert [one.key for one in measured(folder)] == [plan.key(one) for one in plan.requests]
        assert {one.key for one in folder.outputs()} == folder.recorded_keys()
    assert backend.open_now == 0
    assert served["pool"].build == "b1"


def test_carrying_out_again_asks_nothing(tmp_path):
    plan, again = plan_of(BASELINE), FakeBackend()
    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, FakeBackend(), plan)
        carry_out(folder, again, plan)
    assert again.sessions == []


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kills=st.lists(st.integers(0, 30), max_size=6))
def test_a_run_killed_anywhere_resumes_to_every_record_exactly_once(tmp_path, kills):
    plan = plan_of(BASELINE, POOL)
    path = Path(tempfile.mkdtemp(dir=tmp_path))
    for kill in kills:
        events = [*[None] * kill, "kill"]
        try:
            with RunFolder(path) as folder:
                carry_out(folder, FakeBackend(events), plan)
        except Killed:
            continue
    with RunFolder(path) as folder:
        carry_out(folder, FakeBackend(), plan)
        keys = Counter(one.key for one in folder.records())
        assert {plan.key(one) for one in plan.requests} <= set(keys)
        assert set(keys.values()) == {1}
        assert all(one.status == "ok" for one in measured(folder))


def test_case_32_a_drafter_with_memory_is_brought_back_to_its_state(tmp_path):
    series = Series("s", POOL, 0)
    repeated = tuple(PlannedRequest("s", n, "p0", n, "warm-same", "measure", 8) for n in range(6))
    plan = Plan("x", (series,), repeated)
    with RunFolder(tmp_path / "r") as folder:
        with pytest.raises(Killed):
            carry_out(folder, FakeBackend([*[None] * 5, "kill"]), plan)
        before = len(measured(folder))
    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, FakeBackend(), plan)
        roles = Counter(one.role for one in folder.records())
        planned = {plan.key(one) for one in plan.requests}
        seen = [one.tokens[0] for one in folder.outputs() if one.key in planned]
    assert 0 < before < 6
    assert roles["measure"] == 6
    assert roles["restore"] == before
    assert seen == [1, 2, 3, 4, 5, 6]


def test_case_03_a_server_that_never_starts_fails_its_arm_and_no_other(tmp_path):
    class OneBad(FakeBackend):
        def open(self, arm, *, log):
            self.launches = arm.name != "pool"
            return super().open(arm, log=log)

    backend = OneBad()
    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, backend, plan_of(BASELINE, POOL))
        status = {(one.arm, one.status) for one in measured(folder)}
        failed = [one.problem for one in measured(folder) if one.arm == "pool"]
    assert status == {("baseline", "ok"), ("pool", "launch")}
    assert len(backend.sessions) == 1
    assert "out of memory" in failed[0]


def test_case_15_a_failed_request_is_recorded_and_the_next_prompt_asked(tmp_path):
    events = [None, None, "500"]
    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, FakeBackend(events), plan_of(BASELINE))
        assert [one.status for one in measured(folder)] == ["server", "ok", "ok", "ok"]


def test_a_server_that_dies_is_opened_again_but_not_for_ever(tmp_path):
    plan = plan_of(BASELINE, runs=4)
    with RunFolder(tmp_path / "r") as folder:
        backend = FakeBackend([None, None, "die", None, None, None, None])
        carry_out(folder, backend, plan)
        assert [one.status for one in measured(folder)] == ["connection", "ok", "ok", "ok"]
        assert len(backend.sessions) == 2
    with RunFolder(tmp_path / "always") as folder:
        always = FakeBackend(["die"] * 50)
        carry_out(folder, always, plan)
        assert {one.status for one in measured(folder)} == {"connection"}
        assert len(always.sessions) <= run.REOPENINGS_AT_MOST + 1


@pytest.mark.parametrize(
    ("arm", "timings", "label"),
    [
        (BASELINE, Timings(0, 3, 5.0, 8, 70.0, 4, 2), "contaminated"),
        (BASELINE, Timings(2, 1, 5.0, 8, 70.0, None, None), "cache-hit"),
    ],
)
def test_case_08_and_12_a_wrong_row_is_kept_and_labelled(tmp_path, arm, timings, label):
    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, FakeBackend(timings=timings), plan_of(arm, runs=1))
        assert [label in one.labels for one in measured(folder)] == [True]


def test_case_06_an_idle_drafter_is_labelled_inactive(tmp_path):
    class Idle(FakeBackend):
        def open(self, arm, *, log):
            session = super().open(arm, log=log)
            session.evidence = Evidence(
                ("ngram-mod",), slots_speculative=False, log_lines=(), active=False, reason="slots"
            )
            return session

    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, Idle(), plan_of(POOL, runs=1))
        (record,) = measured(folder)
    assert "inactive" in record.labels
    assert record.speculation_active is False


def test_case_09_more_accepted_than_drafted_is_invalid_and_keeps_what_was_said(tmp_path):
    backend = FakeBackend(timings=Timings(0, 3, 5.0, 8, 70.0, 4, 6))
    backend.reply = evolve(backend.reply, raw={"draft_n": 4, "draft_n_accepted": 6})
    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, backend, plan_of(POOL, runs=1))
        (record,) = measured(folder)
    assert record.status == "invalid"
    assert "'draft_n_accepted': 6" in record.problem


def test_case_34_a_clock_jump_discards_the_request(tmp_path, monkeypatch):
    wall = iter(range(0, 100_000, 60))
    monkeypatch.setattr(run.time, "time", lambda: float(next(wall)))
    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, FakeBackend(), plan_of(BASELINE, runs=1))
        (record,) = measured(folder)
    assert record.status == "discarded"


def test_warming_up_ends_when_two_agree(tmp_path):
    class Settling(FakeBackend):
        slow = 4.0

        def next_event(self):
            self.slow = max(1.0, self.slow / 2)
            self.reply = evolve(
                self.reply, timings=evolve(self.reply.timings, predicted_ms=70.0 * self.slow)
            )

    with RunFolder(tmp_path / "r") as folder:
        carry_out(folder, Settling(), plan_of(BASELINE, runs=1))
        warmups = [one for one in folder.records() if one.role == "warmup"]
    assert [one.predicted_ms for one in warmups] == [140.0, 70.0, 70.0]
    assert all(one.prompt_id == "w0" for one in warmups)
