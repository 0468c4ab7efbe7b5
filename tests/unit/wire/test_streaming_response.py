"""A response body pulled from its source, with a peer that the test controls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Message

from farhand.errors import StoreDown
from farhand.wire.http import SECURITY, HttpExchange
from farhand.wire.sse import KEEP_ALIVE
from farhand.wire.streaming_response import PIECE, StreamEnd, send_frames
from farhand.wire.time_limit import TimeLimit
from tests.requirement import requirement
from tests.unit.wire.peer import Frames, Peer

STALL = TimeLimit(60)
HEADERS = ((b"content-type", b"text/event-stream"),)
START: Message = {"type": "http.response.start", "status": 200, "headers": [*HEADERS, *SECURITY]}


def body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


def line_to(peer: Peer) -> HttpExchange:
    return HttpExchange(peer.receive, peer.send)


@asynccontextmanager
async def streaming(
    exchange: HttpExchange, source: Frames, *, stall_after: float = 60
) -> AsyncIterator[asyncio.Task[StreamEnd]]:
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        yield group.create_task(send_frames(exchange, source, headers=HEADERS, stall=TimeLimit(stall_after)))


async def test_a_stream_starts_at_once_and_ends_its_body_once() -> None:
    peer, source = Peer(), Frames()
    async with streaming(line_to(peer), source) as ended:
        await peer.has_sent(2)
        assert peer.sent == [START, body(b"")]
        source.add([b"a", b"b", None])
    assert ended.result() is StreamEnd.FINISHED
    assert peer.sent[2:] == [body(b"a"), body(b"b"), body(b"", more=False)]
    assert not source.was_left


async def test_what_the_source_joined_leaves_in_one_write() -> None:
    peer = Peer()
    await send_frames(line_to(peer), Frames(b"a\n\nb\n\n", None), headers=HEADERS, stall=STALL)
    assert peer.bodies == [b"", b"a\n\nb\n\n", b""]


async def test_a_comment_is_sent_whenever_nothing_came_in_time() -> None:
    peer, source = Peer(), Frames(b"", b"a", b"", b"", None)
    await send_frames(line_to(peer), source, headers=HEADERS, stall=STALL, keep_alive=7)
    assert peer.bodies == [b"", KEEP_ALIVE, b"a", KEEP_ALIVE, KEEP_ALIVE, b""]
    assert source.asked == [7] * 5


async def test_a_reader_that_leaves_ends_the_stream_without_an_end_of_body() -> None:
    peer, source = Peer({"type": "http.request", "body": b"", "more_body": False}), Frames()
    async with streaming(line_to(peer), source) as ended:
        await peer.has_sent(2)
        peer.leave()
        assert await ended is StreamEnd.LEFT
    assert source.was_left
    assert peer.sent == [START, body(b"")]


async def test_frames_for_a_reader_that_left_meanwhile_are_not_sent() -> None:
    peer, source = Peer(), Frames()
    async with streaming(line_to(peer), source) as ended:
        await peer.has_sent(2)
        source.add([b"a", b"b"])
        peer.leave()
        assert await ended is StreamEnd.LEFT
    assert len(source.asked) <= 3
    assert body(b"", more=False) not in peer.sent


@pytest.mark.parametrize("failing", [1, 2, 3])
async def test_a_send_that_fails_because_the_reader_left_is_no_error(failing: int) -> None:
    peer, source = Peer(), Frames(b"a", b"b", None)

    async def refuse(message: Message) -> None:
        await peer.send(message)
        if len(peer.sent) >= failing:
            raise OSError("closed")

    assert (
        await send_frames(HttpExchange(peer.receive, refuse), source, headers=HEADERS, stall=STALL)
        is StreamEnd.LEFT
    )
    assert len(peer.sent) == failing


@pytest.mark.parametrize("stalling", [1, 2, 3])
async def test_a_socket_that_takes_nothing_is_given_up(stalling: int) -> None:
    peer, source = Peer(), Frames(*[b"a"] * (stalling - 1))
    if stalling == 1:
        peer.takes.clear()
    async with streaming(line_to(peer), source, stall_after=0.05) as ended:
        if stalling > 1:
            await peer.has_sent(stalling + 1)
            peer.takes.clear()
            source.add([b"b"])
        assert await ended is StreamEnd.STALLED
    assert body(b"", more=False) not in peer.sent


async def test_a_slow_reader_is_waited_for_and_nothing_is_pulled_meanwhile() -> None:
    peer, source = Peer(), Frames()
    async with streaming(line_to(peer), source) as ended:
        await peer.has_sent(2)
        peer.takes.clear()
        source.add([b"a", b"b"])
        await peer.has_sent(3)
        await asyncio.sleep(0)
        assert len(source.asked) == 1
        peer.takes.set()
        source.add([None])
    assert ended.result() is StreamEnd.FINISHED
    assert peer.bodies == [b"", b"a", b"b", b""]


@pytest.mark.parametrize("fault", [StoreDown("gone"), OSError("disk"), TimeoutError("lock")])
async def test_a_fault_of_the_source_reaches_the_caller_as_it_was_raised(fault: Exception) -> None:
    peer, source = Peer(), Frames(b"a", fault)
    with pytest.raises(type(fault)) as caught:
        await send_frames(line_to(peer), source, headers=HEADERS, stall=STALL)
    assert caught.value is fault
    assert peer.bodies == [b"", b"a"]


async def test_a_server_that_fails_while_it_listens_ends_the_stream_with_its_error() -> None:
    peer, source = Peer(), Frames()

    async def receive() -> Message:
        await peer.has_sent(2)
        raise LookupError("the server is broken")

    with pytest.raises(LookupError):
        await send_frames(HttpExchange(receive, peer.send), source, headers=HEADERS, stall=STALL)
    assert source.was_left


@pytest.mark.parametrize("is_sending", [True, False])
async def test_a_cancelled_stream_stays_cancelled(is_sending: bool) -> None:
    peer, source = Peer(), Frames()
    async with streaming(line_to(peer), source) as ended:
        await peer.has_sent(2)
        if is_sending:
            peer.takes.clear()
            source.add([b"a"])
            await peer.has_sent(3)
        ended.cancel()
    assert ended.cancelled()


async def test_no_task_outlives_a_stream() -> None:
    before = asyncio.all_tasks()
    peer = Peer()
    await send_frames(line_to(peer), Frames(None), headers=HEADERS, stall=STALL)
    assert asyncio.all_tasks() == before


async def test_what_a_source_says_last_leaves_with_the_end_of_the_body() -> None:
    peer, source = Peer(), Frames(b"a", b"b")
    source.last = b"b"
    assert await send_frames(line_to(peer), source, headers=HEADERS, stall=STALL) is StreamEnd.FINISHED
    assert peer.sent[2:] == [body(b"a"), body(b"b", more=False)]


async def _asked(source: Frames, times: int) -> None:
    """Until the source was asked so often; bounded by the timeout of the test."""
    # nobody tells
    while len(source.asked) < times:  # noqa: ASYNC110
        await asyncio.sleep(0)


@requirement("auth:asked-again")
async def test_nothing_is_written_on_a_line_that_was_cut() -> None:
    peer, source = Peer(), Frames()
    exchange = line_to(peer)
    async with streaming(exchange, source) as ended:
        await _asked(source, 1)
        await exchange.cut()
        source.add([b"a"])
        assert await ended is StreamEnd.LEFT
    assert peer.sent == [START, body(b"")]


async def test_a_slow_reader_has_its_time_for_each_piece_of_a_large_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer, source = Peer(), Frames()
    large = b"a" * (3 * PIECE + 1)
    loop = asyncio.get_running_loop()
    time, later = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: time() + later)
    async with streaming(line_to(peer), source, stall_after=3) as ended:
        await _asked(source, 1)
        peer.takes.clear()
        source.last = large
        source.add([large])
        for number in range(4):
            await peer.has_sent(3 + number)
            # four times as long as this: longer than a stall, and no piece takes so long
            later += 2
            await asyncio.sleep(0.01)
            peer.takes.set()
            peer.takes.clear()
        assert await ended is StreamEnd.FINISHED
    pieces = peer.sent[2:]
    assert b"".join(each["body"] for each in pieces) == large
    assert [len(each["body"]) for each in pieces] == [PIECE, PIECE, PIECE, 1]
    assert [each["more_body"] for each in pieces] == [True, True, True, False]


async def test_a_stream_that_waits_for_hours_is_not_taken_for_a_stalled_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer, source = Peer(), Frames()
    loop = asyncio.get_running_loop()
    time, later = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: time() + later)
    async with streaming(line_to(peer), source, stall_after=3) as ended:
        await _asked(source, 1)
        later += 10
        await asyncio.sleep(0.01)
        source.add([b"a", None])
        assert await ended is StreamEnd.FINISHED
    assert peer.bodies == [b"", b"a", b""]
