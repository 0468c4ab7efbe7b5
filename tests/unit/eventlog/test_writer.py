"""Text is joined, stored in order by one tick for all runs, and not lost while the worker has the run."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.event import CallBegun, Event, InputAdded, ReasoningAdded, StepStarted, TextAdded
from farhand.core.principal import LOCAL
from farhand.core.run import Run
from farhand.errors import LostClaim, StoreDown, Unreadable
from farhand.eventlog.writer import RunWriter, Tick, is_same_block

LONG_TICK = 3_600.0


class Stored:
    """What a run's appends left behind, numbered as the rules number them."""

    def __init__(self) -> None:
        self.appends: list[tuple[Event, ...]] = []
        self.after: list[int] = []
        self.changed = asyncio.Event()
        self.tried = asyncio.Event()
        self.is_claimed = True
        self.is_down = False
        self.is_broken = False
        self._last = 1

    def __call__(self, run: Run, events: tuple[Event, ...], after: int) -> asyncio.Future[int | None]:
        answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.tried.set()
        if self.is_down or self.is_broken:
            answer.set_exception(StoreDown("The store is away.") if self.is_down else Unreadable("odd"))
        elif not self.is_claimed:
            answer.set_result(None)
        else:
            self.appends.append(events[self._last - after :])
            self.after.append(after)
            self._last = after + len(events)
            answer.set_result(self._last)
            self.changed.set()
        return answer


def _writer(stored: Stored, tick: Tick | None = None) -> RunWriter:
    run = Run(run_id="run_1", owner=LOCAL, thread_id="t1", last_seq=1, started_at=0.0)
    return RunWriter(tick or Tick(LONG_TICK), run, stored)


async def test_the_words_of_one_block_are_joined() -> None:
    stored = Stored()
    writer = _writer(stored)
    writer.add(StepStarted(1))
    for word in ("Good ", "day ", "to "):
        writer.add_words(TextAdded, 0, word)
    writer.add_words(ReasoningAdded, 1, "h")
    writer.add_words(ReasoningAdded, 1, "m")
    writer.add(CallBegun("call_1", "open_url"))
    writer.add_words(InputAdded, "call_1", "{")
    writer.add_words(InputAdded, "call_1", "}")
    writer.add_words(TextAdded, 3, "you")
    await writer.flush()
    await asyncio.sleep(0)
    assert not writer.has_words
    assert stored.appends == [
        (
            StepStarted(1),
            TextAdded(0, "Good day to "),
            ReasoningAdded(1, "hm"),
            CallBegun("call_1", "open_url"),
            InputAdded("call_1", "{}"),
            TextAdded(3, "you"),
        )
    ]


async def test_a_tick_stores_what_all_runs_have() -> None:
    first, second = Stored(), Stored()
    tick = Tick(0.001)
    one, other = _writer(first, tick), _writer(second, tick)
    one.add_words(TextAdded, 0, "a")
    one.add_words(TextAdded, 0, "b")
    other.add_words(TextAdded, 0, "c")
    async with asyncio.timeout(10):
        await first.changed.wait()
        await second.changed.wait()
    await tick.close()
    assert first.appends == [(TextAdded(0, "ab"),)]
    assert second.appends == [(TextAdded(0, "c"),)]


async def test_what_is_said_within_a_tick_is_stored_at_the_next() -> None:
    stored = Stored()
    tick = Tick(0.02)
    writer = _writer(stored, tick)
    writer.add_words(TextAdded, 0, "a")
    async with asyncio.timeout(10):
        await stored.changed.wait()
        stored.changed.clear()
        writer.add_words(TextAdded, 0, "b")
        writer.add_words(TextAdded, 0, "c")
        await stored.changed.wait()
    assert stored.appends == [(TextAdded(0, "a"),), (TextAdded(0, "bc"),)]
    assert stored.after == [1, 2]
    await tick.close()


async def test_words_stay_for_the_next_tick_while_the_store_is_down() -> None:
    down, stored = Stored(), Stored()
    down.is_down = True
    tick = Tick(0.001)
    waiting = _writer(down, tick)
    waiting.add_words(TextAdded, 0, "a")
    _writer(stored, tick).add_words(TextAdded, 0, "b")
    async with asyncio.timeout(10):
        await stored.changed.wait()
        await down.tried.wait()
        waiting.add_words(TextAdded, 0, "!")
        down.is_down = False
        await down.changed.wait()
    await tick.close()
    assert stored.appends == [(TextAdded(0, "b"),)]
    assert (
        "".join(event.text for append in down.appends for event in append if isinstance(event, TextAdded))
        == "a!"
    )


async def test_what_is_written_during_a_flush_follows_on_it() -> None:
    stored = Stored()
    writer = _writer(stored)
    writer.add_words(TextAdded, 0, "a")
    first = writer.flush()
    writer.add_words(TextAdded, 0, "b")
    # it is not known yet that the first is stored: the numbers say it
    second = writer.flush()
    assert (await first, await second) == (2, 3)
    assert stored.appends == [(TextAdded(0, "a"),), (TextAdded(0, "b"),)]
    assert stored.after == [1, 1]
    await asyncio.sleep(0)
    assert writer.unstored() == ((), 3)


async def test_the_end_of_a_step_is_stored_with_the_words_before_it() -> None:
    stored = Stored()
    writer = _writer(stored)
    writer.add_words(TextAdded, 0, "a")
    assert writer.unstored() == ((TextAdded(0, "a"),), 1)
    assert not writer.has_words, "they are being stored"
    writer.note(2)
    assert writer.unstored() == ((), 2)
    writer.follow(7)
    writer.add_words(TextAdded, 0, "b")
    await writer.flush()
    assert stored.after == [7]


async def test_a_writer_that_lost_its_run_stores_nothing_more_and_its_run_is_told() -> None:
    stored = Stored()
    stored.is_claimed = False
    writer = _writer(stored)
    writer.add_words(TextAdded, 0, "a")
    await writer.flush()
    await asyncio.sleep(0)
    assert not writer.has_words
    with pytest.raises(LostClaim):
        writer.add_words(TextAdded, 0, "b")
    with pytest.raises(LostClaim):
        writer.note(None)
    assert stored.appends == []


async def test_an_append_that_breaks_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    stored, tick = Stored(), Tick(LONG_TICK)
    stored.is_broken = True
    _writer(stored, tick).add_words(TextAdded, 0, "a")
    await tick.close()
    await asyncio.sleep(0)
    assert [record.message for record in caplog.records] == ["could not store text of a run"]


async def test_a_tick_continues_when_a_writer_has_lost_its_run() -> None:
    lost, stored = Stored(), Stored()
    lost.is_claimed = False
    tick = Tick(0.001)
    _writer(lost, tick).add_words(TextAdded, 0, "a")
    async with asyncio.timeout(10):
        await lost.tried.wait()
        _writer(stored, tick).add_words(TextAdded, 0, "b")
        await stored.changed.wait()
    await tick.close()


async def test_a_tick_that_is_closed_has_stored_what_it_was_given() -> None:
    stored = Stored()
    tick = Tick(LONG_TICK)
    writer = _writer(stored, tick)
    writer.add_words(TextAdded, 0, "a")
    await tick.close()
    writer.add_words(TextAdded, 0, "b")
    await tick.close()
    await tick.close()
    assert stored.appends == [(TextAdded(0, "a"),), (TextAdded(0, "b"),)]


def test_only_blocks_of_text_are_joined() -> None:
    assert is_same_block(TextAdded(0, "a"), TextAdded(0, "b"))
    assert not is_same_block(TextAdded(0, "a"), TextAdded(1, "a"))
    assert not is_same_block(TextAdded(0, "a"), ReasoningAdded(0, "a"))
    assert not is_same_block(InputAdded("c", "a"), InputAdded("d", "a"))
    assert not is_same_block(StepStarted(1), StepStarted(1))
