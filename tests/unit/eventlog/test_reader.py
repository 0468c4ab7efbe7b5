"""A reader gets every character exactly once, whenever it starts, wherever it was cut, however slow it is."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from farhand.core.decide import calls, runs
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import opened
from farhand.core.event import (
    Event,
    RunFinished,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
    ThreadRenamed,
)
from farhand.core.position import START, Entry, Position
from farhand.core.principal import LOCAL
from farhand.core.run import Run, RunState
from farhand.eventlog.log import EventLog
from farhand.eventlog.reader import LogReader, entries_until, has_position
from farhand.models.scripted import Ask, Say, Step, Think
from farhand.store.base import Store
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.agent.hands import add
from tests.unit.agent.stage import PATIENCE_SEC, Stage, kinds, text_in
from tests.unit.core.thread_builder import TIMEOUTS, asks_for

THREAD = "t1"
BEGUN = RunStarted("run_1", None, 0.0)
DONE = RunFinished(RunState.DONE, "end")


@pytest.fixture
def eventlog(store: Store) -> EventLog:
    return EventLog(store)


# ----------------------------------------------------------------------------------- from any position


@requirement("streams:resume")
@given(
    st.lists(st.text("abcé ", min_size=1, max_size=6), min_size=1, max_size=8),
    st.sets(st.integers(0, 8)),
    st.integers(0, 1_000_000),
)
async def test_a_reader_cut_at_any_character_and_resumed_gets_the_text_exactly_once(
    words: list[str], thoughts: set[int], seed: int
) -> None:
    # how often a reader is cut depends on the loop, so its chances are not drawn one by one
    chance = Random(seed)
    items = [Think("hm") if number in thoughts else Say([word]) for number, word in enumerate(words)]
    full = "".join(word for number, word in enumerate(words) if number not in thoughts)
    clock = FakeClock()
    on = _speaking(Stage(MemoryStore(clock), clock, [items]), tick_sec=0.0)
    await on.service.open()
    run = await on.say("speak")
    heard: list[Entry] = []
    async with asyncio.timeout(PATIENCE_SEC):
        while not heard or not isinstance(heard[-1].event, RunFinished):
            at = heard[-1].end if heard else START
            heard += await _some(on, run, at, chance)
    await on.service.close()
    assert text_in([entry.event for entry in heard]) == full
    assert [entry.end for entry in heard] == sorted({entry.end for entry in heard})


async def _some(on: Stage, run: Run, at: Position, chance: Random) -> list[Entry]:
    """A reader that is cut after a while, perhaps in mid-word."""
    with on.service.read(run, at) as reading:
        for _ in range(chance.randint(0, 3)):
            await asyncio.sleep(0)
        entries = await reading.next(0.002) or []
    kept = entries[: chance.randint(min(1, len(entries)), len(entries))]
    if kept and isinstance(kept[-1].event, TextAdded):
        length = chance.randint(1, len(kept[-1].event.text))
        kept[-1] = replace(kept[-1], event=replace(kept[-1].event, text=kept[-1].event.text[:length]))
    return kept


@requirement("streams:resume")
@pytest.mark.parametrize("tick_sec", [0.0, 0.05, 0.5])
async def test_early_and_late_readers_get_the_same_text(
    store: Store, clock: FakeClock, tick_sec: float
) -> None:
    script: list[Step] = [
        [Think("Let me see. "), "First I add. ", Ask("add", {"a": 1, "b": 2}), "Then I speak."],
        "It is three, and that is all there is to say.",
    ]
    on = _speaking(Stage(store, clock, script, add), tick_sec=tick_sec)
    await on.service.open()
    run = await on.say("go")
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(on.told(run))]
        for _ in range(15):
            await asyncio.sleep(0)
            readers.append(group.create_task(on.told(run)))
    texts = [text_in(each.result()) for each in readers]
    assert {*texts, text_in(await on.told(run))} == {text_in(await on.journal(run))}
    assert texts[0].startswith("First I add. Then I speak.It is three")
    await on.service.close()


@requirement("streams:resume")
async def test_every_position_of_an_ended_run_leads_to_exactly_the_rest(eventlog: EventLog) -> None:
    events = [BEGUN, StepStarted(1), *_texts("hello", "you"), StepFinished(1, "end"), DONE]
    run = await _append(eventlog, *events)
    assert [entry.event for entry in await _all(eventlog, run)] == events
    cases = [
        (Position(2), "helloyou"),
        (Position(3, 2), "lloyou"),
        (Position(3, 5), "you"),
        (Position(4, 3), ""),
    ]
    for position, rest in cases:
        assert text_in([entry.event for entry in await _all(eventlog, run, position)]) == rest
    assert await _all(eventlog, run, Position(run.last_seq)) == []


@requirement("streams:resume")
async def test_a_reader_that_was_cut_in_the_last_word_of_an_active_run_gets_the_rest_of_it(
    eventlog: EventLog,
) -> None:
    run = await _append(eventlog, BEGUN, TextAdded(0, "hello"))
    with LogReader(eventlog, run, Position(2, 2)) as reading:
        async with asyncio.timeout(PATIENCE_SEC), asyncio.TaskGroup() as group:
            rest = group.create_task(_until_none(reading))
            for _ in range(20):
                # it has looked at the log, and may believe that it has all there is
                await asyncio.sleep(0)
            await _append(eventlog, StepFinished(1, "end"), DONE)
    assert text_in([entry.event for entry in rest.result()]) == "llo"


@requirement("streams:resume")
async def test_a_long_journal_is_read_to_its_end(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN)
    for step in range(1, 90):
        words = [StepStarted(step), *_texts(*"abcdefg"), StepFinished(step, "calls")]
        await _append(eventlog, *words)
    run = await _append(eventlog, DONE)
    assert [entry.seq for entry in await _all(eventlog, run)] == list(range(1, run.last_seq + 1))
    assert len(await _all(eventlog, run, Position(300, 1))) == run.last_seq - 300


@requirement("streams:resume")
async def test_a_run_that_ends_where_the_next_begins_is_told_apart(eventlog: EventLog) -> None:
    first = await _append(eventlog, BEGUN, StepStarted(1), *_texts("a"))
    second = await _append(eventlog, DONE, RunStarted("run_2", None, 0.0), StepStarted(1), *_texts("b"))
    assert [entry.seq for entry in await _all(eventlog, first, Position(2))] == [3, 4]
    with LogReader(eventlog, second) as reading:
        assert [entry.seq for entry in await reading.next(1) or []] == [1, 2, 3]


@requirement("streams:resume")
async def test_direct_calls_and_titles_have_no_numbers(eventlog: EventLog) -> None:
    await _append(eventlog, BEGUN)
    opening = asks_for("call_d", direct=True)

    async with asyncio.timeout(PATIENCE_SEC):
        await eventlog.decide(
            LOCAL,
            THREAD,
            lambda thread, now: Decision(
                None,
                (
                    TextAdded(0, "a"),
                    opened(thread, opening, now=now, timeouts=TIMEOUTS),
                    ThreadRenamed("Title"),
                    TextAdded(0, "b"),
                ),
            ),
        )
    assert await eventlog.decide(
        LOCAL, THREAD, lambda thread, now: calls.cancel(thread, ["call_d"], "not wanted")
    )
    run = await _append(eventlog, DONE)
    entries = await _all(eventlog, run)
    assert [(entry.seq, type(entry.event)) for entry in entries] == [
        (1, RunStarted),
        (2, TextAdded),
        (3, TextAdded),
        (4, RunFinished),
    ]


# --------------------------------------------------------------------------------------------- takeovers


async def test_a_replay_leaves_out_discarded_steps(eventlog: EventLog) -> None:
    good = [StepStarted(1), *_texts("good"), StepFinished(1, "calls")]
    cut = [StepStarted(2), *_texts(*"cut short"), StepDiscarded(2), RunResumed(taken_over=True)]
    again = [StepStarted(2), *_texts("better"), StepFinished(2, "end")]
    run = await _append(eventlog, BEGUN, *good, *cut, *again, DONE)
    replay = [entry.event for entry in await _all(eventlog, run)]
    assert text_in(replay) == "goodbetter"
    assert not any(isinstance(event, StepDiscarded) for event in replay)


async def test_a_reader_that_saw_the_discarded_step_is_told_so(eventlog: EventLog) -> None:
    cut = [StepStarted(1), *_texts("cut sh"), StepDiscarded(1), RunResumed(taken_over=True)]
    again = [StepStarted(1), *_texts("better"), StepFinished(1, "end")]
    run = await _append(eventlog, BEGUN, *cut, *again, DONE)
    rest = [entry.event for entry in await _all(eventlog, run, Position(3, 3))]
    assert kinds(rest)[:3] == ["TextAdded", "StepDiscarded", "RunResumed"]
    assert text_in(rest) == " shbetter"


@requirement("streams:takeover")
async def test_who_reads_while_a_run_is_taken_over_gets_every_event_once(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN, StepStarted(1), *_texts("Half an ans"))
    with LogReader(eventlog, run) as reading:
        heard = await reading.next(1) or []
        fence = await eventlog.decide(
            LOCAL,
            THREAD,
            lambda thread, now: runs.claim(
                thread, "run_1", 1, lambda call: False, now=now, timeouts=TIMEOUTS
            ),
        )
        assert fence == 2
        await _append(eventlog, StepStarted(1), *_texts("A whole answer."), StepFinished(1, "end"), DONE)
        heard += await _until_none(reading)
    assert heard == await eventlog.entries(run)
    assert StepDiscarded(1) in [entry.event for entry in heard]


# ------------------------------------------------------------------------------------------- slow readers


async def test_a_reader_that_falls_behind_catches_up_from_the_record(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN)
    with LogReader(eventlog, run) as slow:
        assert len(await slow.next(1) or []) == 1
        for number in range(1_000):
            await _append(eventlog, TextAdded(number, "x"))
        assert slow._subscription.is_stale, "it kept no more than its share"
        found: list[Entry] = []
        async with asyncio.timeout(PATIENCE_SEC):
            while len(found) < 1_000:
                found += await slow.next(0.01) or []
    assert [entry.seq for entry in found] == list(range(2, 1_002))


@requirement("streams:slow-reader")
async def test_a_reader_that_never_reads_holds_up_nobody(store: Store, clock: FakeClock) -> None:
    on = _speaking(Stage(store, clock, [Say(["word "] * 2_000)]), tick_sec=0.0)
    await on.service.open()
    run = await on.say("speak")
    with on.service.read(run) as dead:
        assert text_in(await on.told(run)) == "word " * 2_000
        assert len(dead._subscription.items) <= 256
    await on.service.close()


@requirement("streams:resume")
async def test_news_that_was_lost_is_found_at_the_next_look(
    eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await _append(eventlog, BEGUN)
    with LogReader(eventlog, run) as reading:
        await reading.next(1)
        monkeypatch.setattr(eventlog.broker, "publish", lambda topic, item: None)
        await _append(eventlog, TextAdded(0, "lost"))
        assert await reading.next(0.01) == []
        assert text_in([entry.event for entry in await reading.next(0.01) or []]) == "lost"


@requirement("streams:resume")
async def test_a_hole_in_the_news_is_looked_up(eventlog: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await _append(eventlog, BEGUN)
    with LogReader(eventlog, run) as reading:
        await reading.next(1)
        with monkeypatch.context() as deaf:
            deaf.setattr(eventlog.broker, "publish", lambda topic, item: None)
            await _append(eventlog, TextAdded(0, "a"))
        await _append(eventlog, TextAdded(1, "b"))
        heard = await reading.next(1) or []
        # what was told in between is not told again
        eventlog.broker.publish("run_1", [Entry(2, TextAdded(0, "a"), 0.0)])
        await _append(eventlog, TextAdded(2, "c"))
        heard += await reading.next(1) or []
    assert text_in([entry.event for entry in heard]) == "abc"


@requirement("streams:resume")
async def test_a_state_that_was_forgotten_shakes_its_readers(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN)
    with LogReader(eventlog, run) as reading:
        await reading.next(1)
        async with asyncio.timeout(PATIENCE_SEC), asyncio.TaskGroup() as group:
            waiting = group.create_task(reading.next(PATIENCE_SEC * 2))
            await asyncio.sleep(0)
            # as when the store did not say whether it kept an append
            eventlog.forget(LOCAL, THREAD)
        assert waiting.result() == []


# ------------------------------------------------------------------------------------------------ the end


@requirement("streams:resume")
async def test_a_reader_that_has_all_of_an_ended_run_is_not_kept_waiting(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN, DONE)
    with LogReader(eventlog, run) as reading:
        async with asyncio.timeout(eventlog.broker.recheck / 2):
            assert len(await reading.next(PATIENCE_SEC) or []) == 2
            assert await reading.next(PATIENCE_SEC) is None


@requirement("streams:resume")
async def test_a_reader_of_a_run_that_is_not_there_or_not_its_own_ends_at_once(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN, DONE)
    assert await _all(eventlog, replace(run, run_id="run_2")) == []
    assert await _all(eventlog, replace(run, owner=replace(LOCAL, subject="other"))) == []


@requirement("streams:resume")
async def test_a_reader_of_a_journal_that_was_purged_ends(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN, DONE)
    await eventlog.purge(before=eventlog.now() + 1)
    assert await eventlog.entries(run) == []
    assert await _all(eventlog, run) == []
    # and so in a process that has not seen the run
    assert await _all(EventLog(eventlog.store), run) == []


@requirement("streams:resume")
async def test_a_reader_that_is_told_to_leave_ends(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN)
    with LogReader(eventlog, run) as reading:
        await reading.next(1)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(reading.next(PATIENCE_SEC))
            await asyncio.sleep(0)
            reading.leave()
        assert not waiting.result()
        assert await reading.next(PATIENCE_SEC) is None


async def test_a_reader_is_cut_when_the_process_is_about_to_stop(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN)
    with LogReader(eventlog, run) as reading:
        await reading.next(1)
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(_until_none(reading))
            await asyncio.sleep(0)
            eventlog.broker.close()
        assert ended.result() == []
        assert reading.cut


async def test_a_reader_that_is_cut_has_had_what_was_told_before(eventlog: EventLog) -> None:
    run = await _append(eventlog, BEGUN)
    with LogReader(eventlog, run) as reading:
        await reading.next(1)
        await _append(eventlog, TextAdded(0, "last words"))
        eventlog.broker.close()
        assert text_in([entry.event for entry in await _until_none(reading)]) == "last words"


# ---------------------------------------------------------------------------------------------- positions


@requirement("streams:position")
@pytest.mark.parametrize(
    ("position", "known"),
    [
        (START, True),
        (Position(1), True),
        (Position(2, 0), True),
        (Position(2, 5), True),
        (Position(2, 6), False),
        (Position(1, 1), False),
        (Position(3), True),
        (Position(3, 1), False),
        (Position(4), False),
        (Position(10**9, 3), False),
    ],
)
def test_a_position_that_no_reader_can_have_is_not_known(position: Position, known: bool) -> None:
    assert (
        has_position(_numbered(StepStarted(1), TextAdded(0, "hello"), StepFinished(1, "end")), position)
        is known
    )


@requirement("streams:position")
def test_what_a_reader_was_told_ends_with_its_position() -> None:
    entries = _numbered(StepStarted(1), *_texts("hello", "you"), StepFinished(1, "end"), DONE)
    for position, text in [
        (START, ""),
        (Position(2, 3), "hel"),
        (Position(3, 0), "hello"),
        (Position(5), "helloyou"),
    ]:
        told = entries_until(entries, position)
        assert text_in([entry.event for entry in told]) == text
        assert len(told) == position.seq


def _numbered(*events: Event) -> list[Entry]:
    return [Entry(number, event, 0.0) for number, event in enumerate(events, 1)]


def _speaking(on: Stage, *, tick_sec: float) -> Stage:
    on.service.context.tick._seconds = tick_sec
    return on


def _texts(*words: str) -> list[Event]:
    return [TextAdded(number, word) for number, word in enumerate(words)]


async def _append(eventlog: EventLog, *events: Event) -> Run:
    """One append of these events; the thread's last run after it."""
    await eventlog.decide(LOCAL, THREAD, lambda thread, now: Decision(None, events))
    run = await eventlog.last_run(LOCAL, THREAD)
    assert run is not None
    return run


async def _all(eventlog: EventLog, run: Run, after: Position = START) -> list[Entry]:
    """Everything there is for a reader of an ended run."""
    with LogReader(eventlog, run, after) as reading:
        return await _until_none(reading)


async def _until_none(reading: LogReader) -> list[Entry]:
    found: list[Entry] = []
    async with asyncio.timeout(PATIENCE_SEC):
        while (entries := await reading.next(PATIENCE_SEC)) is not None:
            found += entries
    return found
