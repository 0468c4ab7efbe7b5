"""The connection behind one request: what comes, what goes, and that it ends. Must not know why.

It ends when the peer leaves, or when it is cut from inside as if the peer had left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.types import Message, Receive, Send

Left: TypeAlias = Callable[[], None]


class Line:
    __slots__ = ("_left", "_send", "has_answered", "is_over", "receive")

    def __init__(self, receive: Receive, send: Send) -> None:
        self.receive = receive
        self.has_answered = False
        """Whether the response has begun."""
        self.is_over = False
        self._send = send
        self._left: Left | None = None

    def send(self, message: Message) -> Awaitable[None]:
        self.has_answered = True
        return self._send(message)

    def when_over(self, left: Left) -> None:
        """`left` is called once the connection is over, at once if it is."""
        self._left = left
        if self.is_over:
            left()

    async def listen(self) -> None:
        """Until the peer has left."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        await self.cut()

    async def cut(self) -> None:
        """For whoever writes a response that stays open: its reader has left."""
        self.is_over = True
        if self._left is not None:
            self._left()
