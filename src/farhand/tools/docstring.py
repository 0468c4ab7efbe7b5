"""Reads a function's Google-style docstring and removes what must not be shown to a model.

It must not know types or schemas.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from docstring_parser import Docstring, DocstringParam, DocstringStyle, ParseError, parse
from msgspec import Struct

from farhand.errors import BadTool

LONGEST_DESCRIPTION = 4_096

# Invisible to a person but read by a model: control characters (except tab and line feed), bidirectional
# marks, and tags, which spell ASCII invisibly. A lone surrogate cannot be encoded at all.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


class ParsedDocstring(Struct, frozen=True):
    """`parameters` are the entries under `Args:`; `returns` is None if the docstring has no `Returns:`."""

    description: str
    parameters: dict[str, str]
    returns: str | None


def parse_docstring(function: Callable[..., object], name: str) -> ParsedDocstring:
    parsed = _parse((inspect.getdoc(function) or "").strip(), name)
    description = _description(parsed, name)
    if not description:
        raise BadTool(
            f"Tool `{name}` has no docstring.",
            hint="Describe what it does in the first line, and each parameter under `Args:`.",
        )
    return ParsedDocstring(description, _parameters(parsed, name), _returns(parsed))


def clean_text(text: str, what: str) -> str:
    """The text without invisible characters. Raises `BadTool` if it is too long."""
    clean = _HIDDEN.sub("", text.replace("\r\n", "\n")).strip()
    if len(clean) > LONGEST_DESCRIPTION:
        raise BadTool(
            f"The description of {what} has {len(clean)} characters.",
            hint=f"Use at most {LONGEST_DESCRIPTION}; the model reads it with every request.",
        )
    return clean


def _parse(text: str, name: str) -> Docstring:
    try:
        return parse(text, style=DocstringStyle.GOOGLE)
    except ParseError as error:
        why = str(error).rstrip(".")
        raise BadTool(
            f"The docstring of tool `{name}` cannot be read: {why}.",
            hint="Write a summary first, then `Args:` with one indented `name: description` per parameter.",
        ) from error


def _description(parsed: Docstring, name: str) -> str:
    """Summary, details, then the return value: a model plans better if it knows what it will get."""
    returns = _returns(parsed)
    parts = (parsed.short_description, parsed.long_description, returns and f"Returns: {returns}")
    return clean_text("\n\n".join(part.strip() for part in parts if part), f"tool `{name}`")


def _parameters(parsed: Docstring, name: str) -> dict[str, str]:
    entries = [
        entry for entry in parsed.meta if isinstance(entry, DocstringParam) and entry.args[0] == "param"
    ]
    return {
        entry.arg_name: clean_text(entry.description or "", f"parameter `{entry.arg_name}` of tool `{name}`")
        for entry in entries
    }


def _returns(parsed: Docstring) -> str | None:
    if parsed.returns is None:
        return None
    # text before a colon is parsed as a type, but may belong to the sentence: `JSON string: {"hex": …}`
    parts = (parsed.returns.type_name, (parsed.returns.description or "").strip())
    return ": ".join(part for part in parts if part) or None
