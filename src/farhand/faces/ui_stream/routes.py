"""Endpoints of the chat stream: post, resume, stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from farhand.agent.service import AgentService
from farhand.agent.start_run import STOPPED_BY_USER
from farhand.errors import TooLarge
from farhand.faces.base import STREAM, Face, Ok, Parameter, Request, Route, SocketRequest, SocketRoute, follow
from farhand.faces.ui_stream.decode import decode_message, decode_position
from farhand.faces.ui_stream.encode import Response, UiStreamEncoder, respond, resume
from farhand.faces.ui_stream.shapes import ChatRequest
from farhand.faces.ui_stream.sockets import OUTPUT_GRACE_SEC, LiveSocket, MultiplexedSocket
from farhand.wire.address import query
from farhand.wire.http import respond_empty
from farhand.wire.json_writer import encode
from farhand.wire.streaming_response import StreamEnd

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

AFTER = Parameter(
    "after",
    {
        "type": "string",
        "pattern": r"^[0-9]{1,15}(\.[0-9]{1,15}(\.[1-9][0-9]{0,14})?)?(~[A-Za-z0-9_-]{1,8})?$",
    },
)


def ui_stream_face(service: AgentService) -> Face:
    endpoints = _Endpoints(service)
    chat_body = service.settings.limits.chat_body
    return Face(
        name="ui_stream",
        routes=(
            Route(
                "POST",
                "/api/chat",
                endpoints.chat,
                scope="chat",
                limit=chat_body,
                streams=True,
                takes=ChatRequest,
            ),
            Route(
                "GET",
                "/api/chat/{thread_id}/stream",
                endpoints.resume,
                scope="chat",
                streams=True,
                gives={200: STREAM, 204: None},
                parameters=(AFTER,),
            ),
            Route("POST", "/api/chat/{thread_id}/stop", endpoints.stop, scope="chat", gives=Ok),
        ),
        sockets=(
            SocketRoute("/api/chat/ws", endpoints.multiplexed, scope="chat"),
            SocketRoute("/api/chat/live", endpoints.live, scope="chat"),
        ),
    )


class _Endpoints:
    def __init__(self, service: AgentService) -> None:
        self._service = service

    def chat(self, request: Request) -> Awaitable[None]:
        """Send a message, or answers to calls and approvals."""
        return self._show(request, self._begun(request))

    def resume(self, request: Request) -> Awaitable[None]:
        """Resume the current answer."""
        return self._show(request, self._resumed(request))

    async def stop(self, request: Request) -> None:
        """Stop the run."""
        request.bodiless()
        stopped = await self._service.stop(request.owner, request.parameter("thread_id"), STOPPED_BY_USER)
        await request.reply(200, encode(Ok(ok=True, ignored=not stopped)))

    async def multiplexed(self, request: SocketRequest) -> None:
        async with asyncio.TaskGroup() as group:
            await MultiplexedSocket(self._service, request, group).serve()

    async def live(self, request: SocketRequest) -> None:
        async with asyncio.TaskGroup() as group:
            await LiveSocket(self._service, request, group).serve()

    async def _begun(self, request: Request) -> Response:
        try:
            body = await request.json()
        except TooLarge as fault:
            # a stock client posts the whole conversation each time, so a long conversation exceeds the limit
            # here
            raise TooLarge(fault.message, hint=ONLY_THE_LAST) from None
        chat = decode_message(body)
        turn = await self._service.turns.take(
            request.principal, chat.thread_id, chat.turn, wait=chat.wait, output_grace=OUTPUT_GRACE_SEC
        )
        response = respond(turn, chat)
        # a client that resumes after a cut needs its position from the first event on
        response.with_ids = "after" in query(request.scope)
        return response

    async def _resumed(self, request: Request) -> Response | None:
        after = decode_position(query(request.scope).get("after"))
        turn = await self._service.turns.resume(request.owner, request.parameter("thread_id"), after)
        response = None if turn is None else resume(turn)
        if response is not None:
            response.with_ids = after is not None
        return response

    async def _show(self, request: Request, found: Awaitable[Response | None]) -> None:
        """One coroutine for everything: each additional one would stay in memory while the stream is open."""
        response = await found
        del found
        if response is None:
            await respond_empty(request.exchange.send)
            return
        encoder = UiStreamEncoder(response.chunks, first=response.first, with_ids=response.with_ids)
        with self._service.read(response.run, response.after) as reader:
            end = await follow(request, reader, encoder, headers=HEADERS, until=response.until)
        is_over = end is StreamEnd.FINISHED and encoder.ended
        if is_over and response.is_undelivered and response.chunks.ended_unread:
            await self._service.mark_delivered(response.run)
