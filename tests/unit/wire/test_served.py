"""The wire behind a real server and real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import Receive, Scope, Send

from farhand.errors import PeerFault
from farhand.wire.http import HttpExchange, read_body, require_json, respond_body, respond_json
from farhand.wire.sse import DONE, Event, frame, parse
from farhand.wire.streaming_response import FrameSource, StreamEnd, send_frames
from farhand.wire.time_limit import TimeLimit
from tests.unit.wire.peer import Frames

HEADERS = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))


class Flood:
    """More than the buffers of both ends can hold."""

    ended = False

    async def next(self, seconds: float) -> bytes | None:
        return b"x" * 1_000_000

    def leave(self) -> None:
        raise AssertionError("a socket that is only not read is no reader that left")


class App:
    """POST gives the body back; GET streams the source of the test."""

    def __init__(self, source: FrameSource) -> None:
        self.source = source
        self.ended: asyncio.Future[StreamEnd] = asyncio.get_running_loop().create_future()
        self.port = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            end = await send_frames(
                HttpExchange(receive, send), self.source, headers=HEADERS, stall=TimeLimit(0.1)
            )
            self.ended.set_result(end)
            return
        try:
            require_json(scope["headers"])
            body = await read_body(receive, scope["headers"], 1000, TimeLimit(0.1))
        except PeerFault as fault:
            await respond_body(send, 400, b"text/plain", fault.code.encode())
        else:
            await respond_json(send, 200, body)


@asynccontextmanager
async def served(source: FrameSource) -> AsyncIterator[App]:
    app = App(source)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        app.port = listening.getsockname()[1]
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            try:
                yield app
            finally:
                server.should_exit = True


@asynccontextmanager
async def asking(app: App, request: bytes) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", app.port)
    try:
        writer.write(request.replace(b"\n", b"\r\n"))
        await writer.drain()
        yield reader
    finally:
        writer.close()
        await writer.wait_closed()


STREAM = b"GET / HTTP/1.1\nhost: localhost\n\n"
POST = b"POST / HTTP/1.1\nhost: localhost\nconnection: close\ncontent-type: application/json\n"


async def answer_to(app: App, request: bytes) -> tuple[bytes, bytes]:
    async with asking(app, request) as reader:
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], body


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readline(), 16)
    return (await reader.readexactly(size + 2))[:-2]


async def test_a_stream_is_open_before_its_first_frame_and_ends_once() -> None:
    source = Frames()
    async with served(source) as app, asking(app, STREAM) as reader:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"content-type: text/event-stream\r\n" in head
        source.add([frame("a")])
        chunks = [await read_chunk(reader)]
        source.add([DONE, None])
        chunks += [await read_chunk(reader), await read_chunk(reader)]
        assert [event.data for event in parse(chunks)] == ["a", "[DONE]"]
        assert chunks[-1] == b""
        assert await app.ended is StreamEnd.FINISHED


async def test_frames_that_were_joined_cross_the_wire_as_one_chunk() -> None:
    source = Frames(b"".join(frame(str(number)) for number in range(100)))
    async with served(source) as app, asking(app, STREAM) as reader:
        await reader.readuntil(b"\r\n\r\n")
        events = list(parse([await read_chunk(reader)]))
        source.add([None])
        assert events == [Event("message", str(number), "") for number in range(100)]


async def test_a_closed_socket_is_noticed_while_nothing_is_sent() -> None:
    source = Frames()
    async with served(source) as app:
        async with asking(app, STREAM) as reader:
            await reader.readuntil(b"\r\n\r\n")
        assert await app.ended is StreamEnd.LEFT
        assert source.was_left


async def test_a_socket_that_is_not_read_is_given_up_and_others_are_served() -> None:
    async with served(Flood()) as app, asking(app, STREAM) as reader:
        await reader.readuntil(b"\r\n\r\n")
        assert await app.ended is StreamEnd.STALLED
        assert (await answer_to(app, POST + b"content-length: 2\n\n{}"))[1] == b"{}"


async def test_a_body_comes_back_however_it_was_sent() -> None:
    async with served(Frames()) as app:
        whole = await answer_to(app, POST + b"content-length: 2\n\n{}")
        chunked = await answer_to(app, POST + b"transfer-encoding: chunked\n\n1\n{\n1\n}\n0\n\n")
        assert whole == chunked == (b"HTTP/1.1 200 OK", b"{}")


async def test_a_body_that_stays_away_is_refused_over_a_real_socket() -> None:
    async with served(Frames()) as app:
        assert (await answer_to(app, POST + b"content-length: 2\n\n{"))[1] == b"too_slow"
        assert (await answer_to(app, POST + b"content-length: 2\n\n"))[1] == b"too_slow"


async def test_a_body_over_the_limit_is_refused_over_a_real_socket() -> None:
    async with served(Frames()) as app:
        assert (await answer_to(app, POST + b"content-length: 1001\n\n"))[1] == b"too_large"
        endless = POST + b"transfer-encoding: chunked\n\n" + (b"200\n" + b"x" * 0x200 + b"\n") * 3
        assert (await answer_to(app, endless))[1] == b"too_large"
