"""The connection behind one request: what comes, what goes, and that it ends. Must not know why.

It ends when the peer leaves, or when it is cut from inside as if the peer had left. A server that knows our
extension tells when the peer has left; with any other somebody has to listen, which costs a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.types import Message, Receive, Scope, Send

EXTENSION = "farhand.peer"
"""A function that takes another, to call it when the peer has left, and gives one that writes to it. Its
server writes the head of a stream at once, and can be sent to from any callback of its loop."""

Left: TypeAlias = Callable[[], None]
Write: TypeAlias = Callable[[bytes], bool]
"""Writes a piece of a body that has begun and stays open; False if it has to be sent as a message instead."""


class Line:
    __slots__ = ("_left", "_send", "_tells", "has_answered", "is_over", "is_told", "receive", "write")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.receive = receive
        self.has_answered = False
        """Whether the response has begun."""
        self.is_over = False
        self.write: Write = _only_messages
        self._send = send
        extensions = scope.get("extensions")
        self._tells: Callable[[Left], Write] | None = extensions.get(EXTENSION) if extensions else None
        self.is_told = self._tells is not None
        """Whether the server tells when the peer has left, so that nobody has to `listen`."""
        self._left: Left | None = None

    def send(self, message: Message) -> Awaitable[None]:
        self.has_answered = True
        return self._send(message)

    def when_over(self, left: Left) -> None:
        """`left` is called once the connection is over, at once if it is."""
        self._left = left
        if self.is_over:
            left()
        elif self._tells is not None:
            self.write = self._tells(self._end)

    async def listen(self) -> None:
        """Until the peer has left."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self._end()

    async def cut(self) -> None:
        """For whoever writes a response that stays open: its reader has left."""
        self._end()

    def _end(self) -> None:
        self.is_over = True
        if self._left is not None:
            self._left()


def _only_messages(piece: bytes) -> bool:
    """Whatever is sent to most servers is a message."""
    return False
