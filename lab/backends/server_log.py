"""What a llama-server's log says: why it did not start, what drafts, what it offloaded."""

from __future__ import annotations

import re
from collections.abc import Sequence

TAIL_LINES = 30

_CAUSES = (
    (r"argument has been removed.*", "a flag was removed from this build: {0}"),
    (r"error: invalid argument: (\S+)", "this build does not know the flag {1}"),
    (
        r"(?:out of memory|failed to allocate|cudaMalloc failed|OutOfDeviceMemory)",
        "out of memory: {0}",
    ),
    (r"V cache quantization requires flash_attn", "a quantised V cache needs flash attention"),
    (r"quantized V cache.*flash", "a quantised V cache needs flash attention"),
    (r"GGML_ASSERT\(.*(?:split|n_devices).*", "the tensor split does not fit the devices: {0}"),
    (
        r"unknown model architecture: '?([\w-]+)",
        "this build does not know the model architecture {1}",
    ),
    (
        r"(?:invalid magic|gguf_init_from_file.*|failed to read.*tensor.*|incomplete.*)",
        "the model file is damaged or no GGUF: {0}",
    ),
    (r"(?:couldn't bind|bind: Address already in use|HTTP server error)", "the port is taken: {0}"),
    (r"error loading model: (.*)", "the model could not be loaded: {1}"),
    (r"GGML_ASSERT\(.*", "the engine refused: {0}"),
    (r"error: (.*)", "{1}"),
)

_NO_SPECULATION = (
    r"speculative decoding (?:is )?not supported",
    r"failed to (?:initialize|init|create) (?:the )?specul",
    r"speculative.*(?:disabled|not compatible|failed)",
    r"(?:draft|target).*vocab.*(?:not compatible|mismatch|differ)",
)

_DRAFTERS = re.compile(r"(?i)specul|ngram|draft")


def cause_of(lines: Sequence[str]) -> str | None:
    """The recognised reason why a server stopped, in words; None when none was recognised."""
    for pattern, words in _CAUSES:
        for line in reversed(lines):
            if found := re.search(pattern, line, re.IGNORECASE):
                return words.format(found[0].strip(), *found.groups())
    return None


def drafter_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines that mention speculation or a drafter."""
    return tuple(line for line in lines if _DRAFTERS.search(line))


def refused_speculation(lines: Sequence[str]) -> str | None:
    """The line that says that speculation was asked for and is not there; None without one."""
    for line in lines:
        if any(re.search(pattern, line, re.IGNORECASE) for pattern in _NO_SPECULATION):
            return line
    return None


def offloaded_layers(lines: Sequence[str]) -> str | None:
    """Layers on devices as "a/b"; None where the log does not say (a CPU build)."""
    for line in lines:
        if found := re.search(r"offloaded (\d+/\d+) layers", line):
            return found[1]
    return None
