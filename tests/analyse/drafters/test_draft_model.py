"""Acceptance from teacher-forced choices, against a draft model that really drafts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.analyse.drafters.draft_model import accepted_share, by_length, draft_steps
from lab.analyse.drafters.steps import RecordedText
from lab.errors import InputError
from lab.measure.teacher_forcing import Choices

N_CTX = 70

texts = st.builds(
    lambda prompt, answer: RecordedText("k", prompt, answer, len(answer)),
    st.lists(st.integers(0, 2), min_size=1, max_size=20),
    st.lists(st.integers(0, 2), min_size=1, max_size=60),
)
models = st.lists(st.integers(0, 2), min_size=9, max_size=9)


def says(model, tokens):
    """A draft model that looks at two tokens."""
    before = tokens[-2] if len(tokens) > 1 else 0
    return model[3 * before + tokens[-1]]


def forced(model, text, probability=None):
    whole = text.tokens.tolist()
    choice = [says(model, whole[: i + 1]) for i in range(len(whole))]
    sure = np.ones(len(whole)) if probability is None else probability
    return Choices(text.tokens, np.array(choice, np.int32), sure.astype(np.float32))


def slow_walk(model, text, n_max, n_min):
    """The server's steps with the model drafting token by token."""
    prompt, answer = text.prompt.tolist(), text.answer.tolist()
    steps, made = [], 1
    while made < len(answer):
        known = prompt + answer[:made]
        most = min(N_CTX - (len(known) - 1) - 2, text.n_predict - made - 1)
        draft = []
        while most > 0 and len(draft) < min(n_max, most):
            draft.append(says(model, known + draft))
        right = 0
        if draft and len(draft) >= n_min:
            while right < len(draft) and answer[made + right :][:1] == [draft[right]]:
                right += 1
            steps.append([len(known) - 1, len(draft), right])
        made += right + 1
    return steps


@settings(deadline=None)
@given(texts, models, st.integers(1, 8), st.integers(0, 4))
def test_steps_are_those_of_a_model_that_drafts(text, model, n_max, n_min):
    found = draft_steps(text, forced(model, text), n_max=n_max, n_min=n_min, n_ctx=N_CTX)
    assert found.tolist() == slow_walk(model, text, n_max, n_min)


@settings(deadline=None)
@given(texts, models, st.floats(0, 1), st.integers(0, 2**31))
def test_an_unsure_draft_stops_and_accepts_no_more_than_it_drafted(text, model, p_min, seed):
    sure = np.random.default_rng(seed).random(len(text.tokens))
    one = forced(model, text, sure)
    steps = draft_steps(text, one, n_max=6, p_min=p_min)
    assert (steps[:, 2] <= steps[:, 1]).all()
    assert all(sure[depth] >= np.float32(p_min) for depth in steps[:, 0])
    assert (draft_steps(text, one, n_max=6, p_min=1.5)).shape == (0, 3)


def test_a_model_that_is_always_right_gives_every_length_whole():
    text = RecordedText("k", [1, 2], [0, 1, 2] * 41, 123)
    choices = Choices(text.tokens, np.roll(text.tokens, -1), np.ones(125, np.float32))
    table = by_length([text], [choices], range(1, 5)).set_index("draft_length")
    assert (table["acceptance_rate"] == 1).all()
    assert table["tokens_per_step"][1] == 2
    assert table["tokens_per_step"][4] == pytest.approx(5, abs=0.2)
    assert accepted_share([text], [choices], 3).tolist() == [1, 1, 1]


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), models)
def test_shares_fall_with_length_where_each_place_is_counted_once(several, model):
    choices = [forced(model, one) for one in several]
    shares = accepted_share(several, choices, 4)
    right = [
        one.choice[i] == one.tokens[i + 1]
        for text, one in zip(several, choices, strict=True)
        for i in range(len(text.prompt), len(one.tokens) - 1)
    ]
    assert shares[0] == pytest.approx(np.mean(right) if right else 0)
    assert ((shares >= 0) & (shares <= 1)).all()


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), models)
def test_tokens_are_conserved_for_every_length(several, model):
    choices = [forced(model, one) for one in several]
    table = by_length(several, choices, (1, 2, 5))
    total = sum(len(one.answer) - 1 for one in several)
    assert (table["target_steps"] + table["draft_n_accepted"] == total).all()
    assert (table["draft_n_accepted"] <= table["draft_n"]).all()
    assert (table["drafted_steps"] <= table["target_steps"]).all()


def test_the_token_that_ended_an_answer_early_is_the_passes_own():
    text = RecordedText("k", [1, 2], [0, 1, 2], 50)
    choices = Choices(text.tokens, np.roll(text.tokens, -1), np.ones(5, np.float32))
    assert draft_steps(text, choices, n_max=4).tolist() == [[2, 4, 1]]
    assert draft_steps(text, choices, n_max=2).tolist() == [[2, 2, 2]]


def test_choices_along_another_text_are_refused():
    text = RecordedText("my record", [1, 2], [1, 2, 3], 3)
    other = Choices(np.arange(5, dtype=np.int32), np.arange(5), np.ones(5))
    with pytest.raises(InputError, match=r"my record.*another text"):
        draft_steps(text, other)
