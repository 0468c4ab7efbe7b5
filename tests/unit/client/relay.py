"""A TCP relay between client and server, for tests that cut the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.postgres import free_port


class Relay:
    """`url` leads to the server as long as the relay is up."""

    def __init__(self, port: int) -> None:
        self.connections = 0
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._own_port = free_port()
        self.url = f"http://127.0.0.1:{self._own_port}"

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self._own_port)

    async def down(self) -> None:
        """Nobody gets through, and whoever was connected no longer is."""
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> int:
        """Breaks every connection there is, in the middle of whatever it carries; how many those were."""
        writers = list(self._writers)
        for writer in writers:
            writer.transport.abort()
        return len(writers)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(OSError):
            onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._writers |= {writer, onward_writer}
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pipe(reader, onward_writer))
                    group.create_task(_pipe(onward_reader, writer))
            finally:
                self._writers -= {writer, onward_writer}
        writer.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side is closed; then the other is, too."""
    with suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def relayed(port: int) -> AsyncIterator[Relay]:
    relay = Relay(port)
    await relay.up()
    try:
        yield relay
    finally:
        await relay.down()
