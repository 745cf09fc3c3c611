"""Each drafter against an obvious, slow account of the same behaviour, and its invariants."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.analyse.drafters.ngram_mod import CHUNK, LOW, LOW_STREAK
from lab.analyse.drafters.replay import (
    PARAMETERS,
    Setting,
    fresh_memory,
    replay,
    setting_of,
    summary,
    walk,
)
from lab.analyse.drafters.steps import RecordedText
from lab.errors import InputError
from lab.inputs.arm import Drafting
from lab.inputs.profiles import load_profile

N_CTX = 4096


def text(prompt, answer, n_predict=None):
    return RecordedText("k", prompt, answer, n_predict or len(answer))


# Small alphabets repeat themselves often, which is where drafters do something.
texts = st.builds(
    text,
    st.lists(st.integers(0, 2), min_size=1, max_size=40),
    st.lists(st.integers(0, 2), min_size=1, max_size=60),
)
SETTINGS = [
    Setting.of("ngram-simple", size_n=2, size_m=4),
    Setting.of("ngram-simple", size_n=1, size_m=9),
    Setting.of("ngram-map-k", size_n=2, size_m=3),
    Setting.of("ngram-map-k4v", size_n=2, size_m=3),
    Setting.of("ngram-map-k4v", size_n=1, size_m=2, min_hits=2),
    Setting.of("ngram-mod", n_match=2, n_min=1, n_max=5),
    Setting.of("ngram-mod", n_match=3, n_min=3, n_max=8),
    Setting.of("ngram-cache"),
]
by_label = pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.label)


class Simple:
    def __init__(self, setting):
        self.n, self.m = setting["size-n"], setting["size-m"]

    def begin(self, prompt):
        pass

    def draft(self, history, sampled):
        if len(history) <= self.n + self.m + 1:
            return []
        wanted = ([*history, sampled])[-self.n :]
        for at in range(len(history) - self.n - 1, 0, -1):
            if history[at : at + self.n] == wanted:
                found = history[at + self.n :][: self.m]
                return found if len(found) >= self.n else []
        return []

    def accept(self, drafted, right):
        pass


class Mod:
    """A dictionary in place of the hash table: small texts have no collisions."""

    def __init__(self, setting):
        self.n, self.n_min, self.n_max = (setting[f"n-{x}"] for x in ("match", "min", "max"))
        self.table, self.streak, self.added = {}, 0, 0

    def learn(self, tokens, start, end):
        for at in range(start, end):
            self.table[tuple(tokens[at : at + self.n])] = tokens[at + self.n]

    def begin(self, prompt):
        self.added = 0
        if len(prompt) >= self.n:
            self.added = len(prompt) - self.n
            self.learn(prompt, 0, self.added)

    def draft(self, history, sampled):
        self.chained = 0
        if len(history) < self.n:
            return []
        if self.added + CHUNK < len(history):
            self.learn(history, self.added, len(history) - self.n)
            self.added = len(history) - self.n
        chain = ([*history, sampled])[-self.n :]
        while len(chain) < self.n + self.n_max and tuple(chain[-self.n :]) in self.table:
            chain.append(self.table[tuple(chain[-self.n :])])
        found = chain[self.n :]
        if len(found) < self.n_max and len(found) < self.n_min:
            return []
        self.chained = len(found)
        return found

    def accept(self, _drafted, right):
        if right / self.chained >= LOW:
            self.streak = 0
            return
        self.streak += 1
        if self.streak >= LOW_STREAK:
            self.table, self.streak, self.added = {}, 0, 0


class Cache:
    def __init__(self, _setting):
        self.counts, self.size = defaultdict(dict), 0

    def begin(self, prompt):
        pass

    def read(self, piece):
        for length in range(1, 5):
            for at in range(length, len(piece)):
                followers = self.counts[tuple(piece[at - length : at])]
                followers[piece[at]] = followers.get(piece[at], 0) + 1

    def draft(self, history, sampled):
        whole = [*history, sampled]
        if self.size < len(whole):
            self.read(whole[self.size :])
            self.size = len(whole)
        found = []
        while len(found) < 8:
            token = self.likely(whole + found)
            if token is None:
                break
            found.append(token)
        return found

    def likely(self, tokens):
        for length, least, percent in ((4, 1, 50), (3, 1, 50), (2, 2, 50), (1, 2, 66)):
            followers = self.counts.get(tuple(tokens[-length:]))
            if len(tokens) < length or not followers:
                continue
            total = sum(followers.values())
            token, best = max(reversed(followers.items()), key=lambda item: item[1])
            if total >= least and 100 * best >= percent * total:
                return token
        return None

    def accept(self, drafted, right):
        pass


SLOW = {"ngram-simple": Simple, "ngram-mod": Mod, "ngram-cache": Cache}


def slow_walk(drafter, one):
    """The server's steps through an answer, told plainly."""
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
            drafter.accept(draft, right)
            steps.append([len(history), len(draft), right])
        made += right + 1
    return steps


@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if one.kind in SLOW], ids=lambda one: one.label
)
@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=3))
def test_the_fast_replay_is_the_slow_one(setting, several):
    memory, slow = fresh_memory(setting.kind), SLOW[setting.kind](setting)
    for one in several:
        assert walk(setting, one, memory, N_CTX).tolist() == slow_walk(slow, one)


@by_label
@settings(deadline=None)
@given(several=st.lists(texts, min_size=1, max_size=3))
def test_tokens_are_conserved_and_no_more_is_right_than_was_drafted(setting, several):
    table = summary(several, replay(setting, several, state="warm-other", n_ctx=N_CTX))
    for row, one in zip(table.itertuples(), several, strict=True):
        assert 0 <= row.draft_n_accepted <= row.draft_n
        assert row.drafted_steps <= row.target_steps
        assert row.target_steps + row.draft_n_accepted == len(one.answer) - 1
        if row.draft_n:
            product = 1 + row.draft_coverage * (row.acceptance_length - 1)
            assert row.tokens_per_step == pytest.approx(product)


@by_label
@settings(deadline=None)
@given(one=texts, other=texts)
def test_a_cold_text_does_not_depend_on_what_came_before(setting, one, other):
    alone = replay(setting, [one], n_ctx=N_CTX)[0]
    after = replay(setting, [other, one], n_ctx=N_CTX)[1]
    np.testing.assert_array_equal(alone, after)


@by_label
def test_nothing_repeated_is_nothing_drafted(setting):
    one = text(list(range(100)), list(range(100, 200)))
    assert len(replay(setting, [one], n_ctx=N_CTX)[0]) == 0


@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if one.kind != "ngram-cache"], ids=lambda one: one.label
)
def test_a_loop_is_drafted_and_nearly_all_of_it_right(setting):
    loop = list(range(7)) * 40
    table = summary(
        [text(loop[:70], loop[70:270])], replay(setting, [text(loop[:70], loop[70:270])])
    )
    assert table["acceptance_rate"][0] > 0.9
    assert table["tokens_per_step"][0] > 2


def test_a_pool_that_knows_the_answer_drafts_it_and_a_fresh_one_does_not():
    setting = Setting.of("ngram-mod", n_match=8, n_min=4, n_max=32)
    one = text(list(range(50)), list(range(50, 150)))
    (cold,), (warm,) = (replay(setting, [one], state=state) for state in ("cold", "warm-same"))
    assert len(cold) == 0
    assert warm[:, 2].sum() == warm[:, 1].sum() > 60


def test_five_bad_drafts_empty_the_pool():
    setting = Setting.of("ngram-mod", n_match=1, n_min=1, n_max=8)
    memory = fresh_memory(setting.kind)
    pairs = [token for n in range(20) for token in (5, 100 + n)]
    steps = walk(setting, text([*pairs, 1], [5, 7] * 30), memory, N_CTX)
    assert Counter(steps[:5, 2].tolist()) == {0: 5}
    assert memory.facts[1] == 0


def test_settings_know_their_flags_and_labels():
    article = Setting.of("ngram-mod")
    assert article.label == "ngram-mod 24/48/64"
    assert article.flags()["spec-ngram-mod-n-match"] == 24
    with pytest.raises(InputError, match="no such parameter"):
        Setting.of("ngram-mod", size_n=3)
    with pytest.raises(InputError, match="cannot be replayed"):
        Setting.of("draft-simple")


def test_the_arms_of_the_profile_can_be_replayed():
    profile = load_profile("embedded")
    for arm in profile.chosen_arms(()):
        setting = setting_of(arm.drafting)
        assert setting.label == arm.label
        assert set(arm.drafting.flags) <= set(setting.flags())
    assert setting_of(Drafting(("draft-simple",), {}, "small")) is None
    known = {arm.drafting.types[0] for arm in profile.chosen_arms(())}
    assert set(PARAMETERS) == known | {"prompt-lookup"}
