"""Prompt lookup against llama-cpp-python's own, driven as its ``generate`` drives it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.analyse.drafters.replay import Setting, replay, setting_of
from lab.analyse.drafters.steps import RecordedText
from lab.backends.draft_account import DraftAccount
from lab.inputs.arm import Drafting

N_CTX = 110


@pytest.fixture(scope="module")
def lookup_class():
    # The file by itself: importing the package would load the engine's libraries.
    folder = importlib.util.find_spec("llama_cpp").submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location(
        "speculative_alone", Path(folder) / "llama_speculative.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LlamaPromptLookupDecoding


def driven(drafter, text):
    """Steps and account of an answer, told as the library takes them."""
    whole, made = text.tokens.tolist(), len(text.prompt) + 1
    account, steps = DraftAccount(), []
    while made < len(whole):
        known = np.array(whole[:made], dtype=np.intc)
        draft = drafter(known).tolist()[: N_CTX - made]
        account.settle(whole[:made])
        account.propose(made, draft)
        right = 0
        while right < len(draft) and whole[made + right : made + right + 1] == [draft[right]]:
            right += 1
        if draft:
            steps.append([made - 1, len(draft), right])
        made += right + 1
    account.settle(whole)
    return steps, account


texts = st.builds(
    lambda prompt, answer: RecordedText("k", prompt, answer, len(answer)),
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
)


@settings(deadline=None)
@given(texts, st.integers(1, 4), st.integers(1, 12))
def test_the_replay_is_what_the_library_drafts_and_its_account_says(
    lookup_class, text, longest, most
):
    setting = Setting.of("prompt-lookup", max_ngram_size=longest, num_pred_tokens=most)
    drafter = lookup_class(max_ngram_size=longest, num_pred_tokens=most)
    (found,) = replay(setting, [text], n_ctx=N_CTX)
    steps, account = driven(drafter, text)
    assert found.tolist() == steps
    assert (len(found), found[:, 1].sum()) == (account.steps, account.proposed)
    assert found[:, 2].tolist() == account.accepted


@settings(deadline=None)
@given(texts)
def test_tokens_are_conserved_but_for_a_last_run_that_the_end_cuts(text):
    (steps,) = replay(Setting.of("prompt-lookup"), [text])
    passes, at, drafted = 0, len(text.prompt), {int(depth): int(n) for depth, _, n in steps}
    while at < len(text.tokens) - 1:
        at += drafted.get(at, 0) + 1
        passes += 1
    cut = at - (len(text.tokens) - 1)
    assert cut in {0, 1}
    assert passes + steps[:, 2].sum() == len(text.answer) - 1 + cut


def test_a_setting_is_spelt_as_the_in_process_arm_spells_it():
    setting = Setting.of("prompt-lookup", max_ngram_size=3)
    assert setting.flags() == {"max-ngram-size": 3, "num-pred-tokens": 10}
    assert setting_of(Drafting(("prompt-lookup",), setting.flags())) == setting
