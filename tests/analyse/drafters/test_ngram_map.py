"""The maps against a slow, obvious account of the same behaviour, over several requests."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.analyse.drafters.replay import Setting, fresh_memory, walk
from lab.analyse.drafters.steps import RecordedText, agreed, as_tokens, room

N_CTX = 4096


@define
class Value:
    at: int
    accepted: int
    hits: int = 1


@define
class Key:
    at: int
    accepted: int
    hits: int = 0
    counted: int = 0
    values: list = field(factory=list)


class SlowMap:
    """Lists and a dictionary; texts are too small for two n-grams to share a bucket."""

    def __init__(self, setting):
        self.n, self.m = setting["size-n"], setting["size-m"]
        self.key_only = setting.kind == "ngram-map-k"
        self.min_hits = 1 if self.key_only else setting["min-hits"]
        self.index, self.keys = {}, []
        self.begun = self.checked = self.indexed = 0

    def begin(self, prompt):
        size, keep = len(prompt), self.begun
        if keep > size:
            keep = max(size - self.n - self.m, 0)
        if size < self.checked:
            self.index = {gram: at for gram, at in self.index.items() if at < keep}
            self.indexed = max(keep - 1, 0)
            self.keys = [key for key in self.keys if key.at < keep]
            if not self.key_only:
                for key in self.keys:
                    key.values = [value for value in key.values if value.at < keep]
                self.keys = [key for key in self.keys if key.values]
        self.begun = self.checked = size

    def places(self, size):
        before = range(self.begun - self.n - self.m - 1, self.indexed, -1)
        since = range(size - self.n - self.m - 1, max(self.begun, self.indexed), -1)
        return list(chain(before if self.begun > self.n + self.m + 1 else (), since))

    def draft(self, history, sampled):
        self.last = None
        size, n, m = len(history), self.n, self.m
        if size < 2 * n + m:
            return []
        self.checked = size
        gram = ([*history, sampled])[-n:]
        at = self.index.get(tuple(gram), 0)
        if at >= size - n - m - 1 or history[at : at + n] != gram:
            at = 0
        if not at:
            at = next((p for p in self.places(size) if history[p : p + n] == gram), 0)
        for place in self.places(size):
            self.index.setdefault(tuple(history[place : place + n]), place)
        self.indexed = max(size - n - m - 1, self.indexed)
        return self.continued(history, gram, at) if at else []

    def continued(self, history, gram, at):
        n, m = self.n, self.m
        key = next((k for k in self.keys if history[k.at : k.at + n] == gram), None)
        if key is None:
            key = Key(at, m)
            self.keys.append(key)
        key.hits += 1
        if self.key_only:
            self.last = key
        elif key.hits < self.min_hits:
            return []
        else:
            self.count(history, gram, at, key)
            best = max(key.values, key=lambda value: value.hits)
            others = sum(value.hits for value in key.values) - best.hits
            if others and best.hits < 2 * others:
                return []
            self.last = best
        return history[at + n :][: min(m, self.last.accepted)]

    def count(self, history, gram, at, key):
        n, m = self.n, self.m
        for start in range(key.counted, at + 1):
            if history[start : start + n] != gram:
                continue
            after = history[start + n : start + n + m]
            for value in key.values:
                if history[value.at : value.at + m] == after:
                    value.hits += 1
                    break
            else:
                if len(key.values) < 4:
                    key.values.append(Value(start + n, m))
        key.counted = at

    def accept(self, right):
        self.last.accepted = right


def slow_walk(drafter, one):
    prompt, answer = one.prompt.tolist(), one.answer.tolist()
    drafter.begin(prompt)
    steps, made = [], 1
    while made < len(answer):
        history = prompt + answer[: made - 1]
        most = min(N_CTX - len(history) - 2, one.n_predict - made - 1)
        draft = drafter.draft(history, answer[made - 1])[:most] if most > 0 else []
        right = 0
        if draft:
            while right < len(draft) and answer[made + right :][:1] == [draft[right]]:
                right += 1
            if 0 < right < len(draft) and made + right == len(answer):
                right -= 1
            drafter.accept(right)
            steps.append([len(history), len(draft), right])
        made += right + 1
    return steps


def text(prompt, answer, spare):
    return RecordedText("k", prompt, answer, len(answer) + spare)


texts = st.builds(
    text,
    st.lists(st.integers(0, 2), min_size=1, max_size=60),
    st.lists(st.integers(0, 2), min_size=1, max_size=60),
    st.sampled_from([0, 0, 20]),
)
several = st.lists(texts, min_size=1, max_size=4)
SETTINGS = [
    Setting.of("ngram-map-k", size_n=1, size_m=1),
    Setting.of("ngram-map-k", size_n=2, size_m=3),
    Setting.of("ngram-map-k", size_n=3, size_m=12),
    Setting.of("ngram-map-k4v", size_n=1, size_m=2, min_hits=2),
    Setting.of("ngram-map-k4v", size_n=2, size_m=3),
    Setting.of("ngram-map-k4v", size_n=3, size_m=10),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.label)
@settings(deadline=None)
@given(requests=several)
def test_the_fast_map_is_the_slow_one_from_request_to_request(setting, requests):
    memory, slow = fresh_memory(setting.kind), SlowMap(setting)
    for one in requests:
        assert walk(setting, one, memory, N_CTX).tolist() == slow_walk(slow, one)


def test_a_key_that_failed_whole_never_drafts_again():
    setting = Setting.of("ngram-map-k", size_n=1, size_m=2)
    prompt = [0, 7, 1, 2, 10, 11, 12, 13]
    answer = [7, 3, 4, 7, 5, 6, 7, 1, 2, 8]
    steps = walk(setting, text(prompt, answer, 0), fresh_memory(setting.kind), N_CTX)
    sevens = [row for row in steps.tolist() if answer[row[0] - len(prompt)] == 7]
    assert sevens == [[8, 2, 0]]


def test_another_prompt_of_the_same_length_hides_matches_in_its_own_beginning():
    setting = Setting.of("ngram-map-k", size_n=2, size_m=2)
    other = text(list(range(100, 140)), list(range(200, 210)), 0)
    loop = [1, 2, 3, 4, 5, 6, 7, 8] * 8
    one = text(loop[:50], loop[50:62], 0)
    memory = fresh_memory(setting.kind)
    alone = walk(setting, one, memory, N_CTX)
    memory.forget()
    walk(setting, other, memory, N_CTX)
    after = walk(setting, one, memory, N_CTX)
    assert len(alone)
    assert after.tolist() != alone.tolist()


@pytest.mark.parametrize(("drafted", "counted"), [([1, 2], 2), ([1, 2, 3], 2), ([1, 2, 3, 4], 2)])
def test_the_token_that_ended_the_answer_is_the_passes_own_unless_it_is_the_drafts_last(
    drafted, counted
):
    tokens = as_tokens([9, 1, 2, 3])
    found = agreed(tokens, 1, as_tokens(drafted), len(drafted), N_CTX)
    assert found == counted + (drafted == [1, 2, 3])


def test_a_draft_right_to_the_end_of_the_context_counts_whole_though_one_token_is_sent():
    tokens, draft = as_tokens([9, 1]), as_tokens([1, 2, 3])
    assert agreed(tokens, 1, draft, 3, n_ctx=5) == 3
    assert agreed(tokens, 1, draft, 3, n_ctx=6) == 0
    assert agreed(as_tokens([9, 7]), 1, draft, 3, n_ctx=5) == 0


def test_a_draft_leaves_room_for_the_passes_own_token_and_two_places_of_context():
    assert room(depth=10, generated=5, n_predict=20, n_ctx=100) == 14
    assert room(depth=95, generated=5, n_predict=20, n_ctx=100) == 3
    assert np.sign(room(depth=10, generated=19, n_predict=20, n_ctx=100)) == 0
