"""A provider's client, kept for the event loop that uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

C = TypeVar("C")


class Connection(Generic[C]):
    """Makes the client when it is first needed. Its sockets serve one loop: another one gets its own."""

    def __init__(self, make: Callable[[], C], shut: Callable[[C], Awaitable[object]]) -> None:
        self._make = make
        self._shut = shut
        self._client: C | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def client(self) -> C:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = self._make(), loop
        return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        # sockets of another loop went with it
        if client is not None and self._loop is asyncio.get_running_loop():
            await self._shut(client)
