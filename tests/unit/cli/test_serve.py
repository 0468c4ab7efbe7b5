"""The sockets of the server process, and the limits before a request is complete."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.asyncio.client import connect

from farhand import Agent, ScriptedModel, create_app
from farhand.cli import http_protocol as http_protocol_module
from farhand.cli.console import address_of
from farhand.cli.http_protocol import HttpProtocol
from farhand.cli.protocols import HEAD_BYTES
from farhand.cli.serve import _config, listen, require_loopback
from farhand.errors import BadSetting
from tests.faces.served import shut_down
from tests.requirement import requirement


def closed(sockets: list[socket.socket]) -> list[int]:
    """Closes them; the ports they had."""
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@requirement("cli:one-line")
def test_a_free_port_is_taken_once_for_every_address_of_the_host() -> None:
    ports = closed(listen("localhost", 0))
    assert len(set(ports)) == 1
    assert ports[0] > 0


@requirement("cli:one-line")
@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("nowhere.invalid", "The host 'nowhere.invalid' cannot be resolved."),
        ("192.0.2.1", "'192.0.2.1' is not an address of this machine."),
    ],
)
def test_a_host_that_is_not_ours_is_one_sentence(host: str, answer: str) -> None:
    with pytest.raises(BadSetting) as refused:
        closed(listen(host, 0))
    assert str(refused.value).startswith(answer)


@requirement("cli:one-line")
def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadSetting, match=f"Port {port} of 127.0.0.1 is in use"):
            closed(listen("127.0.0.1", port))


@requirement("cli:loopback-only")
def test_only_addresses_of_this_machine_alone_pass_as_local() -> None:
    for host in ("127.0.0.1", "localhost", "127.0.0.9"):
        require_loopback(host)
    for host in ("0.0.0.0", "192.0.2.1"):
        with pytest.raises(BadSetting, match="is reachable from other machines"):
            require_loopback(host)
    with pytest.raises(BadSetting, match="cannot be resolved"):
        require_loopback("nowhere.invalid")


def test_the_address_can_be_opened() -> None:
    assert address_of("127.0.0.1", 8787) == "http://127.0.0.1:8787/"
    assert address_of("::1", 8787) == "http://[::1]:8787/"


async def count(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the size of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = str(size).encode()
    head = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def listening(app: ASGIApp = count) -> AsyncIterator[int]:
    config = uvicorn.Config(app, http=HttpProtocol, lifespan="off", log_config=None)
    async with serving(config) as port:
        yield port


@asynccontextmanager
async def serving(config: uvicorn.Config) -> AsyncIterator[int]:
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    sockets = listen("127.0.0.1", 0)
    await server.startup(sockets=sockets)
    try:
        yield sockets[0].getsockname()[1]
    finally:
        await shut_down(server, sockets)


class Peer:
    """A client that sends exactly what the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.send = writer.write
        self._reader = reader
        self._writer = writer

    async def answer(self) -> bytes:
        """One whole answer."""
        async with asyncio.timeout(20):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return head + await self._reader.readexactly(length)

    async def until_closed(self) -> bytes:
        """What comes before the end; who still sends while the other side closes may lose it."""
        async with asyncio.timeout(20):
            with suppress(ConnectionResetError, BrokenPipeError):
                return await self._reader.read()
        return b""

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionResetError, BrokenPipeError):
            await self._writer.wait_closed()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Peer]:
    peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield peer
    finally:
        await peer.close()


@requirement("serve:head-limits")
async def test_ordinary_requests_follow_each_other_on_one_connection() -> None:
    async with listening() as port, connected(port) as peer:
        for size in (0, 10, 3 * HEAD_BYTES):
            head = f"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n".encode()
            peer.send(head + b"x" * size)
            answer = await peer.answer()
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(str(size).encode())


@requirement("serve:head-limits")
async def test_a_head_that_comes_in_pieces_is_fine() -> None:
    async with listening() as port, connected(port) as peer:
        for piece in (b"GET / HT", b"TP/1.1\r\nho", b"st: x\r\n", b"\r\n"):
            peer.send(piece)
            await asyncio.sleep(0)
        assert (await peer.answer()).startswith(b"HTTP/1.1 200")


@requirement("serve:head-limits")
@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\nx: ", b"GET / HTTP/1.1\r\n"])
async def test_a_head_without_end_is_cut_off(begin: bytes) -> None:
    more = b"x: y\r\n" * 100 if begin.endswith(b"\r\n") else b"x" * 600
    async with listening() as port, connected(port) as peer:
        peer.send(begin)
        for _ in range(8 * HEAD_BYTES // len(more)):
            peer.send(more)
        assert b"200" not in await peer.until_closed()
        async with connected(port) as other:
            other.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await other.answer()).startswith(b"HTTP/1.1 200")


@requirement("serve:head-limits")
async def test_a_large_head_that_comes_at_once_is_refused_too() -> None:
    async with listening() as port, connected(port) as peer:
        peer.send(b"GET / HTTP/1.1\r\nhost: x\r\n" + b"x: y\r\n" * (2 * HEAD_BYTES // 6) + b"\r\n")
        assert b"200" not in await peer.until_closed()


@pytest.mark.slow
@requirement("serve:head-limits")
@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nhost: x\r\n"])
async def test_a_head_that_does_not_come_is_not_waited_for(
    begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol_module, "HEAD_WITHIN_SEC", 0.5)
    async with listening() as port, connected(port) as peer:
        peer.send(begin)
        assert await peer.until_closed() == b""


@requirement("serve:head-limits")
async def test_the_second_head_on_a_connection_is_not_waited_for_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with listening() as port, connected(port) as peer:
        peer.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await peer.answer()).startswith(b"HTTP/1.1 200")
        # the first head had its time: this test may be slow as well
        monkeypatch.setattr(http_protocol_module, "HEAD_WITHIN_SEC", 0.05)
        peer.send(b"GET / HTTP/1.1\r\nhos")
        assert await peer.until_closed() == b""


@requirement("serve:head-limits")
@pytest.mark.slow
async def test_a_slow_second_head_does_not_cut_the_answer_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await may_answer.wait()
        await count(scope, receive, send)

    monkeypatch.setattr(http_protocol_module, "HEAD_WITHIN_SEC", 0.5)
    async with listening(slow) as port, connected(port) as peer:
        peer.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nabcdGET / HTTP/1.1\r\nhos")
        # longer than a head may take
        await asyncio.sleep(1.0)
        may_answer.set()
        assert (await peer.answer()).endswith(b"4")
        assert await peer.until_closed() == b""


async def refuse_unread(scope: Scope, receive: Receive, send: Send) -> None:
    """As strangers are answered: nothing of the body is read."""
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"no"})


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\r\n"),
        (b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n", b"x"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n", b"x"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
async def test_what_follows_an_answer_without_being_a_request_does_not_keep_the_connection(
    head: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(refuse_unread) as port, connected(port) as peer:
        peer.send(head)
        assert (await peer.answer()).endswith(b"no")
        monkeypatch.setattr(http_protocol_module, "HEAD_WITHIN_SEC", 0.05)
        peer.send(more)
        assert await peer.until_closed() == b""


async def test_a_byte_now_and_then_does_not_keep_the_connection_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with listening(refuse_unread) as port, connected(port) as peer:
        peer.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
        assert (await peer.answer()).endswith(b"no")
        monkeypatch.setattr(http_protocol_module, "HEAD_WITHIN_SEC", 0.05)
        closed = asyncio.ensure_future(peer.until_closed())
        async with asyncio.timeout(20):
            while not closed.done():
                peer.send(b"x")
                await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_a_request_behind_blank_lines_is_answered_and_the_connection_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_protocol_module, "HEAD_WITHIN_SEC", 0.5)
    async with listening() as port, connected(port) as peer:
        for _ in range(3):
            peer.send(b"\r\n")
            peer.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await peer.answer()).startswith(b"HTTP/1.1 200")
            # longer than a head may take: an idle connection has the time of keep-alive
            await asyncio.sleep(1.0)


async def test_who_forwards_is_believed_only_when_proxies_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(Agent(ScriptedModel(["Hello."])), store="memory:", authenticate=lambda _: None)
    alone = create_app(Agent(ScriptedModel(["Hello."])), store="memory:")
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    async with app.lifespan(), alone.lifespan():
        assert not _config(app).proxy_headers
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", "10.0.0.7")
        assert _config(app).proxy_headers
        assert not _config(alone).proxy_headers


async def test_frames_of_a_socket_are_not_compressed_and_may_be_as_large_as_the_limit() -> None:
    app = create_app(Agent(ScriptedModel(["Hello."])), store="memory:")
    app.auth.open = True
    async with app.lifespan(), serving(_config(app)) as port:
        address = f"ws://127.0.0.1:{port}/api/chat/ws"
        async with connect(address, compression="deflate", proxy=None) as socket:
            assert socket.protocol.extensions == []
            frame = '{"type":"send","requestId":"r","id":"t1","padding":"' + "x" * 3_500_000 + '"}'
            await socket.send(frame)
            assert '"requestId":"r"' in str(await socket.recv())
