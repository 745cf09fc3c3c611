from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lab.inputs.arm import Arm
from lab.measure.plan import Plan, Series, interleave, one_at_a_time, requests_for


def lanes(blocks: int, arms: int, turns: int):
    made = []
    for block in range(blocks):
        for arm in range(arms):
            series = Series(f"b{block}-a{arm}", Arm(f"a{arm}", f"arm {arm}"), block)
            ids = [f"p{block}-{turn}" for turn in range(turns)]
            made.append(
                (series, requests_for(series.name, ids, states=["cold"] * turns, n_predict=8))
            )
    return made


sizes = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6))


@given(sizes, st.integers(0, 99))
def test_arms_take_turns_prompt_by_prompt(size, seed):
    blocks, arms, turns = size
    plan = interleave("x", lanes(*size), seed)
    asked = [plan.requests[start : start + arms] for start in range(0, len(plan.requests), arms)]
    assert len(asked) == blocks * turns
    for together in asked:
        assert len({one.prompt_id for one in together}) == 1
        assert len({one.series for one in together}) == arms


@given(sizes, st.integers(0, 99))
def test_one_server_at_a_time_is_another_order_of_the_same_requests(size, seed):
    plan = interleave("x", lanes(*size), seed)
    ordered = one_at_a_time(plan, seed)
    assert Counter(plan.requests) == Counter(ordered.requests)
    changes = sum(
        a.series != b.series for a, b in zip(ordered.requests, ordered.requests[1:], strict=False)
    )
    assert changes == len(plan.series) - 1


@given(sizes)
def test_keys_are_unique_and_a_seed_fixes_the_plan(size):
    plan = interleave("x", lanes(*size), 3)
    keys = [plan.key(one) for one in plan.requests]
    assert len(set(keys)) == len(keys)
    assert plan.fingerprint == interleave("x", lanes(*size), 3).fingerprint


def test_the_order_of_arms_varies_between_turns():
    plan = interleave("x", lanes(1, 4, 12), 5)
    orders = {
        tuple(one.series for one in plan.requests[start : start + 4]) for start in range(0, 48, 4)
    }
    assert len(orders) > 3


def test_another_prompt_is_another_fingerprint():
    first, second = (interleave("x", lanes(1, 2, turns), 1) for turns in (2, 3))
    assert isinstance(first, Plan)
    assert first.fingerprint != second.fingerprint
