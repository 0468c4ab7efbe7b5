"""A connection that can be ended from inside, as if the peer had left. Must not know why."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive


class Cuttable:
    """`receive` of a response that stays open. After `cut()` its reader has left, and nothing else comes."""

    __slots__ = ("_receive", "_waiting", "is_cut")

    def __init__(self, receive: Receive) -> None:
        self.is_cut = False
        self._receive = receive
        self._waiting: asyncio.Timeout | None = None

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout(None) as self._waiting:
                return {"type": "http.disconnect"} if self.is_cut else await self._receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        finally:
            self._waiting = None

    async def cut(self) -> None:
        self.is_cut = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())
