from __future__ import annotations

import pytest

from lab.analyse.drafters.replay import Setting, fresh_memory, replay, walk
from lab.analyse.drafters.steps import RecordedText

CACHE = Setting.of("ngram-cache")


def text(prompt, answer):
    return RecordedText("k", prompt, answer, len(answer))


@pytest.mark.parametrize(("followers", "drafts"), [(3, False), (200, True)])
def test_a_frequent_follower_is_found_however_many_rare_ones_came_before(followers, drafts):
    # Token 5 is followed by 80 different tokens once each, then by 7 again and again.
    rare = [token for n in range(80) for token in (5, 1000 + n)]
    often = [token for n in range(followers) for token in (5, 7, 2000 + n)]
    (steps,) = replay(CACHE, [text([*rare, *often], [3, 5, 7, 8, 9, 10])])
    at_five = [row for row in steps.tolist() if row[0] == len(rare) + len(often) + 1]
    assert [row[1:] for row in at_five] == ([[1, 1]] if drafts else [])


def test_a_prompt_shorter_than_what_was_counted_is_never_read():
    loop = [1, 2, 3, 4] * 20
    memory = fresh_memory("ngram-cache")
    alone = walk(CACHE, text(loop[:40], loop[40:60]), memory, 2048)
    memory.forget()
    walk(CACHE, text(list(range(100, 300)), list(range(300, 320))), memory, 2048)
    after = walk(CACHE, text(loop[:40], loop[40:60]), memory, 2048)
    assert alone[:, 2].sum() > 0
    assert len(after) == 0


def test_of_two_equally_frequent_followers_the_one_first_seen_later_is_drafted():
    def accepted(follower):
        prompt = [1, 2, 3, 50, 1, 2, 4, 51, 52]
        (steps,) = replay(CACHE, [text(prompt, [60, 1, 2, follower, 70, 71])])
        return steps[0, 2]

    assert accepted(4) == 2
    assert accepted(3) == 1
