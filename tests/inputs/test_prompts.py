from __future__ import annotations

import json
from collections import Counter

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.inputs.prompts import (
    Message,
    Prompt,
    PromptSet,
    named_set,
    near_duplicates,
    repetition,
    stratified_sample,
)

MEASURED = ("article8", "diverse", "templated", "edits")


@pytest.mark.parametrize(
    ("name", "least", "categories"),
    [("article8", 8, 1), ("diverse", 96, 12), ("templated", 16, 3), ("edits", 12, 3)],
)
def test_the_sets_are_as_large_and_varied_as_promised(name, least, categories):
    prompts = named_set(name).prompts
    assert len(prompts) >= least
    assert len({one.category for one in prompts}) >= categories
    assert all(one.licence == "CC0-1.0" for one in prompts)


def test_the_diverse_set_has_two_languages_beside_english_and_chinese():
    languages = Counter(one.language for one in named_set("diverse").prompts)
    assert languages["zh"] >= 4
    assert len(set(languages) - {"en", "zh"}) >= 2


def test_no_prompt_occurs_twice_within_or_across_the_sets():
    everything = [one for name in MEASURED for one in named_set(name).prompts]
    ids = [one.id for one in everything]
    assert len(set(ids)) == len(ids)
    assert near_duplicates(everything, threshold=0.5) == ()


def test_warming_up_shares_no_words_in_a_row_with_what_is_measured():
    measured = " ".join(one.text.lower() for name in MEASURED for one in named_set(name).prompts)
    for warmup in named_set("warmup").prompts:
        assert len(warmup.text.split()) <= 12
        assert (
            f" {warmup.messages[-1].content.lower()} {warmup.messages[0].content}" not in measured
        )


words = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=30).map(" ".join)
prompts = st.lists(st.tuples(st.sampled_from("xyz"), words), min_size=1, max_size=25).map(
    lambda rows: PromptSet(
        "s",
        tuple(
            Prompt(f"p{n}", category, (Message("user", text),))
            for n, (category, text) in enumerate(rows)
        ),
    )
)


@given(prompts, st.integers(0, 30), st.integers(0, 5))
def test_a_sample_is_balanced_and_the_beginning_of_a_larger_one(whole, n, seed):
    sample = stratified_sample(whole, n, seed).prompts
    larger = stratified_sample(whole, n + 1, seed).prompts
    assert larger[: len(sample)] == sample
    assert len(sample) == min(n, len(whole.prompts))
    held = Counter(one.category for one in whole.prompts)
    taken = Counter(one.category for one in sample)
    for a in held:
        for b in held:
            assert taken[a] + 1 >= min(taken[b], held[a])


@given(prompts)
def test_the_fingerprint_follows_the_content_and_not_the_name(whole):
    assert evolve(whole, name="other").fingerprint == whole.fingerprint
    first = whole.prompts[0]
    changed = evolve(first, messages=(Message("user", first.text + "!"),))
    assert PromptSet("s", (changed, *whole.prompts[1:])).fingerprint != whole.fingerprint


def test_near_duplicates_are_found_whatever_their_order():
    text = "please write a function that adds two numbers and returns the sum of them"
    a = Prompt("a", "c", (Message("user", text),))
    b = Prompt("b", "c", (Message("user", text + " now"),))
    c = Prompt("c", "c", (Message("user", "tell me a story about a lighthouse and a storm"),))
    ((left, right, similarity),) = near_duplicates([a, c, b])
    assert {left, right} == {"a", "b"}
    assert 0.8 < similarity < 1


@given(st.lists(st.integers(0, 9), max_size=60))
def test_repetition_is_a_share_and_null_for_short_texts(tokens):
    share = repetition(tokens, n=3)
    assert (share is None) == (len(tokens) < 3)
    if share is not None:
        assert 0 <= share < 1


def test_repetition_of_a_loop_is_high_and_of_distinct_tokens_zero():
    assert repetition([1, 2, 3] * 40) > 0.9
    assert repetition(list(range(50))) == 0


def test_shipped_lines_hold_nothing_but_known_fields():
    known = {"id", "category", "language", "licence", "source", "messages"}
    for file in paths.PROMPTS.glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            assert set(json.loads(line)) == known
