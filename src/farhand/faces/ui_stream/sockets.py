"""The chat stream over WebSockets: AI SDK's own transport, and the held one. Same exchanges, same rules.

A dropped socket or an aborted request ends what is shown, never the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

from farhand.agent.endings import STOPPED_BY_USER
from farhand.agent.farhand import Farhand
from farhand.errors import FarhandError, PeerFault
from farhand.faces.base import SocketRequest
from farhand.faces.ui_stream.decode import (
    chat_of_message,
    chat_of_send,
    decode_live_frame,
    decode_socket_frame,
    request_id_in,
    result_of,
)
from farhand.faces.ui_stream.encode import DONE, live_error, live_pong, socket_chunk, socket_frame
from farhand.faces.ui_stream.exchange import Exchange, begin, bring_result, resume
from farhand.faces.ui_stream.shapes import (
    AbortFrame,
    InterruptFrame,
    MessageFrame,
    PingFrame,
    ResumeFrame,
    SendFrame,
    ToolResultFrame,
)
from farhand.wire.sse import frame

Tell = Callable[[bytes], Awaitable[None]]
SILENCE_SEC = 15.0


class MultiplexedSocket:
    """`/api/chat/ws`: many chats and requests share one connection, each request a task of its own."""

    def __init__(self, farhand: Farhand, request: SocketRequest, group: asyncio.TaskGroup) -> None:
        self._farhand = farhand
        self._socket = request.socket
        self._owner = request.owner
        self._principal = request.principal
        self._group = group
        self._requests: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        while (text := await self._socket.read()) is not None:
            try:
                self._take(decode_socket_frame(text))
            except PeerFault as fault:
                # the frame was bad, not the connection: the others that share it go on
                await self._socket.write(socket_frame("error", request_id_in(text) or "", str(fault)))
        for task in self._requests.values():
            task.cancel()

    def _take(self, told: SendFrame | ResumeFrame | AbortFrame) -> None:
        match told:
            case SendFrame():
                self._start(told.request_id, self._send(told))
            case ResumeFrame():
                self._start(told.request_id, self._resume(told))
            case AbortFrame(request_id=request_id):
                task = self._requests.pop(request_id, None)
                if task is not None:
                    task.cancel()

    def _start(self, request_id: str, work: Coroutine[None, None, None]) -> None:
        self._requests[request_id] = self._group.create_task(self._guarded(request_id, work))

    async def _guarded(self, request_id: str, work: Coroutine[None, None, None]) -> None:
        try:
            with self._socket.in_use():
                await work
        except FarhandError as error:
            await self._socket.write(socket_frame("error", request_id, str(error)))
        finally:
            self._requests.pop(request_id, None)

    async def _send(self, told: SendFrame) -> None:
        exchange = await begin(self._farhand, self._principal, chat_of_send(told))
        await self._show(told.request_id, exchange)

    async def _resume(self, told: ResumeFrame) -> None:
        exchange = await resume(self._farhand, self._owner, told.id, None)
        if exchange is None:
            await self._socket.write(socket_frame("no-active", told.request_id))
            return
        await self._socket.write(socket_frame("start", told.request_id))
        await self._show(told.request_id, exchange)

    async def _show(self, request_id: str, exchange: Exchange) -> None:
        sequence = 0

        async def tell(chunk: bytes) -> None:
            nonlocal sequence
            if chunk == DONE:
                await self._socket.write(socket_frame("end", request_id))
                return
            await self._socket.write(socket_chunk(request_id, sequence, chunk))
            sequence += 1

        await show(self._farhand, exchange, tell)


class LiveSocket:
    """`/api/chat/live`: one exchange at a time, whole server-sent events as frames.

    After the yes to a frontend tool nothing is sent; the exchange stays open until its output comes.
    """

    def __init__(self, farhand: Farhand, request: SocketRequest, group: asyncio.TaskGroup) -> None:
        self._farhand = farhand
        self._socket = request.socket
        self._owner = request.owner
        self._principal = request.principal
        self._group = group
        self._thread_id: str | None = None
        self._exchange: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        while (text := await self._socket.read()) is not None:
            try:
                await self._take(decode_live_frame(text))
            except FarhandError as error:
                await self._socket.write(live_error(str(error)))
        if self._exchange is not None:
            self._exchange.cancel()

    async def _take(self, told: MessageFrame | ToolResultFrame | InterruptFrame | PingFrame) -> None:
        match told:
            case PingFrame(timestamp=timestamp):
                await self._socket.write(live_pong(timestamp))
            case InterruptFrame():
                await self._interrupt()
            case MessageFrame() | ToolResultFrame():
                await self._begin(told)

    async def _interrupt(self) -> None:
        if self._thread_id is not None:
            await self._farhand.stop(self._owner, self._thread_id, STOPPED_BY_USER)

    async def _begin(self, told: MessageFrame | ToolResultFrame) -> None:
        if self._exchange is not None and not self._exchange.done():
            await self._socket.write(live_error("An exchange is under way; wait for its [DONE]."))
            return
        try:
            # before the next frame is read: an output may come right behind the yes that allows it
            exchange = await self._exchange_for(told)
        except FarhandError as error:
            await self._fail(error)
            return
        if not exchange.only_yes:
            self._exchange = self._group.create_task(self._show(exchange))

    async def _exchange_for(self, told: MessageFrame | ToolResultFrame) -> Exchange:
        if isinstance(told, ToolResultFrame):
            return await bring_result(self._farhand, self._principal, result_of(told))
        self._thread_id = told.id
        return await begin(self._farhand, self._principal, chat_of_message(told), split=False)

    async def _show(self, exchange: Exchange) -> None:
        try:
            with self._socket.in_use():
                await show(self._farhand, exchange, lambda chunk: self._socket.write(frame(chunk)))
        except FarhandError as error:
            await self._fail(error)

    async def _fail(self, error: FarhandError) -> None:
        await self._socket.write(live_error(str(error)))
        await self._socket.write(frame(DONE))


async def show(farhand: Farhand, exchange: Exchange, tell: Tell) -> None:
    """Every chunk of the exchange, `[DONE]` included."""
    with farhand.read(exchange.run, exchange.after) as reader:
        for chunk in exchange.first:
            await tell(chunk)
        while not exchange.chunks.ended:
            at_end = exchange.until is not None and reader.at.seq >= exchange.until
            entries = None if at_end else await reader.next(SILENCE_SEC)
            if entries is None:
                chunks = exchange.chunks.close(cut=reader.cut)
            else:
                chunks = [chunk for entry in entries for chunk in exchange.chunks.of_entry(entry)]
            for chunk in chunks:
                await tell(chunk)
    if exchange.unheard:
        await farhand.heard(exchange.run)
