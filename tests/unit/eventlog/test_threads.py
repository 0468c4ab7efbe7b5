"""Decide, append, publish: answers are durable, races are decided again, the cache is only a cache."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence

import pytest

from farhand.core.decide import calls, runs
from farhand.core.decide.calls import CheckedResult
from farhand.core.decide.decision import Decision
from farhand.core.event import TextAdded, ThreadCreated, ThreadRenamed
from farhand.core.outcome import Success
from farhand.core.principal import Owner
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Result, Unknown
from farhand.core.run import RunState
from farhand.core.state import ThreadState
from farhand.errors import NameTaken, StoreDown, Unreadable
from farhand.eventlog import batch, thread_cache
from farhand.eventlog.batch import Command
from farhand.eventlog.codec import encode_snapshot, fold_loaded
from farhand.eventlog.threads import Threads
from farhand.store.base import Append, AppendResult, Loaded, Moved, ThreadRow
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.core.thread_builder import TIMEOUTS, said
from tests.unit.core.thread_log import ANN
from tests.unit.eventlog.shared_store import RecordingThreads, SharedStore, open_call, rename

ROW = ThreadRow(title="", created_at=0.0, updated_at=0.0)


@pytest.fixture
def store(clock: FakeClock) -> SharedStore:
    return SharedStore(clock)


async def test_an_answer_is_given_when_it_is_durable_and_not_before(store: SharedStore) -> None:
    threads = Threads(store)
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        renaming = group.create_task(threads.decide(ANN, "t1", rename("Hello")))
        await store.appending.wait()
        reading = group.create_task(threads.read(ANN, "t1", lambda thread: thread.title))
        await asyncio.sleep(0)
        assert not renaming.done()
        assert not reading.done()
        store.free.set()
    assert renaming.result() is None
    assert reading.result() == "Hello"


async def test_a_read_of_a_store_of_this_process_alone_sees_only_what_is_durable(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedStore, "is_shared", False)
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("Old"))
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(threads.decide(ANN, "t1", rename("New")))
        reads = [group.create_task(threads.read(ANN, "t1", lambda thread: thread.title))]
        store.appending.clear()
        await store.appending.wait()
        reads.append(group.create_task(threads.read(ANN, "t1", lambda thread: thread.title)))
        await asyncio.sleep(0)
        assert not any(each.done() for each in reads)
        store.free.set()
    assert [each.result() for each in reads] == ["New", "New"]
    count = len(store.appended)
    assert await threads.read(ANN, "t1", lambda thread: thread.title) == "New"
    assert len(store.appended) == count


async def test_a_recent_read_of_a_shared_store_asks_it_only_for_what_is_not_cached_or_known_to_be_old(
    store: SharedStore,
) -> None:
    one, other = Threads(store), RecordingThreads(store)

    async def title() -> str:
        return await other.read_recent(ANN, "t1", lambda thread: thread.title)

    await one.decide(ANN, "t1", rename("Old"))
    assert await title() == "Old"
    asked = len(store.appended)
    await one.decide(ANN, "t1", rename("New"))
    assert await title() == "Old", "nobody has said that there is something new"
    assert await other.read(ANN, "t1", lambda thread: thread.title) == "New"
    await one.decide(ANN, "t1", rename("Newer"))
    other.refresh(ANN, "t1")
    assert await title() == "Newer"
    other.follows = False
    await one.decide(ANN, "t1", rename("Newest"))
    other.refresh(ANN, "t1")
    assert await title() == "Newest"
    written, at_once = 3, len(store.appended) - asked
    assert await title() == "Newest"
    assert len(store.appended) - asked == at_once > written


async def test_a_recent_read_does_not_show_what_is_not_durable_yet(store: SharedStore) -> None:
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("Old"))
    store.appending.clear()
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(threads.decide(ANN, "t1", rename("New")))
        await store.appending.wait()
        reading = group.create_task(threads.read_recent(ANN, "t1", lambda thread: thread.title))
        await asyncio.sleep(0)
        assert not reading.done()
        store.free.set()
    assert reading.result() == "New"


@requirement("calls:first-wins")
async def test_two_workers_with_two_answers_have_one_winner(store: SharedStore) -> None:
    one, other = Threads(store), Threads(store)
    await one.decide(ANN, "t1", open_call())
    # both have the call in their caches before either settles it
    assert await other.read(ANN, "t1", lambda thread: list(thread.calls)) == ["call_1"]
    first, second = await asyncio.gather(
        one.decide(ANN, "t1", _settle("a")), other.decide(ANN, "t1", _settle("b"))
    )
    assert {type(first), type(second)} == {Accepted, Conflict}
    loaded = fold_loaded(ANN, "t1", await store.load(ANN, "t1"))
    ends = [row for row in (await store.load(ANN, "t1", after=0)).rows if b"call-settled" in row.body]
    assert len(ends) == 1
    assert loaded.calls["call_1"].outcome in (Success("a"), Success("b"))


async def test_a_thread_whose_log_never_reaches_the_version_of_the_store_is_broken_and_no_other(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(store)
    append, refused = store.append, 0

    async def refuse(appends: Sequence[Append]) -> list[AppendResult]:
        """As after a restore of some tables only: the row of this thread is ahead of its log."""
        nonlocal refused
        refused += any(each.thread_id == "odd" for each in appends)
        if refused > 2 * batch.REFUSALS:
            raise StoreDown("it would never end")
        fine = iter(await append([each for each in appends if each.thread_id != "odd"]))
        return [Moved(5) if each.thread_id == "odd" else next(fine) for each in appends]

    monkeypatch.setattr(store, "append", refuse)
    odd, fine = await asyncio.gather(
        threads.decide(ANN, "odd", rename("Odd")),
        threads.decide(ANN, "t1", rename("Fine")),
        return_exceptions=True,
    )
    assert (type(odd), fine) == (Unreadable, None)
    assert refused == batch.REFUSALS


async def test_a_command_that_loses_every_race_is_decided_again_on_each_new_version(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Threads(store), Threads(store)
    append, races = store.append, 2 * batch.REFUSALS

    async def be_late(appends: Sequence[Append]) -> list[AppendResult]:
        nonlocal races
        if races and appends[0].thread_id == "t1":
            races -= 1
            monkeypatch.setattr(store, "append", append)
            await other.decide(ANN, "t1", rename(f"Faster {races}"))
            monkeypatch.setattr(store, "append", be_late)
        return await append(appends)

    monkeypatch.setattr(store, "append", be_late)
    await one.decide(ANN, "t1", rename("Late"))
    assert races == 0
    assert await other.read(ANN, "t1", lambda thread: thread.title) == "Late"


async def test_an_old_cache_never_answers_without_asking_the_store(store: SharedStore) -> None:
    one, other = Threads(store), Threads(store)
    assert await other.decide(ANN, "t1", _settle("a")) == Unknown()
    await one.decide(ANN, "t1", open_call())
    assert await other.read(ANN, "t1", lambda thread: list(thread.calls)) == ["call_1"]
    assert await other.decide(ANN, "t1", _settle("a")) == Accepted()


async def test_commands_that_wait_are_stored_together_in_their_order(store: SharedStore) -> None:
    threads = Threads(store)
    await threads.decide(ANN, "t1", open_call())
    results = await asyncio.gather(*(threads.decide(ANN, "t1", _settle(value)) for value in "abc"))
    assert results[0] == Accepted()
    assert all(isinstance(each, Conflict) for each in results[1:])
    assert len((await store.load(ANN, "t1")).rows) == 2


async def test_what_waits_for_several_threads_is_one_transaction(store: SharedStore) -> None:
    threads = Threads(store)
    await asyncio.gather(*(threads.decide(ANN, f"t{number}", rename("x")) for number in range(5)))
    assert [len(appends) for appends in store.appended] == [5]


async def test_an_answer_may_be_made_of_the_state_after_it(store: SharedStore) -> None:
    threads = Threads(store)
    title = await threads.decide(ANN, "t1", rename("Hello"), lambda thread, answer: (thread.title, answer))
    assert title == ("Hello", None)


@requirement("calls:deadline")
async def test_a_deadline_is_judged_by_the_store(store: SharedStore, clock: FakeClock) -> None:
    threads = Threads(store)
    await threads.decide(ANN, "t1", open_call())
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        store.appending.clear()
        settling = group.create_task(threads.decide(ANN, "t1", _settle("late")))
        await store.appending.wait()
        # decided in time, stored too late
        clock.advance(TIMEOUTS.park_for)
        store.free.set()
    receipt = settling.result()
    assert isinstance(receipt, Refused)
    assert receipt.reason == "expired"


async def test_one_command_out_of_time_costs_the_others_nothing(store: SharedStore, clock: FakeClock) -> None:
    threads = Threads(store)
    await threads.decide(ANN, "t1", open_call())
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        store.appending.clear()
        settling = group.create_task(threads.decide(ANN, "t1", _settle("late")))
        renaming = group.create_task(threads.decide(ANN, "t1", rename("Hello")))
        await store.appending.wait()
        clock.advance(TIMEOUTS.park_for)
        store.free.set()
    assert isinstance(settling.result(), Refused)
    assert renaming.result() is None
    assert await threads.read(ANN, "t1", lambda thread: thread.title) == "Hello"


async def test_the_earliest_limit_of_a_batch_is_the_limit_of_its_append(
    store: SharedStore, clock: FakeClock
) -> None:
    threads = Threads(store)
    limits = [clock.now() + 100, clock.now() + 10]
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        deciding = [group.create_task(threads.decide(ANN, "t1", _in_time(limit))) for limit in limits]
        await store.appending.wait()
        clock.advance(50)
        store.free.set()
    assert [each.result() for each in deciding] == [True, False]


async def test_what_is_decided_before_its_time_is_decided_again(store: SharedStore) -> None:
    threads = Threads(store)
    times = iter([store.now() + 10, None])

    def expire(thread: ThreadState, now: float) -> Decision[bool]:
        """By a clock that is ahead of the store's at first."""
        not_before = next(times)
        if not_before is None:
            return Decision(False)
        return Decision(True, (ThreadCreated("early"),), not_before=not_before)

    assert not await threads.decide(ANN, "t1", expire)
    assert await threads.read(ANN, "t1", lambda thread: thread.version) == 0


@pytest.mark.parametrize("threads_of_request", [("t1", "t2"), ("t2", "t1")])
async def test_a_request_id_that_another_thread_has_fails_its_command_alone(
    store: SharedStore, threads_of_request: tuple[str, str]
) -> None:
    threads = Threads(store)
    first, second = threads_of_request
    await threads.decide(ANN, first, open_call(request_id="job-1"))
    results = await asyncio.gather(
        threads.decide(ANN, second, open_call("call_2", request_id="job-1")),
        threads.decide(ANN, second, rename("Hello")),
        return_exceptions=True,
    )
    assert isinstance(results[0], NameTaken)
    assert results[1] is None
    state = await threads.read(ANN, second, lambda thread: (thread.title, list(thread.calls)))
    assert state == ("Hello", [])


async def test_a_store_that_is_down_says_so_and_nothing_is_believed(store: SharedStore) -> None:
    threads = RecordingThreads(store)
    await threads.decide(ANN, "t1", open_call())
    store.is_down = True
    with pytest.raises(StoreDown):
        await threads.decide(ANN, "t1", _settle("a"))
    assert threads.losses == ["t1"]
    assert threads.rollbacks == [], "no run was moved on with it"
    store.is_down = False
    assert await threads.decide(ANN, "t1", _settle("b")) == Accepted()
    assert len(threads.events) == 2


async def test_a_rule_that_breaks_is_told_to_the_one_who_asked(store: SharedStore) -> None:
    def broken(thread: ThreadState, now: float) -> Decision[None]:
        raise ZeroDivisionError

    def unfoldable(thread: ThreadState, now: float) -> Decision[None]:
        return Decision(None, (ThreadRenamed("half"), TextAdded(0, "a run that is not there")))

    threads = Threads(store)
    for command, error in ((broken, ZeroDivisionError), (unfoldable, AssertionError)):
        answers = await asyncio.gather(
            threads.decide(ANN, "t1", command),
            threads.decide(ANN, "t1", rename("Whole")),
            return_exceptions=True,
        )
        assert isinstance(answers[0], error)
        assert answers[1] is None
        assert await threads.read(ANN, "t1", lambda thread: thread.title) == "Whole"
    rows = (await store.load(ANN, "t1", after=0)).rows
    assert not any(b"half" in row.body for row in rows)


async def test_an_unreadable_log_fails_its_own_thread_alone(store: SharedStore) -> None:
    await store.append([Append(owner=ANN, thread_id="bad", version=0, at=0.0, body=b"{}", thread=ROW)])
    threads = Threads(store)
    answers = await asyncio.gather(
        threads.decide(ANN, "bad", rename("x")),
        threads.decide(ANN, "good", rename("x")),
        return_exceptions=True,
    )
    assert isinstance(answers[0], Unreadable)
    assert answers[1] is None


async def test_a_store_that_cannot_be_read_fails_what_waits_and_the_next_is_fine(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(store)
    with monkeypatch.context() as patch:
        patch.setattr(store, "load", _down)
        with pytest.raises(StoreDown):
            await threads.decide(ANN, "t1", rename("x"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "append", _broken)
        with pytest.raises(RuntimeError, match="a fault of the store"):
            await threads.decide(ANN, "t1", rename("x"))
    await threads.decide(ANN, "t1", rename("x"))
    assert await threads.read(ANN, "t1", lambda thread: thread.title) == "x"


async def test_a_caller_that_is_gone_loses_nothing(store: SharedStore) -> None:
    threads = Threads(store)
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(threads.decide(ANN, "t1", rename("Hello")))
        await store.appending.wait()
        task.cancel()
    store.free.set()
    await threads.flush()
    assert await threads.read(ANN, "t1", lambda thread: thread.title) == "Hello"


async def test_subscribers_are_told_what_is_durable_here_and_elsewhere(store: SharedStore) -> None:
    one, other = RecordingThreads(store), RecordingThreads(store)
    await other.read(ANN, "t1", lambda thread: None)
    await one.decide(ANN, "t1", rename("Hello"))
    events = (ThreadCreated(), ThreadRenamed("Hello"))
    assert one.events == [("t1", events, True)]
    other.refresh(ANN, "t1")
    await other.flush()
    assert other.events == [("t1", events, False)]


async def test_a_thread_that_nobody_follows_is_read_again_when_it_is_needed(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Threads(store), RecordingThreads(store)
    other.follows = False
    await other.decide(ANN, "t1", rename("old"))
    await one.decide(ANN, "t1", rename("new"))
    read = _counted_loads(store, monkeypatch)
    for _ in range(3):
        other.refresh(ANN, "t1")
    await other.flush()
    assert read == []
    appended = len(store.appended)
    assert await other.decide(ANN, "t1", lambda thread, now: Decision(thread.title)) == "new"
    assert (read, len(store.appended) - appended) == (["t1"], 1), "nothing was decided on the old state"
    assert other.events[-1] == ("t1", (ThreadRenamed("new"),), False)


async def test_who_cannot_be_told_what_happened_elsewhere_is_told_to_look(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Threads(store), RecordingThreads(store)
    await one.decide(ANN, "t1", rename("1"))
    other.refresh(ANN, "t1")
    await other.flush()
    assert other.losses == ["t1"], "it is not cached here"
    await other.read(ANN, "t1", lambda thread: None)
    with monkeypatch.context() as patch:
        patch.setattr(store, "load", _down)
        other.refresh(ANN, "t1")
        await other.flush()
    assert other.losses == ["t1", "t1"]
    assert other.events == []
    assert await other.read(ANN, "t1", lambda thread: thread.title) == "1"


async def test_a_clock_that_is_set_back_holds_nobody_up(store: SharedStore, clock: FakeClock) -> None:
    threads = Threads(store)
    for thread_id in ("t1", "t2"):
        await threads.decide(ANN, thread_id, open_call())
    before = clock.now()
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        store.appending.clear()
        group.create_task(threads.decide(ANN, "t1", _settle("late")))
        await store.appending.wait()
        clock.advance(TIMEOUTS.park_for)
        store.free.set()
    clock._now = before
    assert await threads.decide(ANN, "t2", lambda thread, now: Decision(now)) == before
    async with asyncio.timeout(5):
        assert await threads.decide(ANN, "t2", _settle("in time")) == Accepted()


async def test_a_command_that_is_decided_again_is_not_overtaken(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedStore, "is_shared", False)
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("0"))
    load, may_load, is_loading = store.load, asyncio.Event(), asyncio.Event()

    async def slow(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        if thread_id == "t2":
            is_loading.set()
            await may_load.wait()
        return await load(owner, thread_id, after=after)

    monkeypatch.setattr(store, "load", slow)
    async with asyncio.TaskGroup() as group:
        group.create_task(threads.decide(ANN, "t1", rename("1")))
        group.create_task(threads.decide(ANN, "t2", rename("other")))
        await asyncio.sleep(0)
        threads.forget(ANN, "t1")
        await is_loading.wait()
        await asyncio.sleep(0.01)
        group.create_task(threads.decide(ANN, "t1", rename("2")))
        await asyncio.sleep(0.01)
        may_load.set()
    assert await threads.read(ANN, "t1", lambda thread: thread.title) == "2"


async def test_a_command_does_not_overtake_one_that_waits_for_another_thread_to_load(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were to be decided together; its own thread is loaded by then."""
    monkeypatch.setattr(SharedStore, "is_shared", False)
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("0"))
    threads.forget(ANN, "t1")
    load, may_load, has_loaded = store.load, asyncio.Event(), asyncio.Event()

    async def slow(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        if thread_id == "t2":
            await may_load.wait()
        has_loaded.set()
        return await load(owner, thread_id, after=after)

    monkeypatch.setattr(store, "load", slow)
    first = [threads.submit(ANN, "t1", rename("1")), threads.submit(ANN, "t2", rename("other"))]
    await has_loaded.wait()
    await asyncio.sleep(0)
    second = threads.submit(ANN, "t1", rename("2"))
    may_load.set()
    await asyncio.gather(*first, second)
    assert await threads.read(ANN, "t1", lambda thread: thread.title) == "2"


async def test_a_snapshot_and_the_rows_after_it_make_the_same_state(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_cache, "SNAPSHOT_BYTES", 200)
    threads = Threads(store)
    await threads.decide(ANN, "t1", open_call())
    for number in range(100):
        await threads.decide(ANN, "t1", rename(f"Title {number}"))
    loaded = await store.load(ANN, "t1")
    assert loaded.snapshot is not None
    assert len(loaded.rows) < 50
    whole = fold_loaded(ANN, "t1", await store.load(ANN, "t1", after=0))
    assert fold_loaded(ANN, "t1", loaded) == whole
    assert await Threads(store).decide(ANN, "t1", _settle("a")) == Accepted()


async def test_a_snapshot_that_cannot_be_read_is_reported(store: SharedStore) -> None:
    row = Append(
        owner=ANN, thread_id="t1", version=0, at=0.0, body=b'{"events":[]}', snapshot=b'{"x":1}', thread=ROW
    )
    await store.append([row])
    with pytest.raises(Unreadable):
        await Threads(store).decide(ANN, "t1", rename("x"))
    assert b"t1" in encode_snapshot(ThreadState(owner=ANN, thread_id="t1"))


async def test_who_waits_when_the_log_is_stopped_is_told_so(store: SharedStore) -> None:
    threads = Threads(store)
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(_caught(threads.decide(ANN, "t1", rename("1"))))
        await store.appending.wait()
        second = group.create_task(_caught(threads.decide(ANN, "t1", rename("2"))))
        await asyncio.sleep(0)
        [flushing] = [task for task in asyncio.all_tasks() if "_flush" in repr(task.get_coro())]
        flushing.cancel()
        store.free.set()
    assert isinstance(first.result(), StoreDown)
    # what came later is decided by the next one
    assert second.result() is None


async def test_who_reads_when_the_log_is_stopped_is_answered_by_the_next_writer(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedStore, "is_shared", False)
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("1"))
    store.free.clear()
    store.appending.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        writing = group.create_task(_caught(threads.decide(ANN, "t1", rename("2"))))
        reading = group.create_task(threads.decide(ANN, "t1", lambda thread, now: Decision(thread.title)))
        await store.appending.wait()
        [flushing] = [task for task in asyncio.all_tasks() if "_flush" in repr(task.get_coro())]
        flushing.cancel()
        store.free.set()
    assert isinstance(writing.result(), StoreDown)
    assert reading.result() == "1"


async def test_a_tool_is_stored_with_the_first_call_of_its_version_alone(store: SharedStore) -> None:
    threads = Threads(store)
    for call_id in ("call_1", "call_2"):
        await threads.decide(ANN, "t1", open_call(call_id))
    tools = [append.tools for appends in store.appended for append in appends]
    assert [len(each) for each in tools] == [1, 0]
    [tool] = tools[0]
    assert await store.find_tool(tool.version) == tool


async def test_the_lists_show_a_thread_and_its_run_as_they_are(store: SharedStore) -> None:
    threads = Threads(store)
    threads.worker, threads.lease_sec = "wrk_1", 15.0
    await threads.decide(ANN, "t1", lambda thread, _: runs.begin(thread, said("hello"), runs.NewRun("run_1")))
    [found] = await store.threads(ANN, limit=9)
    assert (found.row.title, found.row.run_id, found.row.run_state) == ("hello", "run_1", RunState.RUNNING)
    [fed] = await store.feed(ANN, after=0, limit=9)
    assert fed.thread_id == "t1"
    lease = store.appended[-1][0].lease
    assert lease is not None
    assert (lease.worker, lease.until) == ("wrk_1", store.now() + 15.0)


def _in_time(limit: float) -> Command[bool]:
    def decide(thread: ThreadState, now: float) -> Decision[bool]:
        if now >= limit:
            return Decision(False)
        return Decision(True, (ThreadRenamed("in time"),), not_after=limit)

    return decide


def _settle(value: str) -> Command[Receipt]:
    checked = CheckedResult(Result(call_id="call_1", outcome=Success(value)), Success(value))
    return lambda thread, now: calls.settle(thread, checked, now=now)


async def _down(*args: object, **more: object) -> Loaded:
    raise StoreDown("The store is away.")


async def _broken(*args: object, **more: object) -> list[AppendResult]:
    raise RuntimeError("a fault of the store")


async def _caught(work: Coroutine[None, None, object]) -> object:
    try:
        return await work
    except StoreDown as error:
        return error


async def test_what_cannot_be_stored_as_json_fails_its_own_thread_alone(store: SharedStore) -> None:
    threads = Threads(store)
    async with asyncio.TaskGroup() as group:
        bad = group.create_task(_failure(threads.decide(ANN, "t1", rename("half \ud83d of a character"))))
        good = group.create_task(threads.decide(ANN, "t2", rename("whole")))
    assert isinstance(bad.result(), UnicodeEncodeError)
    assert good.result() is None
    assert await threads.read(ANN, "t1", lambda thread: thread.exists) is False
    assert await threads.read(ANN, "t2", lambda thread: thread.title) == "whole"


async def _failure(work: Awaitable[object]) -> Exception | None:
    try:
        await work
    # whatever it is
    except Exception as error:  # noqa: BLE001
        return error
    return None


async def test_an_id_that_the_store_cannot_hold_fails_its_own_thread_alone(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = store.append

    async def append_text(appends: Sequence[Append]) -> list[AppendResult]:
        if any("\0" in each.thread_id for each in appends):
            raise ValueError("a NUL has no place here")
        return await append(appends)

    monkeypatch.setattr(store, "append", append_text)
    threads = Threads(store)
    refused, renamed = await asyncio.gather(
        threads.decide(ANN, "t\0", rename("a")),
        threads.decide(ANN, "t1", rename("b")),
        return_exceptions=True,
    )
    assert isinstance(refused, ValueError)
    assert renamed is None
    assert await threads.read(ANN, "t1", lambda thread: thread.title) == "b"


async def test_a_flood_is_stored_in_several_transactions(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.eventlog.threads.APPENDED_AT_ONCE", 3)
    threads = Threads(store)
    await asyncio.gather(*(threads.decide(ANN, f"t{number}", rename("new")) for number in range(8)))
    assert [len(appends) for appends in store.appended] == [3, 3, 2]


async def test_many_stale_threads_do_not_hold_up_a_command(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.eventlog.threads.REFRESHED_AT_ONCE", 2)
    threads = Threads(store)
    for number in range(9):
        await threads.decide(ANN, f"t{number}", rename("old"))
    read = _counted_loads(store, monkeypatch)
    threads.refresh_all()
    await threads.decide(ANN, "t0", rename("new"))
    assert len(read) <= 4, "the command came after a few of them"
    await threads.flush()
    assert sorted(read) == [f"t{number}" for number in range(9)]


@pytest.mark.parametrize("is_shared", [True, False])
async def test_a_subscriber_that_fails_keeps_nobody_waiting(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_shared: bool
) -> None:
    monkeypatch.setattr(SharedStore, "is_shared", is_shared)

    class Failing(Threads):
        def on_decided(self, key: tuple[Owner, str], changes: batch.Changes) -> None:
            raise RuntimeError("not ready")

        def on_committed(
            self, key: tuple[Owner, str], changes: batch.Changes, at: float, *, is_own: bool
        ) -> None:
            raise RuntimeError("not ready")

        def on_lost(self, key: tuple[Owner, str]) -> None:
            raise RuntimeError("not ready")

    threads = Failing(store)
    async with asyncio.timeout(10):
        await asyncio.gather(*(threads.decide(ANN, f"t{number}", rename("new")) for number in range(3)))
        # the cached states are old now, so these appends are refused
        elsewhere = Threads(store)
        await asyncio.gather(*(elsewhere.decide(ANN, f"t{number}", rename("other")) for number in range(3)))
        await asyncio.gather(*(threads.decide(ANN, f"t{number}", rename("newest")) for number in range(3)))
    assert await threads.read(ANN, "t2", lambda thread: thread.title) == "newest"
    assert "a subscriber of the log failed" in caplog.text


def _counted_loads(store: SharedStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that are read from now on."""
    read: list[str] = []
    load = store.load

    async def counted(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        read.append(thread_id)
        return await load(owner, thread_id, after=after)

    monkeypatch.setattr(store, "load", counted)
    return read
