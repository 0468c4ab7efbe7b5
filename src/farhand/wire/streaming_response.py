"""A streaming response body, pulled from its source at the reader's speed.

Each ASGI send is one write to the socket, so the source joins what is pending. A slow reader delays only
itself: nothing is buffered for it. Must not know what the frames mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from starlette.types import Message

from farhand.wire.http import SECURITY, Header, HttpExchange
from farhand.wire.sse import KEEP_ALIVE
from farhand.wire.time_limit import TimeLimit

PIECE = 64 * 1024
"""The most that is sent at once; the stall limit applies to each piece."""


class FrameSource(Protocol):
    @property
    def ended(self) -> bool:
        """Whether the last frames have been returned: the body ends with them."""
        ...

    async def next(self, seconds: float) -> bytes | None:
        """Pending frames, joined; empty after `seconds` without any; None at the end."""
        ...

    def leave(self) -> None:
        """The reader is gone: a pending `next()` returns soon."""
        ...


class StreamEnd(Enum):
    """Why a body ended."""

    FINISHED = "finished"
    """The source ended, and all of it was passed to the server."""
    LEFT = "left"
    """The reader disconnected."""
    STALLED = "stalled"
    """The socket took nothing for too long."""


async def send_frames(
    exchange: HttpExchange,
    source: FrameSource,
    *,
    headers: Sequence[Header],
    stall: TimeLimit,
    keep_alive: float = 15.0,
) -> StreamEnd:
    """Sends the source as the body of a 200 response, until it ends or the reader leaves; returns which.

    A comment is sent after every `keep_alive` seconds without frames. `stall` limits each send; a reader that
    stalled can resume.
    """
    body = _Body(exchange, source, stall)
    exchange.when_over(body.leave)
    # no task group: for as long as the stream is open it would keep more than the task itself
    listener = asyncio.create_task(exchange.listen())  # noqa: TID251
    try:
        await body.send({"type": "http.response.start", "status": 200, "headers": [*headers, *SECURITY]})
        # some servers send the head only with the first bytes of the body
        await body.send({"type": "http.response.body", "body": b"", "more_body": True})
        has_more = True
        while body.lost is None and has_more:
            frames = await source.next(keep_alive)
            has_more = not (frames is None or source.ended)
            await body.send_frames(frames or (KEEP_ALIVE if has_more else b""), has_more=has_more)
            # a stream that waits for hours does not keep what it has sent
            del frames
        return body.lost or StreamEnd.FINISHED
    finally:
        listener.cancel()
        await asyncio.wait([listener])
        if not listener.cancelled():
            listener.result()


class _Body:
    __slots__ = ("_exchange", "_source", "_stall", "lost")

    def __init__(self, exchange: HttpExchange, source: FrameSource, stall: TimeLimit) -> None:
        self._exchange = exchange
        self._source = source
        self._stall = stall
        self.lost: StreamEnd | None = None
        """Why the reader is gone."""

    def leave(self) -> None:
        self.lost = StreamEnd.LEFT
        self._source.leave()

    async def send_frames(self, frames: bytes, *, has_more: bool) -> None:
        start = 0
        while start + PIECE < len(frames):
            piece = frames[start : start + PIECE]
            await self.send({"type": "http.response.body", "body": piece, "more_body": True})
            start += PIECE
        await self.send({"type": "http.response.body", "body": frames[start:], "more_body": has_more})

    async def send(self, message: Message) -> None:
        if self.lost is not None:
            return
        try:
            await self._stall.run(self._exchange.send(message))
        except TimeoutError:
            self.lost = StreamEnd.STALLED
        except OSError:
            # how servers with newer ASGI versions report a disconnect
            self.lost = StreamEnd.LEFT
