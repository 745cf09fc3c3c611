"""The replay against the real engine's counters, request by request on one server."""

from __future__ import annotations

import pytest
from attrs import evolve

from lab.analyse.drafters.replay import Setting, fresh_memory, walk
from lab.analyse.drafters.steps import ACCEPTED, DRAFTED, RecordedText
from lab.backends.llama_server import LlamaServerBackend
from lab.backends.protocol import Request
from lab.inputs.arm import Drafting
from lab.inputs.profiles import load_profile
from lab.inputs.prompts import named_set
from lab.setup.engine import find_engine

TOKENS = 120
SETTINGS = [
    Setting.of("ngram-simple", size_n=2, size_m=6),
    Setting.of("ngram-map-k", size_n=2, size_m=6),
    Setting.of("ngram-map-k4v", size_n=2, size_m=4),
    Setting.of("ngram-mod", n_match=3, n_min=2, n_max=12),
    Setting.of("ngram-cache"),
]


@pytest.mark.engine
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.label)
def test_every_count_is_the_engine_s(setting, shallow_model, tmp_path):
    backend = LlamaServerBackend(find_engine(), {"target": shallow_model}, tmp_path)
    baseline = load_profile("embedded").baseline()
    arm = evolve(baseline, drafting=Drafting((setting.kind,), setting.flags()))
    prompts = [*named_set("templated").prompts[:3], *named_set("diverse").prompts[:2]]
    memory, drafted = fresh_memory(setting.kind), 0
    with backend.open(arm, log="agreement") as session:
        for number, prompt in enumerate(prompts * 2):
            asked = session.encode(prompt)
            ending = number % 2 == 0  # half of the answers may end by themselves
            reply = session.generate(Request(asked, n_predict=TOKENS, ignore_eos=not ending))
            text = RecordedText(prompt.id, asked, reply.tokens, TOKENS)
            steps = walk(setting, text, memory, arm.settings.n_ctx)
            mine = (steps[:, DRAFTED].sum(), steps[:, ACCEPTED].sum(), len(steps))
            theirs = reply.timings.draft_n, reply.timings.draft_n_accepted
            assert mine == (*theirs, reply.counters.drafted_steps), prompt.id
            at_least = [(steps[:, ACCEPTED] > place).sum() for place in range(12)]
            per_position = reply.counters.accepted_per_position or ()
            assert list(per_position)[:12] == at_least[: len(per_position)]
            drafted += mine[0]
    assert drafted > 50
