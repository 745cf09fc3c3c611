from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.backends.events import EventParser
from lab.errors import RequestError

objects = st.dictionaries(
    st.text(max_size=5), st.text(max_size=8) | st.integers(), max_size=3
).filter(lambda one: "error" not in one)


def stream_of(events, ending="\n\n", *, done=True):
    lines = [f"data: {json.dumps(one, ensure_ascii=False)}{ending}".encode() for one in events]
    return b"".join(lines) + (b"data: [DONE]\n\n" if done else b"")


@given(st.lists(objects, max_size=6), st.lists(st.integers(1, 40), max_size=20))
def test_case_14_any_split_of_the_bytes_gives_the_same_events(events, cuts):
    data = stream_of(events)
    parser, found, at = EventParser(), [], 0
    for size in [*cuts, len(data)]:
        found += parser.feed(data[at : at + size])
        at += size
    assert found == events
    assert parser.done


def test_case_14_a_character_cut_in_two_is_whole_again():
    data = stream_of([{"content": "日本語 é"}])
    parser = EventParser()
    found = [event for byte in data for event in parser.feed(bytes([byte]))]
    assert found == [{"content": "日本語 é"}]


def test_case_14_windows_lines_comments_and_other_fields_carry_nothing():
    parser = EventParser()
    data = b': ping\r\nid: 3\r\nevent: x\r\ndata: {"a": 1}\r\n\r\n'
    assert list(parser.feed(data)) == [{"a": 1}]
    assert not parser.done


@given(st.binary(max_size=300))
def test_garbage_is_one_kind_of_error_and_nothing_else(data):
    parser = EventParser()
    try:
        for event in parser.feed(data):
            assert isinstance(event, dict)
    except RequestError as error:
        assert error.kind in {"garbage", "server"}


def test_an_endless_line_is_refused_before_memory_is(monkeypatch):
    monkeypatch.setattr("lab.backends.events.LINE_LIMIT", 1000)
    parser = EventParser()
    for _ in range(10):
        assert list(parser.feed(b"x" * 100)) == []
    with pytest.raises(RequestError, match="more than 1000 bytes"):
        list(parser.feed(b"x" * 100))


def test_an_error_event_is_a_server_failure():
    with pytest.raises(RequestError, match="no memory") as caught:
        list(EventParser().feed(b'data: {"error": {"message": "no memory"}}\n'))
    assert caught.value.kind == "server"
