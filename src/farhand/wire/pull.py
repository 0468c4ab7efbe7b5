"""A response body that stays open, pulled from its source at the reader's own speed.

One send to the server is one write to the socket, so the source joins what waits. A reader that is slow only
slows its own pulling: the source holds nothing for it. Must not know what the frames say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from enum import Enum
from typing import Protocol

from starlette.types import Message

from farhand.wire.begun import Begun
from farhand.wire.http import SECURITY, Header
from farhand.wire.line import Line
from farhand.wire.sse import KEEP_ALIVE


class Source(Protocol):
    @property
    def ended(self) -> bool:
        """Whether what `next()` gave last is all there is: then the body ends with it."""
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


def send_frames(
    line: Line,
    source: Source,
    *,
    headers: Sequence[Header],
    keep_alive: float = 15.0,
    stall_after: float = 30.0,
) -> Coroutine[None, None, End]:
    """Writes the source as the body of a 200 response, until it ends or the reader does; says which.

    Whenever nothing came for `keep_alive` seconds, a comment is sent. A reader that was let go can resume.
    """
    body = _Body(line, source, stall_after)
    line.when_over(body.leave)
    writing = body.write(headers, keep_alive)
    return writing if line.is_told else _listening(line, writing)


async def _listening(line: Line, writing: Coroutine[None, None, End]) -> End:
    try:
        async with asyncio.TaskGroup() as group:
            listener = group.create_task(line.listen())
            end = await writing
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
        source = self._source
        await self._pass_on({"type": "http.response.start", "status": 200, "headers": [*headers, *SECURITY]})
        if not self._line.is_told:
            # some servers keep the head back until a body follows, and whoever connected wants to know
            await self._pass_on({"type": "http.response.body", "body": b"", "more_body": True})
        is_last = False
        while self._lost is None and not is_last:
            frames = await source.next(keep_alive)
            is_last = frames is None or source.ended
            body = frames or (b"" if is_last else KEEP_ALIVE)
            waits = self._begin({"type": "http.response.body", "body": body, "more_body": not is_last})
            # a stream that waits for hours keeps nothing of what it has sent
            del frames, body
            if waits is not None:
                await self._finish(waits)
                del waits
        return self._lost or End.FINISHED

    async def _pass_on(self, message: Message) -> None:
        waits = self._begin(message)
        if waits is not None:
            await self._finish(waits)

    def _begin(self, message: Message) -> Begun[None] | None:
        """Sends; what is left of that if the socket takes no more for now, as it nearly never is."""
        if self._lost is not None:
            return None
        try:
            sending = Begun(self._line.send(message))
        except OSError:
            # how servers of newer ASGI versions say that the reader is gone
            self._lost = End.LEFT
            return None
        return None if sending.is_done else sending

    async def _finish(self, sending: Begun[None]) -> None:
        try:
            async with asyncio.timeout(self._stall_after):
                await sending
        except TimeoutError:
            self._lost = End.STALLED
        except OSError:
            self._lost = End.LEFT
