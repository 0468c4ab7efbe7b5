"""A server whose streams lose their readers almost at once: for tests that wait for whole answers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STAYS_SEC = 0.15


class ShortStreams:
    """Around an app: a stream of events ends after a moment, as if its reader had left."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reader = _Reader(receive, send)
        await self._app(scope, reader.receive, reader.send)
        await reader.end()


class _Reader:
    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._streams = False
        self._ended = False

    async def receive(self) -> Message:
        if not self._streams:
            return await self._receive()
        await asyncio.sleep(STAYS_SEC)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._streams = (b"content-type", b"text/event-stream") in message["headers"]
        else:
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        if self._streams and not self._ended:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


@asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    """Its address on loopback, while it listens in this event loop."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await server.shutdown(sockets=[listener])
