"""A response body that stays open. Owns what one reader was not sent yet, and the writing of it.

Must not know what the frames say or who makes them. The maker of frames never waits for the reader: it puts
them into an `Outbox`, and a reader that is too slow for its outbox is let go; it can resume. One send to the
server is one write to the socket, so whatever waits is joined first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum

from starlette.types import Message, Receive, Send

from farhand.wire.sse import KEEP_ALIVE

Header = tuple[bytes, bytes]

EVENT_STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class End(Enum):
    """Why no more frames are sent."""

    CLOSED = "closed"
    """The maker closed the outbox and all of it was handed to the server."""
    LEFT = "left"
    OVERFLOWED = "overflowed"
    STALLED = "stalled"


class Outbox:
    """The frames that wait for one reader. Any number put, one task drains."""

    __slots__ = ("_drained", "_end", "_filled", "_frames", "_max_bytes", "_max_frames", "_size")

    def __init__(self, *, max_frames: int = 256, max_bytes: int = 1024 * 1024) -> None:
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._frames: list[bytes] = []
        self._size = 0
        self._end: End | None = None
        self._filled: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None

    @property
    def end(self) -> End | None:
        """None as long as frames are taken."""
        return self._end

    def put(self, frame: bytes) -> bool:
        """Add a frame, never waiting. False when the reader is gone, or is let go now for being too slow."""
        if self._end is not None:
            return False
        if self._frames and self._is_full(len(frame)):
            self.give_up(End.OVERFLOWED)
            return False
        if frame:
            self._frames.append(frame)
            self._size += len(frame)
            _wake(self._filled)
        return True

    def close(self) -> None:
        """Take no more frames; those that wait are still sent."""
        if self._end is None:
            self._end = End.CLOSED
            self._wake_all()

    def give_up(self, end: End) -> None:
        """Take no more frames and forget those that wait: nobody will read them here."""
        if self._end is None or self._frames:
            self._end = end
        self._frames = []
        self._wake_all()

    async def drain(self) -> bytes:
        """Everything that waits, joined; sleeps until there is something. Empty once it is over."""
        while not self._frames and self._end is None:
            self._filled = asyncio.get_running_loop().create_future()
            await self._filled
        return self.take()

    def take(self) -> bytes:
        """Everything that waits, joined; empty when nothing does."""
        frames, self._frames, self._size = self._frames, [], 0
        _wake(self._drained)
        return b"".join(frames)

    async def room(self) -> bool:
        """Sleep until nothing waits: for the one maker that has time, a replay. False once it is over."""
        while self._frames and self._end is None:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained
        return self._end is None

    def _is_full(self, more: int) -> bool:
        # asked only when something waits: a lone frame of any size has its turn
        return len(self._frames) >= self._max_frames or self._size + more > self._max_bytes

    def _wake_all(self) -> None:
        _wake(self._filled)
        _wake(self._drained)


async def send_stream(
    receive: Receive,
    send: Send,
    outbox: Outbox,
    *,
    headers: Sequence[Header] = EVENT_STREAM_HEADERS,
    keep_alive: float = 15.0,
    stall_after: float = 30.0,
) -> End:
    """Write the outbox as the body of a 200 response, until it ends or the reader does; says which.

    After `keep_alive` quiet seconds a comment is sent. A socket that takes nothing for `stall_after` seconds
    is given up.
    """
    writer = _Writer(send, outbox, keep_alive=keep_alive, stall_after=stall_after)
    try:
        async with asyncio.TaskGroup() as group:
            listener = group.create_task(_listen(receive, outbox))
            end = await writer.write(headers)
            listener.cancel()
    finally:
        # also when the server cancels this response: nobody may go on filling what nobody drains
        outbox.give_up(End.LEFT)
    return end


async def _listen(receive: Receive, outbox: Outbox) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    outbox.give_up(End.LEFT)


class _Writer:
    """The task that sends, and the one timer that watches it: no timer and no task per frame."""

    def __init__(self, send: Send, outbox: Outbox, *, keep_alive: float, stall_after: float) -> None:
        self._send = send
        self._outbox = outbox
        self._keep_alive = keep_alive
        self._stall_after = stall_after
        self._is_sending = False
        self._has_stalled = False
        task = asyncio.current_task()
        assert task is not None, "whatever serves a request is a task"
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._touched = self._loop.time()
        self._timer: asyncio.Handle = self._loop.call_soon(self._watch)

    async def write(self, headers: Sequence[Header]) -> End:
        try:
            return await self._write_all(headers)
        except asyncio.CancelledError:
            # the watch cancelled this one send; a cancel by anybody else goes on
            if self._has_stalled and self._task.uncancel() == 0:
                return End.STALLED
            raise
        except OSError:
            # servers of newer ASGI versions say so when the reader is gone
            return End.LEFT
        finally:
            self._timer.cancel()

    async def _write_all(self, headers: Sequence[Header]) -> End:
        await self._pass_on({"type": "http.response.start", "status": 200, "headers": list(headers)})
        # sent even when it is empty: some servers keep the head back until a body follows
        body = self._outbox.take()
        while True:
            end = self._outbox.end
            if end is End.LEFT:
                return end
            await self._pass_on({"type": "http.response.body", "body": body, "more_body": end is None})
            if end is not None:
                return end
            body = await self._outbox.drain()

    async def _pass_on(self, message: Message) -> None:
        self._touched = self._loop.time()
        self._is_sending = True
        await self._send(message)
        self._is_sending = False

    def _watch(self) -> None:
        patience = self._stall_after if self._is_sending else self._keep_alive
        left = self._touched + patience - self._loop.time()
        if left <= 0 and self._is_sending:
            self._has_stalled = True
            self._outbox.give_up(End.STALLED)
            self._task.cancel()
            return
        if left <= 0:
            self._outbox.put(KEEP_ALIVE)
            left = patience
        # never later than either patience: what happens until then is not known yet
        wait = min(left, self._keep_alive, self._stall_after)
        self._timer = self._loop.call_later(wait, self._watch)


def _wake(sleeper: asyncio.Future[None] | None) -> None:
    if sleeper is not None and not sleeper.done():
        sleeper.set_result(None)
