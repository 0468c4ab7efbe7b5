"""One response: its head, made once for all that are alike, and a body that joins it in one write.

The server below checks and puts together every head anew, and writes it before the body it belongs to. A head
that names its length waits here for that body; that of a stream leaves at once, since its first word may be
far. Must not know what is answered, nor log it: farhand has its own words for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

from farhand.wire.http import Header

START, BODY, NOTHING = "http.response.start", "http.response.body", "nothing more"

HEADS = 512
"""So many heads are kept, of a few hundred bytes each; with the date in them, each serves for a second."""
JOINED_BYTES = 64 * 1024
"""A larger body is not copied to leave in one write with its head."""


class Head(NamedTuple):
    written: bytes
    length: int
    is_open: bool
    """The body names no length: it ends with its last chunk, or for an old peer with the connection."""
    is_chunked: bool
    keep_alive: bool


@lru_cache(maxsize=HEADS)
def head_of(
    status: int, headers: tuple[Header, ...], *, version: str, keep_alive: bool, is_bodiless: bool
) -> Head:
    """How these headers are written; `RuntimeError` for one that would write others."""
    may_have_body = status not in _WITHOUT_BODY
    has_body = may_have_body and not is_bodiless
    may_chunk = may_have_body and version > "1.0"
    named = _framed([(name.lower(), value) for name, value in headers], may_chunk=may_chunk)
    lengths = _tokens(named, b"content-length")
    is_open = has_body and not lengths
    closes = b"close" in _tokens(named, b"connection")
    if not keep_alive and not closes:
        named.append((b"connection", b"close"))
    if is_open and may_chunk and b"chunked" not in _tokens(named, b"transfer-encoding"):
        named.append((b"transfer-encoding", b"chunked"))
    return Head(
        b"".join([STATUS_LINE[status], *map(_line, named), b"\r\n"]),
        int(lengths[0]) if lengths and has_body else 0,
        is_open,
        is_open and may_chunk,
        keep_alive and not closes,
    )


class Response(RequestResponseCycle):
    # beside the names of the server below: added to those later, they would cost a response the dictionary
    # that it shares with the others, if many have come before the first is answered
    __slots__ = ("_expects", "_is_open", "_kept")

    # Any: the server's own names and types
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._expects = START
        self._kept = b""
        """The head, until it leaves with the first of its body."""
        self._is_open = False
        """Whether pieces of a body may be written."""

    # Any: messages have a type for each kind, and a server takes what an app gives
    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] != self._expects:
            raise RuntimeError(f"The app sent '{message['type']}', and was to send {self._expects}.")
        if self._expects is START:
            self._begin(message["status"], message.get("headers", ()))
        else:
            self._go_on(message.get("body", b""), has_more=message.get("more_body", False))

    def write(self, piece: bytes) -> bool:
        """More of a body that stays open, without a message around it; False if it has to be sent in one: the
        socket takes no more for now, or there is no such body."""
        if not self._is_open or self.flow.write_paused or self.disconnected or not piece:
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked_encoding else piece)
        return True

    async def send_500_response(self) -> None:
        # nothing has left yet, whatever the app had begun
        self._expects, self._kept = START, b""
        await super().send_500_response()

    # Any: a header may be a list of two as well
    def _begin(self, status: int, headers: Iterable[Any]) -> None:
        head = head_of(
            status,
            (*self.default_headers, *map(tuple, headers)),
            version=self.scope["http_version"],
            keep_alive=self.keep_alive,
            is_bodiless=self.scope["method"] == "HEAD",
        )
        self._expects = BODY
        self.keep_alive, self.expected_content_length = head.keep_alive, head.length
        self._is_open, self.chunked_encoding = head.is_open, head.is_chunked
        if head.is_open:
            self.response_started, self.waiting_for_100_continue = True, False
            self.transport.write(head.written)
        else:
            self._kept = head.written

    def _go_on(self, body: bytes, *, has_more: bool) -> None:
        if self._is_open:
            self._write_piece(body, has_more=has_more)
        else:
            self._write_counted(body, has_more=has_more)
        if not has_more:
            self._end()

    def _write_piece(self, body: bytes, *, has_more: bool) -> None:
        if self.chunked_encoding:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = body if has_more else body + b"0\r\n\r\n"
        self.transport.write(body)

    def _write_counted(self, body: bytes, *, has_more: bool) -> None:
        if self.scope["method"] == "HEAD":
            body = b""
        self.expected_content_length -= len(body)
        # before any of it leaves, so that the peer may be told that something broke
        if self.expected_content_length < 0:
            raise RuntimeError("The body is longer than its head says.")
        if self.expected_content_length > 0 and not has_more:
            raise RuntimeError("The body is shorter than its head says.")
        head, self._kept = self._kept, b""
        # a peer that waits for leave to send its body may get it until now
        self.response_started, self.waiting_for_100_continue = True, False
        if head and len(body) >= JOINED_BYTES:
            self.transport.write(head)
            head = b""
        self.transport.write(head + body)

    def _end(self) -> None:
        self._expects, self._is_open, self.response_complete = NOTHING, False, True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


_WITHOUT_BODY = (204, 304)


def _framed(headers: list[Header], *, may_chunk: bool) -> list[Header]:
    """With one word on where the body ends: whoever goes by another takes the rest for the next response."""
    lengths = _tokens(headers, b"content-length")
    if len(set(lengths)) > 1 or not all(map(bytes.isdigit, lengths)):
        raise RuntimeError("The head names a length that is none, or two that differ.")
    if may_chunk and not _tokens(headers, b"transfer-encoding"):
        return headers
    unwanted = b"content-length" if may_chunk else b"transfer-encoding"
    return [header for header in headers if header[0] != unwanted]


def _tokens(headers: list[Header], wanted: bytes) -> list[bytes]:
    return [token.strip() for name, value in headers if name == wanted for token in value.lower().split(b",")]


def _line(header: Header) -> bytes:
    # a line break in one of them would begin another header, or the body
    if HEADER_RE.search(header[0]) or HEADER_VALUE_RE.search(header[1]):
        raise RuntimeError(f"{header[0]!r} is no name of a header, or its value is none.")
    return b"%b: %b\r\n" % header
