"""A raw connection of the load client, as cheap as Python can be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast


class Connection(asyncio.Protocol):
    """Passes on the data that arrives; the end of the connection is passed on as empty data."""

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self.on_data = on_data
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.write = self.transport.write

    def data_received(self, data: bytes) -> None:
        self.on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.on_data(b"")


async def connect(port: int, on_data: Callable[[bytes], None]) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(on_data), "127.0.0.1", port)
    return connection
