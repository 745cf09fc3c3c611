from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.backends.server_counters import moved, parse_metrics
from lab.errors import RequestError

PAGE = """# HELP llamacpp:spec_decode_num_drafts_total Number of drafts
# TYPE llamacpp:spec_decode_num_drafts_total counter
llamacpp:spec_decode_num_drafts_total {drafts}
# TYPE llamacpp:spec_decode_num_draft_tokens_total counter
llamacpp:spec_decode_num_draft_tokens_total {tokens}
# TYPE llamacpp:spec_decode_num_accepted_tokens_total counter
llamacpp:spec_decode_num_accepted_tokens_total {accepted}
# TYPE llamacpp:spec_decode_num_accepted_tokens_per_pos_total counter
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{{position="0"}} {first}
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{{position="1"}} {second}
"""
VLLM = """# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{model_name="m",engine="0"} 7.0
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{model_name="m",engine="0"} 21.0
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total{model_name="m",engine="0"} 12.0
"""


def page(drafts, tokens, accepted, first, second):
    text = PAGE.format(drafts=drafts, tokens=tokens, accepted=accepted, first=first, second=second)
    return parse_metrics(text)


def test_counters_are_differences_between_two_readings():
    found = moved(page(3, 12, 7, 3, 2), page(5, 20, 12, 5, 3))
    assert (found.drafted_steps, found.draft_tokens, found.accepted_tokens) == (2, 8, 5)
    assert found.accepted_per_position == (2, 1)


def test_positions_that_did_not_move_are_left_out():
    assert moved(page(3, 12, 7, 3, 2), page(5, 20, 9, 5, 2)).accepted_per_position == (2,)


def test_the_names_of_another_engine_are_known():
    empty = parse_metrics("")
    found = moved(empty, parse_metrics(VLLM))
    assert (found.drafted_steps, found.draft_tokens, found.accepted_tokens) == (7, 21, 12)


def test_case_07_a_page_without_these_counters_is_unknown_and_not_zero():
    found = moved(parse_metrics(""), parse_metrics("# TYPE up gauge\nup 1\n"))
    assert found.drafted_steps is None
    assert found.accepted_per_position is None


@given(st.text(max_size=200))
def test_any_text_is_a_page_or_garbage(text):
    try:
        parse_metrics(text)
    except RequestError as error:
        assert error.kind == "garbage"


def test_html_is_garbage():
    with pytest.raises(RequestError, match="metrics"):
        parse_metrics("<html><body>404</body></html>")
