from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lab.backends.draft_account import DraftAccount

TOKEN = st.integers(0, 2)


@given(st.lists(TOKEN, min_size=1, max_size=60), st.data())
def test_steps_and_accepted_tokens_make_up_the_text(text, data):
    """A step gives one token of its own and what it accepted, whatever was drafted."""
    account = DraftAccount()
    length, steps = 1, 0
    while length < len(text):
        account.settle(text[:length])
        draft = data.draw(st.lists(TOKEN, max_size=5))
        account.propose(length, draft)
        run = 0
        while length + run < len(text) and run < len(draft) and draft[run] == text[length + run]:
            run += 1
        length += min(run + 1, len(text) - length)
        steps += 1
    account.settle(text)
    produced = len(text) - 1
    cut = steps + sum(account.accepted) - produced
    assert cut in (0, 1)  # the last step may have had no room for its own token
    assert len(account.accepted) == account.steps
    assert sum(account.accepted) <= account.proposed


def test_positions_count_steps_that_came_that_far():
    account = DraftAccount()
    for draft, text in (([5, 6, 7], [1, 5, 6, 9]), ([5], [1, 5]), ([4], [1, 5])):
        account.propose(1, draft)
        account.settle(text)
    assert account.accepted == [2, 1, 0]
    assert account.per_position() == [2, 1]


def test_an_empty_draft_is_no_step():
    account = DraftAccount()
    account.propose(3, [])
    account.settle([1, 2, 3, 4])
    assert (account.steps, account.proposed, account.accepted) == (0, 0, [])
    assert account.per_position() == []
