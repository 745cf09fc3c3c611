"""A stream of server-sent events, from any split of its bytes.

Several tokens may share an event and a character may be cut between two reads, so bytes
are buffered up to a whole line before they are decoded, and nobody counts events as
tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lab.errors import RequestError

LINE_LIMIT = 16 * 2**20
"""Bytes of one event; more is no answer of a model server."""


class EventParser:
    """Feed it bytes, get JSON objects; ``done`` is True once ``[DONE]`` was seen."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self.done = False

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The whole events that ``data`` completes.

        Raises
        ------
        RequestError : "garbage" when a line is no event or grows past the limit,
            "server" when the event is an error.
        """
        self._rest += data
        while (end := self._rest.find(b"\n")) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            event = self._event(line.rstrip(b"\r"))
            if event is not None:
                yield event
        if len(self._rest) > LINE_LIMIT:
            raise RequestError("garbage", f"an event of more than {LINE_LIMIT} bytes")

    def _event(self, line: bytes) -> dict[str, Any] | None:
        field, _, value = line.partition(b":")
        if not value or field not in {b"data", b"error"}:
            return None  # blank lines, comments and other fields carry nothing for us
        value = value.strip()
        if value == b"[DONE]":
            self.done = True
            return None
        event = json_object(value)
        if field == b"error" or "error" in event:
            raise RequestError("server", f"the stream reports an error: {str(event)[:300]}")
        return event


def json_object(data: bytes) -> dict[str, Any]:
    """A JSON object.

    Raises
    ------
    RequestError : "garbage" when it is none.
    """
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RequestError("garbage", f"not JSON: {data[:120]!r}") from error
    if not isinstance(event, dict):
        raise RequestError("garbage", f"not a JSON object: {data[:120]!r}")
    return event
