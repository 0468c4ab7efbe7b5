"""Connections of `farhand run`: trailers, pipelined requests, peers that do not read."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from farhand.cli.protocols import HEAD_BYTES, PIPELINED, http_protocol, socket_protocol
from farhand.wire.http import HttpExchange, respond_body
from farhand.wire.streaming_response import StreamEnd, send_frames
from farhand.wire.time_limit import TimeLimit
from tests.faces.served import shut_down
from tests.requirement import requirement
from tests.unit.wire.peer import Frames

GET = b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n"
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
STALLED_AFTER_SEC = 0.3


async def path(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with its path, once the body has arrived."""
    while (await receive()).get("more_body", False):
        pass
    await respond_body(send, 200, b"text/plain", scope["path"].encode())


@asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[tuple[str, int]]:
    async with serving(app) as (address, _):
        yield address


@asynccontextmanager
async def serving(
    app: ASGIApp, stalled_after: float = STALLED_AFTER_SEC
) -> AsyncIterator[tuple[tuple[str, int], uvicorn.Server]]:
    config = uvicorn.Config(
        app,
        http=http_protocol(stalled_after),
        ws=socket_protocol(stalled_after) or "none",
        log_config=None,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await server.startup(sockets=[listener])
        try:
            async with asyncio.timeout(60):
                yield listener.getsockname(), server
        finally:
            await shut_down(server, [listener])


@asynccontextmanager
async def connected(app: ASGIApp) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with listening(app) as address:
        reader, writer = await asyncio.open_connection(*address)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


async def body_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    return await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))


async def is_cut(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


@requirement("serve:trailers")
async def test_a_trailer_is_no_header_even_while_the_body_is_still_being_read() -> None:
    seen: list[list[tuple[bytes, bytes]]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(list(scope["headers"]))
        while (await receive()).get("more_body", False):
            pass
        seen.append(list(scope["headers"]))
        await respond_body(send, 200, b"text/plain", b"ok")

    async with connected(app) as (reader, writer):
        head = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        for end in (b"0\r\nx-forwarded-user: admin\r\nhost: evil\r\n\r\n", b"0\r\n\r\n"):
            writer.write(head + b"2\r\nok\r\n" + end)
            assert await body_of(reader) == b"ok"
    expected = [(b"host", b"localhost"), (b"transfer-encoding", b"chunked")]
    assert seen == [expected] * 4


@requirement("serve:head-limits")
@pytest.mark.parametrize("before", [b"", b"2\r\nok\r\n"])
@pytest.mark.parametrize("start", [b"0\r\nx: ", b"2;"])
async def test_what_follows_a_body_without_an_end_is_cut_off(before: bytes, start: bytes) -> None:
    async with connected(path) as (reader, writer):
        head = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + before + start)
        with suppress(ConnectionError):
            for _ in range(20):
                writer.write(b"x" * HEAD_BYTES)
                await writer.drain()
        assert await is_cut(reader)


@requirement("serve:head-limits")
async def test_a_body_may_be_larger_than_a_head() -> None:
    async with connected(path) as (reader, writer):
        head = b"POST /%b HTTP/1.1\r\nhost: localhost\r\n%b\r\n\r\n"
        size = 4 * HEAD_BYTES
        writer.write(head % (b"1", b"content-length: %d" % size) + b"x" * size)
        assert await body_of(reader) == b"/1"
        chunk = b"%x\r\n%b\r\n" % (HEAD_BYTES, b"x" * HEAD_BYTES)
        writer.write(head % (b"2", b"transfer-encoding: chunked") + 4 * chunk + b"0\r\nx: y\r\n\r\n")
        assert await body_of(reader) == b"/2"


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
@pytest.mark.parametrize(
    "more",
    [
        b"content-length: 2",
        b"transfer-encoding: chunked",
        b"x: " + b"y" * 9000,
        b"\r\n".join([b"x: y"] * 200),
    ],
)
async def test_an_upgrade_with_a_body_or_too_large_is_refused_once(protocol: bytes, more: bytes) -> None:
    async with connected(path) as (reader, writer):
        writer.write(HANDSHAKE.replace(b"websocket\r\n", protocol + b"\r\n" + more + b"\r\n") + b"{}")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1


async def test_an_upgrade_to_what_is_not_served_is_answered_as_if_it_had_not_been_asked_for() -> None:
    async with connected(path) as (reader, writer):
        for more in (b"", b"content-length: 0\r\n"):
            head = b"GET /1 HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: h2c\r\n%b\r\n"
            writer.write(head % more)
            assert await body_of(reader) == b"/1"


async def test_blanks_around_a_header_value_are_not_part_of_it() -> None:
    seen: list[list[tuple[bytes, bytes]]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(list(scope["headers"]))
        await respond_body(send, 200, b"text/plain", b"ok")

    async with connected(app) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: \t localhost \t\r\nx-a: a b\t \r\nx-empty: \t\r\n\r\n")
        assert await body_of(reader) == b"ok"
    assert seen == [[(b"host", b"localhost"), (b"x-a", b"a b"), (b"x-empty", b"")]]


async def test_requests_that_are_sent_ahead_are_answered_in_their_order() -> None:
    under_way = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        await asyncio.sleep(0)
        under_way -= 1
        await path(scope, receive, send)

    paths = [b"/%d" % number for number in range(1 + PIPELINED)]
    async with connected(app) as (reader, writer):
        writer.write(b"".join(GET % each for each in paths))
        assert [await body_of(reader) for _ in paths] == paths


@pytest.mark.parametrize("size", [1, 7, 38, 39, 40, 41])
async def test_requests_that_are_sent_ahead_may_be_cut_into_pieces_anywhere(size: int) -> None:
    async with connected(path) as (reader, writer):
        sent = b"".join(GET % each for each in (b"/1", b"/2", b"/3"))
        for start in range(0, len(sent), size):
            writer.write(sent[start : start + size])
            # a segment of its own
            await asyncio.sleep(0.001)
        assert [await body_of(reader) for _ in range(3)] == [b"/1", b"/2", b"/3"]


@pytest.mark.parametrize("ahead", [GET % b"/" * (2 + PIPELINED), b"x" * (HEAD_BYTES + 1)])
async def test_whoever_sends_too_much_ahead_is_cut_off(ahead: bytes) -> None:
    may_answer = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await may_answer.wait()

    async with connected(app) as (reader, writer):
        writer.write(GET % b"/" + ahead)
        assert await is_cut(reader)
        may_answer.set()


async def test_a_request_in_one_piece_with_the_body_before_it_is_never_mixed_with_its_answer() -> None:
    async with connected(path) as (reader, writer):
        post = b"POST /1 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\nab"
        writer.write(post + GET % b"/2")
        assert await is_cut(reader)


async def test_a_request_behind_an_answer_that_closes_the_connection_is_not_run() -> None:
    run: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        run.append(scope["path"])
        await respond_body(send, 200, b"text/plain", b"ok", ((b"connection", b"close"),))

    async with connected(app) as (reader, writer):
        writer.write(GET % b"/1" + GET % b"/2")
        assert await body_of(reader) == b"ok"
        assert await reader.read() == b""
    assert run == ["/1"]


async def test_no_socket_is_opened_in_the_middle_of_an_answer() -> None:
    may_answer = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            return
        await may_answer.wait()
        await respond_body(send, 200, b"text/plain", b"whole")

    async with connected(app) as (reader, writer):
        writer.write(GET % b"/" + HANDSHAKE)
        may_answer.set()
        assert await body_of(reader) == b"whole"
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")


@pytest.mark.parametrize("ahead", [b"", GET % b"/"])
async def test_a_peer_that_leaves_is_noticed_by_the_answer_in_progress(ahead: bytes) -> None:
    source, ends = Frames(), asyncio.Queue[StreamEnd]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        ends.put_nowait(
            await send_frames(HttpExchange(receive, send), source, headers=(), stall=TimeLimit(60))
        )

    async with connected(app) as (reader, writer):
        writer.write(GET % b"/" + ahead)
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        assert await ends.get() is StreamEnd.LEFT
    assert source.was_left


async def all_gone(server: uvicorn.Server) -> None:
    assert server.server_state.connections
    # uvicorn tells nobody
    while server.server_state.connections:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def drain(peer: socket.socket) -> None:
    while peer.recv(1_000_000):
        pass


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    source = Frames(*[bytes(1_000_000)] * 100)
    await send_frames(HttpExchange(receive, send), source, headers=(), stall=TimeLimit(60))


def one_answer(size: int) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await respond_body(send, 200, b"text/plain", bytes(size))

    return app


def cut_short(size: int) -> ASGIApp:
    """Less than it announced, so that the server closes the connection with all of it still to be sent."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"%d" % (2 * size))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(size), "more_body": True})

    return app


@pytest.mark.slow
@requirement("serve:head-limits")
@pytest.mark.parametrize("kind", ["endless", "answered", "cut short"])
async def test_the_connection_of_a_peer_that_does_not_read_is_aborted(kind: str) -> None:
    apps = {"endless": endless, "answered": one_answer(20_000_000), "cut short": cut_short(20_000_000)}
    async with serving(apps[kind]) as (address, server):
        with socket.create_connection(address) as peer:
            peer.sendall(GET % b"/")
            await asyncio.to_thread(peer.recv, 1)
            await all_gone(server)
            # the kernel keeps nothing for it either: what has not left by now never will
            with pytest.raises(ConnectionResetError):
                await asyncio.to_thread(drain, peer)


@requirement("serve:head-limits")
@pytest.mark.slow
async def test_a_peer_that_reads_slowly_is_not_cut_off_however_long_it_takes() -> None:
    size, stalled_after = 24_000_000, 1.0
    loop = asyncio.get_running_loop()
    async with serving(one_answer(size), stalled_after) as (address, _):
        with socket.create_connection(address) as peer:
            peer.sendall(GET % b"/")
            peer.setblocking(False)
            began, got = loop.time(), 0
            while got < size:
                piece = await loop.sock_recv(peer, 1_000_000)
                assert piece, f"cut off after {got} bytes"
                got += len(piece)
                await asyncio.sleep(0.1)
    assert loop.time() - began > 2 * stalled_after


@requirement("serve:head-limits")
async def test_the_socket_of_a_page_that_does_not_read_is_aborted() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        try:
            while True:
                await send({"type": "websocket.send", "text": "x" * 100_000})
        except OSError:
            return

    async with serving(app) as (address, server):
        with socket.create_connection(address) as page:
            page.sendall(HANDSHAKE)
            assert (await asyncio.to_thread(page.recv, 12)) == b"HTTP/1.1 101"
            await all_gone(server)


@requirement("serve:head-limits")
def test_another_uvicorn_is_served_by_h11_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert issubclass(http_protocol(1.0), HttpToolsProtocol)
    assert caplog.text == ""
    monkeypatch.delattr(HttpToolsProtocol, "on_header")
    with caplog.at_level(logging.WARNING):
        assert issubclass(http_protocol(1.0), H11Protocol)
    assert "h11" in caplog.text
    assert len(caplog.records) == 1
