"""A reader that shows what it hears where it is told gets the same as one that is woken for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farhand.agent import journal
from farhand.agent.journal import RunLog
from farhand.agent.reader import Reader
from farhand.core.event import (
    CallTaken,
    Entry,
    Event,
    RunFinished,
    RunResumed,
    RunStarted,
    StepStarted,
    TextAdded,
)
from farhand.core.principal import LOCAL
from farhand.core.run import Run, RunState
from farhand.core.thread import Thread
from farhand.models.scripted import Say, Think
from farhand.store.base import Committed, InsertRun, InsertThread, Store, WriteRun
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.agent.stage import PATIENCE_SEC, Stage, text_in


class Shown:
    """What was shown, outside of any task of the reader's."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.has_room = True
        self.fault: Exception | None = None

    def __call__(self, entries: list[Entry]) -> bool:
        if self.fault is not None:
            raise self.fault
        self.entries += entries
        return self.has_room

    @property
    def text(self) -> str:
        return text_in([entry.event for entry in self.entries])


async def _begun(store: Store) -> Run:
    run = Run(run_id="run_1", owner=LOCAL, thread_id="t1", started_at=0.0, lease_until=1e12)
    thread = Thread(owner=LOCAL, thread_id="t1", created_at=0.0, updated_at=0.0)
    started = WriteRun(run_id="run_1", fence=1, events=(RunStarted("t1"),), state=RunState.RUNNING)
    commit = await store.commit(InsertThread(thread), InsertRun(run), started)
    assert isinstance(commit, Committed)
    return commit.runs["run_1"]


async def _append(store: Store, *events: Event) -> None:
    assert isinstance(await store.commit(WriteRun(run_id="run_1", fence=1, events=events)), Committed)


class Asleep:
    """A reader at the end of the journal, and its sleep."""

    def __init__(self, reading: Reader, shown: Shown, sleep: asyncio.Task[list[Entry] | None]) -> None:
        self.reading = reading
        self.shown = shown
        self.sleep = sleep


@asynccontextmanager
async def _asleep(store: Store, run: Run) -> AsyncIterator[Asleep]:
    shown = Shown()
    with Reader(store, LOCAL, run.run_id) as reading:
        async with asyncio.timeout(PATIENCE_SEC):
            await reading.next(1)
            sleep = asyncio.ensure_future(reading.next(PATIENCE_SEC, shown))
            # nobody tells
            while reading._watch._sleeper is None:  # noqa: ASYNC110
                await asyncio.sleep(0)
            yield Asleep(reading, shown, sleep)
            reading.leave()
            await asyncio.wait([sleep])


@requirement("stream:shown-at-once")
async def test_a_word_is_shown_when_the_pen_tells_it_and_nobody_is_woken(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "WORDS_SEC", 0.0)
    monkeypatch.setattr(journal, "JOIN_FOR_SEC", PATIENCE_SEC)
    run = await _begun(store)
    async with _asleep(store, run) as reader, asyncio.TaskGroup() as group:
        log = RunLog(store, run, group)
        for word in ("one ", "two ", "three"):
            log.say_word(TextAdded, 0, word)
            await asyncio.sleep(0)
        assert [text_in([entry.event]) for entry in reader.shown.entries] == ["one ", "two ", "three"]
        assert await log.saved()
        await asyncio.sleep(0)
        assert reader.shown.text == "one two three", "what is stored was heard before"
        assert not reader.sleep.done()


@requirement("stream:shown-at-once")
async def test_what_a_commit_tells_is_shown_together_with_what_comes_of_it(store: Store) -> None:
    async with _asleep(store, await _begun(store)) as reader:
        store.hub.tell("run_1", [Entry(2, CallTaken("call_1", "tab"), 0.0)])
        store.hub.tell("run_1", [Entry(3, TextAdded(0, "so"), 0.0)])
        assert reader.shown.entries == []
        await asyncio.sleep(0)
        assert [entry.seq for entry in reader.shown.entries] == [2, 3]
        assert not reader.sleep.done()


@requirement("stream:shown-at-once")
async def test_a_reader_that_cannot_show_more_is_up_and_goes_on_from_there(store: Store) -> None:
    async with _asleep(store, await _begun(store)) as reader:
        reader.shown.has_room = False
        store.hub.say("run_1", [Entry(2, TextAdded(0, "one "), 0.0)])
        store.hub.say("run_1", [Entry(2, TextAdded(0, "two"), 0.0, 4)])
        assert await reader.sleep == []
        assert reader.shown.text == "one "
        assert await reader.reading.next(1) == [Entry(2, TextAdded(0, "two"), 0.0, 4)]


@requirement("stream:shown-at-once")
async def test_what_was_not_heard_is_read_from_the_record_and_not_shown_in_its_place(store: Store) -> None:
    async with _asleep(store, await _begun(store)) as reader:
        hub, store.hub.watches = store.hub.watches, {}
        await _append(store, TextAdded(0, "one "), TextAdded(1, "two "))
        store.hub.watches = hub
        store.hub.say("run_1", [Entry(4, TextAdded(2, "three"), 0.0)])
        entries = await reader.sleep or []
        assert text_in([entry.event for entry in entries]) == "one two "
        assert reader.shown.entries == []


@requirement("stream:shown-at-once")
async def test_nothing_follows_on_words_that_a_takeover_has_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "is_shared", True)
    async with _asleep(store, await _begun(store)) as reader:
        store.hub.say("run_1", [Entry(2, TextAdded(0, "lost with its worker"), 0.0)])
        store.hub.say("run_1", [Entry(2, RunResumed(taken_over=True), 0.0)])
        # before its task is up
        store.hub.say("run_1", [Entry(3, StepStarted(1), 0.0)])
        assert await reader.sleep == [Entry(2, TextAdded(0, "lost with its worker"), 0.0)]
        assert await reader.reading.next(1) is None
        assert reader.reading.cut
        assert reader.shown.entries == []


@requirement("stream:shown-at-once")
async def test_what_cannot_be_shown_fails_the_reader_and_not_who_says_it(store: Store) -> None:
    run = await _begun(store)
    with Reader(store, LOCAL, run.run_id) as other:
        await other.next(1)
        async with _asleep(store, run) as reader:
            reader.shown.fault = ValueError("no such chunk")
            store.hub.say("run_1", [Entry(2, TextAdded(0, "one"), 0.0)])
            with pytest.raises(ValueError, match="no such chunk"):
                await reader.sleep
        assert await other.next(1) == [Entry(2, TextAdded(0, "one"), 0.0)]


@requirement("streams:resume")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text("abcé ", min_size=1, max_size=6), min_size=1, max_size=8),
    st.sets(st.integers(0, 8)),
    st.integers(0, 1_000_000),
)
async def test_a_reader_that_is_full_now_and_then_gets_the_text_exactly_once(
    words: list[str], thoughts: set[int], seed: int
) -> None:
    # how often something is shown depends on the loop, so chances are not drawn one by one
    chance = Random(seed)
    items = [Think("hm") if number in thoughts else Say([word]) for number, word in enumerate(words)]
    full = "".join(word for number, word in enumerate(words) if number not in thoughts)
    clock = FakeClock()
    on = Stage(MemoryStore(clock), clock, [items])
    await on.farhand.open()
    run = await on.say("speak")
    heard: list[Entry] = []

    def show(entries: list[Entry]) -> bool:
        heard.extend(entries)
        return not isinstance(entries[-1].event, RunFinished) and chance.random() < 0.5

    with on.farhand.read(run) as reading:
        async with asyncio.timeout(PATIENCE_SEC):
            while not heard or not isinstance(heard[-1].event, RunFinished):
                heard += await reading.next(0.002, show) or []
    await on.farhand.close()
    assert text_in([entry.event for entry in heard]) == full
    assert [entry.end for entry in heard] == sorted({entry.end for entry in heard})
