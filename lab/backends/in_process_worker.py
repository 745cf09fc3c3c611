"""llama-cpp-python serving one arm, inside a child process.

What its generation loop does is left as it is; what it does not tell is counted around
it: passes, drafts, how far each was right, and the time spent looking them up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import llama_cpp
import numpy as np
from attrs import define, field
from llama_cpp.llama_chat_format import Jinja2ChatFormatter
from llama_cpp.llama_speculative import LlamaDraftModel, LlamaPromptLookupDecoding
from numpy.typing import NDArray

from lab.backends.draft_account import DraftAccount
from lab.backends.in_process_keywords import check_keywords
from lab.setup import ggml
from lab.setup.loaded_model import SPLIT, default_threads, settings_from

TOP_K, TOP_P, MIN_P = 40, 0.95, 0.05
"""What llama-server samples with unless told otherwise; used above temperature 0 only."""

Tokens = NDArray[np.intc]

_LLAMA: Any = llama_cpp.Llama
_SAMPLER: Any = llama_cpp._internals.LlamaSampler  # noqa: SLF001 - see _Model
"""Both are annotated in part only."""


@define
class Counted(LlamaDraftModel):
    """A prompt-lookup drafter with an account of what it proposed and the time it took."""

    inner: LlamaPromptLookupDecoding
    account: DraftAccount = field(factory=DraftAccount)
    lookup_s: float = 0.0

    def __call__(self, input_ids: Tokens, /, **kwargs: Any) -> Tokens:
        """What followed an earlier occurrence of the newest tokens."""
        self.account.settle(input_ids.tolist())
        start = time.perf_counter()
        draft: Tokens = self.inner(input_ids, **kwargs)
        self.lookup_s += time.perf_counter() - start
        self.account.propose(len(input_ids), draft.tolist())
        return draft


class _Model(_LLAMA):  # type: ignore[misc]
    """``Llama`` with its passes counted and end tokens forbidden on demand.

    The sampler is replaced because in this release logits processors, its only other way
    to forbid a token, do not work.
    """

    passes = 0
    forbidden: Mapping[int, float] = {}

    def eval(self, tokens: Any) -> None:
        self.passes += 1
        super().eval(tokens)

    def _init_sampler(self, *, temp: float = 0.8, **_: Any) -> Any:
        sampler = _SAMPLER()
        if self.forbidden:
            sampler.add_logit_bias(self._n_vocab, self.forbidden)
        if temp <= 0:
            sampler.add_greedy()
            return sampler
        sampler.add_top_k(TOP_K)
        sampler.add_top_p(TOP_P, 1)
        sampler.add_min_p(MIN_P, 1)
        sampler.add_temp(temp)
        sampler.add_dist(self._seed)
        return sampler


def serve(
    *,
    file: str,
    settings: Mapping[str, Any],
    lookup: Mapping[str, int] | None,
    requests: Iterator[dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Load the model, say {"ready": ...}, then answer "encode" and "generate" requests."""
    drafter = None if lookup is None else LlamaPromptLookupDecoding(**lookup)
    model = _Model(file, **_keywords(settings, lookup_wanted=drafter is not None))
    vocabulary = model._model.vocab  # noqa: SLF001 - the only handle on it
    ends = {
        token: -math.inf
        for token in range(model.n_vocab())
        if llama_cpp.llama_vocab_is_eog(vocabulary, token)
    }
    yield {
        "ready": {
            "n_ctx": model.n_ctx(),
            "card": ggml.has_card(),
            "threads": model.n_threads,
        }
    }
    for request in requests:
        try:
            if "encode" in request:
                yield {"tokens": _encode(model, request["encode"])}
            else:
                yield _generate(model, drafter, ends, request["generate"])
        except Exception as error:  # noqa: BLE001 - one request failed, the model may go on
            yield {"problem": f"{type(error).__name__}: {error}"}


def _keywords(values: Mapping[str, Any], *, lookup_wanted: bool) -> dict[str, Any]:
    """Constructor keywords; everything whose default differs from the server's is explicit."""
    settings = settings_from(values)
    threads = settings.threads or default_threads()
    extra = dict(settings.flags)
    check_keywords(llama_cpp.Llama, extra)
    keywords: dict[str, Any] = {
        "n_ctx": settings.n_ctx,
        "n_batch": settings.batch or 512,
        "n_ubatch": settings.ubatch or 512,
        "n_threads": threads,
        "n_threads_batch": settings.threads_batch or threads,
        "flash_attn": settings.flash_attn != "off",
        "n_gpu_layers": settings.n_gpu_layers or 0,
        "use_mmap": settings.mmap,
        "use_mlock": settings.mlock,
        "no_perf": True,
        "verbose": False,
        # Without it a drafter's scores have room for one batch only and any longer text
        # ends in an error of numpy.
        "logits_all": lookup_wanted,
    }
    if settings.split_mode is not None:
        keywords["split_mode"] = SPLIT[settings.split_mode]
    if settings.tensor_split:
        keywords["tensor_split"] = list(settings.tensor_split)
    for side in ("k", "v"):
        name = getattr(settings, f"cache_type_{side}")
        if name is not None:
            keywords[f"type_{side}"] = ggml.type_id(name)
    return keywords | extra


def _encode(model: _Model, messages: list[dict[str, str]]) -> list[int]:
    template = model.metadata.get("tokenizer.chat_template")
    if template is None:
        raise ValueError("the model file carries no chat template")
    texts = {
        name: model._model.token_get_text(token) if token != -1 else ""  # noqa: SLF001
        for name, token in (("bos_token", model.token_bos()), ("eos_token", model.token_eos()))
    }
    formatter: Any = Jinja2ChatFormatter
    formatted = formatter(template=template, **texts)(messages=messages)
    return list(model.tokenize(formatted.prompt.encode(), add_bos=True, special=True))


def _generate(
    model: _Model,
    lookup: LlamaPromptLookupDecoding | None,
    ends: Mapping[int, float],
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    prompt, n_predict = asked["prompt"], asked["n_predict"]
    if len(prompt) + n_predict > model.n_ctx():
        return {
            "context": f"{len(prompt)} tokens and {n_predict} to predict exceed the context of "
            f"{model.n_ctx()}"
        }
    reused = 0
    if asked["cache_prompt"]:
        reused = min(model.longest_token_prefix(model._input_ids.tolist(), prompt), len(prompt) - 1)  # noqa: SLF001
    else:
        model.reset()
    model.forbidden = ends if asked["ignore_eos"] else {}
    model.set_seed(asked["seed"])
    model.passes = 0
    drafter = model.draft_model = None if lookup is None else Counted(lookup)
    tokens, arrivals, stop = _run(model, ends, asked)
    answer: dict[str, Any] = {
        "tokens": tokens,
        "text": model.detokenize(tokens).decode(errors="replace"),
        "stop": stop,
        "arrival_ms": arrivals,
        "cache_n": reused,
        "passes": model.passes - 1,
    }
    if drafter is not None:
        account = drafter.account
        account.settle([*prompt, *tokens])
        answer["drafts"] = {
            "steps": account.steps,
            "proposed": account.proposed,
            "accepted": sum(account.accepted),
            "per_position": account.per_position(),
            "lookup_ms": drafter.lookup_s * 1000,
        }
    return answer


def _run(
    model: _Model, ends: Mapping[int, float], asked: Mapping[str, Any]
) -> tuple[list[int], list[float], str]:
    """Tokens, when each came (ms after the start), and why it stopped."""
    tokens: list[int] = []
    arrivals: list[float] = []
    start = time.perf_counter()
    for token in model.generate(asked["prompt"], temp=asked["temperature"], repeat_penalty=1.0):
        arrivals.append((time.perf_counter() - start) * 1000)
        tokens.append(int(token))
        if token in ends and not asked["ignore_eos"]:
            return tokens, arrivals, "eos"
        if len(tokens) >= asked["n_predict"]:
            break
    return tokens, arrivals, "limit"
