"""Plain ASGI requests and responses. Owns what every endpoint needs to read one and to answer it safely.

Must not know routes, faces or what a body means. Hot endpoints are made of these pieces alone, so each of
them costs about a microsecond in the ordinary case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from starlette.types import Message, Receive, Scope, Send

from farhand.errors import Malformed, TooLarge, TooSlow, WrongType

Header = tuple[bytes, bytes]

SECURITY: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    # opened as a page, an answer may do nothing and stand in no frame
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
"""On everything that is not a page."""


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of this name; ASGI has names in lower case."""
    headers: Iterable[Header] = scope["headers"]
    return _find(headers, name)


async def read_body(receive: Receive, headers: Iterable[Header], limit: int, within: float = 10.0) -> bytes:
    """The whole body: at most `limit` bytes, arrived within so many seconds."""
    length = _find(headers, b"content-length")
    # nineteen digits pass every limit, and a longer number would only cost time
    if length is not None and not (length.isdigit() and int(length[:19]) <= limit):
        raise _too_large(limit) if length.isdigit() else Malformed("Content-Length is not a number.")
    try:
        async with asyncio.timeout(within):
            return await _join(receive, limit)
    except TimeoutError:
        raise TooSlow(
            f"The body did not arrive within {within:g} s.", hint="Send it again; nothing was applied."
        ) from None


def trimmed(headers: Iterable[Header]) -> list[Header]:
    """The headers without the blanks around their values, which are not part of these (RFC 9110, 5.5).

    A list of its own: what a server adds to its list later, such as trailers, is not in it.
    """
    return [(name, value.strip(b" \t")) for name, value in headers]


def require_unencoded(headers: Iterable[Header]) -> None:
    """`WrongType` for a body that is compressed, or encoded in another way: nothing here decodes it."""
    for name, value in headers:
        if name == b"content-encoding" and value.lower() not in _NOT_ENCODED:
            raise WrongType("The body must not be compressed.", hint="Send it without Content-Encoding.")


def require_json(headers: Iterable[Header]) -> None:
    """`WrongType` unless the body says that it is JSON in UTF-8, and not encoded further."""
    require_unencoded(headers)
    content_type = _find(headers, b"content-type")
    if content_type != b"application/json" and not _is_json(content_type or b""):
        raise WrongType("The body must be JSON.", hint="Send it with Content-Type: application/json.")


def refuse_foreign(headers: Iterable[Header]) -> None:
    """`WrongType` for a body that is no JSON, where none is needed: a form of another page can send that."""
    listed = list(headers)
    has_body = (
        _find(listed, b"transfer-encoding") is not None or _find(listed, b"content-length") not in _NONE
    )
    if has_body or _find(listed, b"content-type") is not None:
        require_json(listed)


async def respond_json(send: Send, status: int, body: bytes, headers: Iterable[Header] = ()) -> None:
    """Answer with JSON that is encoded already, never to be kept by a cache."""
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *_NO_STORE,
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def respond(
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
    """An answer that has no body by its status: 204 or 304."""
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
        raise Malformed("The connection was closed before the whole body had arrived.")
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
