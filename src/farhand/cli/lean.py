"""What the server below makes for each connection, with room only for what is there. Knows no connection.

An event of asyncio's keeps room for sixty waiters, and so does the line of requests that came too early:
three quarters of a kilobyte each, for nobody, on each of the thousands of connections that stay open.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

T = TypeVar("T")


class Signal:
    """An event of asyncio's, which is made when somebody has to wait for it, and only then."""

    __slots__ = ("_event", "_is_set")

    def __init__(self, *, is_set: bool = False) -> None:
        self._is_set = is_set
        self._event: asyncio.Event | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._event is not None:
            # whoever waits now is woken; the next one gets another
            self._event.set()
            self._event = None

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> bool:
        if self._is_set:
            return True
        if self._event is None:
            self._event = asyncio.Event()
        return await self._event.wait()


class Pipeline(list[T]):
    """Requests that came before the answer to the one before; the newest is on the left."""

    __slots__ = ()

    def appendleft(self, item: T) -> None:
        self.insert(0, item)
