from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.analyse.divergence import check_divergence, forks, loops

TEXT = tuple(range(100))
LOOP = (*range(40), *[7, 8] * 30)


def answers(**by_arm):
    """Rows and outputs of one prompt a position, from {arm: list of token tuples}."""
    rows, outputs = [], {}
    for arm, texts in by_arm.items():
        for n, tokens in enumerate(texts):
            key = f"{arm}/{n}"
            rows.append({"key": key, "experiment": "e", "prompt_id": f"p{n}", "arm": arm})
            outputs[key] = tokens
    return pd.DataFrame(rows), outputs


def test_equal_answers_have_no_fork():
    found = forks(*answers(baseline=[TEXT], x=[TEXT]))
    assert found["diverged"].tolist() == [False]
    assert np.isnan(found["fork_index"][0])
    assert check_divergence(found) == ()


def test_the_fork_is_the_first_token_that_differs():
    found = forks(*answers(baseline=[TEXT, TEXT], x=[(*TEXT[:9], 0, 0), TEXT]))
    assert found.set_index("prompt_id")["fork_index"]["p0"] == 9
    (said,) = check_divergence(found)
    assert (said.kind, said.subject, said.blocks) == ("Diverged", "x", False)
    assert "1 of 2 answers" in said.message


@pytest.mark.parametrize("broken", [(), LOOP])
def test_case_19_a_broken_text_blocks_only_where_the_control_is_clean(broken):
    clean = forks(*answers(baseline=[TEXT], again=[TEXT], x=[broken]))
    (said,) = check_divergence(clean, "again")
    assert said.blocks
    assert "empty or loop" in said.message
    noisy = forks(*answers(baseline=[TEXT], again=[TEXT[:-1]], x=[broken]))
    assert not check_divergence(noisy, "again")[0].blocks
    assert not check_divergence(clean)[0].blocks


def test_a_baseline_that_loops_itself_makes_no_arm_degenerate():
    found = forks(*answers(baseline=[LOOP], x=[(*LOOP, 7, 8)]))
    assert not found["degenerate"].any()


def test_answers_without_a_twin_or_without_tokens_make_no_row():
    frame, outputs = answers(baseline=[TEXT], x=[TEXT, TEXT])
    del outputs["x/0"]
    found = forks(frame, outputs)
    assert found.empty
    assert check_divergence(found, "again") == ()


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 4))
def test_only_a_repeated_end_is_a_loop(start, length):
    unit = tuple(range(100, 100 + length))
    assert loops((*start, *unit * 32))
    assert not loops((*start, *range(200, 232)))
