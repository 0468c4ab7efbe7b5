"""Both ends of one response: the recorded server side, and a source of frames that a test controls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.types import Message


class Peer:
    """Takes what is sent at once, unless `takes` is cleared."""

    def __init__(self, *incoming: Message) -> None:
        self.sent: list[Message] = []
        self.takes = asyncio.Event()
        self.takes.set()
        self._incoming = list(incoming)
        self._gone = asyncio.Event()
        self._changed = asyncio.Event()

    async def receive(self) -> Message:
        if self._incoming:
            return self._incoming.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        self._changed.set()
        await self.takes.wait()

    def leave(self) -> None:
        self._gone.set()

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.sent[1:]]

    async def has_sent(self, count: int) -> None:
        """Wait until so many messages were sent; bounded by the timeout of the test."""
        while len(self.sent) < count:
            self._changed.clear()
            await self._changed.wait()


class Frames:
    """A source that a test fills: with bytes, None for the end, or an error to raise."""

    def __init__(self, *items: bytes | Exception | None) -> None:
        self.asked: list[float] = []
        self.was_left = False
        self.last: bytes | None = None
        """After this one the source has ended."""
        self.ended = False
        self._items: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.add(items)

    def add(self, items: Sequence[bytes | Exception | None]) -> None:
        for item in items:
            self._items.put_nowait(item)

    async def next(self, seconds: float) -> bytes | None:
        self.asked.append(seconds)
        item = await self._items.get()
        if isinstance(item, Exception):
            raise item
        self.ended = self.ended or (item is not None and item == self.last)
        return item

    def leave(self) -> None:
        self.was_left = True
        self.add([None])
