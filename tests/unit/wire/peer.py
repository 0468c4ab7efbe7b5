"""The server's side of one ASGI response, recorded, and as slow or as absent as a test wants it."""

from __future__ import annotations

import asyncio

from starlette.types import Message


class Peer:
    def __init__(self, *incoming: Message) -> None:
        self.sent: list[Message] = []
        self.times: list[float] = []
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
        self.times.append(asyncio.get_running_loop().time())
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
