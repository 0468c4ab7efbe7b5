"""Words are joined, stored in order by one tick for all runs, and lost by nobody who still has the run."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.log import CallBegun, Event, InputAdded, ReasoningAdded, StepStarted, TextAdded
from farhand.eventlog.writer import RunWriter, Tick, is_same_block, with_text

pytestmark = pytest.mark.anyio


class Stored:
    def __init__(self) -> None:
        self.appends: list[tuple[Event, ...]] = []
        self.changed = asyncio.Event()
        self.is_claimed = True
        self.is_down = False

    async def __call__(self, events: tuple[Event, ...]) -> bool:
        await asyncio.sleep(0)
        if self.is_down:
            raise OSError
        self.appends.append(events)
        self.changed.set()
        return self.is_claimed


async def test_the_words_of_one_block_are_joined() -> None:
    stored = Stored()
    writer = RunWriter(Tick(), stored)
    writer.add(StepStarted(1))
    for word in ("Good ", "day ", "to "):
        writer.add(TextAdded(0, word))
    writer.add(ReasoningAdded(1, "h"))
    writer.add(ReasoningAdded(1, "m"))
    writer.add(CallBegun("call_1", "open_url"))
    writer.add(InputAdded("call_1", "{"))
    writer.add(InputAdded("call_1", "}"))
    writer.add(TextAdded(3, "you"))
    assert writer.take() == (
        StepStarted(1),
        TextAdded(0, "Good day to "),
        ReasoningAdded(1, "hm"),
        CallBegun("call_1", "open_url"),
        InputAdded("call_1", "{}"),
        TextAdded(3, "you"),
    )
    assert writer.take() == ()


async def test_a_tick_stores_what_all_runs_have() -> None:
    first, second = Stored(), Stored()
    tick = Tick(0.001)
    one, other = RunWriter(tick, first), RunWriter(tick, second)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(tick.serve())
        one.add(TextAdded(0, "a"))
        one.add(TextAdded(0, "b"))
        other.add(TextAdded(0, "c"))
        async with asyncio.timeout(10):
            await first.changed.wait()
            await second.changed.wait()
        serving.cancel()
    assert first.appends == [(TextAdded(0, "ab"),)]
    assert second.appends == [(TextAdded(0, "c"),)]


async def test_a_store_that_is_down_does_not_end_the_tick() -> None:
    broken, stored = Stored(), Stored()
    broken.is_down = True
    tick = Tick(0.001)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(tick.serve())
        RunWriter(tick, broken).add(TextAdded(0, "a"))
        RunWriter(tick, stored).add(TextAdded(0, "b"))
        async with asyncio.timeout(10):
            await stored.changed.wait()
        serving.cancel()
    assert stored.appends == [(TextAdded(0, "b"),)]


async def test_flushes_come_one_after_the_other() -> None:
    stored = Stored()
    writer = RunWriter(Tick(), stored)
    writer.add(TextAdded(0, "a"))
    first = asyncio.ensure_future(writer.flush())
    await asyncio.sleep(0)
    writer.add(TextAdded(0, "b"))
    await asyncio.gather(first, writer.flush())
    await writer.flush()
    assert stored.appends == [(TextAdded(0, "a"),), (TextAdded(0, "b"),)]


async def test_a_writer_that_lost_its_run_stores_nothing_more() -> None:
    stored = Stored()
    stored.is_claimed = False
    writer = RunWriter(Tick(), stored)
    for word in "ab":
        writer.add(TextAdded(0, word))
        await writer.flush()
    assert writer.is_lost
    assert len(stored.appends) == 1


def test_only_blocks_of_text_are_joined() -> None:
    assert not is_same_block(TextAdded(0, "a"), TextAdded(1, "a"))
    assert not is_same_block(TextAdded(0, "a"), ReasoningAdded(0, "a"))
    with pytest.raises(AssertionError):
        with_text(StepStarted(1), "x")
