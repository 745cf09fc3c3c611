"""Prompt files as people have them: the lab's own lines and four other formats.

==================  =======================================================
lab JSONL           {"id", "category", "messages": [...], "language", ...}
chat JSONL          {"messages": [...]} or {"prompt": "..."}, one a line
Spec-Bench JSONL    {"question_id", "category", "turns": ["..."]}
ShareGPT JSON       [{"conversations": [{"from": "human", "value": "..."}]}]
plain text          one prompt, or several between lines of three dashes
==================  =======================================================

Text in them is data: nothing in it is interpreted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.errors import InputError
from lab.inputs.prompts import Message, Prompt, PromptSet

ROLES = ("system", "user", "assistant")
_SHAREGPT_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "system": "system"}
_ID = re.compile(r"^[\w.:-]{1,100}$")
Row = Mapping[str, Any]


class _Place:
    """Where in a file we are, for errors."""

    def __init__(self, file: Path, line: int) -> None:
        self.file, self.line = file, line

    def wrong(self, problem: str, name: str, value: object, fix: str | None = None) -> InputError:
        return InputError(
            problem, file=f"{self.file}:{self.line}", field=name, value=_short(value), fix=fix
        )


def _short(value: object) -> object:
    text = repr(value)
    return value if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004 - a line on a screen


def read_prompt_file(file: Path) -> PromptSet:
    """A prompt set from a file of any known format; the format is told by its content.

    Raises
    ------
    InputError : not a file, not UTF-8, empty, or a row that cannot be used; names the
        line, the field, the value and what to do.
    """
    text = _text(file)
    suffix = file.suffix.lower()
    if suffix in {".jsonl", ".ndjson"}:
        rows = list(_json_lines(file, text))
    elif suffix == ".json":
        rows = list(_json_array(file, text))
    elif suffix in {".txt", ".md", ""}:
        rows = list(_plain(file, text))
    else:
        raise InputError(
            "unknown kind of prompt file",
            file=file,
            value=suffix,
            fix="Use .jsonl, .json, .txt or .md",
        )
    prompts = tuple(_prompt(place, row) for place, row in rows)
    if not prompts:
        raise InputError("holds no prompt", file=file, fix="Write at least one")
    _require_unique(file, [place.line for place, _ in rows], prompts)
    return PromptSet(file.stem, prompts)


def _text(file: Path) -> str:
    if not file.is_file():
        raise InputError("not a file", file=file, fix="Name a prompt file")
    try:
        return file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 at byte {error.start}", file=file, fix="Save the file as UTF-8"
        ) from error
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=file) from error


def _json_lines(file: Path, text: str) -> Iterator[tuple[_Place, Row]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = _Place(file, number)
            yield place, _mapping(place, _parsed(place, line))


def _json_array(file: Path, text: str) -> Iterator[tuple[_Place, Row]]:
    whole = _Place(file, 1)
    rows = _parsed(whole, text)
    if not isinstance(rows, list):
        raise whole.wrong("must be a list of conversations", "(file)", rows)
    for number, row in enumerate(rows, 1):
        place = _Place(file, number)
        yield place, _mapping(place, row)


def _plain(file: Path, text: str) -> Iterator[tuple[_Place, Row]]:
    for part in re.finditer(
        r"(?:\A|^-{3,}[ \t]*$)(.*?)(?=^-{3,}[ \t]*$|\Z)", text, re.MULTILINE | re.DOTALL
    ):
        if part[1].strip():
            yield _Place(file, text.count("\n", 0, part.start(1)) + 1), {"prompt": part[1].strip()}


def _parsed(place: _Place, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise place.wrong("not JSON", "(line)", text[:60], str(error)) from error


def _mapping(place: _Place, row: Any) -> Row:
    if not isinstance(row, dict):
        raise place.wrong("must be a JSON object", "(line)", row)
    return row


def _prompt(place: _Place, row: Row) -> Prompt:
    """A prompt from a row of whichever format it is."""
    messages = _messages(place, row)
    if not messages or messages[-1].role != "user":
        raise place.wrong("the last turn must be the user's", "messages", row, "Add a question")
    name = str(row.get("id", row.get("question_id", f"line-{place.line:04d}")))
    if not _ID.match(name):
        raise place.wrong("ids are letters, digits and ._:- only", "id", name)
    return Prompt(
        id=name,
        category=_word(place, row, "category", "uncategorised"),
        messages=messages,
        licence=_word(place, row, "licence", "user"),
        source=_word(place, row, "source", place.file.name),
        language=_word(place, row, "language", "en"),
    )


def _word(place: _Place, row: Row, name: str, otherwise: str) -> str:
    value = row.get(name, otherwise)
    if not isinstance(value, str) or not value.strip():
        raise place.wrong("must be a text", name, value)
    return value


def _messages(place: _Place, row: Row) -> tuple[Message, ...]:
    readers: tuple[tuple[str, Callable[[_Place, Any], tuple[Message, ...]]], ...] = (
        ("messages", _chat),
        ("turns", _first_turn),
        ("conversations", _sharegpt),
        ("prompt", _single),
    )
    for name, read in readers:
        if name in row:
            return read(place, row[name])
    raise place.wrong(
        "no prompt in it", "(row)", sorted(row), "Give messages, prompt, turns or conversations"
    )


def _content(place: _Place, value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise place.wrong("must be a text that is not empty", name, value)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise place.wrong("holds half a character (a lone surrogate)", name, value) from error
    return value


def _chat(place: _Place, turns: Any) -> tuple[Message, ...]:
    if not isinstance(turns, list):
        raise place.wrong("must be a list", "messages", turns)
    found = []
    for number, turn in enumerate(turns):
        where = f"messages[{number}]"
        if not isinstance(turn, dict) or turn.get("role") not in ROLES:
            raise place.wrong(f"needs a role out of {', '.join(ROLES)}", where, turn)
        content = _content(place, turn.get("content"), f"{where}.content")
        found.append(Message(turn["role"], content))
    return tuple(found)


def _first_turn(place: _Place, turns: Any) -> tuple[Message, ...]:
    """Spec-Bench: the first turn; a later one needs the model's own answer before it."""
    if not isinstance(turns, list) or not turns:
        raise place.wrong("must be a list of texts", "turns", turns)
    return (Message("user", _content(place, turns[0], "turns[0]")),)


def _sharegpt(place: _Place, turns: Any) -> tuple[Message, ...]:
    """ShareGPT: up to the last human turn that comes before the first answer."""
    if not isinstance(turns, list):
        raise place.wrong("must be a list", "conversations", turns)
    found: list[Message] = []
    for number, turn in enumerate(turns):
        where = f"conversations[{number}]"
        role = _SHAREGPT_ROLES.get(str(turn.get("from"))) if isinstance(turn, dict) else None
        if role is None:
            raise place.wrong("needs from: human, gpt or system", where, turn)
        if role == "assistant" and found:
            break
        found.append(Message(role, _content(place, turn.get("value"), f"{where}.value")))
    return tuple(found)


def _single(place: _Place, text: Any) -> tuple[Message, ...]:
    return (Message("user", _content(place, text, "prompt")),)


def _require_unique(file: Path, lines: list[int], prompts: tuple[Prompt, ...]) -> None:
    first: dict[str, int] = {}
    for line, prompt in zip(lines, prompts, strict=True):
        if prompt.id in first:
            raise InputError(
                f"the id stands in line {first[prompt.id]} already",
                file=f"{file}:{line}",
                field="id",
                value=prompt.id,
                fix="Give each prompt an id of its own",
            )
        first[prompt.id] = line
