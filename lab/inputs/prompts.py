"""Prompts and sets of prompts: the unit of every experiment."""

from __future__ import annotations

from attrs import field, frozen


@frozen
class Message:
    """One turn of a conversation; ``role`` is "system", "user" or "assistant"."""

    role: str
    content: str


@frozen
class Prompt:
    """One thing to ask a model.

    Attributes
    ----------
    id : unique within a set.
    category : what kind of text it asks for ("code-python", "summary", ...).
    messages : the conversation up to the answer; at least one, the last from the user.
    licence : SPDX id or "user" for a person's own prompts.
    source : where it comes from.
    language : BCP 47 tag of the text.
    """

    id: str
    category: str
    messages: tuple[Message, ...]
    licence: str = "user"
    source: str = ""
    language: str = "en"


@frozen
class PromptSet:
    """An ordered set of prompts with a fingerprint of its content.

    Attributes
    ----------
    name : file stem. prompts : in file order, ids unique.
    fingerprint : SHA-256 over ids and messages, hex; the same content has the same one.
    """

    name: str
    prompts: tuple[Prompt, ...]
    fingerprint: str = field(default="")
