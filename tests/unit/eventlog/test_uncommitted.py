"""Decisions that a run continues with before they are durable, where one process alone writes: what readers,
callers and workers see when the store then refuses them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from farhand.core.state import ThreadState
from farhand.errors import NameTaken, StoreDown
from farhand.store.base import Append, AppendResult, OutOfTime, RequestTaken
from farhand.testing import FakeClock
from tests.unit.core.thread_log import ANN
from tests.unit.eventlog.shared_store import RecordingThreads, SharedStore, open_call, rename


class OwnStore(SharedStore):
    """One that a single process uses; the next append may be answered with `refusal`."""

    is_shared = False
    refusal: AppendResult | None = None

    async def fail(self) -> None:
        """Does not confirm the append that is under way, or the next one."""
        await self.appending.wait()
        self.is_down = True
        self.free.set()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        if self.refusal is None:
            return await super().append(appends)
        refusal, self.refusal = self.refusal, None
        self.appending.set()
        await self.free.wait()
        return [refusal] * len(appends)


@pytest.fixture
async def store(clock: FakeClock) -> OwnStore:
    return OwnStore(clock)


@pytest.fixture
async def threads(store: OwnStore) -> RecordingThreads:
    """With one thread, named "Old"; appends are held up from then on."""
    threads = RecordingThreads(store)
    await threads.decide(ANN, "t1", rename("Old"))
    store.free.clear()
    store.appending.clear()
    return threads


def _title(thread: ThreadState) -> str:
    return thread.title


async def _rename(threads: RecordingThreads, title: str) -> str:
    return await threads.decide_uncommitted(ANN, "t1", rename(title), lambda thread, _: thread.title)


async def test_a_run_continues_before_its_decision_is_durable_and_a_reader_waits(
    store: OwnStore, threads: RecordingThreads
) -> None:
    assert await _rename(threads, "New") == "New"
    assert await threads.read_uncommitted(ANN, "t1", _title) == "New"
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(threads.read(ANN, "t1", _title))
        await store.appending.wait()
        assert not reading.done()
        assert len(threads.events) == 1, "nobody is told before it is durable"
        store.free.set()
    assert reading.result() == "New"
    assert not threads.rollbacks


async def test_what_the_store_does_not_confirm_is_rolled_back_and_no_reader_has_seen_it(
    store: OwnStore, threads: RecordingThreads
) -> None:
    await _rename(threads, "New")
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(threads.read(ANN, "t1", _title))
        await store.fail()
    assert reading.result() == "Old"
    assert len(threads.rollbacks) == 1
    assert await threads.read_uncommitted(ANN, "t1", _title) == "Old"


async def test_a_worker_that_has_read_what_the_store_then_refuses_is_told(
    store: OwnStore, threads: RecordingThreads
) -> None:
    """It read what somebody else decided, before and after that was on its way to the store."""
    for is_on_its_way in (False, True):
        threads.rollbacks.clear()
        store.is_down = False
        store.free.clear()
        store.appending.clear()
        async with asyncio.TaskGroup() as group:
            renaming = group.create_task(_fails(threads, "New"))
            await asyncio.sleep(0)
            if is_on_its_way:
                await store.appending.wait()
            assert await threads.read_uncommitted(ANN, "t1", _title) == "New"
            await store.fail()
        assert renaming.result()
        assert len(threads.rollbacks) == 1
        assert await threads.read(ANN, "t1", _title) == "Old"


async def test_nobody_is_told_of_a_decision_that_nobody_relied_on(
    store: OwnStore, threads: RecordingThreads
) -> None:
    async with asyncio.TaskGroup() as group:
        renaming = group.create_task(_fails(threads, "New"))
        await store.fail()
    assert renaming.result()
    assert not threads.rollbacks


async def test_what_was_decided_on_an_append_that_fails_fails_with_it(
    store: OwnStore, threads: RecordingThreads
) -> None:
    async with asyncio.TaskGroup() as group:
        first = group.create_task(_fails(threads, "First"))
        await store.appending.wait()
        assert await _rename(threads, "Second") == "Second"
        third = group.create_task(_fails(threads, "Third"))
        await asyncio.sleep(0)
        store.is_down = True
        store.free.set()
    assert first.result()
    assert third.result()
    assert [changes.thread.title for changes in threads.rollbacks] == ["Third"]
    store.is_down = False
    assert await threads.read(ANN, "t1", _title) == "Old"


async def test_a_decision_that_comes_too_late_is_decided_again_and_its_worker_is_told(
    store: OwnStore, threads: RecordingThreads
) -> None:
    await _rename(threads, "New")
    store.refusal = OutOfTime(store.now())
    store.free.set()
    await threads.flush()
    assert len(threads.rollbacks) == 1
    assert await threads.read(ANN, "t1", _title) == "New"


async def test_a_run_that_continued_beside_a_request_id_that_is_taken_is_told(
    store: OwnStore, threads: RecordingThreads
) -> None:
    async with asyncio.TaskGroup() as group:
        await _rename(threads, "New")
        opening = group.create_task(_is_taken(threads))
        store.refusal = RequestTaken()
        await store.appending.wait()
        store.free.set()
    assert opening.result()
    assert len(threads.rollbacks) == 1
    await threads.flush()
    assert await threads.read(ANN, "t1", _title) == "New"


async def _fails(threads: RecordingThreads, title: str) -> bool:
    try:
        await threads.decide(ANN, "t1", rename(title))
    except StoreDown:
        return True
    return False


async def _is_taken(threads: RecordingThreads) -> bool:
    try:
        await threads.decide(ANN, "t1", open_call(request_id="r1"))
    except NameTaken:
        return True
    return False
