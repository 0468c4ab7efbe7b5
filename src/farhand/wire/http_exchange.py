"""One request and its response: receive, send, and the end of the connection.

It ends when the peer disconnects, or when `cut` ends it as if the peer had.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.types import Message, Receive, Send

OnDisconnect: TypeAlias = Callable[[], None]


class HttpExchange:
    __slots__ = ("_left", "_send", "has_answered", "is_over", "receive")

    def __init__(self, receive: Receive, send: Send) -> None:
        self.receive = receive
        self.has_answered = False
        """Whether the response has started."""
        self.is_over = False
        self._send = send
        self._left: OnDisconnect | None = None

    def send(self, message: Message) -> Awaitable[None]:
        self.has_answered = True
        return self._send(message)

    def when_over(self, left: OnDisconnect) -> None:
        """Calls `left` when the connection ends, or now if it has ended."""
        self._left = left
        if self.is_over:
            left()

    async def listen(self) -> None:
        """Returns when the peer has disconnected."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        await self.cut()

    async def cut(self) -> None:
        """Ends an open response as if its reader had disconnected."""
        self.is_over = True
        if self._left is not None:
            self._left()
