"""Responses as they cross the wire, and in how many writes."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl

from farhand.cli.connection import Connection
from farhand.cli.lean import Signal
from farhand.cli.response import JOINED_BYTES, Response, head_of
from farhand.wire.line import EXTENSION
from tests.requirement import requirement

TYPE = (b"content-type", b"text/plain")
END = b"0\r\n\r\n"


def start(*headers: tuple[bytes, bytes], status: int = 200) -> Message:
    return {"type": "http.response.start", "status": status, "headers": [TYPE, *headers]}


def body(content: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


def length(count: int) -> tuple[bytes, bytes]:
    return (b"content-length", b"%d" % count)


class Sink(asyncio.Transport):
    """A transport that notes each write, and says that it is full when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        raise AssertionError("asyncio's own neither ends with an empty piece nor says that it is full")

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


def response(sink: Sink, *, method: str = "GET", version: str = "1.1", keep_alive: bool = True) -> Response:
    return Response(
        scope={"type": "http", "http_version": version, "method": method},
        transport=sink,
        flow=FlowControl(sink),
        logger=logging.getLogger("uvicorn.error"),
        access_logger=logging.getLogger("uvicorn.access"),
        access_log=False,
        default_headers=[],
        message_event=Signal(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=lambda: None,
    )


@requirement("response:one-write")
async def test_a_response_that_names_its_length_leaves_in_one_write() -> None:
    sink = Sink()
    answer = response(sink)
    await answer.send(start(length(2)))
    assert sink.writes == []
    await answer.send(body(b"ok"))
    assert sink.writes == [b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok"]
    assert answer.response_complete


@requirement("response:one-write")
async def test_a_large_body_is_not_copied_to_leave_with_its_head() -> None:
    sink = Sink()
    answer = response(sink)
    large = bytes(JOINED_BYTES)
    await answer.send(start(length(2 * JOINED_BYTES)))
    await answer.send(body(large, more=True))
    await answer.send(body(large))
    assert sink.writes[0].endswith(b"\r\n\r\n")
    assert sink.writes[1:] == [large, large]


@requirement("response:one-write")
async def test_the_head_of_a_stream_leaves_at_once_and_each_piece_in_one_write() -> None:
    sink = Sink()
    answer = response(sink)
    await answer.send(start())
    assert sink.writes == [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    ]
    assert answer.write(b"one")
    await answer.send(body(b"two", more=True))
    await answer.send(body(b"", more=True))
    await answer.send(body(b"x" * 17))
    assert sink.writes[1:] == [
        b"3\r\none\r\n",
        b"3\r\ntwo\r\n",
        b"",
        b"11\r\n" + b"x" * 17 + b"\r\n" + END,
    ]


@requirement("response:one-write")
async def test_only_a_body_that_is_open_takes_pieces_without_a_message() -> None:
    sink = Sink()
    answer = response(sink)
    taken = [answer.write(b"before the head")]
    await answer.send(start())
    # a piece of no length would end the body
    taken.append(answer.write(b""))
    await answer.send(body(b""))
    taken.append(answer.write(b"after the end"))
    counted, bodiless = response(sink), response(sink, method="HEAD")
    for each in (counted, bodiless):
        await each.send(start(length(9)) if each is counted else start())
        taken.append(each.write(b"not a pie"))
    assert taken == [False] * 5
    assert sink.writes[1:] == [END]


@requirement("stream:slow-reader")
async def test_a_full_socket_takes_no_piece_and_a_message_waits_until_it_does() -> None:
    sink = Sink()
    answer = response(sink)
    await answer.send(start())
    answer.flow.pause_writing()
    assert not answer.write(b"a")
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        sending = group.create_task(answer.send(body(b"a", more=True)))
        await asyncio.sleep(0)
        assert not sending.done()
        assert len(sink.writes) == 1
        answer.flow.resume_writing()
    assert sink.writes[1:] == [b"1\r\na\r\n"]
    assert answer.write(b"b")


@requirement("stream:reader-leaves")
async def test_nothing_is_written_to_a_peer_that_left() -> None:
    sink = Sink()
    answer = response(sink)
    await answer.send(start())
    answer.disconnected = True
    assert not answer.write(b"a")
    answer.flow.pause_writing()
    await answer.send(body(b"a"))
    assert len(sink.writes) == 1
    assert not answer.response_complete


@requirement("response:framed")
@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([body(b"")], "was to send http.response.start"),
        ([start(), start()], "was to send http.response.body"),
        ([start(), body(b""), body(b"")], "was to send nothing more"),
        ([start(length(2)), body(b"long")], "longer"),
        ([start(length(9)), body(b"short")], "shorter"),
        ([start(length(9)), body(b"more", more=True), body(b"")], "shorter"),
        ([start((b"x", b"a\r\nset-cookie: b"))], "header"),
        ([start((b"x", b"a\0b"))], "header"),
        ([start(length(2), length(3))], "differ"),
        ([start((b"content-length", b"-1"))], "none"),
        ([start(length(2), status=304), body(b"ok")], "longer"),
        ([start((b"x:\r\ny", b"a"))], "header"),
    ],
)
async def test_what_an_app_must_not_send_is_an_error_of_its_own(messages: list[Message], fault: str) -> None:
    sink = Sink()
    answer = response(sink)
    *before, last = messages
    for message in before:
        await answer.send(message)
    so_far = list(sink.writes)
    with pytest.raises(RuntimeError, match=fault):
        await answer.send(last)
    assert sink.writes == so_far


@requirement("response:framed")
def test_a_head_is_made_once_for_all_that_are_alike_and_few_are_kept() -> None:
    head_of.cache_clear()
    for _ in range(3):
        head_of(200, (TYPE, length(2)), version="1.1", keep_alive=True, is_bodiless=False)
    assert head_of.cache_info()[:2] == (2, 1)
    for number in range(2_000):
        head_of(200, (TYPE, length(number)), version="1.1", keep_alive=True, is_bodiless=False)
    assert head_of.cache_info().currsize < 1_000


Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


def answering(*messages: Message) -> Answer:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    return app


@asynccontextmanager
async def served(app: ASGIApp, **settings: int) -> AsyncIterator[tuple[str, int]]:
    config = uvicorn.Config(
        app, http=Connection, log_config=None, lifespan="off", date_header=False, server_header=False
    )
    for name, value in settings.items():
        setattr(config, name, value)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            try:
                yield listening.getsockname()
            finally:
                server.should_exit = True


async def answer_to(address: tuple[str, int], request: bytes) -> bytes:
    """All that comes until the server closes."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request.replace(b"\n", b"\r\n"))
    answer = await reader.read()
    writer.close()
    return answer


LAST = b"GET / HTTP/1.1\nhost: localhost\nconnection: close\n\n"
CLOSING = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\n%bconnection: close\r\n%b\r\n%b"
COUNTED = (b"200 OK", b"content-length: 2\r\n", b"")
CHUNKED = (b"200 OK", b"", b"transfer-encoding: chunked\r\n")
ENDS_BY_CLOSE = (b"200 OK", b"", b"")
UNCHANGED = (b"304 Not Modified", b"content-length: 2\r\n", b"")
SAID_CHUNKED = (b"Transfer-Encoding", b"chunked")


@requirement("response:framed")
@pytest.mark.parametrize(
    ("request_line", "messages", "expected"),
    [
        (b"GET / HTTP/1.1", [start(length(2)), body(b"ok")], (*COUNTED, b"ok")),
        (b"GET / HTTP/1.0", [start(length(2)), body(b"ok")], (*COUNTED, b"ok")),
        (b"GET / HTTP/1.1", [start(length(2)), body(b"o", more=True), body(b"k")], (*COUNTED, b"ok")),
        (b"HEAD / HTTP/1.1", [start(length(2)), body(b"ok")], (*COUNTED, b"")),
        (b"HEAD / HTTP/1.1", [start(), body(b"ok", more=True), body(b"")], (b"200 OK", b"", b"", b"")),
        (b"GET / HTTP/1.1", [start(), body(b"ok")], (*CHUNKED, b"2\r\nok\r\n" + END)),
        (b"GET / HTTP/1.0", [start(), body(b"o", more=True), body(b"k")], (*ENDS_BY_CLOSE, b"ok")),
        (b"GET / HTTP/1.0", [start(SAID_CHUNKED), body(b"ok")], (*ENDS_BY_CLOSE, b"ok")),
        (b"GET / HTTP/1.0", [start(SAID_CHUNKED, length(2)), body(b"ok")], (*COUNTED, b"ok")),
        (b"GET / HTTP/1.1", [start(length(2), status=304), body(b"")], (*UNCHANGED, b"")),
        (b"GET / HTTP/1.1", [start(status=204), body(b"")], (b"204 No Content", b"", b"", b"")),
        (b"GET / HTTP/1.1", [start(status=304), body(b"")], (b"304 Not Modified", b"", b"", b"")),
    ],
)
async def test_a_response_is_framed_as_its_request_and_its_head_ask(
    request_line: bytes, messages: list[Message], expected: tuple[bytes, bytes, bytes, bytes]
) -> None:
    async with served(answering(*messages)) as address:
        request = LAST.replace(b"GET / HTTP/1.1", request_line)
        assert await answer_to(address, request) == CLOSING % expected


@requirement("response:framed")
@pytest.mark.parametrize("said", [b"close", b"Upgrade, Close"])
async def test_an_app_may_close_the_connection_by_its_head(said: bytes) -> None:
    app = answering(start((b"Connection", said), length(2)), body(b"ok"))
    async with served(app) as address:
        got = await answer_to(address, LAST.replace(b"connection: close\n", b""))
    assert got.count(b"connection: ") == 1
    assert got.endswith(b"content-length: 2\r\n\r\nok")


@requirement("response:framed")
async def test_an_app_may_say_itself_that_its_body_is_chunked_and_then_it_has_no_length() -> None:
    app = answering(start((b"transfer-encoding", b"Chunked"), length(7)), body(b"ok"))
    async with served(app) as address:
        got = await answer_to(address, LAST)
    assert got.endswith(b"\r\n\r\n2\r\nok\r\n" + END)
    assert got.lower().count(b"transfer-encoding") == 1
    # a proxy that went by it would take the rest for the next response
    assert b"content-length" not in got


@requirement("response:framed")
async def test_headers_may_be_lists() -> None:
    head = {"type": "http.response.start", "status": 200, "headers": [list(TYPE), list(length(2))]}
    async with served(answering(head, body(b"ok"))) as address:
        assert await answer_to(address, LAST) == CLOSING % (*COUNTED, b"ok")


@requirement("response:framed")
async def test_pieces_for_an_old_peer_are_written_as_they_are() -> None:
    sink = Sink()
    answer = response(sink, version="1.0")
    await answer.send(start())
    assert answer.write(b"one")
    assert sink.writes[1:] == [b"one"]


@requirement("response:framed")
async def test_requests_that_come_too_early_are_answered_in_their_order() -> None:
    left = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].encode()
        if path == b"/1":
            write = scope["extensions"][EXTENSION](left.set)
            await send(start())
            # the second request has come with the first one
            assert write(b"1")
            await asyncio.sleep(0)
            await send(body(b""))
            return
        await send(start(length(len(path))))
        await send(body(path))

    async with served(app) as address:
        paths = (b"/1", b"/2", b"/%20caf%C3%A9?q=1", b"/last")
        requests = [b"GET %b HTTP/1.1\nhost: localhost\n\n" % path for path in paths]
        requests[-1] = LAST.replace(b"/ ", b"/last ", 1)
        got = await answer_to(address, b"".join(requests))
    bodies = [each.partition(b"\r\n\r\n")[2] for each in got.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies == [b"1\r\n1\r\n" + END, b"/2", "/ café".encode(), b"/last"]
    assert not left.is_set()


@requirement("response:framed")
@pytest.mark.parametrize("begins_first", [False, True])
async def test_a_client_that_waits_for_leave_to_send_its_body_gets_it_before_the_answer(
    begins_first: bool,
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if begins_first:
            await send(start(length(2)))
        got = await receive()
        if not begins_first:
            await send(start(length(2)))
        await send(body(got["body"]))

    async with served(app) as address:
        reader, writer = await asyncio.open_connection(*address)
        head = b"POST / HTTP/1.1\nhost: localhost\nexpect: 100-continue\ncontent-length: 2\n\n"
        writer.write(head.replace(b"\n", b"\r\n"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"ok")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()


@requirement("response:framed")
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [start(length(2))],
        [start(length(2)), body(b"long")],
        [start((b"x", b"a\r\nb: c"))],
    ],
)
@pytest.mark.parametrize("raises", [True, False])
async def test_what_breaks_before_anything_has_left_is_a_500(messages: list[Message], raises: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answering(*messages)(scope, receive, send)
        if raises:
            raise ValueError("broken")

    async with served(app) as address:
        got = await answer_to(address, LAST)
    assert re.match(rb"HTTP/1.1 500 [^\0]*\r\nconnection: close\r\n\r\nInternal Server Error$", got)
    assert got.count(b"HTTP/1.1") == 1


@requirement("response:framed")
async def test_what_breaks_later_is_cut_off_so_that_the_peer_can_tell() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start())
        await send(body(b"ok", more=True))
        raise ValueError("broken")

    async with served(app) as address:
        got = await answer_to(address, LAST)
    assert got.endswith(b"\r\n\r\n2\r\nok\r\n")


@requirement("response:framed")
async def test_one_connection_too_many_is_told_so() -> None:
    async with served(answering(start(length(2)), body(b"ok")), limit_concurrency=1) as address:
        got = await answer_to(address, LAST)
    assert got.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")


@requirement("response:framed")
async def test_a_server_that_is_full_logs_it_once_until_it_has_had_room(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(answering(start(length(2)), body(b"ok")), limit_concurrency=1) as address:
        for _ in range(3):
            await answer_to(address, LAST)
        assert caplog.text.count("503") == 1
        monkeypatch.setattr("farhand.cli.connection.FULL_AGAIN_SEC", -1.0)
        await answer_to(address, LAST)
        assert caplog.text.count("503") == 2
