"""The cache of states: bounded, never needed, never older than the log for long."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.decide import runs
from farhand.core.decide.decision import Decision
from farhand.core.event import TextAdded
from farhand.core.principal import Owner
from farhand.core.state import ThreadState
from farhand.errors import StoreDown
from farhand.eventlog.codec import encode_snapshot, fold_loaded
from farhand.eventlog.thread_cache import STATE_BYTES
from farhand.eventlog.threads import Threads
from farhand.store.base import Loaded, Store
from farhand.testing import FakeClock
from tests.unit.core.thread_builder import said
from tests.unit.core.thread_log import ANN
from tests.unit.eventlog.shared_store import RecordingThreads, SharedStore, open_call, rename


class SlowLoad:
    """Reads a thread; the first to do so gets it when it may."""

    def __init__(self, store: Store) -> None:
        self.is_read = asyncio.Event()
        self.may_end = asyncio.Event()
        self._load = store.load

    async def __call__(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        loaded = await self._load(owner, thread_id, after=after)
        if not self.is_read.is_set():
            self.is_read.set()
            await self.may_end.wait()
        return loaded


@pytest.fixture
def store(clock: FakeClock) -> SharedStore:
    return SharedStore(clock)


async def test_after_lost_hints_every_cached_state_is_brought_up_to_date(store: SharedStore) -> None:
    one, other = Threads(store), RecordingThreads(store)
    for thread_id in ("t1", "t2"):
        await other.read(ANN, thread_id, lambda thread: None)
        await one.decide(ANN, thread_id, rename("Hello"))
    other.refresh_all()
    await other.flush()
    assert sorted(thread_id for thread_id, _, _ in other.events) == ["t1", "t2"]


@pytest.mark.parametrize("knows_its_last_row", [True, False])
async def test_a_cached_state_that_is_behind_rows_which_are_gone_is_read_again(
    store: SharedStore, knows_its_last_row: bool
) -> None:
    one, other = Threads(store), RecordingThreads(store)
    await one.decide(ANN, "t1", rename("1"))
    if not knows_its_last_row:
        # then it is read from a snapshot alone
        await _purge_rows(store)
    await other.read(ANN, "t1", lambda thread: None)
    for title in ("2", "3"):
        await one.decide(ANN, "t1", rename(title))
    await _purge_rows(store)
    await one.decide(ANN, "t1", lambda thread, now: runs.begin(thread, said("hello"), runs.NewRun("run_1")))
    # the row of the renamings is gone: what follows it is not put on what was before it
    other.refresh(ANN, "t1")
    await other.flush()
    assert (other.events, other.losses) == ([], ["t1"])
    seen = await other.read(ANN, "t1", lambda thread: (thread.title, thread.version))
    assert seen == await one.read(ANN, "t1", lambda thread: (thread.title, thread.version)) == ("3", 4)


async def test_a_thread_that_did_not_exist_when_it_was_read_is_read_again_if_its_first_rows_are_gone(
    store: SharedStore,
) -> None:
    one, other = Threads(store), RecordingThreads(store)
    await other.read(ANN, "t1", lambda thread: None)
    await one.decide(ANN, "t1", rename("1"))
    await _purge_rows(store)
    await one.decide(ANN, "t1", rename("2"))
    other.refresh(ANN, "t1")
    await other.flush()
    assert (other.events, other.losses) == ([], ["t1"])
    assert await other.read(ANN, "t1", lambda thread: (thread.exists, thread.title)) == (True, "2")


async def test_threads_that_cannot_be_refreshed_while_the_store_is_down_are_not_logged_each(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When its notifications are cut, every cached thread is refreshed; the store logs its outages."""
    threads = RecordingThreads(store)
    for thread_id in ("t1", "t2"):
        await threads.decide(ANN, thread_id, rename("1"))

    async def away(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        raise StoreDown("The store is away.")

    monkeypatch.setattr(store, "load", away)
    threads.refresh_all()
    await threads.flush()
    assert sorted(threads.losses) == ["t1", "t2"], "their subscribers read the log"
    assert caplog.records == []


async def test_who_waits_for_a_thread_to_be_read_is_served_though_the_writer_is_ended(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Threads(store).decide(ANN, "t1", rename("Hello"))
    threads, load = Threads(store), store.load
    loading = asyncio.Event()

    async def slow(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        if not loading.is_set():
            loading.set()
            await asyncio.Event().wait()
        return await load(owner, thread_id, after=after)

    monkeypatch.setattr(store, "load", slow)
    async with asyncio.timeout(10):
        title = threads.submit(ANN, "t1", lambda thread, now: Decision(thread.title))
        await loading.wait()
        assert threads._flushing is not None
        threads._flushing.cancel()
        assert await title == "Hello"


async def test_two_commands_that_load_a_thread_at_once_are_decided_on_one_state(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.is_shared = False
    threads, load = Threads(store), SlowLoad(store)
    monkeypatch.setattr(store, "load", load)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        first = group.create_task(threads.decide(ANN, "t1", lambda thread, now: Decision(thread.title)))
        await load.is_read.wait()
        await threads.decide(ANN, "t1", rename("Hello"))
        load.may_end.set()
    assert first.result() == "Hello"


async def test_a_state_that_was_read_before_its_thread_was_deleted_is_not_cached(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.is_shared = False
    await Threads(store).decide(ANN, "t1", rename("Hello"))
    threads, load = Threads(store), SlowLoad(store)
    monkeypatch.setattr(store, "load", load)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(threads.read(ANN, "t1", lambda thread: thread.title))
        await load.is_read.wait()
        assert await store.delete(ANN, "t1", 1)
        threads.forget(ANN, "t1")
        load.may_end.set()
    assert not await threads.read(ANN, "t1", lambda thread: thread.exists)
    assert not threads._newest_load


async def test_a_thread_that_is_asked_for_faster_than_it_loads_is_loaded(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Threads(store).decide(ANN, "t1", rename("Hello"))
    threads, load, loads = Threads(store), store.load, 0

    async def slow(owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        nonlocal loads
        loads += 1
        loaded = await load(owner, thread_id, after=after)
        # meanwhile another command comes
        for _ in range(5):
            await asyncio.sleep(0)
        return loaded

    monkeypatch.setattr(store, "load", slow)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        first = group.create_task(threads.read(ANN, "t1", lambda thread: thread.title))
        others = []
        while not first.done():
            others.append(group.create_task(threads.read(ANN, "t1", lambda thread: thread.title)))
            await asyncio.sleep(0)
    assert {each.result() for each in (first, *others)} == {"Hello"}
    assert loads <= 2


async def test_the_cache_gives_the_events_of_a_run_only_if_it_has_all_that_are_known(
    store: SharedStore,
) -> None:
    one, other = Threads(store), Threads(store)
    await one.decide(ANN, "t1", lambda thread, now: runs.begin(thread, said("hello"), runs.NewRun("run_1")))
    first = await other.read(ANN, "t1", ThreadState.run_record)
    await one.decide(ANN, "t1", lambda thread, now: runs.write(thread, 1, (TextAdded(0, "a"),), after=1))
    second = await one.read(ANN, "t1", ThreadState.run_record)
    assert first is not None
    assert second is not None
    seen = [[each.seq for each in threads.recent_entries(first) or []] for threads in (one, other)]
    assert seen == [[1, 2], [1]], "of one that was loaded, too"
    assert other.recent_entries(second) is None
    other.refresh(ANN, "t1")
    await other.flush()
    assert other.recent_entries(second) == one.recent_entries(second)


async def test_the_cache_is_bounded_and_never_needed(store: SharedStore) -> None:
    most = 3 * STATE_BYTES + 400
    threads = Threads(store, cache_bytes=most)
    for number in range(20):
        await threads.decide(ANN, f"t{number}", rename(f"Thread {number}"))
    assert 0 < threads._cache.size <= most
    titles = [await threads.read(ANN, f"t{number}", lambda thread: thread.title) for number in range(20)]
    assert titles == [f"Thread {number}" for number in range(20)]
    assert 0 < threads._cache.size <= most


async def test_a_thread_that_was_deleted_is_not_in_the_cache(store: SharedStore) -> None:
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("Hello"))
    assert await store.delete(ANN, "t1", 1)
    threads.forget(ANN, "t1")
    threads.forget(ANN, "t9")
    assert threads._cache.size == 0
    assert await threads.read(ANN, "t1", lambda thread: thread.title) == ""


@pytest.mark.parametrize("appends", [1, 2, 3])
async def test_a_thread_made_again_is_not_taken_for_the_deleted_one_of_its_name(
    store: SharedStore, clock: FakeClock, appends: int
) -> None:
    one, other = Threads(store), RecordingThreads(store)
    for title in ("secret", "still secret"):
        await one.decide(ANN, "t1", rename(title))
    await other.read(ANN, "t1", lambda thread: None)
    clock.advance(1)
    assert await store.delete(ANN, "t1", 2)
    one.forget(ANN, "t1")
    # as many appends as the old one had, or more: its versions say nothing
    for number in range(appends):
        await one.decide(ANN, "t1", open_call(f"call_{number}"))
    other.refresh(ANN, "t1")
    await other.flush()
    assert (other.events, other.losses) == ([], ["t1"])
    seen = await other.read(ANN, "t1", lambda thread: (thread.title, len(thread.calls)))
    assert seen == ("t", appends)


@pytest.mark.parametrize("is_purged", [False, True])
async def test_nothing_is_decided_on_a_deleted_thread_even_if_no_hint_of_its_deletion_came(
    store: SharedStore, clock: FakeClock, *, is_purged: bool
) -> None:
    one, other = Threads(store), Threads(store)
    for title in ("secret", "still secret"):
        await one.decide(ANN, "t1", rename(title))
    if is_purged:
        await _purge_rows(store)
    assert await other.read(ANN, "t1", lambda thread: thread.title) == "still secret"
    clock.advance(1)
    assert await store.delete(ANN, "t1", 2)
    one.forget(ANN, "t1")
    for _ in range(2):
        await one.decide(ANN, "t1", open_call())
    # the version is the one that it knows
    assert await other.read(ANN, "t1", lambda thread: thread.title) == "t"
    await other.decide(ANN, "t1", rename("mine"))
    assert await one.read(ANN, "t1", lambda thread: (thread.title, thread.version)) == ("mine", 3)


async def test_a_thread_of_which_only_a_snapshot_is_left_is_known_from_the_next_one_of_its_name(
    store: SharedStore, clock: FakeClock
) -> None:
    one, other = Threads(store), Threads(store)
    await one.decide(ANN, "t1", rename("secret"))
    await _purge_rows(store)
    await other.read(ANN, "t1", lambda thread: None)
    clock.advance(1)
    assert await store.delete(ANN, "t1", 1)
    one.forget(ANN, "t1")
    for _ in range(2):
        await one.decide(ANN, "t1", open_call())
    other.refresh(ANN, "t1")
    assert await other.read(ANN, "t1", lambda thread: thread.title) == "t"


async def test_a_thread_that_is_loaded_twice_is_counted_once(store: SharedStore) -> None:
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("Hello"))
    alone = threads._cache.size
    threads.forget(ANN, "t1")
    # both miss the cache: one loads for itself, the other in the flush
    await asyncio.gather(
        threads.read(ANN, "t1", lambda thread: None),
        threads.submit(ANN, "t1", lambda thread, now: Decision(None)),
    )
    assert threads._cache.size == alone


async def test_a_thread_that_is_dropped_and_loaded_while_it_is_stored_is_counted_once(
    store: SharedStore,
) -> None:
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("1"))
    alone = threads._cache.size
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        store.appending.clear()
        group.create_task(threads.decide(ANN, "t1", rename("2")))
        await store.appending.wait()
        threads.forget(ANN, "t1")
        store.free.set()
    await threads.read(ANN, "t1", lambda thread: None)
    grown = threads._cache.size
    threads.forget(ANN, "t1")
    assert (alone < grown, threads._cache.size) == (True, 0)


async def test_a_thread_that_is_forgotten_while_it_is_stored_takes_no_room(store: SharedStore) -> None:
    threads = Threads(store)
    await threads.decide(ANN, "t1", rename("1"))
    store.free.clear()
    async with asyncio.TaskGroup() as group:
        store.appending.clear()
        group.create_task(threads.decide(ANN, "t1", rename("2")))
        await store.appending.wait()
        threads.forget(ANN, "t1")
        store.free.set()
    assert threads._cache.size == 0


async def _purge_rows(store: Store) -> None:
    loaded = await store.load(ANN, "t1")
    state = fold_loaded(ANN, "t1", loaded)
    await store.put_snapshot(ANN, "t1", state.version, encode_snapshot(state), at=loaded.rows[-1].at)
    await store.purge(before=store.now() + 1)
