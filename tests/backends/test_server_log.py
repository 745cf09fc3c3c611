from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.backends.server_log import (
    cause_of,
    drafter_lines,
    offloaded_layers,
    refused_speculation,
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "the argument has been removed. use --spec-draft-n-max or --spec-ngram-mod-n-max",
            "--spec-ngram-mod-n-max",
        ),
        ("error: invalid argument: --draft-n-maxx", "--draft-n-maxx"),
        ("ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory", "memory"),
        ("llama_init_from_model: V cache quantization requires flash_attn", "flash attention"),
        ("GGML_ASSERT(n_devices <= split.size()) failed", "tensor split"),
        ("llama_model_load: error loading model: unknown model architecture: 'newarch'", "newarch"),
        ("gguf_init_from_file_impl: invalid magic characters", "no GGUF"),
        ("start: couldn't bind HTTP server socket", "port"),
    ],
)
def test_case_03_a_known_cause_is_said_in_words(line, words):
    assert words in cause_of(["loading", line, "exiting"])


def test_an_unknown_cause_stays_unknown():
    assert cause_of(["all is well"]) is None
    assert cause_of([]) is None


@pytest.mark.parametrize(
    "line",
    [
        "W srv init: speculative decoding not supported by this context",
        "E srv load_model: failed to initialize speculative decoding",
        "E draft model vocab is not compatible with target vocab",
    ],
)
def test_case_06_speculation_that_was_refused_is_seen(line):
    assert refused_speculation(["ok", line]) == line


def test_lines_about_drafters_are_kept_and_offload_is_read():
    lines = ["srv: listening", "ngram_mod: n_match=6", "load: offloaded 29/33 layers to GPU"]
    assert drafter_lines(lines) == ("ngram_mod: n_match=6",)
    assert offloaded_layers(lines) == "29/33"
    assert offloaded_layers(["cpu only"]) is None


@given(st.lists(st.text(max_size=80), max_size=10))
def test_any_log_can_be_read(lines):
    cause_of(lines)
    refused_speculation(lines)
    offloaded_layers(lines)
