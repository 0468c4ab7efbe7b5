"""Reading ASGI requests and sending responses, with limits and safe headers.

Must not know routes, faces or what a body means. These functions run for every request, so each of them takes
about a microsecond in the usual case.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeAlias

from starlette.types import Message, Receive, Scope, Send

from farhand.errors import Malformed, TooLarge, TooSlow, WrongType
from farhand.wire.time_limit import TimeLimit

OnDisconnect: TypeAlias = Callable[[], None]


class HttpExchange:
    """One request and its response: receive, send, and the end of the connection.

    It ends when the peer disconnects, or when `cut` ends it as if the peer had.
    """

    __slots__ = ("_left", "_send", "has_answered", "is_over", "receive")

    def __init__(self, receive: Receive, send: Send) -> None:
        self.receive = receive
        self.has_answered = False
        """Whether the response has started."""
        self.is_over = False
        self._send = send
        self._left: OnDisconnect | None = None

    def send(self, message: Message) -> Awaitable[None]:
        self.has_answered = True
        return self._send(message)

    def when_over(self, left: OnDisconnect) -> None:
        """Calls `left` when the connection ends, or now if it has ended."""
        self._left = left
        if self.is_over:
            left()

    async def listen(self) -> None:
        """Returns when the peer has disconnected. If the server fails, nobody reads any more either."""
        try:
            while (await self.receive())["type"] != "http.disconnect":
                pass
        except Exception:
            await self.cut()
            raise
        await self.cut()

    async def cut(self) -> None:
        """Ends an open response as if its reader had disconnected."""
        self.is_over = True
        if self._left is not None:
            self._left()


Header = tuple[bytes, bytes]

SECURITY: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    # a response that is opened as a page can do nothing and cannot be framed
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
"""For every response that is not a page."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of this name; names are in lower case in ASGI."""
    headers: Iterable[Header] = scope["headers"]
    return _find(headers, name)


async def read_body(receive: Receive, headers: Iterable[Header], limit: int, within: TimeLimit) -> bytes:
    """The whole body: at most `limit` bytes, received `within` a limit of time."""
    length = _find(headers, b"content-length")
    # nineteen digits exceed every limit, and parsing more would only cost time
    if length is not None and not (length.isdigit() and int(length[:19]) <= limit):
        raise _too_large(limit) if length.isdigit() else Malformed("Content-Length is not a number.")
    try:
        return await within.run(_join(receive, limit))
    except TimeoutError:
        raise TooSlow(
            f"The body did not arrive within {within.seconds:g} s.",
            hint="Send it again; nothing was applied.",
        ) from None


def trimmed(headers: Iterable[Header]) -> list[Header]:
    """The headers without whitespace around their values (RFC 9110, 5.5).

    A copy: what a server adds to its own list later, such as trailers, is not in it.
    """
    return [(name, value.strip(b" \t")) for name, value in headers]


def require_unencoded(headers: Iterable[Header]) -> None:
    """`WrongType` for a body with a Content-Encoding, which is not supported."""
    for name, value in headers:
        if name == b"content-encoding" and value.lower() not in _NOT_ENCODED:
            raise WrongType("The body must not be compressed.", hint="Send it without Content-Encoding.")


def require_json(headers: Iterable[Header]) -> None:
    """`WrongType` unless the body is declared as JSON in UTF-8, without a Content-Encoding."""
    require_unencoded(headers)
    content_type = _find(headers, b"content-type")
    if content_type != b"application/json" and not _is_json(content_type or b""):
        raise WrongType("The body must be JSON.", hint="Send it with Content-Type: application/json.")


def refuse_foreign(headers: Iterable[Header]) -> None:
    """For endpoints that need no body: `WrongType` for one that is not JSON, since a form on another site
    could send it."""
    listed = list(headers)
    has_body = (
        _find(listed, b"transfer-encoding") is not None or _find(listed, b"content-length") not in _NONE
    )
    if has_body or _find(listed, b"content-type") is not None:
        require_json(listed)


async def respond_json(send: Send, status: int, body: bytes, headers: Iterable[Header] = ()) -> None:
    """Sends encoded JSON that must not be cached."""
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *_NO_STORE,
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def respond_body(
    send: Send, status: int, content_type: bytes, body: bytes, headers: Iterable[Header] = ()
) -> None:
    head = [
        (b"content-type", content_type),
        (b"content-length", b"%d" % len(body)),
        (b"x-content-type-options", b"nosniff"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def respond_empty(send: Send, status: int = 204, headers: Iterable[Header] = ()) -> None:
    """A response without a body: 204 or 304."""
    await send({"type": "http.response.start", "status": status, "headers": [*SECURITY, *headers]})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


_NONE = (None, b"0")
_NOT_ENCODED = (b"", b"identity")
_NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"), *SECURITY)


def _find(headers: Iterable[Header], wanted: bytes) -> bytes | None:
    for name, value in headers:
        if name == wanted:
            return value
    return None


def _body_of(message: Message, limit: int) -> bytes:
    if message["type"] != "http.request":
        raise Malformed("The connection was closed before the whole body arrived.")
    body: bytes = message.get("body", b"")
    if len(body) > limit:
        raise _too_large(limit)
    return body


async def _join(receive: Receive, limit: int) -> bytes:
    message = await receive()
    first = _body_of(message, limit)
    if not message.get("more_body", False):
        return first
    body = bytearray(first)
    while message.get("more_body", False):
        message = await receive()
        body += _body_of(message, limit)
        if len(body) > limit:
            raise _too_large(limit)
    return bytes(body)


def _is_json(content_type: bytes) -> bool:
    kind, *parameters = content_type.lower().split(b";")
    if kind.strip() != b"application/json":
        return False
    return all(parameter.strip() in {b"charset=utf-8", b'charset="utf-8"', b""} for parameter in parameters)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is larger than {limit} bytes.", hint="Send less; nothing was applied.")


def declared_length(headers: Iterable[Header]) -> int | None:
    """The Content-Length; None for a chunked body."""
    length = next((value for name, value in headers if name == b"content-length"), None)
    if length is None:
        return None
    if not length.isdigit():
        raise Malformed("Content-Length is not a number.")
    # nineteen digits exceed every limit, and parsing more would only cost time
    return int(length[:19])


async def read_pieces(receive: Receive, *, piece: int, limit: int, within: float) -> AsyncIterator[bytes]:
    """The body in pieces of one size but the last. `limit` applies to all of it, `within` to each piece: a
    large body may take long on a slow connection, but must keep arriving."""
    body = _PieceReader(receive)
    size = 0
    while not body.ended:
        # one byte more than the limit shows that it is exceeded
        read = await _next_piece(body, min(piece, limit - size + 1), within)
        size += len(read)
        if size > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.", hint="Send less; nothing was stored.")
        if read:
            yield read


class _PieceReader:
    """Buffers what was received and not yet read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._rest = bytearray()
        self._is_whole = False

    @property
    def ended(self) -> bool:
        return self._is_whole and not self._rest

    async def read(self, size: int) -> bytes:
        while len(self._rest) < size and not self._is_whole:
            message = await self._receive()
            if message["type"] != "http.request":
                raise Malformed("The connection was closed before the whole body arrived.")
            self._rest += message.get("body", b"")
            self._is_whole = not message.get("more_body", False)
        read = bytes(self._rest[:size])
        del self._rest[:size]
        return read


async def _next_piece(body: _PieceReader, piece: int, within: float) -> bytes:
    try:
        async with asyncio.timeout(within):
            return await body.read(piece)
    except TimeoutError:
        raise TooSlow(
            f"The next {piece} bytes of the body did not arrive within {within:g} s.",
            hint="Send it again over a faster connection; nothing was stored.",
        ) from None
