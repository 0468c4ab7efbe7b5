"""Readers get every event of a run once, in order, from any position, whatever was lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from farhand.core.decide import runs
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import opened
from farhand.core.decide.runs import StepResult
from farhand.core.log import CallSettled, RunFinished, RunStarted, StepFinished, TextAdded
from farhand.core.settings import Settings
from farhand.core.state import ThreadState
from farhand.eventlog.reader import LogReader, NumberedEvent, reading
from farhand.eventlog.threads import Threads
from farhand.store.log.memory import MemoryLogStore
from farhand.testing import FakeClock
from tests.unit.core.story import PATIENCE, asks_for, said
from tests.unit.core.thread_log import ANN

pytestmark = pytest.mark.anyio


@pytest.fixture
async def threads() -> AsyncIterator[Threads]:
    threads = Threads(MemoryLogStore(FakeClock()))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(threads.serve())
        yield threads
        task.cancel()


async def test_a_reader_gets_what_is_stored_and_then_what_happens(threads: Threads) -> None:
    await _begin(threads, "run_1", "m1")
    async with reading(threads, ANN, "t1", "run_1") as reader:
        assert [each.event.__class__ for each in await _next(reader)] == [RunStarted]
        await _write(threads, "Good ")
        await _write(threads, "day")
        texts = [*await _next(reader)]
        assert [(each.seq, each.event) for each in texts] == [
            (2, TextAdded(0, "Good ")),
            (3, TextAdded(0, "day")),
        ]
        await _finish(threads)
        assert [each.event.__class__ for each in await _next(reader)] == [StepFinished, RunFinished]
        assert await reader.next(0.01) is None


async def test_a_reader_goes_on_after_its_position(threads: Threads) -> None:
    await _begin(threads, "run_1", "m1")
    for word in ("a", "b", "c"):
        await _write(threads, word)
    async with reading(threads, ANN, "t1", "run_1", after=2) as reader:
        assert [each.seq for each in await _next(reader)] == [3, 4]
        assert reader.seq == 4
        assert await reader.next(0.01) == []


async def test_direct_calls_and_titles_are_not_numbered(threads: Threads) -> None:
    await _begin(threads, "run_1", "m1")
    opening = asks_for("call_d", direct=True)
    await threads.decide(
        ANN,
        "t1",
        lambda thread, now: Decision(
            None,
            (
                TextAdded(0, "a"),
                opened(thread, opening, now=now, patience=PATIENCE),
                TextAdded(0, "b"),
            ),
        ),
    )
    async with reading(threads, ANN, "t1", "run_1") as reader:
        assert [each.seq for each in await _next(reader)] == [1, 2, 3]


async def test_a_run_that_ends_where_the_next_begins_is_told_apart(threads: Threads) -> None:
    await _begin(threads, "run_1", "m1")
    await _finish(threads, asks=True)
    async with reading(threads, ANN, "t1", "run_1") as old:
        await _next(old)
        await _begin(threads, "run_2", "m2")
        ends = await _next(old)
        assert [each.event.__class__ for each in ends] == [CallSettled, RunFinished]
        async with reading(threads, ANN, "t1", "run_2") as new:
            assert [(each.seq, each.event.__class__) for each in await _next(new)] == [(1, RunStarted)]
        # another run is the thread's last one now
        assert await old.next(0.01) is None


async def test_what_was_not_published_is_found_in_the_log(threads: Threads) -> None:
    await _begin(threads, "run_1", "m1")
    async with reading(threads, ANN, "t1", "run_1") as reader:
        await _next(reader)
        for _ in range(300):
            # more than its queue holds
            await _write(threads, "x")
        seqs: list[int] = []
        while len(seqs) < 300:
            seqs += [each.seq for each in await _next(reader)]
        assert seqs == list(range(2, 302))
        threads.broker.lose(ANN, "t1")
        await _write(threads, "y")
        assert [each.seq for each in await _next(reader)] == [302]


async def test_a_hole_in_the_news_is_looked_up(threads: Threads) -> None:
    await _begin(threads, "run_1", "m1")
    async with reading(threads, ANN, "t1", "run_1") as reader:
        await _next(reader)
        with threads.broker.subscribe(ANN, "t1") as others:
            await _write(threads, "a")
            await _write(threads, "b")
            first, second = others.take()
        reader._news.take()
        reader._news.put(second)
        assert await reader.next(1) == []
        assert [each.seq for each in await _next(reader)] == [2, 3]
        reader._news.put(first)
        assert await reader.next(1) == []


async def _next(reader: LogReader) -> list[NumberedEvent]:
    async with asyncio.timeout(10):
        while True:
            events = await reader.next(1)
            assert events is not None
            if events:
                return events


async def _begin(threads: Threads, run_id: str, message_id: str) -> None:
    message = said("hello", message_id)
    await threads.decide(ANN, "t1", lambda thread, _: runs.begin(thread, message, run_id, hold_for=0.0))


async def _write(threads: Threads, text: str) -> None:
    def write(thread: ThreadState, now: float) -> Decision[bool]:
        return runs.write(thread, 1, (TextAdded(0, text),))

    assert await threads.decide(ANN, "t1", write)


async def _finish(threads: Threads, *, asks: bool = False) -> None:
    calls = (asks_for("call_1"),) if asks else ()
    result = StepResult(step=1, stop_reason="calls" if asks else "end", calls=calls, is_last=not asks)
    assert await threads.decide(
        ANN,
        "t1",
        lambda thread, now: runs.finish_step(thread, 1, result, now=now, settings=Settings(), room=9),
    )
