"""A purge runs in slices: others write in between, and each slice continues after the last one."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from farhand.core.principal import Owner
from farhand.store.sqlite import SqliteStore, purge
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, BOB, StoreFixture


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECORDS_PER_TRANSACTION", "ROWS_PER_TRANSACTION", "THREADS_PER_PAGE", "OWNERS_PER_PAGE"):
        monkeypatch.setattr(purge, name, 3)


async def test_others_write_while_a_purge_continues(sqlite: SqliteStore, fixture: StoreFixture) -> None:
    for _ in range(30):
        await fixture.append(feed=1)
    await fixture.cover(b"{}", 30)
    fixture.clock.advance(100)
    purging = asyncio.ensure_future(sqlite.purge(before=fixture.clock.now()))
    written = 0
    while not purging.done():
        await fixture.append("t2")
        written += 1
    assert (await purging).feed_entries == 30
    assert written > 5
    assert (await sqlite.load(ANN, "t1", after=0)).rows == ()


async def test_threads_of_many_rows_and_rows_of_many_threads_go_as_a_whole(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    for no in range(10):
        for _ in range(no):
            await fixture.append(f"t{no}", b"12")
        await fixture.append(f"t{no}", b"34", snapshot=b"{}")
    fixture.clock.advance(100)
    await sqlite.purge(before=fixture.clock.now())
    for no in range(10):
        assert (await sqlite.load(ANN, f"t{no}", after=0)).rows == ()
    assert await sqlite.count("bytes", "acme") == 10 * len(b"{}")


async def test_feeds_of_many_owners_are_purged_each_by_its_own_age(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    owners = [ANN, BOB, Owner("", ""), *(Owner("acme", f"s{no}") for no in range(7))]
    for owner in owners:
        for _ in range(4):
            await sqlite.add_to_feed(owner, b"old")
    fixture.clock.advance(100)
    limit = fixture.clock.now()
    await sqlite.add_to_feed(BOB, b"young")
    assert (await sqlite.purge(before=limit)).feed_entries == 4 * len(owners)
    assert await sqlite.feed_span(ANN) == (5, 4)
    assert await sqlite.feed_span(BOB) == (5, 5)
    assert (await sqlite.purge(before=limit)).feed_entries == 0
    # what follows on a purged end is purged in its turn
    await sqlite.add_to_feed(ANN, b"later")
    fixture.clock.advance(100)
    assert (await sqlite.purge(before=fixture.clock.now())).feed_entries == 2
    assert await sqlite.feed_span(ANN) == (6, 5)


async def test_a_thread_that_was_purged_to_its_end_is_found_by_the_next_purge(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    await fixture.append(snapshot=b"{}")
    fixture.clock.advance(100)
    await sqlite.purge(before=fixture.clock.now())
    await fixture.append(thread=None)
    await fixture.append(snapshot=b"{2}")
    fixture.clock.advance(100)
    await sqlite.purge(before=fixture.clock.now())
    loaded = await sqlite.load(ANN, "t1", after=0)
    assert loaded.rows == ()
    assert (await sqlite.load(ANN, "t1")).snapshot_version == 3


async def test_active_runs_that_keep_their_rows_do_not_keep_a_purge_busy(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    for no in range(10):
        row = fixture.parked(f"run_{no}", kept_from=0)
        await fixture.append(f"t{no}", thread=row, snapshot=b"{}")
    await fixture.append("ended", snapshot=b"{}")
    fixture.clock.advance(100)
    async with asyncio.timeout(30):
        await sqlite.purge(before=fixture.clock.now())
    assert len((await sqlite.load(ANN, "t3", after=0)).rows) == 1
    assert (await sqlite.load(ANN, "ended", after=0)).rows == ()


async def test_what_another_process_purges_as_it_is_stays_purged(path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    await fixture.append(feed=2, snapshot=b"{}")
    await store.close()
    clock.advance(100)
    tool = await SqliteStore.open(str(path), clock, as_is=True)
    assert (await tool.purge(before=clock.now())).feed_entries == 2
    await tool.close()
    again = await SqliteStore.open(str(path), clock)
    assert await again.feed_span(ANN) == (3, 2)
    await again.close()


async def test_the_log_of_a_deleted_thread_goes_in_slices(
    sqlite: SqliteStore, fixture: StoreFixture, path: Path
) -> None:
    for _ in range(30):
        await fixture.append()
    deleting = asyncio.ensure_future(fixture.delete())
    written = 0
    while not deleting.done():
        await fixture.append("t2")
        written += 1
    await deleting
    assert written > 5
    await fixture.append()
    assert [row.version for row in (await sqlite.load(ANN, "t1")).rows] == [1], "the name is free again"
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM log").fetchone() == (written + 1,)
        assert db.execute("SELECT count(*) FROM removed_threads").fetchone() == (0,)


async def test_a_number_is_not_used_again_while_rows_of_its_thread_are_left(
    path: Path, clock: FakeClock
) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    await fixture.append()
    # as a crash leaves it: the thread is gone, and its log is not
    await store._writer.do(partial(purge.delete_thread, owner=ANN, thread_id="t1", version=1))
    await store.close()
    tool = await SqliteStore.open(str(path), clock, as_is=True)
    fixture = StoreFixture(tool, clock)
    await fixture.append("t2")
    await tool.close()
    again = await SqliteStore.open(str(path), clock)
    assert [row.version for row in (await again.load(ANN, "t2")).rows] == [1]
    assert (await again.load(ANN, "t1")).rows == ()
    await again.close()
