"""The writer's thread: group commit, and errors affect only the job at fault."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from farhand.core.call import Call
from farhand.errors import StoreDown
from farhand.store.base import Appended, AppendResult, Moved
from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite.writer import ANSWERED_AT_ONCE, WriteConnection
from farhand.testing.store_laws.fixture import ANN, StoreFixture
from tests.requirement import requirement


@pytest.mark.parametrize(("appends", "transactions"), [(1, 1), (200, 1), (512, 1), (513, 2), (2000, 4)])
async def test_what_queues_up_while_a_transaction_runs_goes_into_the_next_one(
    sqlite: SqliteStore, fixture: StoreFixture, appends: int, transactions: int
) -> None:
    before = sqlite._writer.transactions
    async with asyncio.TaskGroup() as group, _busy(sqlite):
        for no in range(appends):
            group.create_task(fixture.append(f"t{no}"))
        await asyncio.sleep(0)
    # and the one that it was busy with
    assert sqlite._writer.transactions - before == transactions + 1
    before = sqlite._writer.transactions
    assert await sqlite.count("threads", "acme") == appends


@requirement("server:health")
async def test_a_store_whose_disk_stalls_is_not_ready_until_it_continues(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.sqlite.writer.STALLED_SEC", -1.0)
    await sqlite.check()
    async with _busy(sqlite):
        with pytest.raises(StoreDown, match="The disk has not answered"):
            await sqlite.check()
    await sqlite.check()


async def test_appends_of_one_thread_that_share_a_transaction_see_each_other(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    async with asyncio.TaskGroup() as group, _busy(sqlite):
        tasks = [
            group.create_task(sqlite.append([fixture.new_append(version=version)]))
            for version in (0, 1, 1, 2)
        ]
        await asyncio.sleep(0)
    assert [task.result() for task in tasks] == [[Appended()], [Appended()], [Moved(2)], [Appended()]]
    assert len((await sqlite.load(ANN, "t1")).rows) == 3


async def test_writes_of_one_transaction_are_answered_over_many_turns_of_the_loop_and_in_order(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    turn = 0
    answered: list[tuple[int, int]] = []

    async def append(number: int) -> None:
        await fixture.append(f"t{number}")
        answered.append((turn, number))

    async with asyncio.TaskGroup() as group:
        async with _busy(sqlite):
            for number in range(500):
                group.create_task(append(number))
            await asyncio.sleep(0)
        while len(answered) < 500:
            await asyncio.sleep(0)
            turn += 1
    assert [number for _, number in answered] == list(range(500))
    assert max(Counter(turn for turn, _ in answered).values()) <= ANSWERED_AT_ONCE


async def test_a_record_that_cannot_be_written_is_its_own_writers_fault_alone(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    unwritable = {
        "not JSON": fixture.new_call("bad_1", input={"what": object()}),
        "half a character": fixture.new_call("bad_2", input={"text": "\ud800"}),
        "half a character in a name": fixture.new_call("\ud800"),
        "a number too large for a column": fixture.new_call("bad_3", opened_at=2**70, deadline=2**70),
        "too deep": fixture.new_call("bad_4", input={"deep": _deep(100_000)}),
    }
    good = [fixture.new_call(f"call_{no}") for no in range(20)]
    answers = await _append_all(fixture, [*good[:10], *unwritable.values(), *good[10:]])
    faults = dict(zip(unwritable, answers[10:15], strict=True))
    assert {name for name, fault in faults.items() if isinstance(fault, Exception)} == set(unwritable)
    assert answers[:10] + answers[15:] == [[Appended()]] * 20
    assert set(await fixture.open_ids(owner=ANN)) == {call.call_id for call in good}
    assert await sqlite.count("open_calls", "acme") == 20
    assert await sqlite.count("threads", "acme") == 20
    assert [row.no for row in await sqlite.feed(ANN, after=0, limit=99)] == list(range(1, 21))


async def test_work_that_breaks_on_the_unforeseen_is_told_so_and_the_thread_continues(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    def breaks(writing: WriteConnection) -> None:
        writing.db.execute("DELETE FROM threads")
        raise ZeroDivisionError

    await fixture.append()
    async with asyncio.TaskGroup() as group, _busy(sqlite):
        broken = asyncio.ensure_future(sqlite._writer.do(breaks))
        group.create_task(fixture.append("t2"))
        await asyncio.sleep(0)
    with pytest.raises(ZeroDivisionError):
        await broken
    assert len(await sqlite.threads(ANN, limit=9)) == 2


@requirement("store:kill")
async def test_a_full_disk_refuses_everybody_and_keeps_nothing_until_there_is_room_again(
    sqlite: SqliteStore, fixture: StoreFixture, caplog: pytest.LogCaptureFixture
) -> None:
    await fixture.append("kept", feed=1)
    assert await sqlite.count("threads", "acme") == 1
    await _limit_pages(sqlite, 1)
    large = [fixture.new_call(f"call_{no}", input={"text": "x" * 50_000}) for no in range(10)]
    with caplog.at_level(logging.WARNING, "farhand.store"):
        answers = await _append_all(fixture, large)
    assert {type(answer) for answer in answers} == {StoreDown}
    assert "database or disk is full" in caplog.text
    assert await fixture.open_ids(owner=ANN) == []
    assert [each.thread_id for each in await sqlite.threads(ANN, limit=99)] == ["kept"]
    assert await sqlite.count("threads", "acme") == 1
    assert await sqlite.feed_span(ANN) == (1, 1)

    await _limit_pages(sqlite, 1_000_000)
    assert await _append_all(fixture, large) == [[Appended()]] * 10
    assert len(await fixture.open_ids(owner=ANN)) == 10
    assert await sqlite.count("threads", "acme") == 11
    assert await sqlite.feed_span(ANN) == (1, 11)


async def test_a_full_disk_is_reported_in_words_and_checked_for_until_there_is_room(
    sqlite: SqliteStore,
    fixture: StoreFixture,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await _limit_pages(sqlite, 1)
    for _ in range(3):
        with pytest.raises(StoreDown, match=r"\(the disk is full\); nothing of this was stored"):
            await fixture.append(body=b"x" * 100_000)
        # there is room for the little that it writes
        await sqlite.check()
    assert caplog.text.count("writes failed") == 1, "once for each time that it is full"
    monkeypatch.setattr("farhand.store.outage_log.QUIET_SEC", 0.0)
    await _limit_pages(sqlite, 1_000_000)
    await fixture.append(body=b"x" * 100_000)
    await fixture.append("t2")
    assert caplog.text.count("can be written again") == 1


async def test_a_closed_store_refuses_and_does_not_hang(sqlite: SqliteStore, fixture: StoreFixture) -> None:
    last = asyncio.gather(*(fixture.append(f"t{no}") for no in range(20)))
    await asyncio.sleep(0)
    await sqlite.close()
    # what was queued before the close was written
    assert len(await last) == 20
    with pytest.raises(StoreDown, match="closed"):
        await fixture.append("late")
    with pytest.raises(StoreDown):
        await sqlite.load(ANN, "t1")
    with pytest.raises(StoreDown):
        await sqlite.purge(before=0.0, dry_run=True)


async def test_who_gives_up_waiting_does_not_hold_up_what_was_written(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    async with _busy(sqlite):
        task = asyncio.ensure_future(fixture.append())
        await asyncio.sleep(0)
        task.cancel()
    await fixture.append("t2")
    assert {each.thread_id for each in await sqlite.threads(ANN, limit=9)} == {"t1", "t2"}


async def test_a_writer_that_dies_leaves_nobody_waiting(
    sqlite: SqliteStore, fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # that the thread dies is what is wanted here, and it is waited for: nobody else is to hear of it later
    died = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: died.set())

    def dies(writing: WriteConnection) -> None:
        raise SystemError from BaseExceptionGroup("as an interpreter that ends", [KeyboardInterrupt()])

    monkeypatch.setattr(sqlite._writing, "roll_back", _interrupt)
    appends = [asyncio.ensure_future(fixture.append(f"t{no}")) for no in range(3)]
    broken = asyncio.ensure_future(sqlite._writer.do(dies))
    done, waiting = await asyncio.wait([*appends, broken], timeout=30)
    assert not waiting
    assert {type(task.exception()) for task in done} == {StoreDown}
    assert await asyncio.to_thread(died.wait, 30)


def _interrupt() -> None:
    raise KeyboardInterrupt


@asynccontextmanager
async def _busy(store: SqliteStore) -> AsyncIterator[None]:
    """While this lasts, the writer is in the middle of a transaction."""
    begun, over = threading.Event(), threading.Event()

    def wait(writing: WriteConnection) -> None:
        begun.set()
        over.wait(30)

    async with asyncio.TaskGroup() as group:
        group.create_task(_do(store, wait))
        await asyncio.to_thread(begun.wait, 30)
        yield
        over.set()


async def _do(store: SqliteStore, work: object) -> None:
    await store._writer.do(work)  # type: ignore[arg-type]


async def _append_all(fixture: StoreFixture, calls: list[Call]) -> list[list[AppendResult] | BaseException]:
    """Each call in a thread of its own, all at once."""
    appends = [fixture.new_append(f"of {no}", calls=(call,), feed=1) for no, call in enumerate(calls)]
    return await asyncio.gather(
        *(fixture.store.append([append]) for append in appends), return_exceptions=True
    )


async def _limit_pages(store: SqliteStore, pages: int) -> None:
    """At least as many as there are: the file cannot grow then."""

    def limit(writing: WriteConnection) -> None:
        writing.db.execute(f"PRAGMA max_page_count = {pages}")

    await store._writer.do(limit)


def _deep(levels: int) -> object:
    value: object = None
    for _ in range(levels):
        value = [value]
    return value
