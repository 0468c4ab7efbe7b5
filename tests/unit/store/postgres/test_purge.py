"""Counting old records may take its time; removing them waits for no count and runs in slices."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.run import RunState
from farhand.store.base import Appended, PurgeCount
from farhand.store.postgres import PostgresStore, connection, purge
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, BOB, StoreFixture
from tests.unit.store.postgres.store_probe import query

DAY_SEC = 86_400.0
SLOW = "(SELECT count(*) FROM pg_sleep(2)) - 1 +"
TABLES = (
    "threads", "log", "snapshots", "calls", "runs", "feed", "files", "pieces", "file_threads",
)  # fmt: skip


async def test_what_is_old_is_counted_for_longer_than_a_statement_may_take(
    fixture: StoreFixture, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await _fill(fixture, 3)
    monkeypatch.setattr(purge, "COUNT_OLD", purge.COUNT_OLD.replace("SELECT", f"SELECT {SLOW}", 1))
    monkeypatch.setattr(connection, "_SETTINGS", {**connection._SETTINGS, "statement_timeout": "500"})
    monkeypatch.setattr(connection, "COMMAND_SEC", 1.0)
    assert await postgres.purge(before=before, dry_run=True) == PurgeCount(
        calls=3, runs=3, feed_entries=6, files=1
    )


async def test_a_purge_of_many_slices_is_whole_and_tells_what_it_removed(
    fixture: StoreFixture, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "ROWS_PER_TRANSACTION", 2)
    before = await _fill(fixture, 7)
    assert await postgres.purge(before=before) == PurgeCount(calls=7, runs=7, feed_entries=14, files=1)
    assert await postgres.purge(before=before) == PurgeCount()
    for no in range(7):
        loaded = await postgres.load(ANN, f"t{no}")
        assert (loaded.rows, loaded.snapshot) == ((), b"{}")
        assert (await postgres.load(ANN, f"t{no}", after=0)).rows == ()
    assert await postgres.feed_span(ANN) == (15, 14)
    assert await postgres.count("bytes", "acme") == 7 * len(b"{}"), "their snapshots"


async def test_streams_of_long_ago_are_removed_and_no_others(
    postgres: PostgresStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each client, and each start of a worker, has a row of its own."""
    monkeypatch.setattr(purge, "ROWS_PER_TRANSACTION", 2)
    streams = postgres.streams
    assert streams is not None
    for no in range(5):
        await streams.leave(await streams.arrive(ANN, f"old{no}", lease_sec=60.0))
    clock.advance(2 * DAY_SEC)
    await streams.arrive(ANN, "here", lease_sec=60.0)
    await streams.leave(await streams.arrive(ANN, "left", lease_sec=60.0))
    # not within its time to reconnect, whatever else is removed
    await postgres.purge(before=clock.now() + 1)
    assert [row[0] for row in await query(postgres, "SELECT client_id FROM streams ORDER BY 1")] == [
        "here", "left",
    ]  # fmt: skip


async def test_two_processes_purge_while_a_third_appends_and_nothing_is_lost(
    fixture: StoreFixture, postgres: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "ROWS_PER_TRANSACTION", 3)
    before = await _fill(fixture, 20)

    async def append_all() -> None:
        for no in range(20):
            batch = [fixture.new_append(f"t{each}", b"[2]", feed=1) for each in range(20)]
            mine = [each for each in batch if each.thread_id in {f"t{no}", f"t{19 - no}"}]
            assert await fixture.append_all(*mine) == [Appended()] * len(mine)

    one, two, _ = await asyncio.gather(
        postgres.purge(before=before), other.purge(before=before), append_all()
    )
    assert (one.calls + two.calls, one.feed_entries + two.feed_entries) == (20, 40)
    for no in range(20):
        rows = (await postgres.load(ANN, f"t{no}")).rows
        assert {row.body for row in rows} == {b"[2]"}
    [[total, counted]] = await query(
        postgres, "SELECT (SELECT sum(octet_length(body)) FROM log), (SELECT sum(bytes) FROM threads)"
    )
    assert total == counted


async def test_a_deleted_thread_leaves_no_row_in_any_table(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    file = await fixture.put_file(b"a", b"b")
    shared = await fixture.put_file(b"c")
    await fixture.append("other", files=(shared.ref,))
    before = await _counts(postgres)
    await fixture.append(
        "t1",
        calls=(fixture.new_call(),),
        runs=(fixture.new_run(),),
        files=(file.ref, shared.ref),
        snapshot=b"{}",
        feed=2,
    )
    await postgres.add_to_feed(ANN, b"{}", "t1")
    await postgres.add_to_feed(BOB, b"{}", "t1")
    await fixture.delete("t1")
    after = await _counts(postgres)
    assert after == {**before, "files": before["files"] - 1, "pieces": before["pieces"] - 2, "feed": 1}
    assert await postgres.files.get(ANN, shared.ref) is not None


async def _counts(store: PostgresStore) -> dict[str, int]:
    return {name: (await query(store, f"SELECT count(*) FROM {name}"))[0][0] for name in TABLES}


async def _fill(fixture: StoreFixture, count: int) -> float:
    """Threads whose runs have ended with a settled call, and a file of no thread; and a time after that."""
    await fixture.put_file(b"x")
    for no in range(count):
        now = fixture.clock.now()
        run = fixture.new_run(f"run_{no}", thread_id=f"t{no}", state=RunState.DONE, ended_at=now)
        call = fixture.settled(fixture.new_call(f"call_{no}", thread_id=f"t{no}", run_id=run.run_id))
        await fixture.append(f"t{no}", calls=(call,), runs=(run,), feed=2, snapshot=b"{}")
    return fixture.clock.advance(10.0)
