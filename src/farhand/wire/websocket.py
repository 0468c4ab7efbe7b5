"""A WebSocket with limits on frame size, rate and idle time. Must not know what the frames mean.

Close codes: 1009 too large, 4401 no credential, 4403 not allowed, 4408 idle, 4429 too many frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Receive, Send

TOO_LARGE = 1009
INTERNAL = 1011
NO_CREDENTIAL = 4401
NOT_ALLOWED = 4403
IDLE = 4408
TOO_MANY = 4429
MOST_REASON = 123
CLOSE_WITHIN_SEC = 1.0
"""How long a close frame may take to be sent: a peer that reads nothing is not waited for."""


class Socket:
    """One accepted connection. `read()` ends with None."""

    def __init__(
        self,
        receive: Receive,
        send: Send,
        *,
        max_bytes: int = 1024 * 1024,
        per_second: int = 50,
        idle_after: float = 60.0,
        stall_after: float = 30.0,
    ) -> None:
        self.is_open = False
        self._receive = receive
        self._send = send
        self._max_bytes = max_bytes
        self._per_second = per_second
        self._idle_after = idle_after
        self._stall_after = stall_after
        self._allowance = float(per_second)
        self._asked_at = 0.0
        self._uses = 0
        self._reading: asyncio.Timeout | None = None

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While something is in progress for the peer, the idle limit does not apply."""
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1

    async def accept(self) -> None:
        await self._receive()
        await self._send({"type": "websocket.accept"})
        self.is_open = True
        self._asked_at = asyncio.get_running_loop().time()

    async def read(self) -> bytes | None:
        """The next frame from the peer, as bytes; None once the connection has ended."""
        while self.is_open:
            message = await self._next_message()
            if message is None:
                if not self._uses:
                    await self.close(IDLE)
                continue
            if message["type"] == "websocket.disconnect":
                self.is_open = False
                return None
            frame = _bytes_of(message.get("text"), message.get("bytes"))
            if await self._is_within_limits(frame):
                return frame
        return None

    async def write(self, text: bytes) -> None:
        """Sends one text frame; does nothing once the connection has ended or is stalled."""
        if self.is_open:
            await self._try_to_send({"type": "websocket.send", "text": text.decode()}, self._stall_after)

    async def close(self, code: int, reason: str = "") -> None:
        """Ends the connection, with the reason for a peer that still reads."""
        if self.is_open:
            self._end()
            closing = {"type": "websocket.close", "code": code, "reason": _cut(reason)}
            await self._try_to_send(closing, CLOSE_WITHIN_SEC)

    async def _try_to_send(self, message: Message, within: float) -> None:
        try:
            async with asyncio.timeout(within):
                await self._send(message)
        except (OSError, RuntimeError, TimeoutError):
            # the ways in which servers report that the reader is gone; it can resume
            self._end()

    def _end(self) -> None:
        self.is_open = False
        # ends a pending read(): the peer may take long to close, or may not know that nothing follows
        if self._reading is not None and not self._reading.expired():
            self._reading.reschedule(asyncio.get_running_loop().time())

    async def _next_message(self) -> Message | None:
        """None if the peer was idle for too long, or the socket was closed meanwhile."""
        try:
            async with asyncio.timeout(self._idle_after) as self._reading:
                return await self._receive()
        except TimeoutError:
            return None
        finally:
            self._reading = None

    async def _is_within_limits(self, frame: bytes) -> bool:
        if len(frame) > self._max_bytes:
            await self.close(TOO_LARGE, f"A message may have at most {self._max_bytes:,} bytes.")
            return False
        now = asyncio.get_running_loop().time()
        self._allowance = min(self._per_second, self._allowance + (now - self._asked_at) * self._per_second)
        self._asked_at = now
        if self._allowance < 1:
            await self.close(TOO_MANY, f"More than {self._per_second} messages a second on one connection.")
            return False
        self._allowance -= 1
        return True


async def refuse(receive: Receive, send: Send, code: int, reason: str, *, is_page: bool) -> None:
    """Refuses a connection. A program gets a 403 instead of the upgrade. A page could not see that, so its
    connection is accepted and then closed with the code and the reason."""
    await receive()
    if is_page:
        await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": code, "reason": _cut(reason)})


def _cut(reason: str) -> str:
    """Cut to the length that the protocol allows."""
    return reason.encode(errors="replace")[:MOST_REASON].decode(errors="ignore")


def _bytes_of(text: str | None, data: bytes | None) -> bytes:
    return text.encode(errors="replace") if text is not None else data or b""
