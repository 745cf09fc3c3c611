"""Counters of a server's /metrics page, and what one request moved them by."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families

from lab.backends.protocol import Counters
from lab.errors import RequestError

_DRAFTS = ("llamacpp:spec_decode_num_drafts", "vllm:spec_decode_num_drafts")
_DRAFTED = ("llamacpp:spec_decode_num_draft_tokens", "vllm:spec_decode_num_draft_tokens")
_ACCEPTED = ("llamacpp:spec_decode_num_accepted_tokens", "vllm:spec_decode_num_accepted_tokens")
_DECODES = ("llamacpp:n_decode_total",)


@frozen
class Scrape:
    """One reading of a metrics page: plain counters and those by draft position."""

    values: Mapping[str, float]
    per_position: Mapping[int, float]

    def first(self, names: tuple[str, ...]) -> float | None:
        """The counter under any of its names (with or without ``_total``); None if absent."""
        for name in names:
            for spelled in (name, f"{name}_total"):
                if spelled in self.values:
                    return self.values[spelled]
        return None


def parse_metrics(text: str) -> Scrape:
    """Read a metrics page in the Prometheus text format.

    Raises
    ------
    RequestError : "garbage" when it is not in that format.
    """
    values: dict[str, float] = {}
    per_position: dict[int, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if "position" in sample.labels:
                    place = int(sample.labels["position"])
                    per_position[place] = per_position.get(place, 0.0) + sample.value
                else:
                    values[sample.name] = values.get(sample.name, 0.0) + sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise RequestError("garbage", f"not a metrics page: {error}") from error
    return Scrape(values, per_position)


def moved(before: Scrape, after: Scrape) -> Counters:
    """What lies between two readings; a counter that the page lacks is None."""

    def count(names: tuple[str, ...]) -> int | None:
        start, end = before.first(names), after.first(names)
        return None if end is None else round(end - (start or 0.0))

    drafts = count(_DRAFTS)
    return Counters(
        drafted_steps=drafts,
        draft_tokens=count(_DRAFTED),
        accepted_tokens=count(_ACCEPTED),
        accepted_per_position=None if drafts is None else _positions(before, after),
        decode_calls=count(_DECODES),
    )


def _positions(before: Scrape, after: Scrape) -> tuple[int, ...]:
    steps = [
        round(count - before.per_position.get(place, 0.0))
        for place, count in sorted(after.per_position.items())
    ]
    while steps and steps[-1] == 0:
        steps.pop()
    return tuple(steps)
