"""A raw connection of the load client, as cheap as Python can be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast


class Connection(asyncio.Protocol):
    """Hands on what arrives; a connection that ends is told as nothing."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        self.hear = hear
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.write = self.transport.write

    def data_received(self, data: bytes) -> None:
        self.hear(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.hear(b"")


async def connect(port: int, hear: Callable[[bytes], None]) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(hear), "127.0.0.1", port)
    return connection
