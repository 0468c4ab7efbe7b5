"""Reads server-sent events from the bytes of a provider's stream, however the chunks are divided.

Owns the format: line ends, comments, data of several lines, a byte order mark. Must not know any provider's
events or where the bytes come from.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_EVENT = 32 * 1024 * 1024
"""Bytes of one event, at most. The largest that providers send hold a whole answer with its pictures."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")


class SseEvent(NamedTuple):
    """`name` is empty for an event without a name."""

    name: bytes
    data: bytes


class SseReader:
    """One for each stream. Data stays bytes: it is decoded once, as JSON."""

    def __init__(self) -> None:
        self._is_first_line = True
        self._after_cr = False
        self._size = 0
        self._line: list[bytes] = []
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes. Raises `ValueError` for an event without an end."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        *ends, rest = _LINE_END.split(chunk)
        events = []
        for end in ends:
            self._size += len(end)
            self._line.append(end)
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._line.append(rest)
        self._size += len(rest)
        if self._size > MAX_EVENT:
            raise ValueError(f"an event exceeds {MAX_EVENT} bytes")
        return events

    def end(self) -> SseEvent | None:
        """The event in which the stream ended; it may be incomplete."""
        return self._end_line() or self._dispatch()

    def _end_line(self) -> SseEvent | None:
        line = b"".join(self._line)
        self._line.clear()
        if self._is_first_line:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._is_first_line = False
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif field == b"event":
            self._name = value.removeprefix(b" ")
        return None

    def _dispatch(self) -> SseEvent | None:
        name, data, self._size = self._name, self._data, 0
        # browsers skip events without data; here an `error` counts even without a message
        if not data and not name:
            return None
        self._name, self._data = b"", []
        return SseEvent(name, b"\n".join(data))
