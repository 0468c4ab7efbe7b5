"""The writer's thread: group commit, and nobody loses anything through somebody else's fault."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from farhand.core.call import Call
from farhand.core.event import Entry, TextAdded
from farhand.errors import StoreDown
from farhand.store.base import Commit, Committed, InsertCall, Stale, WriteRun
from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite.writer import ANSWERED_AT_ONCE
from farhand.testing.store_laws.given import ANN, Given
from tests.requirement import requirement


@requirement("store:group-commit")
@pytest.mark.parametrize(("commits", "transactions"), [(1, 1), (200, 1), (512, 1), (513, 2), (2000, 4)])
async def test_what_queues_up_while_a_transaction_runs_goes_into_the_next_one(
    sqlite: SqliteStore, given: Given, commits: int, transactions: int
) -> None:
    run = await given.run()
    before = sqlite._writer.transactions
    write = WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),))
    async with asyncio.TaskGroup() as group, _busy(sqlite):
        for _ in range(commits):
            group.create_task(given.write(write))
        await asyncio.sleep(0)
    # and the one that it was busy with
    assert sqlite._writer.transactions - before == transactions + 1
    assert (await given.stored_run(run)).last_seq == commits


@requirement("store:answers-in-turns")
async def test_commits_of_one_transaction_are_answered_over_many_turns_of_the_loop_and_in_order(
    sqlite: SqliteStore, given: Given
) -> None:
    run = await given.run()
    write = WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),))
    turn = 0
    answered: list[tuple[int, int]] = []

    async def commit(number: int) -> None:
        await given.write(write)
        answered.append((turn, number))

    async with asyncio.TaskGroup() as group:
        async with _busy(sqlite):
            for number in range(500):
                group.create_task(commit(number))
            await asyncio.sleep(0)
        while len(answered) < 500:
            await asyncio.sleep(0)
            turn += 1
    assert [number for _, number in answered] == list(range(500))
    assert max(Counter(turn for turn, _ in answered).values()) <= ANSWERED_AT_ONCE


async def test_a_commit_whose_guard_fails_takes_nothing_from_its_neighbours(given: Given) -> None:
    run = await given.run()
    calls = [given.new_call(run) for _ in range(60)]
    # every third one fails after its first write was fine
    commits = await asyncio.gather(
        *(
            given.store.commit(InsertCall(call), WriteRun(run_id=run.run_id, fence=1 if number % 3 else 9))
            for number, call in enumerate(calls)
        )
    )
    assert [isinstance(commit, Stale) for commit in commits] == [number % 3 == 0 for number in range(60)]
    assert (await given.stored_run(run)).blockers == 40
    assert await given.store.calls_of(ANN, run.run_id) == [
        call for number, call in enumerate(calls) if number % 3
    ]


@requirement("store:poison")
async def test_a_record_that_cannot_be_written_is_its_own_writers_fault_alone(given: Given) -> None:
    run = await given.run()
    good = [given.new_call(run) for _ in range(20)]
    unwritable = {
        "not JSON": given.new_call(run, input={"what": object()}),
        "half a character": given.new_call(run, input={"text": "\ud800"}),
        "half a character in a name": given.new_call(run, thread_id="\ud800"),
        "a number too large for a column": given.new_call(run, step=2**70),
        "too deep": given.new_call(run, input={"deep": _deep(100_000)}),
    }
    answers = await asyncio.gather(
        *(given.store.commit(InsertCall(call)) for call in [*good[:10], *unwritable.values(), *good[10:]]),
        return_exceptions=True,
    )
    faults = dict(zip(unwritable, answers[10:15], strict=True))
    assert {name for name, fault in faults.items() if isinstance(fault, Exception)} == set(unwritable)
    assert all(isinstance(answer, Committed) for answer in [*answers[:10], *answers[15:]])
    assert await given.store.calls_of(ANN, run.run_id) == good
    assert (await given.stored_run(run)).blockers == 20


@requirement("store:disk-full")
async def test_a_full_disk_refuses_everybody_and_keeps_nothing_until_there_is_room_again(
    sqlite: SqliteStore, given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    run = await given.run()
    kept = await given.call(run)
    _limit_pages(sqlite, 0)
    large = [given.new_call(run, input={"text": "x" * 50_000}) for _ in range(10)]
    with caplog.at_level(logging.WARNING, "farhand.store"):
        answers = await _commit_all(given, large)
    assert {type(answer) for answer in answers} == {StoreDown}
    assert "database or disk is full" in caplog.text
    assert await sqlite.calls_of(ANN, run.run_id) == [kept]
    assert (await given.stored_run(run)).blockers == 1

    _limit_pages(sqlite, 1_000_000)
    assert {type(answer) for answer in await _commit_all(given, large)} == {Committed}
    assert len(await sqlite.calls_of(ANN, run.run_id)) == 11
    assert (await given.stored_run(run)).blockers == 11


@requirement("store:disk-full")
async def test_nothing_is_told_of_what_a_full_disk_refused(sqlite: SqliteStore, given: Given) -> None:
    run = await given.run()
    _limit_pages(sqlite, 0)
    with sqlite.hub.watch(run.run_id) as watch:
        with pytest.raises(StoreDown):
            await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x" * 100_000),)))
        assert not watch.news
        _limit_pages(sqlite, 1_000_000)
        await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "y"),)))
        assert list(watch.news) == [[Entry(1, TextAdded(0, "y"), given.clock.now())]]


async def test_a_closed_store_refuses_and_does_not_hang(sqlite: SqliteStore, given: Given) -> None:
    run = await given.run()
    last = asyncio.gather(*(given.write(WriteRun(run_id=run.run_id)) for _ in range(20)))
    await asyncio.sleep(0)
    await sqlite.close()
    # what was queued before the close was written
    assert len(await last) == 20
    with pytest.raises(StoreDown, match="closed"):
        await given.write(WriteRun(run_id=run.run_id))
    with pytest.raises(StoreDown):
        await sqlite.get_run(ANN, run.run_id)


async def test_a_writer_that_dies_of_the_unforeseen_leaves_nobody_waiting(
    sqlite: SqliteStore, given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks() -> float:
        raise ZeroDivisionError

    run = await given.run()
    # that the thread dies is what is wanted here, and it is waited for: nobody else is to hear of it later
    died = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: died.set())
    monkeypatch.setattr(given.clock, "now", breaks)
    commits = [asyncio.ensure_future(given.store.commit(WriteRun(run_id=run.run_id))) for _ in range(3)]
    done, waiting = await asyncio.wait(commits, timeout=30)
    assert not waiting
    assert {type(commit.exception()) for commit in done} == {StoreDown}
    assert await asyncio.to_thread(died.wait, 30)


@asynccontextmanager
async def _busy(store: SqliteStore) -> AsyncIterator[None]:
    """While this lasts, the writer is in the middle of a transaction."""
    begun, over = threading.Event(), threading.Event()

    def chore(db: object) -> int:
        begun.set()
        return int(over.wait(30))

    async with asyncio.TaskGroup() as group:
        group.create_task(store._writer.do(chore))
        await asyncio.to_thread(begun.wait, 30)
        yield
        over.set()


async def _commit_all(given: Given, calls: list[Call]) -> list[Commit | BaseException]:
    return await asyncio.gather(
        *(given.store.commit(InsertCall(call)) for call in calls), return_exceptions=True
    )


def _limit_pages(store: SqliteStore, pages: int) -> None:
    """At least as many as there are: the file cannot grow then. Only while nobody writes."""
    store._writer._db.execute(f"PRAGMA max_page_count = {max(pages, 1)}")


def _deep(levels: int) -> object:
    value: object = None
    for _ in range(levels):
        value = [value]
    return value


@requirement("store:says-why")
async def test_a_full_disk_is_said_in_words_and_checked_for_until_there_is_room(
    sqlite: SqliteStore, given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    run = await given.run()
    await sqlite._writer.do(_no_page_more)
    large = WriteRun(run_id=run.run_id, events=(TextAdded(0, "x" * 100_000),))
    for _ in range(3):
        with pytest.raises(StoreDown, match=r"\(the disk is full\); nothing of this was kept"):
            await sqlite.commit(large)
    assert caplog.text.count("commits failed") == 1, "once for each time"
    await sqlite.check()
    await sqlite._writer.do(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone()[0] * 0)
    assert isinstance(await sqlite.commit(large), Committed)


def _no_page_more(db: sqlite3.Connection) -> int:
    db.execute("PRAGMA max_page_count = 1")
    return 0
