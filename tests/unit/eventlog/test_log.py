"""The log as agent, calls and clients use it: look-ups of runs and calls, topics, other processes, purges."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import Call, ProgramRequest
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import CheckedResult, Reply
from farhand.core.event import CallProgressed, ClientRegistered, RunStarted, TextAdded
from farhand.core.file import StoredFile
from farhand.core.outcome import Success
from farhand.core.principal import Owner
from farhand.core.result import Accepted, Receipt, Result
from farhand.core.run import Run, RunState
from farhand.errors import StoreDown, Unreadable
from farhand.eventlog import log as log_module
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import (
    CLIENT_CALLS,
    DIRECT_CALLS,
    client_topic,
    feed_topic,
    freed_topic,
    thread_topic,
)
from farhand.eventlog.reader import LogReader
from farhand.store.base import (
    CLIENTS_CHANGED,
    FEED_GREW,
    THREAD_MOVED,
    Append,
    Appended,
    Store,
    ThreadRow,
    owner_key,
    thread_key,
)
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.core.thread_builder import PAGE, PROGRAM, SERVER_TOOL, TIMEOUTS, asks_for
from tests.unit.core.thread_log import ANN
from tests.unit.eventlog.shared_store import SharedStore
from tests.unit.eventlog.thread_story import ThreadStory, next_of

BOB = Owner("acme", "bob")


async def test_a_thread_and_its_messages_are_read_from_the_log(story: ThreadStory) -> None:
    log = story.log
    assert await log.get_thread(ANN, "t1") is None
    await story.begin()
    thread = await log.get_thread(ANN, "t1")
    assert thread is not None
    assert (thread.title, thread.allowed) == ("hello", ())
    assert [each.thread_id for each in await log.threads_of(ANN, limit=9)] == ["t1"]
    assert [(each.runs, each.open_calls) for each in await log.threads_of(ANN, limit=9)] == [(1, 0)]
    assert await log.count_threads(ANN) == 1
    assert len(await log.messages(ANN, "t1")) == 1
    assert await log.count_running(ANN.tenant) == 1
    assert await log.stored_bytes(ANN.tenant, ANN.subject) > 0
    await log.check()


async def test_a_run_is_found_by_its_owner_also_when_another_one_has_begun(story: ThreadStory) -> None:
    await story.begin()
    await story.finish()
    await story.begin("run_2", "m2")
    for eventlog in (story.log, EventLog(story.log.store)):
        old, new = await eventlog.get_run(ANN, "run_1"), await eventlog.get_run(ANN, "run_2")
        assert old is not None
        assert new is not None
        assert (old.state, new.state) == (RunState.DONE, RunState.RUNNING)
        assert await eventlog.get_run(BOB, "run_1") is None
        assert await eventlog.get_run(ANN, "run_9") is None
        assert [run.run_id for run in await eventlog.runs(ANN, limit=9)] == ["run_2", "run_1"]


async def test_the_calls_of_a_run_are_those_of_its_log_also_when_another_one_has_begun(
    story: ThreadStory,
) -> None:
    await story.begin()
    await story.finish(asks_for("call_1"), asks_for("call_2"))
    assert await _settle(story, "call_1") == Accepted()
    assert await _settle(story, "call_2") == Accepted()
    during = await story.log.calls_of(ANN, "run_1")
    await story.finish(text="Done")
    await story.begin("run_2", "m2")
    after = await story.log.calls_of(ANN, "run_1")
    assert [call.call_id for call in after] == ["call_1", "call_2"]
    assert [call.outcome for call in after] == [call.outcome for call in during]
    assert await story.log.calls_of(ANN, "run_1", 9) == []
    assert await story.log.calls_of(ANN, "run_9") == []
    assert await story.log.calls_of(BOB, "run_1") == []


async def test_a_call_is_found_by_any_of_its_ids_here_and_after_a_restart(story: ThreadStory) -> None:
    opening = asks_for("call_1", SERVER_TOOL, approval_id="apr_1", direct=True)
    await story.open_direct(replace(opening, request=ProgramRequest("job-1")))
    await story.open_direct(asks_for("call_2", PROGRAM, direct=True))
    for eventlog in (story.log, EventLog(story.log.store)):
        call = await eventlog.get_call(ANN, "call_1")
        assert call is not None
        assert await eventlog.get_call_of_approval(ANN, "apr_1") == call
        assert await eventlog.get_requested(ANN, "job-1") == call
        found = await eventlog.find_call(ANN, "call_1")
        assert found is not None
        assert found.thread_id == "t1"
        places = [await eventlog.thread_of_call(ANN, name) for name in ("call_1", "apr_1", "call_9", "apr_9")]
        assert places == ["t1", "t1", None, None]
        assert await eventlog.thread_of_call(BOB, "call_1") is None
        assert await eventlog.get_call(BOB, "call_1") is None
        assert await eventlog.get_call_of_approval(BOB, "apr_1") is None
        assert await eventlog.get_requested(BOB, "job-1") is None
        assert [each.call_id for each in await eventlog.open_calls(ANN)] == ["call_1", "call_2"]
        assert [each.call_id for each in await eventlog.open_calls(ANN, "t1")] == ["call_1", "call_2"]
        assert [each.call_id for each in await eventlog.client_calls(ANN, "c")] == ["call_2"]
        assert [each.call_id for each in await eventlog.calls_for_clients()] == ["call_2"]
        # the other one waits for a person, whether or not its caller does
        assert [each.call_id for each in await eventlog.direct_calls()] == ["call_2"]
        due = await eventlog.due(before=eventlog.now() + 60, limit=9)
        assert [each.call_id for each in due] == ["call_2"]
        assert await eventlog.count_open_of_tenant(ANN.tenant) == 2


async def test_a_call_that_its_state_has_forgotten_is_found_in_the_look_up(story: ThreadStory) -> None:
    await story.begin()
    await story.finish(asks_for("call_1", approval_id="apr_1"))
    await story.begin("run_2", "m2")
    assert await story.log.read(ANN, "t1", lambda thread: thread.calls) == {}
    call = await story.log.get_call(ANN, "call_1")
    assert call is not None
    assert call.outcome is not None
    assert await story.log.get_call_of_approval(ANN, "apr_1") == call


async def test_a_tool_is_kept_as_it_was_when_its_call_was_opened(
    story: ThreadStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await story.open_direct(asks_for("call_1", PAGE, direct=True))
    monkeypatch.setattr(log_module, "TOOLS", 0)
    for eventlog in (story.log, EventLog(story.log.store)):
        for _ in range(2):
            assert await eventlog.get_tool(PAGE.version) == PAGE
        assert await eventlog.get_tool("v9") is None


async def test_places_that_are_not_at_hand_any_more_are_found_in_the_store(
    story: ThreadStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "THREAD_KEYS_CACHED", 1)
    for number in (1, 2, 3):
        await story.open_direct(asks_for(f"call_{number}", direct=True))
    found = [await story.log.get_call(ANN, f"call_{number}") for number in (1, 2, 3)]
    assert [call.call_id for call in found if call is not None] == ["call_1", "call_2", "call_3"]


async def test_who_watches_is_told_of_events_calls_and_runs(story: ThreadStory) -> None:
    log = story.log
    expected: list[Call] = []
    told: list[tuple[RunState, bool]] = []
    log.expect = expected.append
    log.on_run = lambda run, is_own: told.append((run.state, is_own))
    topics = ("run_1", "call_1", freed_topic("run_1"), feed_topic(ANN))
    watches = [log.broker.subscribe(topic) for topic in topics]
    for watch in watches:
        watch.__enter__()
    run, call, free, feed = watches
    await story.begin()
    await story.write("a")
    await story.finish(asks_for("call_1"))
    await _settle(story, "call_1")
    kinds = [
        type(entry.event).__name__ for entries in run.items if isinstance(entries, list) for entry in entries
    ]
    assert kinds == ["RunStarted", "TextAdded", "CallOpened", "StepFinished", "CallSettled"]
    assert [item.phase.value for item in call.items if isinstance(item, Call)] == ["ready", "settled"]
    # when it started, and when its call was settled
    assert free.items == [None, None]
    assert set(feed.items) == {None}
    assert [each.call_id for each in expected] == ["call_1"]
    assert told == [(RunState.RUNNING, True)]
    for watch in watches:
        watch.__exit__(None, None, None)


async def test_a_parked_run_is_brought_back_by_whoever_stored_its_last_answer(story: ThreadStory) -> None:
    run = await story.begin()
    await story.finish(asks_for("call_1"))
    await story.log.decide(ANN, "t1", lambda thread, _: runs.park(thread, run.fence))
    moved: list[Run] = []
    story.log.on_run = lambda run, is_own: moved.append(run)
    await _settle(story, "call_1")
    [woken] = moved
    assert (woken.run_id, woken.parked, woken.waits) == ("run_1", True, False)


async def test_calls_of_clients_and_approved_direct_calls_have_topics_of_their_own(
    story: ThreadStory,
) -> None:
    broker = story.log.broker
    with (
        broker.subscribe(client_topic(ANN, "c")) as own,
        broker.subscribe(CLIENT_CALLS) as every,
        broker.subscribe(DIRECT_CALLS) as direct,
    ):
        await story.open_direct(asks_for("call_1", PROGRAM, direct=True))
        await story.open_direct(asks_for("call_2", SERVER_TOOL, approval_id="apr_2", direct=True))
        assert [len(each.items) for each in (own, every, direct)] == [1, 1, 0]
        reply = Reply("apr_2", Answer(approved=True))
        await story.log.decide(
            ANN,
            "t1",
            lambda thread, now: calls.approve(thread, reply, now=now, timeouts=TIMEOUTS),
        )
        assert [item.call_id for item in direct.items if isinstance(item, Call)] == ["call_2"]


async def test_a_file_that_a_result_refers_to_goes_with_its_thread(
    story: ThreadStory, clock: FakeClock
) -> None:
    kept, loose = (
        StoredFile(
            owner=ANN, ref=clock.fresh("blob"), name="a.txt", media_type="text/plain", created_at=clock.now()
        )
        for _ in range(2)
    )
    for file in (kept, loose):
        assert await story.log.files.put(file, 0, [b"x"], is_last=True)
    await story.open_direct(asks_for("call_1", direct=True))
    outcome = Success({"file": {"ref": kept.ref}})
    checked = CheckedResult(Result(call_id="call_1", outcome=outcome), outcome)
    await story.log.decide(ANN, "t1", lambda thread, now: calls.settle(thread, checked, now=now))
    clock.advance(100)
    await story.log.purge(before=clock.now())
    assert await story.log.files.get(ANN, kept.ref) is not None
    assert await story.log.files.get(ANN, loose.ref) is None


async def test_the_feed_has_what_happened_and_what_no_thread_knows(story: ThreadStory) -> None:
    await story.begin()
    await story.write("a")
    await story.finish(asks_for("call_1"))
    registered = ClientRegistered("c", ("client_c_read",))
    await story.log.add_notice(ANN, registered)
    await story.log.add_notice(ANN, CallProgressed("call_1", "open_url", "half"), "t1")
    news = await story.log.feed(ANN)
    kinds = [(each.no, type(each.event).__name__, each.run_id) for each in news]
    assert kinds == [
        (1, "RunStarted", "run_1"),
        (2, "CallOpened", "run_1"),
        (3, "ClientRegistered", None),
        (4, "CallProgressed", None),
    ]
    assert await story.log.feed_span(ANN) == (1, 4)
    assert [each.no for each in await story.log.feed(ANN, after=1, limit=2)] == [2, 3]


async def test_a_thread_with_an_active_run_is_not_deleted(story: ThreadStory) -> None:
    assert not await story.log.delete(ANN, "t1")
    await story.begin()
    assert not await story.log.delete(ANN, "t1")
    await story.finish()
    assert not await story.log.delete(BOB, "t1")
    assert await story.log.delete(ANN, "t1")
    assert await story.log.get_thread(ANN, "t1") is None


async def test_a_thread_whose_log_cannot_be_read_can_be_deleted(store: Store, clock: FakeClock) -> None:
    row = ThreadRow(title="Damaged", created_at=clock.now(), updated_at=clock.now())
    append = Append(
        owner=ANN, thread_id="t1", version=0, at=clock.now(), body=b"\x00", thread=row, snapshot=b"\x00"
    )
    assert await store.append([append]) == [Appended()]
    eventlog = EventLog(store)
    with pytest.raises(Unreadable):
        await eventlog.messages(ANN, "t1")
    assert await eventlog.delete(ANN, "t1")
    assert not await eventlog.delete(ANN, "t1")
    assert await eventlog.messages(ANN, "t1") == []


async def test_a_deletion_of_a_thread_that_moves_meanwhile_looks_again(
    story: ThreadStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await story.begin()
    await story.finish()
    delete = story.log.store.delete
    tries: list[int] = []

    async def raced(owner: Owner, thread_id: str, version: int) -> bool:
        tries.append(version)
        if len(tries) == 1:
            await story.open_direct(asks_for("call_1", direct=True))
        return await delete(owner, thread_id, version)

    monkeypatch.setattr(story.log.store, "delete", raced)
    assert await story.log.delete(ANN, "t1")
    assert len(tries) == 2


async def test_a_purge_keeps_messages_in_a_snapshot_and_removes_the_rows(
    story: ThreadStory, clock: FakeClock
) -> None:
    await story.begin()
    await story.finish(text="Good day")
    messages = await story.log.messages(ANN, "t1")
    clock.advance(100)
    assert (await story.log.purge(before=clock.now(), dry_run=True)).runs == 1
    assert (await story.log.purge(before=clock.now())).runs == 1
    again = EventLog(story.log.store)
    assert await again.messages(ANN, "t1") == messages
    assert (await again.store.load(ANN, "t1", after=0)).rows == ()


async def test_a_purge_drops_only_the_cached_rows_that_it_may_have_removed(
    story: ThreadStory, clock: FakeClock
) -> None:
    await story.begin()
    run = await story.run()
    await story.log.purge(before=clock.now())
    assert story.log.recent_entries(run) is not None, "its rows are newer"
    clock.advance(1)
    await story.write("a")
    await story.log.purge(before=clock.now())
    assert story.log.recent_entries(run) is None, "its first row is older"


async def test_a_run_that_is_advanced_here_hears_of_its_stop_elsewhere(store: Store) -> None:
    one, other = EventLog(store), EventLog(store)
    here = ThreadStory(one)
    run = await here.begin()
    other.is_shared = True
    await other.read(ANN, "t1", lambda thread: None)
    told: list[RunState] = []
    other.on_run = lambda run, is_own: told.append(run.state)
    await one.decide(ANN, "t1", lambda thread, now: runs.stop(thread, run.run_id, "stopped"))
    other._on_hint(THREAD_MOVED, thread_key(ANN, "t1"))
    await other.flush()
    assert told == [], "it is not advanced here"
    other.is_active = lambda run_id: run_id == run.run_id
    other._on_hint(THREAD_MOVED, thread_key(ANN, "t1"))
    await other.flush()
    assert told == [RunState.STOPPED]


async def test_what_another_process_did_is_told_here(store: Store) -> None:
    one, other = EventLog(store), EventLog(store)
    here, there = ThreadStory(one), ThreadStory(other)
    run = await here.begin()
    await other.read(ANN, "t1", lambda thread: None)
    with (
        other.broker.subscribe("run_1", thread_topic(ANN, "t1")) as events,
        other.broker.subscribe(thread_topic(ANN, "t9")) as lost,
    ):
        await here.write("a")
        other._on_hint(THREAD_MOVED, thread_key(ANN, "t1"))
        other._on_hint(THREAD_MOVED, thread_key(ANN, "t9"))
        await other.flush()
        [entries] = events.items
        assert isinstance(entries, list)
        assert [entry.event for entry in entries] == [TextAdded(0, "a")]
        assert lost.is_stale
    assert await there.run() == replace(run, last_seq=2)
    with (
        other.broker.subscribe(feed_topic(ANN)) as feed,
        other.broker.subscribe(CLIENTS_CHANGED) as clients,
        other.broker.subscribe("odd") as odd,
    ):
        other._on_hint(FEED_GREW, owner_key(ANN))
        other._on_hint(CLIENTS_CHANGED, owner_key(ANN))
        other._on_hint("odd", "item")
        assert (feed.items, clients.items, odd.items) == ([FEED_GREW], [ANN], ["item"])
        other._on_hint("", "")
        assert (feed.is_stale, clients.is_stale, odd.is_stale) == (True, True, True)
        await other.flush()


@requirement("calls:wakes")
async def test_a_reader_that_gets_no_notification_of_another_process_asks_the_store_after_a_silence(
    clock: FakeClock,
) -> None:
    store = SharedStore(clock)
    here, there = ThreadStory(EventLog(store)), ThreadStory(EventLog(store))
    run = await here.begin()
    await there.write("a")
    with LogReader(here.log, run) as reader:
        assert [entry.event for entry in await next_of(reader)] == [RunStarted("run_1", "m1")]
        # nobody has sent a notification
        assert [entry.event for entry in await next_of(reader)] == [TextAdded(0, "a")]


async def test_a_claim_that_nobody_knows_the_end_of_is_told(
    story: ThreadStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubts: list[Run | None] = []
    story.log.on_unconfirmed = lambda key, run: doubts.append(run)

    async def away(*appends: object) -> None:
        raise StoreDown("The store is away.")

    with monkeypatch.context() as patch:
        patch.setattr(story.log.store, "append", away)
        with pytest.raises(StoreDown):
            await story.begin()
    assert [run and run.run_id for run in doubts] == ["run_1"]
    await story.begin()
    with monkeypatch.context() as patch:
        patch.setattr(story.log.store, "append", away)
        with pytest.raises(StoreDown):
            await story.finish()
    assert len(doubts) == 2, "it may have ended or not"


async def test_closing_stores_what_waits(store: Store) -> None:
    log = EventLog(store)
    story = ThreadStory(log)
    async with asyncio.TaskGroup() as group:
        beginning = group.create_task(story.begin())
        await asyncio.sleep(0)
        await log.flush()
    assert beginning.result().run_id == "run_1"
    assert log.files is store.files
    assert log.clients is store.clients
    assert log.streams is store.streams
    assert log.is_shared is store.is_shared


async def _settle(story: ThreadStory, call_id: str) -> Receipt:
    checked = CheckedResult(Result(call_id=call_id, outcome=Success(1)), Success(1))
    return await story.log.decide(ANN, "t1", lambda thread, now: calls.settle(thread, checked, now=now))
