"""A response body that stays open, pulled from its source at the reader's own speed.

One send to the server is one write to the socket, so the source joins what waits. A reader that is slow only
slows its own pulling: the source holds nothing for it. Must not know what the frames say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from starlette.types import Message

from farhand.wire.http import SECURITY, Header
from farhand.wire.line import Line
from farhand.wire.sse import KEEP_ALIVE

PIECE = 64 * 1024
"""The most that is sent at once: a slow socket has its time for each."""


class Source(Protocol):
    @property
    def ended(self) -> bool:
        """Whether what was given last is all there is: then the body ends with it."""
        ...

    async def next(self, seconds: float) -> bytes | None:
        """What waits, joined; empty when nothing came in time; None at the end."""
        ...

    def leave(self) -> None:
        """The reader is gone: `next()` ends soon, whatever it gives."""
        ...


class End(Enum):
    """Why a body ended."""

    FINISHED = "finished"
    """The source came to its end, and all of it was handed to the server."""
    LEFT = "left"
    """The reader went away."""
    STALLED = "stalled"
    """The socket took nothing for too long."""


async def send_frames(
    line: Line,
    source: Source,
    *,
    headers: Sequence[Header],
    keep_alive: float = 15.0,
    stall_after: float = 30.0,
) -> End:
    """Writes the source as the body of a 200 response, until it ends or the reader does; says which.

    Whenever nothing came for `keep_alive` seconds, a comment is sent. A reader that was let go can resume.
    """
    body = _Body(line, source, stall_after)
    line.when_over(body.leave)
    try:
        async with asyncio.TaskGroup() as group:
            listener = group.create_task(line.listen())
            end = await body.write(headers, keep_alive)
            listener.cancel()
    except ExceptionGroup as faults:
        # the caller knows nothing of two tasks: a fault of the source reaches it as it was raised
        raise faults.exceptions[0] from None
    return end


class _Body:
    __slots__ = ("_line", "_lost", "_source", "_stall_after")

    def __init__(self, line: Line, source: Source, stall_after: float) -> None:
        self._line = line
        self._source = source
        self._stall_after = stall_after
        self._lost: End | None = None
        """Why nobody reads any more."""

    def leave(self) -> None:
        self._lost = End.LEFT
        self._source.leave()

    async def write(self, headers: Sequence[Header], keep_alive: float) -> End:
        await self._send({"type": "http.response.start", "status": 200, "headers": [*headers, *SECURITY]})
        # some servers keep the head back until a body follows, and whoever connected wants to know
        await self._send_body(b"", has_more=True)
        has_more = True
        while self._lost is None and has_more:
            frames = await self._source.next(keep_alive)
            has_more = not (frames is None or self._source.ended)
            await self._send_body(frames or (KEEP_ALIVE if has_more else b""), has_more=has_more)
            # a stream that waits for hours keeps nothing of what it has sent
            del frames
        return self._lost or End.FINISHED

    async def _send_body(self, body: bytes, *, has_more: bool) -> None:
        for start in range(0, len(body) or 1, PIECE):
            end = start + PIECE
            piece = body if len(body) <= PIECE else body[start:end]
            is_more = has_more or end < len(body)
            await self._send({"type": "http.response.body", "body": piece, "more_body": is_more})

    async def _send(self, message: Message) -> None:
        if self._lost is not None:
            return
        try:
            async with asyncio.timeout(self._stall_after):
                await self._line.send(message)
        except TimeoutError:
            self._lost = End.STALLED
        except OSError:
            # how servers of newer ASGI versions say that the reader is gone
            self._lost = End.LEFT
