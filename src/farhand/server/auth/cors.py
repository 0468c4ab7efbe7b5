"""CORS: preflight responses and headers for allowed origins.

Must not know how callers are authenticated. Without allowed origins it adds no work to a request.
"""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farhand.errors import NotAllowed
from farhand.server.auth.host_origin import HostOriginPolicy
from farhand.wire.http import Header, header, respond_empty, respond_json
from farhand.wire.json_writer import encode


def with_cors(app: ASGIApp, policy: HostOriginPolicy) -> ASGIApp:
    # no additional coroutine: each one would be woken with every word of a stream
    def call(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or not (policy.has_origins or scope["method"] == "OPTIONS"):
            return app(scope, receive, send)
        origin = header(scope, b"origin")
        if origin is None:
            return app(scope, receive, send)
        if scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method"):
            return _preflight(policy, scope, send, origin)
        return app(scope, receive, _adding_headers(send, origin) if policy.lists(origin) else send)

    return call


_PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
    (b"access-control-max-age", b"600"),
)
_EXPOSED: Header = (b"access-control-expose-headers", b"retry-after, x-vercel-ai-ui-message-stream")


async def _preflight(policy: HostOriginPolicy, scope: Scope, send: Send, origin: bytes) -> None:
    try:
        policy.check_origin(origin, scope, policy.check_host(scope))
    except NotAllowed as error:
        body = {"error": {"code": error.code, "message": str(error)}}
        await respond_json(send, 403, encode(body), ((b"vary", b"origin"),))
        return
    headers = (b"access-control-allow-headers", policy.headers)
    await respond_empty(send, 204, (*_allow_headers(origin), *_PREFLIGHT, headers))


def _adding_headers(send: Send, origin: bytes) -> Send:
    async def add_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_allow_headers(origin), _EXPOSED]
        await send(message)

    return add_headers


def _allow_headers(origin: bytes) -> tuple[Header, ...]:
    return (
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        (b"vary", b"origin"),
    )
