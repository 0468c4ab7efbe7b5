"""Titles and summaries with placeholders: `Weather in {location}`.

Owns the syntax: `{name}`, `{name.inner}`, and `{{` or `}}` for a brace. Only members of JSON objects are
looked up, so a template reaches nothing else. Must not know what a template is for.
"""

from __future__ import annotations

import re

from farhand.core.thread import printable

MOST_CHARS = 120
MISSING = "…"
"""Stands for a value that is missing or is not a short text."""

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def names_in(template: str) -> list[str]:
    """The names in its braces, in order; a `ValueError` says what is wrong with one."""
    names: list[str] = []
    for piece in _PIECE.finditer(template):
        if piece[0] in ("{{", "}}"):
            continue
        name = piece[1]
        if name is None:
            raise ValueError(
                f"a lone {piece[0]} at character {piece.start() + 1}; write it twice for the brace itself"
            )
        if not _NAME.fullmatch(name):
            raise ValueError(f"{piece[0]} is not a name in braces, such as {{location}}")
        names.append(name)
    return names


def fill(template: str, values: object) -> str:
    """The text with its values, on one line and at most 120 characters long."""

    def value(piece: re.Match[str]) -> str:
        return piece[0][0] if piece[1] is None else _short_text(_found(values, piece[1]))

    return shorten_line(_PIECE.sub(value, template))


def shorten_line(text: str) -> str:
    line = printable(text)
    return line if len(line) <= MOST_CHARS else f"{line[: MOST_CHARS - 1].rstrip()}{MISSING}"


def _found(values: object, name: str) -> object:
    for key in name.split("."):
        if not isinstance(values, dict):
            return None
        values = values.get(key)
    return values


def _short_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and value and not any(isinstance(each, list | dict) for each in value):
        return ", ".join(map(_short_text, value))
    return MISSING
