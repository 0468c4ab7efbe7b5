"""A reader gets every word exactly once, whenever it comes, wherever it was cut, however slow it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from farhand.agent import journal, reader
from farhand.agent.history import unfinished_step
from farhand.agent.reader import Reader, entries_of_last_step, knows, step_end, told_until
from farhand.core.event import (
    START,
    CallTaken,
    Entry,
    Event,
    Position,
    ReasoningAdded,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.principal import LOCAL
from farhand.core.run import Run, RunState
from farhand.core.thread import Text, Thread
from farhand.errors import ShuttingDown
from farhand.models.scripted import Ask, Say, Think
from farhand.store.base import Commit, Committed, InsertRun, InsertThread, Store, Write, WriteRun
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add
from tests.unit.agent.stage import PATIENCE_SEC, Stage, kinds, text_in

DONE = RunFinished(RunState.DONE, "end")


async def _journal(store: Store, *events: Event, state: RunState = RunState.DONE) -> Run:
    """A run with this journal."""
    run = Run(run_id="run_1", owner=LOCAL, thread_id="t1", started_at=0.0, lease_until=1e12)
    thread = Thread(owner=LOCAL, thread_id="t1", created_at=0.0, updated_at=0.0)
    commit = await store.commit(
        InsertThread(thread), InsertRun(run), WriteRun(run_id="run_1", fence=1, events=events, state=state)
    )
    assert isinstance(commit, Committed)
    return commit.runs["run_1"]


async def _append(store: Store, *events: Event) -> None:
    assert isinstance(await store.commit(WriteRun(run_id="run_1", fence=1, events=events)), Committed)


async def _all(store: Store, run: Run, after: Position = START) -> list[Entry]:
    """Everything there is for a reader of an ended run."""
    found: list[Entry] = []
    with Reader(store, run.owner, run.run_id, after) as reading:
        async with asyncio.timeout(PATIENCE_SEC):
            while (entries := await reading.next(0.01)) is not None:
                found += entries
                await asyncio.sleep(0)
    return found


def _texts(*words: str) -> list[Event]:
    return [TextAdded(number, word) for number, word in enumerate(words)]


@pytest.fixture
def _store_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are stored with the next turn of the loop: told and stored pieces mix as much as they can."""
    monkeypatch.setattr(journal, "JOIN_FOR_SEC", 0.0)


@requirement("streams:resume")
@pytest.mark.usefixtures("_store_at_once")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    on = Stage(MemoryStore(clock), clock, [items])
    await on.farhand.open()
    run = await on.say("speak")
    heard: list[Entry] = []
    async with asyncio.timeout(PATIENCE_SEC):
        while not heard or not isinstance(heard[-1].event, RunFinished):
            at = heard[-1].end if heard else START
            heard += await _some(on, run, at, chance)
    await on.farhand.close()
    assert text_in([entry.event for entry in heard]) == full
    assert [entry.end for entry in heard] == sorted({entry.end for entry in heard})


async def _some(on: Stage, run: Run, at: Position, chance: Random) -> list[Entry]:
    """A reader that is cut after a while, perhaps in mid-word."""
    with on.farhand.read(run, at) as reading:
        for _ in range(chance.randint(0, 3)):
            await asyncio.sleep(0)
        entries = await reading.next(0.002) or []
    kept = entries[: chance.randint(min(1, len(entries)), len(entries))]
    if kept and isinstance(kept[-1].event, TextAdded):
        length = chance.randint(1, len(kept[-1].event.text))
        kept[-1] = replace(kept[-1], event=replace(kept[-1].event, text=kept[-1].event.text[:length]))
    return kept


@requirement("streams:resume")
@pytest.mark.parametrize("join_for", [0.0, 0.05, 60.0])
async def test_early_and_late_readers_get_the_same_text(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, join_for: float
) -> None:
    monkeypatch.setattr(journal, "JOIN_FOR_SEC", join_for)
    step = [Think("Let me see. "), "First I add. ", Ask("add", {"a": 1, "b": 2}), "Then I speak."]
    on = await stage([step, "It is three, and that is all there is to say."], add)
    run = await on.say("go")
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(on.told(run))]
        for _ in range(15):
            await asyncio.sleep(0)
            readers.append(group.create_task(on.told(run)))
    readers.append(asyncio.ensure_future(on.told(run)))
    told = [text_in(await each) for each in readers]
    assert set(told) == {text_in(await on.journal(run))}
    assert told[0].startswith("First I add. Then I speak.It is three")


@requirement("streams:resume")
async def test_every_position_of_an_ended_run_leads_to_exactly_the_rest(store: Store) -> None:
    events = [StepStarted(1), *_texts("hello", "you"), StepFinished(1, "end"), DONE]
    run = await _journal(store, *events)
    assert [entry.event for entry in await _all(store, run)] == events
    cases = [
        (Position(1), "helloyou"),
        (Position(2, 2), "lloyou"),
        (Position(2, 5), "you"),
        (Position(3, 3), ""),
    ]
    for position, rest in cases:
        assert text_in([entry.event for entry in await _all(store, run, position)]) == rest
    assert await _all(store, run, Position(run.last_seq)) == []


@requirement("streams:resume")
async def test_a_journal_of_many_pages_is_read_to_its_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PAGE", 10)
    steps = [
        event
        for step in range(1, 9)
        for event in (StepStarted(step), *_texts(*"abcdefg"), StepFinished(step, "calls"))
    ]
    run = await _journal(store, RunStarted("t1"), *steps, DONE)
    assert [entry.event for entry in await _all(store, run)] == [RunStarted("t1"), *steps, DONE]
    assert len(await _all(store, run, Position(30, 1))) == run.last_seq - 30


@requirement("streams:resume")
async def test_one_step_longer_than_a_page_is_read_to_its_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PAGE", 10)
    step = [StepStarted(1), *_texts(*"abcdefghijklmnopqrstuvwxyz"), StepFinished(1, "end")]
    run = await _journal(store, RunStarted("t1"), *step, DONE)
    assert [entry.event for entry in await _all(store, run)] == [RunStarted("t1"), *step, DONE]


@requirement("streams:resume")
async def test_a_long_step_that_is_still_being_told_is_read_to_where_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PAGE", 5)
    run = await _journal(
        store, RunStarted("t1"), StepStarted(1), *_texts(*"abcdefghij"), state=RunState.RUNNING
    )
    with Reader(store, LOCAL, run.run_id) as reading:
        found: list[Entry] = []
        async with asyncio.timeout(PATIENCE_SEC):
            while len(found) < 12:
                found += await reading.next(0.01) or []
                await asyncio.sleep(0)
        assert text_in([entry.event for entry in found]) == "abcdefghij"
        await _append(store, TextAdded(10, "k"), StepFinished(1, "end"))
        assert kinds([entry.event for entry in await reading.next(5) or []]) == ["TextAdded", "StepFinished"]


@requirement("streams:discarded")
@pytest.mark.parametrize("page", [4, 7, 200])
async def test_a_replay_leaves_out_discarded_steps_wherever_the_pages_end(
    store: Store, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(reader, "PAGE", page)
    good = [StepStarted(1), *_texts("good"), StepFinished(1, "calls")]
    cut = [StepStarted(2), *_texts(*"cut short"), RunResumed(), StepDiscarded(2)]
    again = [StepStarted(2), *_texts("better"), StepFinished(2, "end")]
    run = await _journal(store, RunStarted("t1"), *good, *cut, *again, DONE)
    replay = [entry.event for entry in await _all(store, run)]
    assert text_in(replay) == "goodbetter"
    assert not any(isinstance(event, StepDiscarded) for event in replay)


@requirement("streams:discarded")
async def test_a_reader_that_saw_the_discarded_step_is_told_so(store: Store) -> None:
    cut = [StepStarted(1), *_texts("cut sh"), RunResumed(), StepDiscarded(1)]
    again = [StepStarted(1), *_texts("better"), StepFinished(1, "end")]
    run = await _journal(store, *cut, *again, DONE)
    rest = [entry.event for entry in await _all(store, run, Position(2, 3))]
    assert kinds(rest)[:3] == ["TextAdded", "RunResumed", "StepDiscarded"]
    assert text_in(rest) == " shbetter"


@requirement("streams:slow-reader")
async def test_a_reader_that_falls_behind_catches_up_from_the_record(store: Store) -> None:
    run = await _journal(store, RunStarted("t1"), state=RunState.RUNNING)
    with Reader(store, LOCAL, run.run_id) as slow:
        assert len(await slow.next(1) or []) == 1
        for number in range(1_000):
            await _append(store, TextAdded(number, "x"))
        assert slow._watch.lost, "it kept no more than its share"
        found: list[Entry] = []
        async with asyncio.timeout(PATIENCE_SEC):
            while len(found) < 1_000:
                found += await slow.next(0.01) or []
    assert [entry.seq for entry in found] == list(range(2, 1_002))


@requirement("streams:slow-reader")
async def test_a_reader_that_never_reads_holds_up_nobody(stage: MakeStage) -> None:
    on = await stage([Say(["word "] * 2_000)])
    run = await on.say("speak")
    with on.farhand.read(run) as dead:
        assert text_in(await on.told(run)) == "word " * 2_000
        assert len(dead._watch.news) <= 256


@requirement("streams:resume")
async def test_news_that_was_lost_is_found_at_the_next_look(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await _journal(store, RunStarted("t1"), state=RunState.RUNNING)
    with Reader(store, LOCAL, run.run_id) as reading:
        await reading.next(1)
        monkeypatch.setattr(store.hub, "tell", lambda topic, item: None)
        await _append(store, TextAdded(0, "lost"))
        assert await reading.next(0.01) == []
        assert text_in([entry.event for entry in await reading.next(0.01) or []]) == "lost"


@requirement("streams:heard-once")
async def test_a_reader_that_has_heard_words_is_not_told_when_they_are_stored(store: Store) -> None:
    run = await _journal(store, RunStarted("t1"), state=RunState.RUNNING)
    with Reader(store, LOCAL, run.run_id) as reading:
        await reading.next(1)
        store.hub.tell(run.run_id, [Entry(2, TextAdded(0, "once "), 0.0)])
        assert await reading.next(1)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(reading.next(PATIENCE_SEC))
            await asyncio.sleep(0)
            await _append(store, TextAdded(0, "once "))
            await asyncio.sleep(0)
            await _append(store, TextAdded(1, "more"))
        assert waiting.result() == [Entry(3, TextAdded(1, "more"), store.now())]


@requirement("streams:heard-once")
async def test_a_reader_that_is_up_before_the_next_word_is_told_gets_it_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "WORDS_SEC", 0.0)
    monkeypatch.setattr(journal, "JOIN_FOR_SEC", PATIENCE_SEC)
    run = await _journal(store, RunStarted("t1"), state=RunState.RUNNING)
    async with asyncio.TaskGroup() as group:
        log = journal.RunLog(store, run, group)
        with Reader(store, LOCAL, run.run_id) as reading:
            await reading.next(1)
            log.say(TextAdded(0, "one "))
            heard = await reading.next(PATIENCE_SEC) or []
            log.say(TextAdded(0, "two "))
            # awake in this very moment, as after a look at the record
            heard += await reading.next(PATIENCE_SEC) or []
            log.say(TextAdded(1, "three"))
            heard += await reading.next(PATIENCE_SEC) or []
        await log.saved()
    assert text_in([entry.event for entry in heard]) == "one two three"


@requirement("streams:heard-once")
async def test_words_that_were_not_told_in_doubt_are_heard_before_what_is_said_while_they_are_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "WORDS_SEC", 0.0)
    monkeypatch.setattr(journal, "JOIN_FOR_SEC", PATIENCE_SEC)
    run = await _journal(store, RunStarted("t1"), state=RunState.RUNNING)
    commit, is_sure, go_on, heard = store.commit, True, asyncio.Event(), ""

    async def slow_commit(*writes: Write) -> Commit:
        await go_on.wait()
        return await commit(*writes)

    async def hear_all() -> None:
        nonlocal heard
        while len(heard) < len("one two three"):
            heard += text_in([entry.event for entry in await reading.next(PATIENCE_SEC) or []])

    monkeypatch.setattr(store, "commit", slow_commit)
    with Reader(store, LOCAL, run.run_id) as reading:
        await reading.next(1)
        async with asyncio.timeout(PATIENCE_SEC), asyncio.TaskGroup() as group:
            log = journal.RunLog(store, run, group, is_sure=lambda run, now: is_sure)
            group.create_task(hear_all())
            log.say(TextAdded(0, "one "))
            await _turns()
            # the lease is nearly over, and the words are being stored when it is renewed
            is_sure = False
            log.say(TextAdded(0, "two "))
            await _turns()
            group.create_task(log.write())
            await _turns()
            is_sure = True
            log.say(TextAdded(1, "three"))
            await _turns()
            assert heard == "one "
            go_on.set()
            await _turns()
            await log.write()
    assert heard == "one two three"


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@requirement("streams:resume")
async def test_a_reader_of_a_run_that_is_not_there_or_not_its_own_ends_at_once(store: Store) -> None:
    run = await _journal(store, RunStarted("t1"), DONE)
    assert await _all(store, replace(run, run_id="run_2")) == []
    assert await _all(store, replace(run, owner=replace(LOCAL, subject="other"))) == []


@requirement("streams:resume")
async def test_a_reader_of_a_journal_that_was_purged_ends(store: Store) -> None:
    run = await _journal(store, RunStarted("t1"), DONE)
    await store.purge(settled_before=store.now() + 1)
    assert await store.events(LOCAL, run.run_id) == []
    assert await _all(store, run) == []


@requirement("streams:resume")
async def test_a_reader_that_is_told_to_leave_ends(store: Store) -> None:
    run = await _journal(store, RunStarted("t1"), state=RunState.RUNNING)
    with Reader(store, LOCAL, run.run_id) as reading:
        await reading.next(1)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(reading.next(PATIENCE_SEC))
            await asyncio.sleep(0)
            reading.leave()
        assert not waiting.result()
        assert await reading.next(PATIENCE_SEC) is None


@requirement("streams:cut")
async def test_a_reader_is_cut_when_the_process_is_about_to_stop(store: Store) -> None:
    run = await _journal(store, RunStarted("t1"), state=RunState.RUNNING)
    with Reader(store, LOCAL, run.run_id) as reading:
        await reading.next(1)
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(_until_none(reading))
            await asyncio.sleep(0)
            store.hub.close()
        assert ended.result() == []
        assert reading.cut


@requirement("streams:cut")
async def test_a_reader_that_is_cut_has_had_what_was_told_before(store: Store) -> None:
    run = await _journal(store, RunStarted("t1"), state=RunState.RUNNING)
    with Reader(store, LOCAL, run.run_id) as reading:
        await reading.next(1)
        await _append(store, TextAdded(0, "last words"))
        store.hub.close()
        assert text_in([entry.event for entry in await _until_none(reading)]) == "last words"


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
async def test_a_position_that_no_reader_can_have_is_not_known(
    store: Store, monkeypatch: pytest.MonkeyPatch, position: Position, known: bool
) -> None:
    monkeypatch.setattr(reader, "SPOKEN_SOON_SEC", 0.01)
    run = await _journal(store, StepStarted(1), TextAdded(0, "hello"), StepFinished(1, "end"))
    assert await knows(store, run, position) is known


@requirement("streams:position")
async def test_a_position_in_words_that_are_stored_in_a_moment_is_known(store: Store) -> None:
    run = await _journal(store, StepStarted(1), state=RunState.RUNNING)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(knows(store, run, Position(2, 3)))
        await asyncio.sleep(0)
        await _append(store, TextAdded(0, "hello"))
    assert asked.result()


@requirement("streams:position")
async def test_a_position_in_words_that_a_slow_store_takes_late_is_known(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SPOKEN_SOON_SEC", 0.001)
    run = await _journal(store, StepStarted(1), state=RunState.RUNNING)
    looks = 0

    async def events(*values: object, **named: object) -> list[Entry]:
        nonlocal looks
        looks += 1
        # the model goes on speaking, and what is heard of it is not stored either
        store.hub.tell(run.run_id, [Entry(2, TextAdded(0, "o"), 0.0, looks)])
        if looks == 10:
            await _append(store, TextAdded(0, "hello"))
        return await look(*values, **named)

    look: Callable[..., Awaitable[list[Entry]]] = store.events
    monkeypatch.setattr(store, "events", events)
    assert await knows(store, run, Position(2, 3), within=PATIENCE_SEC)
    assert looks >= 10


@requirement("streams:takeover")
async def test_a_place_in_words_that_may_still_be_stored_is_lost_with_the_takeover(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SPOKEN_SOON_SEC", 0.001)
    run = await _journal(store, StepStarted(1), state=RunState.RUNNING)
    async with asyncio.timeout(PATIENCE_SEC), asyncio.TaskGroup() as group:
        asked = group.create_task(knows(store, run, Position(5, 3), within=PATIENCE_SEC * 2))
        await asyncio.sleep(0.01)
        assert not asked.done(), "whoever speaks may store it yet"
        await _append(store, StepDiscarded(1), RunResumed(taken_over=True))
    assert not asked.result()


@requirement("streams:position")
async def test_a_place_ahead_of_a_run_that_says_nothing_is_not_waited_for(store: Store) -> None:
    run = await _journal(store, StepStarted(1), state=RunState.RUNNING)
    waiting = replace(run, blockers=1)
    async with asyncio.timeout(PATIENCE_SEC):
        for still in (waiting, replace(run, parked=True), replace(run, state=RunState.DONE)):
            assert not await knows(store, still, Position(2, 3), within=PATIENCE_SEC * 2)
        assert not await knows(store, run, Position(10_000, 3), within=PATIENCE_SEC * 2)


@requirement("streams:cut")
async def test_whoever_waits_to_be_known_is_sent_away_when_the_server_stops(store: Store) -> None:
    run = await _journal(store, StepStarted(1), state=RunState.RUNNING)
    store.hub.close()
    with pytest.raises(ShuttingDown):
        await knows(store, run, Position(2, 3), within=PATIENCE_SEC)


@requirement("streams:takeover")
async def test_a_place_in_words_that_were_lost_is_not_known_however_the_journal_goes_on(store: Store) -> None:
    # told live as 3 and 4 before the crash and never stored: "hello", and that a call was begun
    journal: list[Event] = [StepStarted(1), TextAdded(0, "a"), StepDiscarded(1), RunResumed(taken_over=True)]
    run = await _journal(store, *journal, StepStarted(1), TextAdded(0, "hello again"), DONE)
    for lost in (Position(3), Position(4), Position(5), Position(6, 5)):
        assert not await knows(store, run, lost), lost
    told = await _all(store, run, Position(2, 1))
    assert [str(entry.end) for entry in told] == ["3.0.3", "4.0.4", "5.0.4", "6.11.4", "7.0.4"]
    for entry in told:
        assert await knows(store, run, entry.end)
        assert [each.seq for each in await _all(store, run, entry.end)] == list(range(entry.seq + 1, 8))


@requirement("streams:position")
async def test_a_run_that_was_parked_is_taken_over_from_nobody(store: Store) -> None:
    run = await _journal(store, StepStarted(1), RunParked(), RunResumed(), DONE)
    assert [str(entry.end) for entry in await _all(store, run)] == ["1.0", "2.0", "3.0", "4.0"]


@requirement("streams:position")
async def test_what_a_reader_was_told_ends_with_its_position(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PAGE", 2)
    run = await _journal(store, StepStarted(1), *_texts("hello", "you"), CallTaken("c", "tab"), DONE)
    for position, text in [
        (START, ""),
        (Position(2, 3), "hel"),
        (Position(3, 0), "hello"),
        (Position(5), "helloyou"),
    ]:
        told = await told_until(store, run, position)
        assert text_in([entry.event for entry in told]) == text
        assert len(told) == position.seq


async def test_the_end_of_a_step_is_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PAGE", 2)
    run = await _journal(
        store, StepStarted(1), StepFinished(1, "calls"), StepStarted(2), StepFinished(2, "end")
    )
    assert await step_end(store, run, 1) == Position(2)
    assert await step_end(store, run, 2) == Position(4)
    assert await step_end(store, run, 3) == Position(4)


@requirement("streams:takeover")
async def test_the_end_of_a_step_names_the_last_takeover_before_it(store: Store) -> None:
    first: list[Event] = [StepStarted(1), StepDiscarded(1), RunResumed(taken_over=True), StepStarted(1)]
    run = await _journal(store, *first, StepFinished(1, "calls"), state=RunState.RUNNING)
    for end in (await step_end(store, run, 1), await step_end(store, run, 2)):
        assert str(end) == "5.0.3"
        assert await knows(store, run, end)


async def _until_none(reading: Reader) -> list[Entry]:
    found: list[Entry] = []
    async with asyncio.timeout(PATIENCE_SEC):
        while (entries := await reading.next(PATIENCE_SEC)) is not None:
            found += entries
    return found


@requirement("threads:record-of-what-is-written")
async def test_a_step_that_is_longer_than_a_page_of_the_journal_is_read_from_its_beginning() -> None:
    store = MemoryStore(FakeClock())
    before: list[Event] = [RunStarted("t1"), StepStarted(1), TextAdded(0, "old "), StepFinished(1, "calls")]
    words = [TextAdded(number % 2, f"{number} ") for number in range(2 * reader.PAGE + 7)]
    run = await _journal(store, *before, StepStarted(2), *words, state=RunState.RUNNING)
    step = unfinished_step(await entries_of_last_step(store, run), run)
    assert step is not None
    even, odd = ("".join(word.text for word in words[first::2]) for first in (0, 1))
    assert step.parts == (Text(even), Text(odd))


@requirement("threads:record-of-what-is-written")
async def test_where_no_step_is_under_way_nothing_is_unfinished() -> None:
    store = MemoryStore(FakeClock())
    said = (StepStarted(1), ReasoningAdded(0, "Hm."), TextAdded(0, "old "))
    run = await _journal(store, RunStarted("t1"), *said, StepDiscarded(1), state=RunState.RUNNING)
    assert unfinished_step(await entries_of_last_step(store, run), run) is None
    assert await entries_of_last_step(store, replace(run, last_seq=0)) == []
