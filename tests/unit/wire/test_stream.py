"""The outbox and its writer, against a peer that a test controls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from starlette.types import Message

from farhand.wire.sse import KEEP_ALIVE
from farhand.wire.stream import EVENT_STREAM_HEADERS, End, Outbox, send_stream
from tests.requirement import requirement
from tests.unit.wire.peer import Peer

START: Message = {"type": "http.response.start", "status": 200, "headers": list(EVENT_STREAM_HEADERS)}


@asynccontextmanager
async def streaming(
    peer: Peer, outbox: Outbox, *, keep_alive: float = 60, stall_after: float = 60
) -> AsyncIterator[asyncio.Task[End]]:
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        yield group.create_task(
            send_stream(peer.receive, peer.send, outbox, keep_alive=keep_alive, stall_after=stall_after)
        )


# ------------------------------------------------------------------------------------------------ outbox


@requirement("stream:joined")
async def test_what_waits_is_drained_as_one() -> None:
    outbox = Outbox()
    assert all(outbox.put(frame) for frame in (b"a", b"", b"b", b"c"))
    assert await outbox.drain() == b"abc"


async def test_a_drain_sleeps_until_a_frame_comes() -> None:
    outbox = Outbox()
    async with asyncio.TaskGroup() as group:
        drained = group.create_task(outbox.drain())
        await asyncio.sleep(0)
        assert not drained.done()
        outbox.put(b"a")
        outbox.put(b"b")
    assert drained.result() == b"ab"


async def test_a_closed_outbox_gives_what_waits_and_then_nothing() -> None:
    outbox = Outbox()
    outbox.put(b"a")
    outbox.close()
    outbox.close()
    assert not outbox.put(b"b")
    assert [await outbox.drain(), await outbox.drain()] == [b"a", b""]
    assert outbox.end is End.CLOSED


@requirement("stream:slow-reader")
async def test_one_frame_too_many_lets_the_reader_go_and_frees_the_rest() -> None:
    outbox = Outbox(max_frames=3)
    assert [outbox.put(b"x") for _ in range(4)] == [True, True, True, False]
    assert outbox.end is End.OVERFLOWED
    assert not outbox.put(b"x")
    assert await outbox.drain() == b""


@requirement("stream:slow-reader")
async def test_one_byte_too_many_lets_the_reader_go() -> None:
    outbox = Outbox(max_bytes=4)
    assert [outbox.put(b"xx"), outbox.put(b"xx"), outbox.put(b"x")] == [True, True, False]
    assert outbox.end is End.OVERFLOWED


async def test_a_lone_frame_has_its_turn_whatever_its_size() -> None:
    outbox = Outbox(max_bytes=4)
    assert outbox.put(b"x" * 100)
    assert await outbox.drain() == b"x" * 100
    assert outbox.put(b"x" * 100)


async def test_draining_makes_room_again() -> None:
    outbox = Outbox(max_frames=1, max_bytes=4)
    for _ in range(10):
        assert outbox.put(b"xxxx")
        assert outbox.take() == b"xxxx"


async def test_a_replay_waits_for_room() -> None:
    outbox = Outbox(max_frames=2)
    assert await outbox.room()
    outbox.put(b"a")
    async with asyncio.TaskGroup() as group:
        room = group.create_task(outbox.room())
        await asyncio.sleep(0)
        assert not room.done()
        assert await outbox.drain() == b"a"
    assert room.result()


@pytest.mark.parametrize("end", [End.LEFT, End.OVERFLOWED])
async def test_a_replay_hears_that_it_is_over(end: End) -> None:
    outbox = Outbox()
    outbox.put(b"a")
    async with asyncio.TaskGroup() as group:
        room = group.create_task(outbox.room())
        await asyncio.sleep(0)
        outbox.give_up(end)
    assert not room.result()
    assert outbox.end is end


async def test_frames_that_were_closed_in_and_never_taken_are_not_called_sent() -> None:
    outbox = Outbox()
    outbox.put(b"a")
    outbox.close()
    outbox.give_up(End.LEFT)
    assert outbox.end is End.LEFT
    assert outbox.take() == b""


# ------------------------------------------------------------------------------------------------ writer


@requirement("stream:body-ends-once")
async def test_a_stream_starts_at_once_and_ends_its_body_once() -> None:
    peer, outbox = Peer(), Outbox()
    async with streaming(peer, outbox) as ended:
        await peer.has_sent(2)
        outbox.put(b"a")
        await peer.has_sent(3)
        outbox.put(b"b")
        outbox.close()
    assert ended.result() is End.CLOSED
    assert peer.sent == [
        START,
        {"type": "http.response.body", "body": b"", "more_body": True},
        {"type": "http.response.body", "body": b"a", "more_body": True},
        {"type": "http.response.body", "body": b"b", "more_body": False},
    ]


@requirement("stream:joined")
async def test_frames_put_before_the_stream_leave_in_its_first_write() -> None:
    peer, outbox = Peer(), Outbox()
    outbox.put(b"a")
    outbox.put(b"b")
    outbox.close()
    async with streaming(peer, outbox) as ended:
        pass
    assert ended.result() is End.CLOSED
    assert peer.sent[1:] == [{"type": "http.response.body", "body": b"ab", "more_body": False}]


@requirement("stream:joined")
async def test_a_backlog_leaves_in_one_write() -> None:
    peer, outbox = Peer(), Outbox()
    async with streaming(peer, outbox):
        await peer.has_sent(2)
        peer.takes.clear()
        outbox.put(b"a")
        await peer.has_sent(3)
        assert all(outbox.put(b"%d" % number) for number in range(10))
        peer.takes.set()
        await peer.has_sent(4)
        outbox.close()
    assert peer.bodies == [b"", b"a", b"0123456789", b""]


@requirement("stream:keep-alive")
async def test_a_quiet_stream_sends_a_comment_again_and_again() -> None:
    peer, outbox = Peer(), Outbox()
    async with streaming(peer, outbox, keep_alive=0.01):
        await peer.has_sent(5)
        outbox.close()
    assert peer.bodies[1:4] == [KEEP_ALIVE] * 3


@requirement("stream:keep-alive")
async def test_a_comment_is_sent_only_after_a_quiet_interval() -> None:
    peer, outbox = Peer(), Outbox()
    async with streaming(peer, outbox, keep_alive=0.02):
        while peer.bodies.count(KEEP_ALIVE) < 3:
            outbox.put(b"x")
            count = len(peer.sent)
            await peer.has_sent(count + 2)
        outbox.close()
    pauses = [after - before for before, after in pairwise(peer.times[1:])]
    comments = [pause for pause, body in zip(pauses, peer.bodies[1:], strict=True) if body == KEEP_ALIVE]
    assert min(comments) >= 0.019


@requirement("stream:reader-leaves")
async def test_a_reader_that_leaves_ends_the_stream_without_an_end_of_body() -> None:
    peer, outbox = Peer({"type": "http.request", "body": b"", "more_body": False}), Outbox()
    async with streaming(peer, outbox) as ended:
        await peer.has_sent(2)
        peer.leave()
        assert await ended is End.LEFT
    assert not outbox.put(b"late")
    assert all(message["more_body"] for message in peer.sent[1:])


@requirement("stream:reader-leaves")
async def test_a_send_that_fails_because_the_reader_left_is_no_error() -> None:
    peer, outbox = Peer(), Outbox()

    async def refuse(message: Message) -> None:
        await peer.send(message)
        raise OSError("closed")

    outbox.put(b"a")
    assert await send_stream(peer.receive, refuse, outbox) is End.LEFT
    assert len(peer.sent) == 1
    assert outbox.end is End.LEFT


@requirement("stream:slow-reader")
async def test_a_reader_that_overflows_gets_the_end_of_its_body_when_it_reads_on() -> None:
    peer, outbox = Peer(), Outbox(max_frames=2)
    async with streaming(peer, outbox) as ended:
        await peer.has_sent(2)
        peer.takes.clear()
        outbox.put(b"a")
        await peer.has_sent(3)
        assert [outbox.put(b"b"), outbox.put(b"c"), outbox.put(b"d")] == [True, True, False]
        peer.takes.set()
    assert ended.result() is End.OVERFLOWED
    assert peer.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@requirement("stream:slow-reader")
@pytest.mark.parametrize("keep_alive", [0.01, 60])
async def test_a_socket_that_takes_nothing_is_given_up(keep_alive: float) -> None:
    peer, outbox = Peer(), Outbox()
    peer.takes.clear()
    async with streaming(peer, outbox, keep_alive=keep_alive, stall_after=0.05) as ended:
        outbox.put(b"a")
        assert await ended is End.STALLED
    assert not outbox.put(b"late")
    assert outbox.end is End.STALLED


@requirement("stream:slow-reader")
async def test_a_socket_that_does_not_take_the_end_is_given_up_too() -> None:
    peer, outbox = Peer(), Outbox()
    async with streaming(peer, outbox, stall_after=0.05) as ended:
        await peer.has_sent(2)
        peer.takes.clear()
        outbox.close()
        assert await ended is End.STALLED


async def test_a_cancelled_stream_stays_cancelled_and_frees_its_outbox() -> None:
    peer, outbox = Peer(), Outbox()
    async with streaming(peer, outbox) as ended:
        await peer.has_sent(2)
        ended.cancel()
    assert ended.cancelled()
    assert outbox.end is End.LEFT


async def test_no_task_and_no_timer_outlives_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    call_later = loop.call_later

    def remember(delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        timers.append(call_later(delay, callback))
        return timers[-1]

    peer, outbox = Peer(), Outbox()
    before = asyncio.all_tasks()
    async with streaming(peer, outbox):
        monkeypatch.setattr(loop, "call_later", remember)
        await peer.has_sent(2)
        outbox.close()
    assert asyncio.all_tasks() == before
    assert [timer.cancelled() for timer in timers] == [True]
