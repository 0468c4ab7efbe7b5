"""What browsers ask before a page of another origin may use the server. Answers for listed origins alone.

Must not know who signs in. Costs nothing where no origin is listed.
"""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farhand.errors import NotAllowed
from farhand.server.screen import Screen
from farhand.wire.http import Header, header, respond_empty, respond_json
from farhand.wire.json_out import encode


def with_cors(app: ASGIApp, screen: Screen) -> ASGIApp:
    # no coroutine of its own: each would be woken with every word of a stream
    def asked(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or not (screen.has_origins or scope["method"] == "OPTIONS"):
            return app(scope, receive, send)
        origin = header(scope, b"origin")
        if origin is None:
            return app(scope, receive, send)
        if scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method"):
            return _preflight(screen, scope, send, origin)
        return app(scope, receive, _telling(send, origin) if screen.lists(origin) else send)

    return asked


_PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (b"access-control-max-age", b"600"),
)
_READABLE: Header = (b"access-control-expose-headers", b"retry-after, x-vercel-ai-ui-message-stream")


async def _preflight(screen: Screen, scope: Scope, send: Send, origin: bytes) -> None:
    try:
        screen.check_origin(origin, scope, screen.check_host(scope))
    except NotAllowed as error:
        body = {"error": {"code": error.code, "message": str(error)}}
        await respond_json(send, 403, encode(body), ((b"vary", b"origin"),))
        return
    headers = (b"access-control-allow-headers", screen.headers)
    await respond_empty(send, 204, (*_named(origin), *_PREFLIGHT, headers))


def _telling(send: Send, origin: bytes) -> Send:
    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_named(origin), _READABLE]
        await send(message)

    return tell


def _named(origin: bytes) -> tuple[Header, ...]:
    return (
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        (b"vary", b"origin"),
    )
