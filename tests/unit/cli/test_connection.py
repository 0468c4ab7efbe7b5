"""A connection tells whoever answers on it when the peer has left: nobody has to listen for that."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from farhand.cli.connection import Connection
from farhand.wire.line import Line
from farhand.wire.pull import End, send_frames
from tests.requirement import requirement
from tests.unit.wire.peer import Frames

HEADERS = ((b"content-type", b"text/event-stream"),)
ASK = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


class App:
    """Each request streams the next of these sources."""

    def __init__(self, *sources: Frames) -> None:
        self.ends: asyncio.Queue[End] = asyncio.Queue()
        self.lines: list[Line] = []
        self._sources = list(sources)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = Line(scope, receive, send)
        self.lines.append(line)
        source = self._sources.pop(0)
        self.ends.put_nowait(await send_frames(line, source, headers=HEADERS, stall_after=0.1))


@asynccontextmanager
async def connected(app: ASGIApp) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    server = uvicorn.Server(uvicorn.Config(app, http=Connection, log_config=None, lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            try:
                yield reader, writer
            finally:
                writer.close()
                server.should_exit = True


@requirement("stream:reader-leaves")
async def test_a_reader_that_leaves_a_silent_stream_is_noticed_without_a_listener() -> None:
    source = Frames()
    app = App(source)
    async with connected(app) as (reader, writer):
        writer.write(ASK)
        await reader.readuntil(b"\r\n\r\n")
        assert app.lines[0].is_told
        writer.close()
        assert await app.ends.get() is End.LEFT
    assert source.was_left


@requirement("stream:reader-leaves")
async def test_an_answer_that_has_ended_is_not_told_of_what_becomes_of_its_connection() -> None:
    first, second = Frames(b"a", None), Frames()
    app = App(first, second)
    async with connected(app) as (reader, writer):
        writer.write(ASK)
        await reader.readuntil(b"0\r\n\r\n")
        assert await app.ends.get() is End.FINISHED
        writer.write(ASK)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        assert await app.ends.get() is End.LEFT
    assert not first.was_left
    assert second.was_left


@requirement("stream:shown-at-once")
async def test_what_is_shown_crosses_the_wire_without_a_task() -> None:
    source = Frames()
    source.last = b"end"
    app = App(source)
    async with connected(app) as (reader, writer):
        writer.write(ASK)
        await reader.readuntil(b"\r\n\r\n")
        source.show(b"word")
        assert await reader.readexactly(9) == b"4\r\nword\r\n"
        assert len(source.asked) == 1
        source.show(b"end")
        assert await reader.readuntil(b"0\r\n\r\n") == b"3\r\nend\r\n0\r\n\r\n"
        assert await app.ends.get() is End.FINISHED


@requirement("stream:slow-reader")
async def test_a_reader_that_takes_nothing_of_what_is_shown_is_given_up() -> None:
    source = Frames()
    app = App(source)
    async with connected(app) as (reader, writer):
        writer.write(ASK)
        await reader.readuntil(b"\r\n\r\n")
        # more than the buffers of both ends can hold
        while source.may_show:
            source.show(b"x" * 1_000_000)
        assert await app.ends.get() is End.STALLED


@requirement("stream:reader-leaves")
async def test_a_peer_that_leaves_is_noticed_by_the_answer_under_way_though_it_has_asked_for_more() -> None:
    left = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})
        # more than the buffers of both ends can hold: the second waits
        for _ in range(2):
            await send({"type": "http.response.body", "body": bytes(32_000_000), "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    async with connected(app) as (reader, writer):
        writer.write(ASK + ASK)
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        await asyncio.wait_for(left.wait(), 10)


@requirement("response:framed")
async def test_no_socket_is_opened_in_the_middle_of_an_answer() -> None:
    kinds: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        kinds.append(scope["type"])
        await send({"type": "http.response.start", "status": 200})
        await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"whole"})

    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    handshake = ASK.replace(
        b"\r\n\r\n", b"\r\nsec-websocket-key: " + b"A" * 22 + b"==\r\n" + upgrade + b"\r\n"
    )
    async with connected(app) as (reader, writer):
        writer.write(ASK + handshake)
        for _ in range(2):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            assert await reader.readuntil(b"0\r\n\r\n") == b"5\r\nwhole\r\n0\r\n\r\n"
    assert kinds == ["http", "http"]
