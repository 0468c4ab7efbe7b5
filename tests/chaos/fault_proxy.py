"""A TCP proxy that breaks connections on demand. It knows nothing of their content.

    async with FaultProxy(("127.0.0.1", server.port)) as line:
        ...                      # connect to line.port
        line.cut()               # both ends are told at once, as a reset tells them
        line.hang()              # nothing passes any more and nobody is told, until flow()
        line.half_open()         # the server's end is gone, the client's end stands and stays silent
        line.delay(0.2)          # every piece comes so much later, until delay(0)
        line.drop_after(100)     # each open connection is cut when so many more bytes came from the server
        line.drop_each_after(9)  # the same for each connection to come, from its first byte on, until None

Each answers how many connections it hit: a fault that hit nobody has proved nothing. Cut and half-open may be
for one connection alone: the one that reaches the server from this port.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Self

PIECE = 64 * 1024
_RESET = struct.pack("ii", 1, 0)


class FaultProxy:
    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.port = 0
        self.carried = 0
        """Bytes that came from the server, over all connections."""
        self._pairs: set[_Pair] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._late = 0.0
        self._each: int | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None, "entered before it is left"
        self._server.close()
        self.flow()
        while self._pairs:
            self.cut()
            await asyncio.sleep(0)

    @property
    def connections(self) -> int:
        return len(self._pairs)

    @property
    def ports(self) -> set[int]:
        """From which the server is reached now."""
        return {pair.port for pair in self._pairs if not pair.is_over}

    def cut(self, port: int | None = None) -> int:
        return self._hit(_Pair.cut, port)

    def hang(self) -> int:
        self._flowing.clear()
        return len(self._pairs)

    def flow(self) -> None:
        self._flowing.set()

    def half_open(self, port: int | None = None) -> int:
        return self._hit(_Pair.half_open, port)

    def delay(self, seconds: float) -> int:
        self._late = seconds
        return len(self._pairs)

    def drop_after(self, size: int) -> int:
        return self._hit(lambda pair: pair.drop_after(size))

    def drop_each_after(self, size: int | None) -> None:
        self._each = size

    def _hit(self, fault: _Fault, port: int | None = None) -> int:
        hit = [pair for pair in self._pairs if not pair.is_over and port in (None, pair.port)]
        for pair in hit:
            fault(pair)
        return len(hit)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(*self.target)
        except OSError:
            _reset(writer)
            return
        pair = _Pair((reader, writer), there)
        if self._each is not None:
            pair.drop_after(self._each)
        self._pairs.add(pair)
        try:
            await pair.carry(self)
        finally:
            self._pairs.discard(pair)

    async def _let_through(self, piece: bytes) -> None:
        """Returns when the piece may pass."""
        if self._late:
            await asyncio.sleep(self._late)
        await self._flowing.wait()


_End = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Pair:
    """Both ends of one connection."""

    def __init__(self, here: _End, there: _End) -> None:
        self.is_over = False
        self.port: int = there[1].get_extra_info("sockname")[1]
        """From which the server is reached."""
        self._here = here
        self._there = there
        self._left: int | None = None
        self._ended = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def cut(self) -> None:
        self.is_over = True
        self._ended.set()
        _reset(self._here[1])
        self._lose_server()

    def half_open(self) -> None:
        """What the client still sends is thrown away; it hears nothing and is told nothing."""
        self.is_over = True
        self._lose_server()

    def drop_after(self, size: int) -> None:
        self._left = size

    async def carry(self, proxy: FaultProxy) -> None:
        """Until one end is gone; the other is told so."""
        async with asyncio.TaskGroup() as group:
            self._tasks = [
                group.create_task(self._pump(proxy, self._here, self._there)),
                group.create_task(self._pump(proxy, self._there, self._here, counted=True)),
            ]
            await asyncio.wait(self._tasks)
            if self.is_over and not self._ended.is_set():
                await self._swallow()
        _close(self._here[1])
        _close(self._there[1])

    async def _pump(self, proxy: FaultProxy, source: _End, sink: _End, *, counted: bool = False) -> None:
        try:
            while piece := await source[0].read(PIECE):
                await proxy._let_through(piece)
                if counted:
                    piece = self._what_may_pass(piece)
                    proxy.carried += len(piece)
                sink[1].write(piece)
                await sink[1].drain()
                if counted and self._left == 0:
                    self._end_here()
            if sink[1].can_write_eof():
                sink[1].write_eof()
        except OSError:
            # one end was reset: the other is treated alike
            self.cut()

    def _end_here(self) -> None:
        """All that was let through arrives, and then the end of the line."""
        self.is_over = True
        self._ended.set()
        _close(self._here[1])
        self._lose_server()

    def _lose_server(self) -> None:
        for task in self._tasks:
            task.cancel()
        _reset(self._there[1])

    def _what_may_pass(self, piece: bytes) -> bytes:
        if self._left is None:
            return piece
        piece = piece[: self._left]
        self._left -= len(piece)
        return piece

    async def _swallow(self) -> None:
        try:
            while await self._here[0].read(PIECE):
                pass
        except OSError:
            return


_Fault = Callable[[_Pair], None]


def _reset(writer: asyncio.StreamWriter) -> None:
    """No farewell: what is in progress is lost, and the other end gets a reset."""
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


def _close(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():
        writer.close()
