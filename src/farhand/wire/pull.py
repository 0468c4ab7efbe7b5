"""A response body that stays open, pulled from its source at the reader's own speed.

One send to the server is one write to the socket, so the source joins what waits. A reader that is slow only
slows its own pulling: the source holds nothing for it. While a pull waits and the socket takes what comes,
the source shows it at once, and nobody is woken for it. Must not know what the frames say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

from starlette.types import Message

from farhand.wire.begun import Begun
from farhand.wire.http import SECURITY, Header
from farhand.wire.line import Line
from farhand.wire.sse import KEEP_ALIVE

PIECE = 64 * 1024
"""The most that is sent at once: a slow socket has its time for each."""

BODY = "http.response.body"

Show: TypeAlias = Callable[[bytes], bool]
"""Sends frames where they are made, outside of the response's task; False if that is needed from there."""


class Source(Protocol):
    @property
    def ended(self) -> bool:
        """Whether what was given last is all there is: then the body ends with it."""
        ...

    async def next(self, seconds: float, show: Show | None) -> bytes | None:
        """What waits, joined; empty when nothing came in time; None at the end.

        With `show`, what comes meanwhile may be given there instead; when that says False, this ends soon,
        whatever it gives. The last of all is given here: what a server does after a response belongs to that,
        and not to whoever says the last word.
        """
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
    __slots__ = ("_is_last", "_line", "_lost", "_rest", "_sending", "_source", "_stall_after")

    def __init__(self, line: Line, source: Source, stall_after: float) -> None:
        self._line = line
        self._source = source
        self._stall_after = stall_after
        self._is_last = False
        """Whether the body has ended with what was sent."""
        self._sending: Begun[None] | None = None
        """What the socket has not taken yet."""
        self._rest: Iterator[Message] = NOTHING
        """Pieces that come behind it."""
        self._lost: End | None = None
        """Why nobody reads any more."""

    def leave(self) -> None:
        self._lost = End.LEFT
        self._source.leave()

    async def write(self, headers: Sequence[Header], keep_alive: float) -> End:
        self._send({"type": "http.response.start", "status": 200, "headers": [*headers, *SECURITY]})
        show: Show | None = self._show
        if not self._line.is_told:
            # some servers keep the head back until a body follows, and whoever connected wants to know
            await self._finish()
            self._send({"type": BODY, "body": b"", "more_body": True})
            # nor may every server be called outside of the task that it made for the request
            show = None
        if self._sending is not None:
            await self._finish()
        while self._lost is None and not self._is_last:
            frames = await self._source.next(keep_alive, show)
            if self._sending is None:
                self._pass_on(frames)
            # a stream that waits for hours keeps nothing of what it has sent
            del frames
            if self._sending is not None:
                await self._finish()
        return self._lost or End.FINISHED

    def _show(self, frames: bytes) -> bool:
        if self._lost is None and len(frames) <= PIECE and self._line.write(frames):
            return True
        self._send_body(frames, has_more=True)
        return self._sending is None and self._lost is None

    def _pass_on(self, frames: bytes | None) -> None:
        """Sends them, or a comment if there are none."""
        self._is_last = frames is None or self._source.ended
        body = frames or (b"" if self._is_last else KEEP_ALIVE)
        self._send_body(body, has_more=not self._is_last)

    def _send_body(self, body: bytes, *, has_more: bool) -> None:
        if len(body) <= PIECE:
            self._send({"type": BODY, "body": body, "more_body": has_more})
        else:
            self._rest = _pieces(body, has_more=has_more)
            self._send_rest()

    def _send_rest(self) -> None:
        """As much of it as the socket takes now."""
        for piece in self._rest:
            self._send(piece)
            if self._sending is not None or self._lost is not None:
                return

    def _send(self, message: Message) -> None:
        """At once, but for what is left of it if the socket takes no more for now, as it nearly never is."""
        if self._lost is not None:
            return
        try:
            sending = Begun(self._line.send(message))
        except OSError:
            # how servers of newer ASGI versions say that the reader is gone
            self._lost = End.LEFT
            return
        if not sending.is_done:
            self._sending = sending

    async def _finish(self) -> None:
        while self._sending is not None:
            sending, self._sending = self._sending, None
            try:
                async with asyncio.timeout(self._stall_after):
                    await sending
            except TimeoutError:
                self._lost = End.STALLED
            except OSError:
                self._lost = End.LEFT
            self._send_rest()


NOTHING: Iterator[Message] = iter(())


def _pieces(body: bytes, *, has_more: bool) -> Iterator[Message]:
    for start in range(0, len(body), PIECE):
        end = start + PIECE
        yield {"type": BODY, "body": body[start:end], "more_body": has_more or end < len(body)}
