"""The faces under stock servers: two minor versions of uvicorn and both its parsers, Hypercorn, Granian."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.faces.awaiting.client import Page as AwaitingPage
from tests.faces.awaiting.client import result
from tests.faces.client_tools.program import Program, ready
from tests.faces.stock_servers import ADA, GUEST, SERVERS, running
from tests.faces.ui_stream.page import Live, Page
from tests.requirement import requirement

WITHIN_SEC = 60
_numbers = count()


# each of them is a process
pytestmark = pytest.mark.frameworks


@pytest.fixture(scope="module", params=SERVERS)
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    with running(request.param) as port:
        yield port


@pytest.fixture
async def http(port: int) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port}",
        headers={"authorization": ADA},
        timeout=60,
        # after a request that was refused before its body was read, hypercorn closes without a word
        limits=httpx2.Limits(max_keepalive_connections=0),
        trust_env=False,
        verify=False,
    ) as client:
        yield client


def page_of(http: httpx2.AsyncClient) -> Page:
    # one server serves all tests of a module
    return Page(http, f"chat-{next(_numbers)}", wait="hold")


async def call_in(live: Live) -> str:
    chunk = await live.until("tool-input-available")
    call_id: str = chunk["toolCallId"]
    return call_id


async def ack(http: httpx2.AsyncClient, call_id: str) -> None:
    body = {"toolCallId": call_id, "status": "success", "output": "hello"}
    assert (await http.post("/api/tools/ack", json=body)).status_code == 200


async def comes_true(fact: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_SEC):
        # nobody tells
        while not await fact():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@requirement("servers:any")
async def test_a_held_stream_continues_when_its_call_is_answered(http: httpx2.AsyncClient) -> None:
    async with page_of(http).saying("go") as live:
        await ack(http, await call_in(live))
        turn = await live.rest()
    assert "hello" in turn.text


@requirement("servers:any")
async def test_words_arrive_one_by_one_before_the_answer_ends(http: httpx2.AsyncClient) -> None:
    turn = await page_of(http).say("words one by one")
    assert turn.text.count("word ") == 500


@requirement("servers:any")
async def test_a_dropped_connection_stops_nothing_and_can_be_resumed(http: httpx2.AsyncClient) -> None:
    page = page_of(http)
    async with page.saying("go") as live:
        call_id = await call_in(live)
    async with page.resuming() as again:
        assert await call_in(again) == call_id
        await ack(http, call_id)
        assert "hello" in (await again.rest()).text


@requirement("servers:any")
async def test_a_run_whose_reader_left_for_good_finishes(http: httpx2.AsyncClient) -> None:
    page = page_of(http)
    async with page.saying("go") as live:
        call_id = await call_in(live)
    await ack(http, call_id)

    async def is_answered() -> bool:
        return "It said" in (await http.get(f"/api/chat/{page.id}")).text

    await comes_true(is_answered)


@requirement("servers:any")
async def test_a_result_is_accepted_once_repeated_and_refused_when_it_differs(
    http: httpx2.AsyncClient,
) -> None:
    async with page_of(http).saying("go") as live:
        call_id = await call_in(live)
        body = {"toolCallId": call_id, "status": "success", "output": "hello"}
        replies = [
            await http.post("/api/tools/ack", json=each) for each in (body, body, {**body, "output": "bye"})
        ]
        assert [reply.status_code for reply in replies] == [200, 200, 409]
        assert replies[1].json()["ignored"] is True
        await live.rest()


@requirement("servers:any")
async def test_a_paused_thread_continues_with_its_results(http: httpx2.AsyncClient) -> None:
    page = AwaitingPage(http)
    [entry] = (await page.run("go")).pause
    assert "hello" in (await page.answer(result(entry, "hello"))).text


@requirement("servers:any")
async def test_a_registered_client_is_asked_on_its_stream_and_answers(http: httpx2.AsyncClient) -> None:
    program = Program(http, f"client-{next(_numbers)}")
    async with ready(program, "say") as client, asyncio.TaskGroup() as group:
        executing = group.create_task(program.execute("say", {"text": "hi"}))
        await client.answer(status="success", output="done")
    assert (executing.result().status_code, executing.result().json()["output"]) == (200, "done")


@requirement("servers:any")
async def test_a_caller_that_leaves_an_execute_cancels_its_call(http: httpx2.AsyncClient) -> None:
    program = Program(http, f"client-{next(_numbers)}")
    async with ready(program, "say") as client, asyncio.TaskGroup() as group:
        executing = group.create_task(program.execute("say", {"text": "hi"}))
        request = await client.stream.request()
        executing.cancel()
        settled = await client.stream.event()
        assert settled is not None
        assert (settled.event, request["requestID"] in settled.data) == ("tool-settled", True)


@requirement("servers:any")
async def test_refusals_have_the_same_status_and_content_type(http: httpx2.AsyncClient) -> None:
    body = page_of(http).body()
    statuses = {
        401: await http.post("/api/chat", json=body, headers={"authorization": "Bearer nobody"}),
        403: await http.post("/api/chat", json=body, headers={"authorization": GUEST}),
        404: await http.get("/api/chat/nowhere"),
        405: await http.put("/api/tools/ack", json={}),
        415: await http.post("/api/chat", content=b"{}", headers={"content-type": "text/plain"}),
    }
    assert {expected: got.status_code for expected, got in statuses.items()} == {
        each: each for each in statuses
    }
    compressed = {"content-type": "application/json", "content-encoding": "gzip"}
    assert (await http.post("/api/chat", content=b"{}", headers=compressed)).status_code == 415
    assert all(got.headers["content-type"] == "application/json" for got in statuses.values())


@requirement("servers:any")
async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    headers = f"host: 127.0.0.1\r\nauthorization: {ADA}\r\ncontent-type: application/json\r\n"
    writer.write(f"POST /api/tools/ack HTTP/1.1\r\n{headers}content-length: 2000000\r\n\r\n".encode())
    assert b" 413 " in await asyncio.wait_for(reader.readline(), WITHIN_SEC)
    writer.close()


@requirement("servers:any")
async def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large(http: httpx2.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b" " * 10_000

    try:
        refused = await http.post(
            "/api/tools/ack", content=pieces(), headers={"content-type": "application/json"}
        )
    # a server may close the connection before all of the body was sent
    except (httpx2.WriteError, httpx2.ReadError, httpx2.RemoteProtocolError):
        return
    assert refused.status_code == 413


async def test_blanks_around_the_values_of_headers_are_dropped(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    headers = f"host: 127.0.0.1 \t\r\nauthorization: \t {ADA} \t\r\n"
    writer.write(f"GET /api/chat HTTP/1.1\r\n{headers}connection: close\r\n\r\n".encode())
    assert b" 200 " in await asyncio.wait_for(reader.readline(), WITHIN_SEC)
    writer.close()


@requirement("servers:any")
async def test_a_file_goes_up_in_chunks_and_comes_back_the_same(http: httpx2.AsyncClient) -> None:
    content = bytes(range(256)) * 4_000

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 100_000):
            yield content[start : start + 100_000]

    headers = {"x-farhand": "1", "content-type": "text/plain"}
    uploaded = await http.post("/api/files", content=pieces(), headers=headers)
    assert uploaded.status_code == 201
    address = f"/api/files/{uploaded.json()['ref']}"
    assert (await http.get(address)).content == content
    described = await http.head(address)
    assert (described.headers["content-length"], described.content) == (str(len(content)), b"")


@requirement("servers:any")
async def test_events_arrive_on_the_feed(http: httpx2.AsyncClient) -> None:
    page = page_of(http)
    async with http.stream("GET", "/api/events") as news, asyncio.timeout(WITHIN_SEC):
        assert news.headers["content-type"].startswith("text/event-stream")
        async with page.saying("go") as live:
            call_id = await call_in(live)
            await _line_with(news, call_id)
            await ack(http, call_id)


async def _line_with(news: httpx2.Response, text: str) -> None:
    async for line in news.aiter_lines():
        if text in line:
            return
    raise AssertionError(f"the stream ended before '{text}'")


@requirement("servers:any")
async def test_a_socket_carries_a_chat_and_strangers_are_refused(port: int) -> None:
    address, chat_id = f"ws://127.0.0.1:{port}/api/chat/ws", f"socket-{next(_numbers)}"
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "words"}]}
    async with connect(address, additional_headers={"authorization": ADA}, proxy=None) as socket:
        frame = {"type": "send", "requestId": "r1", "id": chat_id, "messages": [message]}
        await socket.send(json.dumps(frame))
        said = ""
        async with asyncio.timeout(WITHIN_SEC):
            while "word 499" not in said:
                said += str(await socket.recv())
    with pytest.raises(InvalidStatus, match="403"):
        await connect(address, proxy=None)


@requirement("serve:trailers")
async def test_a_trailer_signs_nobody_in_under_the_servers_that_keep_trailers_apart(
    http: httpx2.AsyncClient, port: int, request: pytest.FixtureRequest
) -> None:
    body = json.dumps(page_of(http).body()).encode()
    headers = "host: 127.0.0.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"
    head = f"POST /api/chat HTTP/1.1\r\n{headers}connection: close\r\n\r\n".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head + b"%x\r\n%b\r\n0\r\nauthorization: %b\r\n\r\n" % (len(body), body, ADA.encode()))
    status = await asyncio.wait_for(reader.readline(), WITHIN_SEC)
    writer.close()
    # uvicorn adds trailers to the headers that httptools gave it: see docs/explanation/security.md
    if "httptools" not in request.node.name:
        assert b" 401 " in status
