"""The look-up tables match the logs: rebuilt they are the same, and damage is repaired."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from farhand.clock import Clock
from farhand.core.event import CallOpened, CallRejected, RunStarted
from farhand.eventlog import thread_cache
from farhand.eventlog.codec import decode_body
from farhand.eventlog.log import EventLog
from farhand.eventlog.rebuild import rebuild
from farhand.store.base import Row, Store
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.connection import connect, parse_address
from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite.append import write_held
from farhand.testing import FakeClock
from tests.laws.random_threads import OWNERS, Lives
from tests.postgres import Cluster
from tests.requirement import requirement

pytestmark = [requirement("store:rebuild"), pytest.mark.anyio]

STEPS = 250
SEEDS = range(4)
_THREADS = """
    SELECT tenant, subject, thread_id, version, updated_at, run_id, can_go_on, is_running, kept_from, worker,
        lease_until, {0} FROM threads ORDER BY 1, 2, 3"""
_CALLS = """
    SELECT call_id, thread_no, tenant, subject, run_id, approval_id, request_id, client_id, deadline,
        opened_at, settled_at, {0} FROM calls ORDER BY 1"""
_RUNS = "SELECT run_id, thread_no, tenant, subject, started_at, ended_at, {0} FROM runs ORDER BY 1"
_FEED = (
    "SELECT tenant, subject, no, count, at, thread_no, version, thread_id, body FROM feed ORDER BY 1, 2, 3"
)


class Tables(Protocol):
    record: str
    """The column that has it."""
    more: str
    """Other columns of threads that follow from the log."""

    async def open(self, clock: Clock) -> Store: ...

    # rows of a driver
    async def run(self, sql: str) -> list[Any]: ...

    async def write_held(self, store: Store) -> None:
        """Rows that the store keeps back for now are written."""
        ...


class SqliteTables:
    record = "record"
    more = "record, snapshot_version, oldest_at, appended_at"

    def __init__(self, path: Path) -> None:
        self._path = path

    async def open(self, clock: Clock) -> Store:
        return await SqliteStore.open(str(self._path), clock)

    async def run(self, sql: str) -> list[Any]:
        db = sqlite3.connect(self._path, timeout=10)
        try:
            rows = db.execute(sql).fetchall()
            db.commit()
        finally:
            db.close()
        return rows

    async def write_held(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        await store._writer.do(lambda writing: write_held(writing, writing.held.numbers()))


class PostgresTables:
    record = "body"
    more = "body, written_at, written_hour, is_covered, is_purged, bytes, snapshot_bytes"

    def __init__(self, address: str) -> None:
        self._address = address

    async def open(self, clock: Clock) -> Store:
        return await PostgresStore.open(self._address, clock)

    async def run(self, sql: str) -> list[Any]:
        connection = await connect(parse_address(self._address))
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    async def write_held(self, store: Store) -> None:
        """None is kept back."""


@pytest.fixture(params=["sqlite", "postgres"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    if request.param == "sqlite":
        return SqliteTables(tmp_path / "store.db")
    cluster: Cluster = request.getfixturevalue("cluster")
    return PostgresTables(cluster.address())


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(autouse=True)
def many_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of runs, too."""
    monkeypatch.setattr(thread_cache, "SNAPSHOT_BYTES", 1500)


@pytest.mark.parametrize("seed", SEEDS)
async def test_after_any_life_the_tables_are_what_the_logs_say(
    tables: Tables, clock: FakeClock, seed: int
) -> None:
    store = await tables.open(clock)
    try:
        lives = Lives(store, clock, seed)
        for _ in range(3):
            await lives.go_on(STEPS // 3)
            before = await _dump(tables, store)
            rebuilt = await rebuild(store, before=lives.purged_before)
            assert (rebuilt.rows, rebuilt.left_out) == (0, [])
            assert rebuilt.threads == len(before["threads"])
            assert await _dump(tables, store) == before
    finally:
        await store.close()


@pytest.mark.parametrize("seed", SEEDS)
async def test_damaged_tables_are_repaired_and_everything_is_found_again(
    tables: Tables, clock: FakeClock, seed: int
) -> None:
    store = await tables.open(clock)
    try:
        lives = Lives(store, clock, seed)
        await lives.go_on(STEPS)
        before, found = await _dump(tables, store), await _everything_found(store, clock)
        damaged = await _damage(tables, store, lives.purged_before)
        assert damaged > 3
        as_damaged = await _dump(tables, store)
        dry = await rebuild(store, before=lives.purged_before, dry_run=True)
        assert dry.rows >= damaged
        assert await _dump(tables, store) == as_damaged
        rebuilt = await rebuild(store, before=lives.purged_before)
        assert (rebuilt.rows, rebuilt.left_out) == (dry.rows, [])
        assert await _dump(tables, store) == before
        assert await _everything_found(store, clock) == found
        # and life continues
        again = Lives(store, clock, seed + 100)
        again.purged_before = lives.purged_before
        await again.go_on(STEPS // 3)
        assert (await rebuild(store, before=again.purged_before)).rows == 0
    finally:
        await store.close()


# rows of a driver
async def _dump(tables: Tables, store: Store) -> dict[str, list[Any]]:
    await tables.write_held(store)
    return {
        "threads": await tables.run(_THREADS.format(tables.more)),
        "calls": await tables.run(_CALLS.format(tables.record)),
        "runs": await tables.run(_RUNS.format(tables.record)),
        "feed": await tables.run(_FEED),
    }


async def _everything_found(store: Store, clock: FakeClock) -> list[object]:
    """What lists, finders, deadlines and sweeps see."""
    log = EventLog(store)
    found: list[object] = [
        await log.due(before=clock.now() + 1e6, limit=999),
        await log.direct_calls(),
        await log.calls_for_clients(),
        sorted(each.thread_id for each in await store.claimable(limit=999)),
    ]
    for owner in OWNERS:
        found += [
            await log.threads_of(owner, limit=99),
            await log.runs(owner, limit=999),
            await log.open_calls(owner),
            await log.client_calls(owner, "c"),
            [await log.count_running(owner.tenant, owner.subject), await log.count_threads(owner)],
            await log.count_open_of_tenant(owner.tenant),
        ]
    return found


async def _damage(tables: Tables, store: Store, purged_before: float) -> int:
    """Spoils every row that the logs can make again, each in another way; how many."""
    kept = await _kept_in_logs(store)
    active = {row[5] for row in await tables.run(_THREADS.format(tables.more)) if row[8] is not None}
    calls = [
        row[0]
        for row in await tables.run(_CALLS.format(tables.record))
        if row[0] in kept and (row[10] is None or row[10] >= purged_before or row[4] in active)
    ]
    runs = [
        row[0]
        for row in await tables.run(_RUNS.format(tables.record))
        if row[0] in kept and (row[5] is None or row[5] >= purged_before)
    ]
    await _spoil(tables, "calls", "call_id", calls, _SPOILT_CALLS)
    await _spoil(tables, "runs", "run_id", runs, _SPOILT_RUNS)
    threads = [row[2] for row in await tables.run(_THREADS.format(tables.more))]
    await _spoil(tables, "threads", "thread_id", threads, _SPOILT_THREADS)
    return len(calls) + len(runs) + len(threads)


_SPOILT_CALLS = (
    "DELETE FROM calls",
    "UPDATE calls SET settled_at = 1, deadline = NULL, client_id = 'nobody'",
    "UPDATE calls SET {record} = '{{}}', thread_no = 999999",
    "UPDATE calls SET settled_at = NULL, run_id = 'none', approval_id = NULL",
)
_SPOILT_RUNS = (
    "DELETE FROM runs",
    "UPDATE runs SET {record} = 'rubbish', ended_at = 1",
    "UPDATE runs SET started_at = 0, ended_at = NULL",
)
_SPOILT_THREADS = (
    "UPDATE threads SET {record} = '{{}}', updated_at = 0, version = version + 7",
    "UPDATE threads SET run_id = 'none', kept_from = 1, {record} = 'rubbish'",
    "UPDATE threads SET can_go_on = NOT can_go_on, is_running = NOT is_running, version = 0",
)


async def _spoil(tables: Tables, table: str, key: str, ids: Sequence[str], ways: Sequence[str]) -> None:
    for place, each in enumerate(sorted(set(ids))):
        way = ways[place % len(ways)].format(record=tables.record)
        await tables.run(f"{way} WHERE {key} = '{each}'")


async def _kept_in_logs(store: Store) -> set[str]:
    """Runs that began, and calls that were opened, in rows that the logs have."""
    kept: set[str] = set()
    for owner, thread_id in await store.thread_keys(limit=99):
        rows = (await store.load(owner, thread_id, after=0)).rows
        for row in rows:
            kept |= _begun_in(row)
    return kept


def _begun_in(row: Row) -> set[str]:
    found: set[str] = set()
    for event in decode_body(row).events:
        if isinstance(event, RunStarted):
            found.add(event.run_id)
        elif isinstance(event, CallOpened | CallRejected):
            found.add(event.call_id)
    return found
