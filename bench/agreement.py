"""Does the replay draft and accept what the engine drafts and accepts, token for token?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from attrs import evolve

from bench import Figure
from lab.analyse.drafters.replay import Setting, fresh_memory, walk
from lab.analyse.drafters.steps import DRAFTED, RecordedText
from lab.analyse.drafters.sweep import accepted_per_position
from lab.backends.llama_server import LlamaServerBackend
from lab.backends.protocol import Request
from lab.inputs.arm import Drafting
from lab.inputs.profiles import load_profile
from lab.inputs.prompts import Prompt, named_set, stratified_sample
from lab.setup.engine import find_engine
from lab.setup.models import embedded_model

KEYS = ("replay_agreement",)
GENERATIONS = 64
TOKENS = 96
SETTINGS = (
    Setting.of("ngram-simple"),
    Setting.of("ngram-simple", size_n=4, size_m=6),
    Setting.of("ngram-simple", size_n=2, size_m=16),
    Setting.of("ngram-map-k"),
    Setting.of("ngram-map-k", size_n=3, size_m=6),
    Setting.of("ngram-map-k", size_n=2, size_m=12),
    Setting.of("ngram-map-k4v"),
    Setting.of("ngram-map-k4v", size_n=2, size_m=4),
    Setting.of("ngram-map-k4v", size_n=3, size_m=8, min_hits=2),
    Setting.of("ngram-mod"),
    Setting.of("ngram-mod", n_match=6, n_min=2, n_max=8),
    Setting.of("ngram-mod", n_match=3, n_min=1, n_max=16),
    Setting.of("ngram-cache"),
)


def prompts() -> tuple[Prompt, ...]:
    """Templated prompts, on which much is drafted, and as many of the other sets."""
    half = GENERATIONS // 2
    templated = stratified_sample(named_set("templated"), half, 1).prompts
    diverse = stratified_sample(named_set("diverse"), GENERATIONS - len(templated), 1).prompts
    return (*templated, *diverse)


def disagreements(setting: Setting, backend: LlamaServerBackend) -> tuple[list[str], int]:
    """Prompts on which replay and counters differ, and how many tokens the engine drafted.

    One server answers them all, so a drafter's memory is replayed as well. The replay
    runs over the arm's own text. Held against each other are tokens drafted, steps that
    drafted, and tokens accepted at each place of a draft.
    """
    baseline = load_profile("embedded").baseline()
    arm = evolve(baseline, drafting=Drafting((setting.kind,), setting.flags()))
    memory, differing, drafted = fresh_memory(setting.kind), [], 0
    with backend.open(arm, log=setting.kind) as session:
        for prompt in prompts():
            tokens = session.encode(prompt)
            reply = session.generate(Request(tokens, n_predict=TOKENS))
            text = RecordedText(prompt.id, tokens, reply.tokens or (), TOKENS)
            steps = walk(setting, text, memory, arm.settings.n_ctx)
            places = accepted_per_position(steps)
            mine = int(steps[:, DRAFTED].sum()), sum(places), len(steps), places
            timings, counters = reply.timings, reply.counters
            theirs = (
                timings.draft_n,
                timings.draft_n_accepted,
                counters.drafted_steps,
                _without_end_zeros(counters.accepted_per_position or ()),
            )
            drafted += timings.draft_n or 0
            if mine != theirs:
                differing.append(f"{prompt.id}: replay {mine}, engine {theirs}")
    return differing, drafted


def _without_end_zeros(counts: tuple[int, ...]) -> tuple[int, ...]:
    filled = [place for place, count in enumerate(counts, 1) if count]
    return counts[: max(filled, default=0)]


def measure() -> dict[str, Figure]:
    """Every setting over every prompt."""
    differing, drafted = [], 0
    with tempfile.TemporaryDirectory() as folder:
        backend = LlamaServerBackend(find_engine(), {"target": embedded_model()}, Path(folder))
        for setting in SETTINGS:
            found, tokens = disagreements(setting, backend)
            differing += [f"{setting.label} {one}" for one in found]
            drafted += tokens
    n = len(SETTINGS) * len(prompts())
    note = f"{drafted} tokens drafted by the engine; differing: {differing[:5] or 'none'}"
    return {"replay_agreement": Figure(1 - len(differing) / n, n=n, note=note)}
