"""Fills `{name.path[0]|fallback}` in a script's words with values from a conversation.

A path walks dictionaries by key and lists by number and nothing else: no attributes, no formats, no
code. What was filled in is never filled again, so a user's text cannot reach for anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct

from farhand.errors import ModelFault

Scope: TypeAlias = Mapping[str, object]

_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<fill>[^{}]*)\}|[{}]")
_PATH = re.compile(r"(?P<root>\w+)(?P<rest>(?:\.[^.\[\]|\s]+|\[-?\d+\])*)")
_STEP = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>-?\d+)\]")


class BadTemplate(ValueError):
    """The words cannot be a template; the message says why."""


class Fill(Struct, frozen=True):
    """One `{…}`: a way through the scope, and what stands there if the way ends early."""

    source: str
    path: tuple[str | int, ...]
    fallback: str | None = None

    def value(self, scope: Scope) -> object:
        found: object = scope
        for key in self.path:
            found = _step_into(found, key)
        if found is not _NOTHING:
            return found
        if self.fallback is None:
            raise ModelFault(
                f"The script fills in {{{self.source}}}, and there is nothing at that place.",
                hint=f"Give it a fallback: {{{self.source}|…}}.",
            )
        return self.fallback


class Template(Struct, frozen=True):
    """Words with fills in between."""

    pieces: tuple[str | Fill, ...]

    @property
    def roots(self) -> frozenset[str]:
        """The names it asks the scope for."""
        return frozenset(str(piece.path[0]) for piece in self.pieces if isinstance(piece, Fill))

    def text(self, scope: Scope) -> str:
        return "".join(
            piece if isinstance(piece, str) else as_text(piece.value(scope)) for piece in self.pieces
        )

    def value(self, scope: Scope) -> object:
        """The text; of a single fill, the value as it is: a number stays a number."""
        if len(self.pieces) == 1 and isinstance(self.pieces[0], Fill):
            return self.pieces[0].value(scope)
        return self.text(scope)


def template(text: str) -> Template:
    """Double braces stand for themselves; a `BadTemplate` says what is wrong with the rest."""
    return Template(tuple(_pieces(text)))


def templates_in(value: object) -> object:
    """The same lists and dictionaries, with a template for each text."""
    match value:
        case str():
            return template(value)
        case list():
            return [templates_in(each) for each in value]
        case dict():
            return {key: templates_in(each) for key, each in value.items()}
        case _:
            return value


def filled(value: object, scope: Scope) -> object:
    """What `templates_in` made, with the values of this scope."""
    match value:
        case Template():
            return value.value(scope)
        case list():
            return [filled(each, scope) for each in value]
        case dict():
            return {key: filled(each, scope) for key, each in value.items()}
        case _:
            return value


def roots_in(value: object) -> frozenset[str]:
    match value:
        case Template():
            return value.roots
        case list():
            return frozenset().union(*map(roots_in, value))
        case dict():
            return frozenset().union(*map(roots_in, value.values()))
        case _:
            return frozenset()


def as_text(value: object) -> str:
    """A text as it is, a list of simple things with commas, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return ", ".join(map(as_text, value))
    return msgspec.json.encode(value).decode()


_NOTHING = object()


def _step_into(value: object, key: str | int) -> object:
    if isinstance(value, Mapping) and isinstance(key, str):
        return value.get(key, _NOTHING)
    if isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
        return value[key]
    return _NOTHING


def _pieces(text: str) -> Iterator[str | Fill]:
    words = ""
    end = 0
    for token in _TOKEN.finditer(text):
        words += text[end : token.start()]
        end = token.end()
        if token["fill"] is None:
            words += _brace(token[0])
            continue
        if words:
            yield words
        words = ""
        yield _fill(token["fill"])
    if words + text[end:]:
        yield words + text[end:]


def _brace(token: str) -> str:
    if len(token) == 1:
        raise BadTemplate(f"a single `{token}`; write `{token}{token}` for the character itself")
    return token[0]


def _fill(source: str) -> Fill:
    way, bar, fallback = source.partition("|")
    path = _PATH.fullmatch(way)
    if path is None:
        raise BadTemplate(f"`{{{source}}}` is no path like `results[0].output.name`")
    keys = (step["key"] or int(step["index"]) for step in _STEP.finditer(path["rest"]))
    return Fill(way, (path["root"], *keys), fallback if bar else None)
