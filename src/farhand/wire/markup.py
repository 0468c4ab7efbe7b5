"""Escaping of text and JSON inside tags. Must not know which tags exist or what they mean.

A stream of tags is read by XML parsers, by HTML parsers and by plain search. So what goes into an attribute
is ASCII that all of them give back unchanged, and text of a model can never pass for one of our tags.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable

from farhand.errors import Misuse


def attribute(value: object) -> str:
    """A JSON value for an attribute in double quotes."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return html.escape(text, quote=True)


def escape_stream_text(text: str) -> str:
    """Streamed text on one line: line feed, carriage return and backslash become two characters each."""
    return text.translate(_LINE_ESCAPES)


def cdata(text: str) -> str:
    """A CDATA section; characters that XML does not allow become U+FFFD."""
    inner = _NOT_XML.sub("\ufffd", text).replace("]]>", "]]]]><![CDATA[>")
    return f"<![CDATA[{inner}]]>"


class TagEscaper:
    """Escapes text that arrives in pieces, so that nothing in it starts a tag with one of these names: the
    result is the same wherever it was cut.

    Upper or lower case, opening or closing: only an end that may still become one of the tags is held back.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(name.lower() for name in names)
        self._tag = _pattern(self._names)
        self._held = ""

    @property
    def held(self) -> int:
        """How many characters are buffered."""
        return len(self._held)

    def feed(self, piece: str) -> str:
        """The text that can be sent now."""
        text = self._held + piece
        cut = self._safe_length(text)
        self._held = text[cut:]
        return self._tag.sub("&lt;", text[:cut])

    def flush(self) -> str:
        """The rest, when no more text follows."""
        rest, self._held = self._held, ""
        return rest

    def _safe_length(self, text: str) -> int:
        start = text.rfind("<")
        if start < 0:
            return len(text)
        prefix = text[start + 1 :].removeprefix("/").lower()
        is_decided = prefix.startswith(self._names)
        may_become_tag = any(name.startswith(prefix) for name in self._names)
        return start if may_become_tag and not is_decided else len(text)


_LINE_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\\": "\\\\"})
_NAME = re.compile(r"[^</][^<]*")
# a negated class compiles ten times as fast
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    if not names or not all(name.isascii() and _NAME.fullmatch(name) for name in names):
        raise Misuse(f"These are not tag names: {names!r}.", hint="Pass at least one, without brackets.")
    either = "|".join(map(re.escape, names))
    # ASCII only: letters of other alphabets may have ASCII lower case
    return re.compile(f"<(?=/?(?:{either}))", re.IGNORECASE | re.ASCII)
