"""Decide, append, publish: answers are durable, races are decided again, the cache is only a cache."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager

import pytest

from farhand.core.decide import calls, runs
from farhand.core.decide.calls import Checked
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import opened
from farhand.core.log import TextAdded, ThreadCreated, ThreadRenamed
from farhand.core.outcome import Success
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Result, Unknown
from farhand.core.state import ThreadState
from farhand.errors import ShuttingDown, StoreDown, Unreadable
from farhand.eventlog import batch
from farhand.eventlog.batch import Command
from farhand.eventlog.codec import encode_snapshot, fold_loaded
from farhand.eventlog.threads import Threads
from farhand.store.log.base import Append, AppendResult
from farhand.store.log.memory import MemoryLogStore
from farhand.testing import FakeClock
from tests.unit.core.story import PATIENCE, asks_for, said
from tests.unit.core.thread_log import ANN

pytestmark = pytest.mark.anyio


class SharedStore(MemoryLogStore):
    """One that several workers use; it can be held up, and it can be down."""

    is_shared = True

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.free = asyncio.Event()
        self.free.set()
        self.appending = asyncio.Event()
        self.is_down = False

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        self.appending.set()
        await self.free.wait()
        if self.is_down:
            raise StoreDown("The store does not answer.")
        return await super().append(appends)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> SharedStore:
    return SharedStore(clock)


@asynccontextmanager
async def serving(threads: Threads) -> AsyncIterator[Threads]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(threads.serve())
        try:
            yield threads
        finally:
            task.cancel()


async def test_an_answer_is_given_when_it_is_durable_and_not_before(store: SharedStore) -> None:
    async with serving(Threads(store)) as threads:
        store.free.clear()
        async with asyncio.TaskGroup() as group:
            renaming = group.create_task(threads.decide(ANN, "t1", _rename("Hello")))
            await store.appending.wait()
            reading = group.create_task(threads.read(ANN, "t1", lambda thread: thread.title))
            await asyncio.sleep(0)
            assert not renaming.done()
            assert not reading.done()
            store.free.set()
        assert renaming.result() is None
        assert reading.result() == "Hello"


async def test_two_workers_with_two_answers_have_one_winner(store: SharedStore) -> None:
    async with serving(Threads(store)) as one, serving(Threads(store)) as other:
        await one.decide(ANN, "t1", _open())
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


async def test_an_old_cache_never_answers_without_asking_the_store(store: SharedStore) -> None:
    async with serving(Threads(store)) as one, serving(Threads(store)) as other:
        assert await other.decide(ANN, "t1", _settle("a")) == Unknown()
        await one.decide(ANN, "t1", _open())
        assert await other.decide(ANN, "t1", _settle("a")) == Accepted()


async def test_commands_that_wait_are_stored_together_in_their_order(store: SharedStore) -> None:
    async with serving(Threads(store)) as threads:
        await threads.decide(ANN, "t1", _open())
        results = await asyncio.gather(*(threads.decide(ANN, "t1", _settle(value)) for value in "abc"))
        assert results[0] == Accepted()
        assert all(isinstance(each, Conflict) for each in results[1:])
        assert len((await store.load(ANN, "t1")).rows) == 2


async def test_a_deadline_is_judged_by_the_store(store: SharedStore, clock: FakeClock) -> None:
    async with serving(Threads(store)) as threads:
        await threads.decide(ANN, "t1", _open())
        store.free.clear()
        async with asyncio.TaskGroup() as group:
            settling = group.create_task(threads.decide(ANN, "t1", _settle("late")))
            store.appending.clear()
            await store.appending.wait()
            # decided in time, stored too late
            clock.advance(PATIENCE.park_for)
            store.free.set()
        receipt = settling.result()
        assert isinstance(receipt, Refused)
        assert receipt.reason == "expired"


async def test_a_store_that_is_down_says_so_and_nothing_is_believed(store: SharedStore) -> None:
    async with serving(Threads(store)) as threads:
        await threads.decide(ANN, "t1", _open())
        store.is_down = True
        with pytest.raises(StoreDown):
            await threads.decide(ANN, "t1", _settle("a"))
        store.is_down = False
        assert await threads.decide(ANN, "t1", _settle("b")) == Accepted()


async def test_a_rule_that_breaks_is_told_to_the_one_who_asked(store: SharedStore) -> None:
    def broken(thread: ThreadState, now: float) -> Decision[None]:
        raise ZeroDivisionError

    def unfoldable(thread: ThreadState, now: float) -> Decision[None]:
        return Decision(None, (ThreadRenamed("half"), TextAdded(0, "a run that is not there")))

    async with serving(Threads(store)) as threads:
        for command, error in ((broken, ZeroDivisionError), (unfoldable, AssertionError)):
            answers = await asyncio.gather(
                threads.decide(ANN, "t1", command),
                threads.decide(ANN, "t1", _rename("Whole")),
                return_exceptions=True,
            )
            assert isinstance(answers[0], error)
            assert answers[1] is None
            assert await threads.read(ANN, "t1", lambda thread: thread.title) == "Whole"


async def test_an_unreadable_log_fails_its_own_thread_alone(store: SharedStore) -> None:
    async with serving(Threads(store)) as threads:
        row = Append(owner=ANN, thread_id="bad", version=0, at=0.0, body=b"{}", thread=None)
        await store.append([row])
        answers = await asyncio.gather(
            threads.decide(ANN, "bad", _rename("x")),
            threads.decide(ANN, "good", _rename("x")),
            return_exceptions=True,
        )
        assert isinstance(answers[0], Unreadable)
        assert answers[1] is None


async def test_a_caller_that_is_gone_loses_nothing(store: SharedStore) -> None:
    async with serving(Threads(store)) as threads:
        store.free.clear()
        task = asyncio.ensure_future(threads.decide(ANN, "t1", _rename("Hello")))
        await store.appending.wait()
        task.cancel()
        store.free.set()
        assert await threads.read(ANN, "t1", lambda thread: thread.title) == "Hello"


async def test_subscribers_are_told_what_is_durable_here_and_elsewhere(store: SharedStore) -> None:
    async with serving(Threads(store)) as one, serving(Threads(store)) as other:
        await other.read(ANN, "t1", lambda thread: None)
        with one.broker.subscribe(ANN, "t1") as here, other.broker.subscribe(ANN, "t1") as there:
            await one.decide(ANN, "t1", _rename("Hello"))
            [published] = here.take()
            assert (published.version, published.body.events[-1]) == (1, ThreadRenamed("Hello"))
            other.refresh(ANN, "t1")
            assert await there.wait(5)
            assert there.take() == [published]
            assert one.broker.has_readers(ANN, "t1")
        assert not one.broker.has_readers(ANN, "t1")


async def test_who_cannot_be_told_everything_is_told_to_look(store: SharedStore) -> None:
    async with serving(Threads(store)) as one, serving(Threads(store)) as other:
        with other.broker.subscribe(ANN, "t1", limit=2) as there:
            await one.decide(ANN, "t1", _rename("1"))
            other.refresh(ANN, "t1")
            assert await there.wait(5)
            assert there.overflowed
        with one.broker.subscribe(ANN, "t1", limit=2) as here:
            for title in "234":
                await one.decide(ANN, "t1", _rename(title))
            assert here.overflowed
            assert not here.items
            assert await here.wait(5)
            assert not await here.wait(0.001)


async def test_a_refresh_that_fails_costs_the_cache_and_nothing_else(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(Threads(store)) as threads:
        await threads.decide(ANN, "t1", _rename("Hello"))

        async def down(*args: object, **more: object) -> None:
            raise StoreDown("away")

        with threads.broker.subscribe(ANN, "t1") as here, monkeypatch.context() as patch:
            patch.setattr(store, "load", down)
            threads.refresh(ANN, "t1")
            assert await here.wait(5)
            assert here.overflowed
        assert await threads.read(ANN, "t1", lambda thread: thread.title) == "Hello"


async def test_the_cache_is_bounded_and_never_needed(store: SharedStore) -> None:
    async with serving(Threads(store, cache_bytes=400)) as threads:
        for number in range(20):
            await threads.decide(ANN, f"t{number}", _rename(f"Thread {number}"))
        assert threads.cached_bytes <= 400
        titles = [await threads.read(ANN, f"t{number}", lambda thread: thread.title) for number in range(20)]
        assert titles == [f"Thread {number}" for number in range(20)]
        assert threads.cached_bytes <= 400


async def test_a_snapshot_and_the_rows_after_it_make_the_same_state(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "SNAPSHOT_AFTER", 3)
    async with serving(Threads(store)) as threads:
        await threads.decide(ANN, "t1", _open())
        for title in "123456":
            await threads.decide(ANN, "t1", _rename(title))
        loaded = await store.load(ANN, "t1")
        assert loaded.snapshot is not None
        assert len(loaded.rows) < 4
        whole = fold_loaded(ANN, "t1", await store.load(ANN, "t1", after=0))
        assert fold_loaded(ANN, "t1", loaded) == whole
        assert await threads.decide(ANN, "t1", _settle("a")) == Accepted()


async def test_a_snapshot_that_cannot_be_read_is_said(store: SharedStore) -> None:
    async with serving(Threads(store)) as threads:
        row = Append(owner=ANN, thread_id="t1", version=0, at=0.0, body=b'{"events":[]}', snapshot=b'{"x":1}')
        await store.append([row])
        with pytest.raises(Unreadable):
            await threads.decide(ANN, "t1", _rename("x"))
        assert b"t1" in encode_snapshot(ThreadState(owner=ANN, thread_id="t1"))


async def test_who_waits_when_the_server_stops_is_told_so(store: SharedStore) -> None:
    threads = Threads(store)
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        serve = group.create_task(threads.serve())
        first = group.create_task(_caught(threads.decide(ANN, "t1", _rename("1"))))
        await store.appending.wait()
        second = group.create_task(_caught(threads.decide(ANN, "t1", _rename("2"))))
        await asyncio.sleep(0)
        serve.cancel()
    assert isinstance(first.result(), ShuttingDown)
    assert isinstance(second.result(), ShuttingDown)


async def test_the_lists_show_a_thread_and_its_run_as_they_are(store: SharedStore) -> None:
    async with serving(Threads(store)) as threads:
        await threads.decide(
            ANN, "t1", lambda thread, _: runs.begin(thread, said("hello"), "run_1", hold_for=0.0)
        )
        [found] = await store.threads(ANN, limit=9)
        assert (found.row.title, found.row.run_id, found.row.is_blocked) == ("hello", "run_1", False)
        [fed] = await store.feed(ANN, after=0, limit=9)
        assert fed.thread_id == "t1"


def _rename(title: str) -> Command[None]:
    def rename(thread: ThreadState, now: float) -> Decision[None]:
        new = () if thread.exists else (ThreadCreated(),)
        return Decision(None, (*new, ThreadRenamed(title)))

    return rename


def _open() -> Command[None]:
    opening = asks_for("call_1", direct=True)
    return lambda thread, now: Decision(
        None, (ThreadCreated("t"), opened(thread, opening, now=now, patience=PATIENCE))
    )


def _settle(value: str) -> Command[Receipt]:
    checked = Checked(Result(call_id="call_1", outcome=Success(value)), Success(value))
    return lambda thread, now: calls.settle(thread, checked, now=now)


async def _caught(work: Awaitable[object]) -> object:
    try:
        return await work
    except ShuttingDown as error:
        return error
