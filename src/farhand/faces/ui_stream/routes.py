"""Endpoints of the chat stream: post, resume, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from farhand.agent.endings import STOPPED_BY_USER
from farhand.agent.farhand import Farhand
from farhand.errors import TooLarge
from farhand.faces.base import Face, Request, Route, SocketRequest, SocketRoute, follow
from farhand.faces.ui_stream.decode import decode_message, decode_position
from farhand.faces.ui_stream.encode import Encoder, encode_error
from farhand.faces.ui_stream.exchange import Exchange, begin, resume
from farhand.faces.ui_stream.sockets import LiveSocket, MultiplexedSocket
from farhand.wire.address import query
from farhand.wire.http import respond_empty
from farhand.wire.json_out import encode
from farhand.wire.pull import End

HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-vercel-ai-ui-message-stream", b"v1"),
    (b"x-accel-buffering", b"no"),
)

ONLY_THE_LAST = (
    "The server has the history: send the last message alone, with AI SDK's prepareSendMessagesRequest. "
    "Nothing was applied."
)


def ui_stream_face(farhand: Farhand) -> Face:
    endpoints = _Endpoints(farhand)
    chat_body = farhand.settings.limits.chat_body
    return Face(
        name="ui_stream",
        explain=encode_error,
        routes=(
            Route("POST", "/api/chat", endpoints.chat, scope="chat", limit=chat_body, streams=True),
            Route("GET", "/api/chat/{thread_id}/stream", endpoints.stream, scope="chat", streams=True),
            Route("POST", "/api/chat/{thread_id}/stop", endpoints.stop, scope="chat"),
        ),
        sockets=(
            SocketRoute("/api/chat/ws", endpoints.multiplexed, scope="chat"),
            SocketRoute("/api/chat/live", endpoints.live, scope="chat"),
        ),
    )


class _Endpoints:
    def __init__(self, farhand: Farhand) -> None:
        self._farhand = farhand

    def chat(self, request: Request) -> Awaitable[None]:
        return self._show(request, self._begun(request))

    def stream(self, request: Request) -> Awaitable[None]:
        return self._show(request, self._resumed(request))

    async def stop(self, request: Request) -> None:
        request.bodiless()
        stopped = await self._farhand.stop(request.owner, request.parameter("thread_id"), STOPPED_BY_USER)
        await request.reply(200, encode({"ok": True} if stopped else {"ok": True, "ignored": True}))

    async def multiplexed(self, request: SocketRequest) -> None:
        async with asyncio.TaskGroup() as group:
            await MultiplexedSocket(self._farhand, request, group).serve()

    async def live(self, request: SocketRequest) -> None:
        async with asyncio.TaskGroup() as group:
            await LiveSocket(self._farhand, request, group).serve()

    async def _begun(self, request: Request) -> Exchange:
        try:
            body = await request.json()
        except TooLarge as fault:
            # a stock client sends the whole conversation with every post, so a long one gets here in the end
            raise TooLarge(fault.message, hint=ONLY_THE_LAST) from None
        exchange = await begin(self._farhand, request.principal, decode_message(body))
        # a client that will come back after a cut wants to know where it stands from the first event on
        exchange.with_ids = "after" in query(request.scope)
        return exchange

    async def _resumed(self, request: Request) -> Exchange | None:
        after = decode_position(query(request.scope).get("after"))
        return await resume(self._farhand, request.owner, request.parameter("thread_id"), after)

    async def _show(self, request: Request, found: Awaitable[Exchange | None]) -> None:
        """One layer for all that is held: each of them would be kept for as long as a stream is open."""
        exchange = await found
        del found
        if exchange is None:
            await respond_empty(request.line.send)
            return
        encoder = Encoder(exchange.chunks, first=exchange.first, with_ids=exchange.with_ids)
        with self._farhand.read(exchange.run, exchange.after, is_new=exchange.is_new) as reader:
            end = await follow(request, reader, encoder, headers=HEADERS, until=exchange.until)
        if end is End.FINISHED and encoder.ended and exchange.unheard and exchange.chunks.ended_unheard:
            await self._farhand.heard(exchange.run)
