"""ASGI requests for tests of authentication and pages."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Scope

Headers = Iterable[tuple[str, str]] | dict[str, str]


def visit(
    headers: Headers = (),
    *,
    method: str = "GET",
    path: str = "/",
    query: str = "",
    host: str | None = "127.0.0.1:8787",
    client: str | None = "127.0.0.1",
    scheme: str = "http",
    kind: str = "http",
) -> Scope:
    pairs = headers.items() if isinstance(headers, dict) else headers
    listed = [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs]
    named = [(b"host", host.encode())] if host is not None else []
    return {
        "type": kind,
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "scheme": scheme,
        "client": (client, 50_000) if client is not None else None,
        "server": ("127.0.0.1", 8787),
        "headers": [*named, *listed],
    }


class Reply:
    """What an app answered."""

    def __init__(self, messages: list[Message]) -> None:
        self.status: int = messages[0].get("status", 0)
        # of several with one name, the first
        pairs = [(name.decode(), value.decode()) for name, value in messages[0].get("headers", ())]
        self.headers = dict(reversed(pairs))
        self.body = b"".join(message.get("body", b"") for message in messages[1:])
        # what travels compressed is no text yet
        self.text = "" if "content-encoding" in self.headers else self.body.decode()
        self.messages = messages


async def ask(app: ASGIApp, scope: Scope, body: bytes = b"") -> Reply:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return Reply(sent)
