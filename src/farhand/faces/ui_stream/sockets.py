"""The chat stream over WebSockets: AI SDK's own transport, and the live socket. Same turns, same rules.

A dropped socket or an aborted request ends the response, never the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from farhand.agent.service import AgentService
from farhand.agent.start_run import STOPPED_BY_USER
from farhand.agent.turns import CallAnswers
from farhand.errors import FarhandError, Malformed, PeerFault, TooMany
from farhand.eventlog.reader import LogReader
from farhand.faces.base import SocketRequest
from farhand.faces.ui_stream.decode import (
    Chat,
    brings_results,
    chat_of_message,
    chat_of_send,
    decode_live_frame,
    decode_socket_frame,
    request_id_in,
    result_of,
)
from farhand.faces.ui_stream.encode import Response, respond, resume
from farhand.faces.ui_stream.shapes import (
    DONE,
    AbortFrame,
    InterruptFrame,
    MessageFrame,
    PingFrame,
    ResumeFrame,
    SendFrame,
    ToolResultFrame,
    live_error,
    live_pong,
    socket_chunk,
    socket_frame,
)
from farhand.wire.sse import frame

SendChunk = Callable[[bytes], Awaitable[None]]
SILENCE_SEC = 15.0
OUTPUT_GRACE_SEC = 0.3
"""How long the first approval of a frontend tool is held: an eager client sends its output meanwhile."""


class SocketReader:
    """The reader of a response. It may leave at any moment; its turn takes effect nevertheless."""

    def __init__(self) -> None:
        self._left = False
        self._reader: LogReader | None = None

    def leave(self) -> None:
        self._left = True
        if self._reader is not None:
            self._reader.leave()

    def has_left(self) -> bool:
        return self._left

    def reads(self, reader: LogReader) -> None:
        self._reader = reader


class MultiplexedSocket:
    """`/api/chat/ws`: many chats and requests share one connection, each request in its own task."""

    def __init__(self, service: AgentService, request: SocketRequest, group: asyncio.TaskGroup) -> None:
        self._service = service
        self._socket = request.socket
        self._owner = request.owner
        self._principal = request.principal
        self._group = group
        self._requests: dict[str, SocketReader] = {}

    async def serve(self) -> None:
        while (text := await self._socket.read()) is not None:
            try:
                await self._take(decode_socket_frame(text))
            except PeerFault as fault:
                # the frame was invalid, not the connection: the other requests continue
                await self._socket.write(socket_frame("error", request_id_in(text) or "", str(fault)))
        for socket_reader in self._requests.values():
            socket_reader.leave()

    async def _take(self, received: SendFrame | ResumeFrame | AbortFrame | PingFrame) -> None:
        match received:
            case PingFrame(timestamp=timestamp):
                # a page does not see WebSocket pings, and a proxy may keep a dead connection open
                await self._socket.write(live_pong(timestamp))
            case SendFrame():
                self._start(received.request_id, lambda socket_reader: self._send(received, socket_reader))
            case ResumeFrame():
                self._start(received.request_id, lambda socket_reader: self._resume(received, socket_reader))
            case AbortFrame(request_id=request_id):
                # this ends only the response, not the run, nor a turn in progress
                socket_reader = self._requests.pop(request_id, None)
                if socket_reader is not None:
                    socket_reader.leave()

    def _start(self, request_id: str, work: Callable[[SocketReader], Coroutine[None, None, None]]) -> None:
        if request_id in self._requests:
            raise Malformed("A request with this requestId is already open.")
        most = self._service.settings.limits.streams_per_principal
        if len(self._requests) >= most:
            raise TooMany(f"This socket already has {most} open requests.", hint="Nothing was applied.")
        socket_reader = self._requests[request_id] = SocketReader()
        self._group.create_task(self._guarded(request_id, socket_reader, work(socket_reader)))

    async def _guarded(
        self, request_id: str, socket_reader: SocketReader, work: Coroutine[None, None, None]
    ) -> None:
        try:
            with self._socket.in_use():
                await work
        except FarhandError as error:
            if not socket_reader.has_left():
                await self._socket.write(socket_frame("error", request_id, str(error)))
        finally:
            if self._requests.get(request_id) is socket_reader:
                del self._requests[request_id]

    async def _send(self, received: SendFrame, socket_reader: SocketReader) -> None:
        chat = chat_of_send(received)
        turn = await self._service.turns.take(
            self._principal, chat.thread_id, chat.turn, wait=chat.wait, output_grace=OUTPUT_GRACE_SEC
        )
        await self._show(received.request_id, respond(turn, chat), socket_reader)

    async def _resume(self, received: ResumeFrame, socket_reader: SocketReader) -> None:
        turn = await self._service.turns.resume(self._owner, received.id, None)
        response = None if turn is None else resume(turn)
        if response is None:
            await self._socket.write(socket_frame("no-active", received.request_id))
            return
        await self._socket.write(socket_frame("start", received.request_id))
        await self._show(received.request_id, response, socket_reader)

    async def _show(self, request_id: str, response: Response, socket_reader: SocketReader) -> None:
        sequence = 0

        async def send_chunk(chunk: bytes) -> None:
            nonlocal sequence
            if chunk == DONE:
                await self._socket.write(socket_frame("end", request_id))
                return
            await self._socket.write(socket_chunk(request_id, sequence, chunk))
            sequence += 1

        await send_response(self._service, response, send_chunk, socket_reader)


class LiveSocket:
    """`/api/chat/live`: one response at a time, whole server-sent events as frames.

    After the approval of a frontend tool the response stays open for a moment, for a client that sends the
    output meanwhile. Then it ends as on HTTP, since a stock client sends nothing before that.
    """

    def __init__(self, service: AgentService, request: SocketRequest, group: asyncio.TaskGroup) -> None:
        self._service = service
        self._socket = request.socket
        self._owner = request.owner
        self._principal = request.principal
        self._group = group
        self._thread_id: str | None = None
        self._socket_reader = SocketReader()
        self._is_open = False
        self._waits_for_output = False
        self._output_arrived = asyncio.Event()
        """Set when something arrived for a response that waits for an output."""
        self._deciding = asyncio.Lock()
        """Held while a response that waits for an output is closed, and while an output is accepted for it:
        an accepted output always gets its response."""

    async def serve(self) -> None:
        while (text := await self._socket.read()) is not None:
            try:
                await self._take(decode_live_frame(text))
            except FarhandError as error:
                await self._socket.write(live_error(str(error)))
        self._socket_reader.leave()

    async def _take(self, received: MessageFrame | ToolResultFrame | InterruptFrame | PingFrame) -> None:
        match received:
            case PingFrame(timestamp=timestamp):
                await self._socket.write(live_pong(timestamp))
            case InterruptFrame():
                await self._interrupt()
            case MessageFrame() | ToolResultFrame():
                await self._begin(received)

    async def _interrupt(self) -> None:
        if self._thread_id is not None:
            await self._service.stop(self._owner, self._thread_id, STOPPED_BY_USER)

    async def _begin(self, received: MessageFrame | ToolResultFrame) -> None:
        async with self._deciding:
            was_open = self._is_open
            if was_open and not (self._waits_for_output and brings_results(received)):
                await self._socket.write(live_error("A response is still open; wait for its [DONE]."))
                return
            try:
                # before the next frame is read: an output may follow right after its approval
                response = await self._respond_to(received)
            except FarhandError as error:
                # an open response ends by itself
                await (self._socket.write(live_error(str(error))) if was_open else self._fail(error))
                return
            self._thread_id = response.run.thread_id
            if was_open:
                # the open response shows what follows
                self._output_arrived.set()
                return
            self._is_open = True
            self._waits_for_output = response.awaits_output
        self._group.create_task(self._show(response))

    async def _wait_for_output(self, response: Response) -> bool:
        """False if the output did not come in time: then the response was closed as on HTTP."""
        until = asyncio.get_running_loop().time() + OUTPUT_GRACE_SEC
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while await self._is_at_rest(response):
                    await self._output_arrived.wait()
                    self._output_arrived.clear()
        async with self._deciding:
            self._waits_for_output = False
            if not await self._is_at_rest(response):
                response.until = None
                return True
            await send_response(self._service, response, self._send_chunk, self._socket_reader)
        return False

    async def _is_at_rest(self, response: Response) -> bool:
        return (await self._service.turns.load(response.run)).is_at_rest

    async def _respond_to(self, received: MessageFrame | ToolResultFrame) -> Response:
        turns = self._service.turns
        if isinstance(received, ToolResultFrame):
            result = result_of(received)
            turn = await turns.answer_call(self._principal, result)
            answered = CallAnswers((result,), (result.call_id,))
            return respond(turn, Chat(turn.run.thread_id, "turn", answered))
        chat = chat_of_message(received)
        return respond(await turns.take(self._principal, chat.thread_id, chat.turn, wait=chat.wait), chat)

    async def _show(self, response: Response) -> None:
        try:
            with self._socket.in_use():
                if not response.awaits_output or await self._wait_for_output(response):
                    await send_response(self._service, response, self._send_chunk, self._socket_reader)
        except FarhandError as error:
            self._is_open = False
            await self._fail(error)

    async def _send_chunk(self, chunk: bytes) -> None:
        if chunk == DONE:
            # from here on the next message is accepted, even if the delivery is still being noted
            self._is_open = False
        await self._socket.write(frame(chunk))

    async def _fail(self, error: FarhandError) -> None:
        await self._socket.write(live_error(str(error)))
        await self._socket.write(frame(DONE))


async def send_response(
    service: AgentService, response: Response, send_chunk: SendChunk, socket_reader: SocketReader
) -> None:
    """Sends every chunk of the response, `[DONE]` included, as long as its reader is there."""
    with service.read(response.run, response.after) as reader:
        socket_reader.reads(reader)
        for chunk in response.first:
            await send_chunk(chunk)
        while not response.chunks.ended and not socket_reader.has_left():
            at_end = response.until is not None and reader.at.seq >= response.until
            entries = None if at_end else await reader.next(SILENCE_SEC)
            if socket_reader.has_left():
                return
            if entries is None:
                chunks = response.chunks.close(cut=reader.cut)
            else:
                chunks = response.chunks.of_entries(entries)
            for chunk in chunks:
                await send_chunk(chunk)
    if response.is_undelivered and response.chunks.ended_unread and not socket_reader.has_left():
        await service.mark_delivered(response.run)
