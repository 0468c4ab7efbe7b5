"""The chat stream over WebSockets: AI SDK's own transport, and the held one. Same exchanges, same rules.

A dropped socket or an aborted request ends what is shown, never the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

from farhand.agent.endings import STOPPED_BY_USER
from farhand.agent.farhand import Farhand
from farhand.agent.reader import Reader
from farhand.errors import FarhandError, Malformed, PeerFault, TooMany
from farhand.faces.base import SocketRequest
from farhand.faces.ui_stream.decode import (
    brings_results,
    chat_of_message,
    chat_of_send,
    decode_live_frame,
    decode_socket_frame,
    request_id_in,
    result_of,
)
from farhand.faces.ui_stream.encode import live_error, live_pong, socket_chunk, socket_frame
from farhand.faces.ui_stream.exchange import (
    SPLIT_HOLD_SEC,
    Exchange,
    begin,
    bring_result,
    is_at_rest,
    resume,
)
from farhand.faces.ui_stream.shapes import (
    AbortFrame,
    InterruptFrame,
    MessageFrame,
    PingFrame,
    ResumeFrame,
    SendFrame,
    ToolResultFrame,
)
from farhand.faces.ui_stream.written import DONE
from farhand.wire.sse import frame

Tell = Callable[[bytes], Awaitable[None]]
SILENCE_SEC = 15.0


class Asker:
    """Whoever is shown an exchange. It may leave at any moment; what it asked for is begun all the same."""

    def __init__(self) -> None:
        self._left = False
        self._reader: Reader | None = None

    def leave(self) -> None:
        self._left = True
        if self._reader is not None:
            self._reader.leave()

    def has_left(self) -> bool:
        return self._left

    def reads(self, reader: Reader) -> None:
        self._reader = reader


class MultiplexedSocket:
    """`/api/chat/ws`: many chats and requests share one connection, each request a task of its own."""

    def __init__(self, farhand: Farhand, request: SocketRequest, group: asyncio.TaskGroup) -> None:
        self._farhand = farhand
        self._socket = request.socket
        self._owner = request.owner
        self._principal = request.principal
        self._group = group
        self._requests: dict[str, Asker] = {}

    async def serve(self) -> None:
        while (text := await self._socket.read()) is not None:
            try:
                await self._take(decode_socket_frame(text))
            except PeerFault as fault:
                # the frame was bad, not the connection: the others that share it go on
                await self._socket.write(socket_frame("error", request_id_in(text) or "", str(fault)))
        for asker in self._requests.values():
            asker.leave()

    async def _take(self, told: SendFrame | ResumeFrame | AbortFrame | PingFrame) -> None:
        match told:
            case PingFrame(timestamp=timestamp):
                # a page sees no pings of the WebSocket itself, and a proxy may hold a dead line open
                await self._socket.write(live_pong(timestamp))
            case SendFrame():
                self._start(told.request_id, lambda asker: self._send(told, asker))
            case ResumeFrame():
                self._start(told.request_id, lambda asker: self._resume(told, asker))
            case AbortFrame(request_id=request_id):
                # the request is closed, not the run, and not what it is about to begin
                asker = self._requests.pop(request_id, None)
                if asker is not None:
                    asker.leave()

    def _start(self, request_id: str, work: Callable[[Asker], Coroutine[None, None, None]]) -> None:
        if request_id in self._requests:
            raise Malformed("A request with this requestId is under way.")
        most = self._farhand.settings.limits.streams_per_principal
        if len(self._requests) >= most:
            raise TooMany(f"{most} requests share this socket already.", hint="Nothing was applied.")
        asker = self._requests[request_id] = Asker()
        self._group.create_task(self._guarded(request_id, asker, work(asker)))

    async def _guarded(self, request_id: str, asker: Asker, work: Coroutine[None, None, None]) -> None:
        try:
            with self._socket.in_use():
                await work
        except FarhandError as error:
            if not asker.has_left():
                await self._socket.write(socket_frame("error", request_id, str(error)))
        finally:
            if self._requests.get(request_id) is asker:
                del self._requests[request_id]

    async def _send(self, told: SendFrame, asker: Asker) -> None:
        exchange = await begin(self._farhand, self._principal, chat_of_send(told))
        await self._show(told.request_id, exchange, asker)

    async def _resume(self, told: ResumeFrame, asker: Asker) -> None:
        exchange = await resume(self._farhand, self._owner, told.id, None)
        if exchange is None:
            await self._socket.write(socket_frame("no-active", told.request_id))
            return
        await self._socket.write(socket_frame("start", told.request_id))
        await self._show(told.request_id, exchange, asker)

    async def _show(self, request_id: str, exchange: Exchange, asker: Asker) -> None:
        sequence = 0

        async def tell(chunk: bytes) -> None:
            nonlocal sequence
            if chunk == DONE:
                await self._socket.write(socket_frame("end", request_id))
                return
            await self._socket.write(socket_chunk(request_id, sequence, chunk))
            sequence += 1

        await show(self._farhand, exchange, tell, asker)


class LiveSocket:
    """`/api/chat/live`: one exchange at a time, whole server-sent events as frames.

    After the yes to a frontend tool the exchange stays open for a moment, for a client that sends the output
    while it is. Then it ends as on HTTP, since a stock client sends nothing before that.
    """

    def __init__(self, farhand: Farhand, request: SocketRequest, group: asyncio.TaskGroup) -> None:
        self._farhand = farhand
        self._socket = request.socket
        self._owner = request.owner
        self._principal = request.principal
        self._group = group
        self._thread_id: str | None = None
        self._asker = Asker()
        self._is_open = False
        self._waits_for_output = False
        self._brought = asyncio.Event()
        """Set when something came for an exchange that waits for its output."""
        self._deciding = asyncio.Lock()
        """Held while an exchange that waits for its output is closed, and while an output is taken for it:
        one that is taken is always answered."""

    async def serve(self) -> None:
        while (text := await self._socket.read()) is not None:
            try:
                await self._take(decode_live_frame(text))
            except FarhandError as error:
                await self._socket.write(live_error(str(error)))
        self._asker.leave()

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
        async with self._deciding:
            was_open = self._is_open
            if was_open and not (self._waits_for_output and brings_results(told)):
                await self._socket.write(live_error("An exchange is under way; wait for its [DONE]."))
                return
            try:
                # before the next frame is read: an output may come right behind the yes that allows it
                exchange = await self._exchange_for(told)
            except FarhandError as error:
                # an exchange that is open has its own end
                await (self._socket.write(live_error(str(error))) if was_open else self._fail(error))
                return
            self._thread_id = exchange.run.thread_id
            if was_open:
                # the open exchange shows what follows from it
                self._brought.set()
                return
            self._is_open = True
            self._waits_for_output = exchange.only_yes
        self._group.create_task(self._show(exchange))

    async def _wait_for_output(self, exchange: Exchange) -> bool:
        """False if the output has not come in time: then the exchange was closed, untouched, as on HTTP."""
        until = asyncio.get_running_loop().time() + SPLIT_HOLD_SEC
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while await is_at_rest(self._farhand, exchange.run):
                    await self._brought.wait()
                    self._brought.clear()
        async with self._deciding:
            self._waits_for_output = False
            if not await is_at_rest(self._farhand, exchange.run):
                exchange.until = None
                return True
            await show(self._farhand, exchange, self._tell, self._asker)
        return False

    async def _exchange_for(self, told: MessageFrame | ToolResultFrame) -> Exchange:
        if isinstance(told, ToolResultFrame):
            return await bring_result(self._farhand, self._principal, result_of(told))
        return await begin(self._farhand, self._principal, chat_of_message(told), split=False)

    async def _show(self, exchange: Exchange) -> None:
        try:
            with self._socket.in_use():
                if not exchange.only_yes or await self._wait_for_output(exchange):
                    await show(self._farhand, exchange, self._tell, self._asker)
        except FarhandError as error:
            self._is_open = False
            await self._fail(error)

    async def _tell(self, chunk: bytes) -> None:
        if chunk == DONE:
            # from here on the next message is welcome, whatever is still noted down
            self._is_open = False
        await self._socket.write(frame(chunk))

    async def _fail(self, error: FarhandError) -> None:
        await self._socket.write(live_error(str(error)))
        await self._socket.write(frame(DONE))


async def show(farhand: Farhand, exchange: Exchange, tell: Tell, asker: Asker) -> None:
    """Every chunk of the exchange, `[DONE]` included, as long as somebody is there to see it."""
    with farhand.read(exchange.run, exchange.after) as reader:
        asker.reads(reader)
        for chunk in exchange.first:
            await tell(chunk)
        while not exchange.chunks.ended and not asker.has_left():
            at_end = exchange.until is not None and reader.at.seq >= exchange.until
            entries = None if at_end else await reader.next(SILENCE_SEC)
            if asker.has_left():
                return
            if entries is None:
                chunks = exchange.chunks.close(cut=reader.cut)
            else:
                chunks = exchange.chunks.of_entries(entries)
            for chunk in chunks:
                await tell(chunk)
    if exchange.unheard and exchange.chunks.ended_unheard and not asker.has_left():
        await farhand.heard(exchange.run)
