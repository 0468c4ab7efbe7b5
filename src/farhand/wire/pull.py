"""A response body that stays open, pulled from its source at the reader's own speed.

One send to the server is one write to the socket, so the source joins what waits. A reader that is slow only
slows its own pulling: the source holds nothing for it. Must not know what the frames say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from starlette.types import Message, Receive, Send

from farhand.wire.http import Header
from farhand.wire.sse import KEEP_ALIVE


class Source(Protocol):
    async def next(self, seconds: float) -> bytes | None:
        """What waits, joined; empty when nothing came in time; None at the end."""
        ...

    def leave(self) -> None:
        """The reader is gone: `next()` returns None at once."""
        ...


async def send_frames(
    receive: Receive,
    send: Send,
    source: Source,
    *,
    headers: Sequence[Header],
    keep_alive: float = 15.0,
    stall_after: float = 30.0,
) -> None:
    """Writes the source as the body of a 200 response, until it ends or the reader does."""
    async with asyncio.TaskGroup() as group:
        listener = group.create_task(_listen(receive, source))
        try:
            # the head goes out at once: whoever connected wants to know it
            await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
            await _send_body(send, b"", more=True, within=stall_after)
            while (frames := await source.next(keep_alive)) is not None:
                await _send_body(send, frames or KEEP_ALIVE, more=True, within=stall_after)
            await send(_END)
        except (TimeoutError, OSError):
            # a socket that takes nothing, or is gone: its reader can resume
            pass
        finally:
            listener.cancel()


async def _listen(receive: Receive, source: Source) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    source.leave()


async def _send_body(send: Send, body: bytes, *, more: bool, within: float) -> None:
    async with asyncio.timeout(within):
        await send({"type": "http.response.body", "body": body, "more_body": more})


_END: Message = {"type": "http.response.body", "body": b"", "more_body": False}
