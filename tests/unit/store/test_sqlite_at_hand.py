"""What is at hand is what the file has: read from either, it is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from farhand.core.call import Call
from farhand.core.run import Run
from farhand.core.thread import Message
from farhand.store.base import CutThread, DeleteThread, InsertMessage, InsertThread
from farhand.store.sqlite import SqliteStore, at_hand
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN, BOB, Given, user_message
from tests.requirement import requirement


@requirement("speed:at-hand")
async def test_what_was_just_written_is_read_without_the_database(sqlite: SqliteStore, given: Given) -> None:
    asked: list[str] = []
    sqlite._reads._near.set_trace_callback(asked.append)
    run, call = await _step(given)
    assert await sqlite.messages(ANN, "t1") == [user_message("m1")]
    assert await sqlite.count_open(ANN, "t1") == 1
    assert await given.stored_call(call) == call
    await given.settle(call)
    await given.message("m2")
    await given.end(run)
    assert await sqlite.count_open(ANN, "t1") == 0
    assert await sqlite.messages(ANN, "t1") == [user_message("m1"), user_message("m2")]
    assert asked == []


@pytest.mark.parametrize("length", [1, 3, at_hand.SHELF_LENGTH])
async def test_what_is_read_is_what_the_file_has_however_little_is_at_hand(
    sqlite: SqliteStore, given: Given, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(at_hand, "SHELF_LENGTH", length)
    runs = [await given.run(f"t{number}") for number in range(4)]
    calls = [await given.call(run, thread_id=run.thread_id) for run in runs for _ in range(2)]
    for number, run in enumerate(runs):
        await given.message(f"m{number}", run.thread_id)
    for call in calls[::3]:
        await given.settle(call)
    seen = await _seen(sqlite, runs, calls)
    # a second time, when what was read from the file may be at hand, and more is said
    assert await _seen(sqlite, runs, calls) == seen
    for run in runs:
        await given.message("last", run.thread_id)
    seen = await _seen(sqlite, runs, calls)
    sqlite._at_hand.forget()
    assert await _seen(sqlite, runs, calls) == seen


async def test_large_records_do_not_stay_at_hand(
    sqlite: SqliteStore, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_hand, "SHELF_BYTES", 50)
    _, call = await _step(given)
    assert sqlite._at_hand.call(call.call_id) is None
    assert sqlite._at_hand.messages(ANN, "t1") is None
    assert await given.stored_call(call) == call
    assert await sqlite.messages(ANN, "t1") == [user_message("m1")]


async def test_what_is_at_hand_belongs_to_its_owner(sqlite: SqliteStore, given: Given) -> None:
    _, call = await _step(given)
    assert await sqlite.get_call(BOB, call.call_id) is None
    assert await sqlite.messages(BOB, "t1") == []
    assert await sqlite.count_open(BOB, "t1") == 0


async def test_what_is_cut_or_deleted_is_not_at_hand(sqlite: SqliteStore, given: Given) -> None:
    run, call = await _step(given)
    await given.message("m2")
    await given.write(CutThread(ANN, "t1", "m2"))
    assert await sqlite.messages(ANN, "t1") == [user_message("m1")]
    await given.settle(call)
    await given.end(run)
    await given.write(DeleteThread(ANN, "t1"))
    assert await sqlite.messages(ANN, "t1") == []
    assert await sqlite.get_call(ANN, call.call_id) is None
    await given.thread("t1")
    assert await sqlite.messages(ANN, "t1") == []


async def test_a_thread_that_begins_after_its_first_call_counts_that_call(
    path: Path, clock: FakeClock
) -> None:
    first = await SqliteStore.open(str(path), clock)
    given = Given(first, clock)
    await given.call(run_id=None)
    await given.thread("t1")
    assert await first.count_open(ANN, "t1") == 1
    await given.call(run_id=None, thread_id="t2")
    await first.close()
    # the same in a process that did not see the call
    second = await SqliteStore.open(str(path), clock)
    await Given(second, clock).thread("t2")
    assert await second.count_open(ANN, "t2") == 1
    await second.close()


async def test_a_message_list_that_was_handed_out_is_its_readers_own(
    sqlite: SqliteStore, given: Given
) -> None:
    await _step(given)
    (await sqlite.messages(ANN, "t1")).append(user_message("not said"))
    assert await sqlite.messages(ANN, "t1") == [user_message("m1")]


async def _step(given: Given) -> tuple[Run, Call]:
    """A thread with a message, a run and an open call."""
    await given.write(InsertThread(given.new_thread("t1")), InsertMessage(ANN, "t1", user_message("m1")))
    run = await given.run("t1")
    return run, await given.call(run)


async def _seen(
    store: SqliteStore, runs: list[Run], calls: list[Call]
) -> tuple[list[list[Message]], list[int], list[Call | None]]:
    return (
        [await store.messages(ANN, run.thread_id) for run in runs],
        [await store.count_open(ANN, run.thread_id) for run in runs],
        [await store.get_call(ANN, call.call_id) for call in calls],
    )
