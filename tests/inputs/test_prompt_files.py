from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.inputs.prompt_files import read_prompt_file


def write(folder, name, content):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


CHAT = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("chat.jsonl", lines(CHAT, {"prompt": "there"}), ["hello", "there"]),
        (
            "question.jsonl",
            lines({"question_id": 81, "category": "writing", "turns": ["first", "second"]}),
            ["first"],
        ),
        (
            "sharegpt.json",
            json.dumps(
                [
                    {
                        "id": "x1",
                        "conversations": [
                            {"from": "human", "value": "ask"},
                            {"from": "gpt", "value": "answer"},
                            {"from": "human", "value": "ask again"},
                        ],
                    }
                ]
            ),
            ["ask"],
        ),
        ("notes.txt", "one\ntwo\n---\nthree\n-----\n\nfour\n", ["one\ntwo", "three", "four"]),
        ("windows.txt", b"\xef\xbb\xbfone\r\n---\r\ntwo\r\n", ["one", "two"]),
        (
            "single.md",
            "# Title\n\nA -- dash is no separator",
            ["# Title\n\nA -- dash is no separator"],
        ),
    ],
)
def test_every_format_people_have_is_read(tmp_path, name, content, texts):
    found = read_prompt_file(write(tmp_path, name, content))
    assert [one.text for one in found.prompts] == texts
    assert found.name == name.split(".")[0]


def test_ids_and_categories_of_the_file_are_kept(tmp_path):
    row = {"question_id": 81, "category": "writing", "turns": ["first"]}
    (prompt,) = read_prompt_file(write(tmp_path, "q.jsonl", lines(row))).prompts
    assert (prompt.id, prompt.category) == ("81", "writing")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", "{broken", ["a.jsonl:1", "not JSON"]),
        ("a.jsonl", lines(CHAT) + "\n[1]", ["a.jsonl:2", "JSON object"]),
        ("a.jsonl", lines({"text": "x"}), ["no prompt in it", "messages"]),
        ("a.jsonl", lines({"prompt": 5}), ["prompt", "got 5"]),
        ("a.jsonl", lines({"prompt": "  "}), ["not empty"]),
        (
            "a.jsonl",
            lines({"messages": [{"role": "robot", "content": "x"}]}),
            ["messages[0]", "role"],
        ),
        ("a.jsonl", lines({"messages": [{"role": "assistant", "content": "x"}]}), ["the user's"]),
        ("a.jsonl", lines({"id": "../../etc", "prompt": "x"}), ["id", "letters"]),
        (
            "a.jsonl",
            lines({"id": "x", "prompt": "x"}, {"id": "x", "prompt": "y"}),
            [":2", "line 1"],
        ),
        ("a.jsonl", '{"prompt": "\\ud800"}', ["surrogate"]),
        ("a.jsonl", "", ["no prompt"]),
        ("a.txt", b"\xff\xfe\x00", ["UTF-8"]),
        ("a.json", "{}", ["list of conversations"]),
        ("a.pdf", "x", ["unknown kind", ".jsonl"]),
    ],
)
def test_a_wrong_file_says_where_and_what_to_do(tmp_path, name, content, words):
    with pytest.raises(InputError) as caught:
        read_prompt_file(write(tmp_path, name, content))
    for word in words:
        assert word in str(caught.value)


def test_a_folder_is_no_prompt_file(tmp_path):
    with pytest.raises(InputError, match="not a file"):
        read_prompt_file(tmp_path)


@given(
    data=st.binary(max_size=200),
    suffix=st.sampled_from([".jsonl", ".json", ".txt"]),
)
def test_any_bytes_are_prompts_or_one_clear_error(tmp_path_factory, data, suffix):
    file = write(tmp_path_factory.mktemp("fuzz"), f"f{suffix}", data)
    try:
        assert read_prompt_file(file).prompts
    except InputError as error:
        assert str(file) in str(error)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "messages",
                    "turns",
                    "role",
                    "content",
                    "prompt",
                    "from",
                    "value",
                    "id",
                    "conversations",
                    "category",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(rows=st.lists(json_values, max_size=3))
def test_any_json_is_prompts_or_one_clear_error(tmp_path_factory, rows):
    content = "\n".join(json.dumps(row) for row in rows)
    file = write(tmp_path_factory.mktemp("fuzz"), "f.jsonl", content)
    try:
        assert all(one.text.strip() for one in read_prompt_file(file).prompts)
    except InputError as error:
        assert str(file) in str(error)
