"""Titles and summaries with placeholders: `Weather in {location}`.

Owns the syntax: `{name}`, `{name.inner}`, `{name=text}` with a text for a missing member, and `{{` or `}}`
for a brace. Only members of JSON objects are looked up, so a template reaches nothing else. Must not know
what a template is for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from farhand.core.thread import printable

MOST_CHARS = 120
MISSING = "…"
"""Stands for a value that is missing or is not a short text."""

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ABSENT = object()
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def names_in(template: str) -> list[str]:
    """The names in its braces, in order; a `ValueError` says what is wrong with one."""
    names: list[str] = []
    for piece in _PIECE.finditer(template):
        if piece[0] in ("{{", "}}"):
            continue
        if piece[1] is None:
            raise ValueError(
                f"a lone {piece[0]} at character {piece.start() + 1}; write it twice for the brace itself"
            )
        name = piece[1].partition("=")[0]
        if not _NAME.fullmatch(name):
            raise ValueError(f"{piece[0]} is not a name in braces, such as {{location}}")
        names.append(name)
    return names


def fill(template: str, values: object) -> str:
    """The text with its values, on one line and at most 120 characters long."""

    def value(piece: re.Match[str]) -> str:
        if piece[1] is None:
            return piece[0][0]
        name, _, otherwise = piece[1].partition("=")
        found = _found(values, name)
        return (otherwise or MISSING) if found is _ABSENT else _short_text(found)

    return shorten_line(_PIECE.sub(value, template))


def without_values(template: str) -> str:
    """The template with … in place of its values."""
    return shorten_line(_PIECE.sub(lambda piece: piece[0][0] if piece[1] is None else MISSING, template))


def with_defaults(template: str, defaults: Mapping[str, object]) -> str:
    """The template with these values as the texts for missing members, unless it has one already."""

    def piece_of(piece: re.Match[str]) -> str:
        text = _short_text(defaults.get(piece[1] or ""))[:MOST_CHARS]
        # a brace in a text cannot be written in a template
        return piece[0] if text == MISSING or {"{", "}"} & {*text} else f"{{{piece[1]}={text}}}"

    return _PIECE.sub(piece_of, template)


def shorten_line(text: str) -> str:
    line = printable(text)
    return line if len(line) <= MOST_CHARS else f"{line[: MOST_CHARS - 1].rstrip()}{MISSING}"


def _found(values: object, name: str) -> object:
    for key in name.split("."):
        if not isinstance(values, dict) or key not in values:
            return _ABSENT
        values = values[key]
    return values


def _short_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and value and not any(isinstance(each, list | dict) for each in value):
        return ", ".join(map(_short_text, value))
    return MISSING
