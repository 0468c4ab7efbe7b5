"""Readers of a stream: kept alive while nothing happens, and unable to delay a run or each other."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from functools import partial
from urllib.parse import urlsplit

import pytest

from farhand.core.principal import LOCAL
from farhand.core.settings import Settings, Timeouts
from farhand.models.scripted import Ask, Moment, Say, Step
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page, user_message
from tests.requirement import requirement

PIECE = "x" * 50_000
PIECES = 120
"""Together more than the buffers between a server and a client that does not read."""


@pytest.fixture(params=["own", "mounted"])
def serve_both(serve: Serve, request: pytest.FixtureRequest) -> Serve:
    """By our own server, which is sent to wherever a word is told, and by one that is not."""
    return partial(serve, mounted=request.param == "mounted")


async def test_a_stream_that_waits_is_kept_alive_with_comments(serve_both: Serve) -> None:
    settings = Settings(timeouts=Timeouts(keep_alive=0.05))
    served = await serve_both(Scene(once(Ask("open_url", {"url": "u"}))).agent, settings=settings)
    page = Page(served.http, wait="hold")
    page.messages = [user_message("open")]
    received = b""
    async with served.http.stream("POST", "/api/chat", json=page.body()) as response:
        async for piece in response.aiter_bytes():
            received += piece
            if received.count(b": keep-alive\n\n") == 3:
                break
    assert b"tool-input-available" in received
    assert b"[DONE]" not in received


@pytest.mark.slow
@requirement("streams:slow-reader")
async def test_a_reader_that_takes_nothing_holds_up_neither_the_run_nor_another_reader(
    serve_both: Serve,
) -> None:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        await scene.gate("go").wait()
        for _ in range(PIECES):
            yield Say([PIECE])

    scene = Scene(script)
    served = await serve_both(scene.agent)
    page = Page(served.http)
    page.messages = [user_message("much")]
    _, stalled = await _post_and_stop_reading(served, page)
    try:
        async with Page(served.http, page.id).resuming() as live:
            scene.gate("go").set()
            turn = await live.rest()
        assert len(turn.text) == PIECES * len(PIECE)
        assert not (await served.service.last_run(LOCAL, page.id)).active
    finally:
        stalled.transport.abort()


async def test_a_reader_that_was_stuck_gets_all_of_it_once_it_reads_again(serve_both: Serve) -> None:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        for number in range(PIECES):
            yield Say([f"{number:06}" + PIECE])

    served = await serve_both(Scene(script).agent)
    page = Page(served.http)
    page.messages = [user_message("much")]
    reader, writer = await _post_and_stop_reading(served, page)
    async with asyncio.timeout(40):
        # the run has come to its end while nothing was read
        while (await served.service.last_run(LOCAL, page.id)).active:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        body = await reader.read()
    writer.close()
    assert body.count(b"data: [DONE]") == 1
    assert all(f"{number:06}xxx".encode() in body for number in range(PIECES))


async def _post_and_stop_reading(
    served: Served, page: Page
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client of plain sockets, with a small buffer, that reads the head of the response and no more."""
    address = urlsplit(served.url)
    assert address.hostname is not None
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    small.setblocking(False)
    await asyncio.get_running_loop().sock_connect(small, (address.hostname, address.port))
    reader, writer = await asyncio.open_connection(sock=small, limit=65_536)
    body = json.dumps(page.body()).encode()
    head = (
        f"POST /api/chat HTTP/1.1\r\nhost: {address.netloc}\r\nauthorization: Bearer {served.token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    assert b" 200 " in await reader.readline()
    return reader, writer
