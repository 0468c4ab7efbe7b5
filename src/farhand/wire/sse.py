"""Server-sent events as bytes. Owns framing and parsing; must not know what an event means.

Written with LF only and read by the rules of the WHATWG standard: LF, CR and CRLF end a line, a byte order
mark may lead, comments and unknown fields are skipped, an event that was cut off is never delivered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from farhand.errors import Misuse, TooLarge

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


# named after the field on the wire
def frame(data: bytes | str, event: str | None = None, id: str | None = None) -> bytes:  # noqa: A002
    """One event. `data` may have several lines; a reader receives them with LF between them."""
    body = data if isinstance(data, bytes) else _encode(data)
    if b"\n" in body or b"\r" in body:
        body = b"\ndata: ".join(_LINE_END.split(body))
    if event is None and id is None:
        return b"data: " + body + b"\n\n"
    return b"%b%bdata: %b\n\n" % (_field(b"event", event), _field(b"id", id), body)


def frames(lines: Sequence[bytes], last_id: bytes | None = None) -> bytes:
    """Several events of one line each, such as JSON, which is not checked; the last one may have an id."""
    if not lines:
        return b""
    if last_id is None:
        return b"data: %b\n\n" % b"\n\ndata: ".join(lines)
    return b"%bid: %b\ndata: %b\n\n" % (frames(lines[:-1]), last_id, lines[-1])


class Event(NamedTuple):
    """One event; `id` is the last id in the stream, from this event or an earlier one."""

    event: str
    data: str
    id: str


class Parser:
    """Parses a stream in chunks of any size."""

    def __init__(self, *, max_event: int = 16 * 1024 * 1024) -> None:
        self.last_id = ""
        self._max_event = max_event
        self._size = 0
        self._is_first_line = True
        self._after_cr = False
        self._line: list[bytes] = []
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        *ends, rest = _LINE_END.split(chunk)
        events = []
        for end in ends:
            self._grow(end)
            completed = self._read_line()
            if completed is not None:
                events.append(completed)
        self._grow(rest)
        return events

    def _grow(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_event:
            raise TooLarge(f"An event in the stream exceeds {self._max_event} bytes.")
        self._line.append(piece)

    def _read_line(self) -> Event | None:
        raw = b"".join(self._line)
        self._line.clear()
        size = len(raw)
        if self._is_first_line:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
            self._is_first_line = False
        if not raw:
            return self._dispatch()
        name, _, value = raw.decode(errors="replace").partition(":")
        if name != "data":
            # only data counts: comments alone may continue for days
            self._size -= size
        self._take_field(name, value.removeprefix(" "))
        return None

    def _take_field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self.last_id = value

    def _dispatch(self) -> Event | None:
        event, data = self._event, self._data
        self._size, self._event, self._data = 0, "", []
        if not data:
            return None
        return Event(event or "message", "\n".join(data), self.last_id)


def parse(chunks: Iterable[bytes]) -> Iterator[Event]:
    """The events of a complete stream."""
    parser = Parser()
    for chunk in chunks:
        yield from parser.feed(chunk)


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")


def _field(name: bytes, value: str | None) -> bytes:
    if value is None:
        return b""
    # a line break would start another field; parsers ignore an id with NUL
    if "\n" in value or "\r" in value or "\0" in value:
        raise Misuse(f"The {name.decode()} of a frame contains a line break or NUL: {value[:100]!r}.")
    return b"%b: %b\n" % (name, _encode(value))


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # joins surrogate pairs, and replaces lone surrogates
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
