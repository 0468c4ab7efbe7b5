"""What a function's Google docstring says about it, cleaned so that it can be shown to a model.

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

# Hidden from a reader, seen by a model: controls (but for tab and line feed), marks that turn the direction
# of writing, and tags, which spell ASCII invisibly. Half a surrogate pair could not be encoded at all.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


class Doc(Struct, frozen=True):
    """`parameters` are the entries under `Args:`; `returns` is None where the docstring has no `Returns:`."""

    description: str
    parameters: dict[str, str]
    returns: str | None


def doc_of(function: Callable[..., object], name: str) -> Doc:
    parsed = _parsed((inspect.getdoc(function) or "").strip(), name)
    description = _description(parsed, name)
    if not description:
        raise BadTool(
            f"Tool `{name}` has no docstring.",
            hint="Say what it does in its first line and describe each parameter under `Args:`.",
        )
    return Doc(description, _parameters(parsed, name), _returns(parsed))


def cleaned(text: str, what: str) -> str:
    """The text without characters that hide something; too long a one is `BadTool`."""
    clean = _HIDDEN.sub("", text.replace("\r\n", "\n")).strip()
    if len(clean) > LONGEST_DESCRIPTION:
        raise BadTool(
            f"The description of {what} has {len(clean)} characters.",
            hint=f"Keep it to {LONGEST_DESCRIPTION}; the model reads it with every request.",
        )
    return clean


def _parsed(text: str, name: str) -> Docstring:
    try:
        return parse(text, style=DocstringStyle.GOOGLE)
    except ParseError as error:
        why = str(error).rstrip(".")
        raise BadTool(
            f"The docstring of tool `{name}` cannot be read: {why}.",
            hint="Write a summary first, then `Args:` with one indented `name: description` per parameter.",
        ) from error


def _description(parsed: Docstring, name: str) -> str:
    """Summary, then the rest, then what comes back: a model plans better when it knows what it will get."""
    returns = _returns(parsed)
    parts = (parsed.short_description, parsed.long_description, returns and f"Returns: {returns}")
    return cleaned("\n\n".join(part.strip() for part in parts if part), f"tool `{name}`")


def _parameters(parsed: Docstring, name: str) -> dict[str, str]:
    entries = [
        entry for entry in parsed.meta if isinstance(entry, DocstringParam) and entry.args[0] == "param"
    ]
    return {
        entry.arg_name: cleaned(entry.description or "", f"parameter `{entry.arg_name}` of tool `{name}`")
        for entry in entries
    }


def _returns(parsed: Docstring) -> str | None:
    if parsed.returns is None:
        return None
    # what stands before a colon is taken for a type, but may belong to the words: `JSON string: {"hex": …}`
    parts = (parsed.returns.type_name, (parsed.returns.description or "").strip())
    return ": ".join(part for part in parts if part) or None
