"""The fault proxy with two plain sockets: each fault looks to both ends as its name says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.chaos.fault_proxy import FaultProxy

WITHIN_SEC = 20.0
PATIENCE_SEC = 0.2


class Ends:
    """A connection through the line: the client's end, and the server's once it has accepted."""

    def __init__(self, line: FaultProxy, accepted: asyncio.Queue[End]) -> None:
        self.line = line
        self._accepted = accepted
        self._made: list[End] = []

    async def connect(self) -> tuple[End, End]:
        here = End(*await asyncio.open_connection("127.0.0.1", self.line.port))
        there = await asyncio.wait_for(self._accepted.get(), WITHIN_SEC)
        self._made += [here, there]
        return here, there

    def close(self) -> None:
        for end in self._made:
            end.writer.close()


class End:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def send(self, piece: bytes) -> None:
        self.writer.write(piece)
        await self.writer.drain()

    async def hear(self, size: int) -> bytes:
        return await asyncio.wait_for(self._reader.readexactly(size), WITHIN_SEC)

    async def rest(self) -> bytes:
        return await asyncio.wait_for(self._reader.read(), WITHIN_SEC)

    async def hears_nothing(self) -> bool:
        """For a while: there is no fact to wait for when nothing comes."""
        try:
            await asyncio.wait_for(self._reader.read(1), PATIENCE_SEC)
        except TimeoutError:
            return True
        return False

    async def is_told_of_the_loss(self) -> bool:
        try:
            return await self.rest() == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def line() -> AsyncIterator[Ends]:
    accepted: asyncio.Queue[End] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepted.put(End(reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with FaultProxy(("127.0.0.1", server.sockets[0].getsockname()[1])) as proxy:
        ends = Ends(proxy, accepted)
        yield ends
        ends.close()
    server.close()


async def test_without_a_fault_everything_passes_both_ways_and_an_end_is_an_end() -> None:
    async with line() as ends:
        here, there = await ends.connect()
        await here.send(b"question")
        assert await there.hear(8) == b"question"
        large = bytes(range(256)) * 4096
        await asyncio.gather(there.send(large), _expect(here, large))
        there.writer.write_eof()
        assert await here.rest() == b""
        assert ends.line.carried == len(large)


async def test_a_cut_tells_both_ends_and_leaves_new_connections_alone() -> None:
    async with line() as ends:
        here, there = await ends.connect()
        assert ends.line.cut() == 1
        assert await here.is_told_of_the_loss()
        assert await there.is_told_of_the_loss()
        here, there = await ends.connect()
        await there.send(b"hello")
        assert await here.hear(5) == b"hello"


async def test_a_hanging_line_tells_nobody_and_loses_nothing_when_it_flows_again() -> None:
    async with line() as ends:
        here, there = await ends.connect()
        assert ends.line.hang() == 1
        await there.send(b"late")
        assert await here.hears_nothing()
        ends.line.flow()
        assert await here.hear(4) == b"late"


async def test_a_hanging_line_can_be_cut() -> None:
    async with line() as ends:
        here, there = await ends.connect()
        ends.line.hang()
        await there.send(b"lost")
        assert ends.line.cut() == 1
        assert await here.is_told_of_the_loss()


async def test_half_open_takes_the_servers_end_and_leaves_the_client_in_the_dark() -> None:
    async with line() as ends:
        here, there = await ends.connect()
        assert ends.line.half_open() == 1
        assert await there.is_told_of_the_loss()
        await here.send(b"anybody?")
        assert await here.hears_nothing()
        assert ends.line.connections == 1
        assert ends.line.half_open() == 0, "it was hit already"


async def test_one_connection_of_several_is_hit_by_the_port_from_which_it_reaches_the_server() -> None:
    async with line() as ends:
        here, there = await ends.connect()
        also_here, also_there = await ends.connect()
        port = there.writer.get_extra_info("peername")[1]
        assert port in ends.line.ports
        assert ends.line.cut(port) == 1
        assert await here.is_told_of_the_loss()
        await also_there.send(b"hello")
        assert await also_here.hear(5) == b"hello"
        assert ends.line.half_open(port) == 0, "it was hit already"


async def test_a_delay_keeps_every_piece_for_so_long_and_in_order() -> None:
    async with line() as ends:
        here, there = await ends.connect()
        loop = asyncio.get_running_loop()
        assert ends.line.delay(0.1) == 1
        began = loop.time()
        await there.send(b"first ")
        await there.send(b"second")
        assert await here.hear(12) == b"first second"
        assert loop.time() - began >= 0.1
        ends.line.delay(0)


@pytest.mark.parametrize("size", [1, 5, 100_000])
async def test_a_drop_lets_exactly_so_many_bytes_through(size: int) -> None:
    async with line() as ends:
        here, there = await ends.connect()
        assert ends.line.drop_after(size) == 1
        sent = b"0123456789" * 20_000
        sending = asyncio.create_task(there.send(sent))
        assert await here.rest() == sent[:size]
        await asyncio.wait([sending])
        assert sending.exception() is None or isinstance(sending.exception(), ConnectionError)


async def test_each_connection_to_come_can_be_dropped_after_so_many_bytes() -> None:
    async with line() as ends:
        ends.line.drop_each_after(3)
        for _ in range(2):
            here, there = await ends.connect()
            await there.send(b"hello")
            assert await here.rest() == b"hel"
        ends.line.drop_each_after(None)
        here, there = await ends.connect()
        await there.send(b"hello")
        assert await here.hear(5) == b"hello"


async def test_a_line_to_nowhere_refuses_and_a_fault_without_connections_hits_nobody() -> None:
    async with FaultProxy(("127.0.0.1", 1)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await End(reader, writer).is_told_of_the_loss()
        writer.close()
        assert (proxy.cut(), proxy.half_open(), proxy.drop_after(1)) == (0, 0, 0)


async def _expect(end: End, wanted: bytes) -> None:
    assert await end.hear(len(wanted)) == wanted
