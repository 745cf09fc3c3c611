from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.inputs.arm import ServerSettings
from lab.measure.teacher_forcing import Choices, teacher_forced
from lab.setup.child import run_in_child
from lab.setup.engine import find_engine


def choices(tokens, choice):
    shares = np.ones(len(choice), np.float32)
    return Choices(np.array(tokens, np.int32), np.array(choice, np.int32), shares)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_right_choices_in_a_row_are_what_a_draft_would_get_accepted(pairs):
    tokens, choice = map(list, zip(*pairs, strict=True))
    runs = choices(tokens, choice).right_in_a_row()
    for start in range(len(tokens)):
        accepted = 0
        while start + accepted + 1 < len(tokens) and (
            choice[start + accepted] == tokens[start + accepted + 1]
        ):
            accepted += 1
        assert runs[start] == accepted


@pytest.mark.engine
def test_a_model_that_drafts_for_itself_is_right_all_along_its_own_text(shallow_model):
    engine = find_engine()
    answers = run_in_child(
        engine,
        "lab.setup.standins.passes:source_run",
        file=str(shallow_model),
        prompts=["One upon a time"],
        n_predict=40,
        calibration=[],
        experts=0,
        seed=0,
        folder=str(shallow_model.parent),
    )
    ((prompt, continuation),) = next(iter(answers))["texts"]
    (found,) = teacher_forced(engine, shallow_model, [[*prompt, *continuation]])
    runs = found.right_in_a_row()
    assert runs[len(prompt) - 1] >= 38  # equal but for a tie between passes of other widths
    assert ((found.probability > 0.09) & (found.probability <= 1)).all()


@pytest.mark.engine
def test_every_text_gets_a_choice_a_token(shallow_model):
    steps = []
    texts = [[5, 6, 7], list(range(100, 170))]
    found = teacher_forced(
        find_engine(),
        shallow_model,
        texts,
        on_progress=lambda done, total: steps.append((done, total)),
    )
    assert [len(one.choice) for one in found] == [3, 70]
    assert steps == [(1, 2), (2, 2)]


@pytest.mark.parametrize("text", [[], list(range(300))])
def test_a_text_that_does_not_fit_is_refused(text, shallow_model):
    with pytest.raises(InputError, match=r"texts\[0\]"):
        teacher_forced(None, shallow_model, [text], settings=ServerSettings(n_ctx=256))
