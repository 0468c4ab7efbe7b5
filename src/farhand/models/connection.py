"""A provider's client, kept for the event loop that uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

C = TypeVar("C")


class Connection(Generic[C]):
    """Makes a client where one is needed. Its sockets serve one loop: another one gets its own."""

    def __init__(self, make: Callable[[], C], shut: Callable[[C], Awaitable[object]]) -> None:
        """The first client is made at once, so that a bad setting is told at once."""
        self._make = make
        self._shut = shut
        self._client: C | None = make()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def first(self) -> C:
        """The client before anybody used it."""
        assert self._client is not None, "the first client is there until it was used and closed"
        return self._client

    def client(self) -> C:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop not in (None, loop):
            self._client = self._make()
        self._loop = loop
        return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        # sockets of another loop went with it
        if client is not None and self._loop is asyncio.get_running_loop():
            await self._shut(client)
