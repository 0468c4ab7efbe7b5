"""Removes what has been kept for long enough, a slice at a time; removes threads; rebuilds look-up rows.

Any number of processes may purge at once. Locks are taken in the same order as appends take them.
"""

from __future__ import annotations

from collections.abc import Sequence

from farhand.core.principal import Owner
from farhand.errors import StoreDown
from farhand.store.base import ARRIVING_SEC, THREAD_MOVED, Lookups, PurgeCount, remove_in_slices, thread_key
from farhand.store.guards import (
    Difference,
    can_go_on,
    difference,
    is_call_kept,
    is_run_kept,
    is_running,
    key_of,
)
from farhand.store.postgres.batch import (
    CALL_COLUMNS,
    HELD,
    RUN_COLUMNS,
    Values,
    WriteStatement,
    call_values,
    columns,
    run_values,
)
from farhand.store.postgres.connection import (
    Columns,
    Connection,
    ConnectionLost,
    DatabaseAddress,
    StatementFailed,
    TransactionConflict,
    Unstorable,
    connect,
)
from farhand.store.postgres.notify import FeedWriter
from farhand.store.postgres.pool import Pool
from farhand.store.records import encode

ROWS_PER_TRANSACTION = 2_000
"""Rows removed in one transaction, so that appends get their turn in between."""
FILES = 16
"""The same for files: each may be large."""
STREAMS_KEPT_SEC = 86_400.0
"""How long the row of a stream is kept after the stream, or its lease, has ended."""
COUNT_SEC = 600
"""For counting what is old; only the caller that asks for it waits."""


async def purge(pool: Pool, before: float, *, now: float) -> PurgeCount:
    async def remove(statement: str, before: float = before) -> int:
        async def remove_slice() -> int:
            [row] = await pool.transact(
                lambda connection: connection.fetch(statement, before, ROWS_PER_TRANSACTION)
            )
            return int(row[0])

        return await remove_in_slices(remove_slice)

    async def remove_some_files() -> int:
        return await pool.transact(
            lambda connection: _purge_files(connection, before, arriving_before=now - ARRIVING_SEC)
        )

    news = await remove(PURGE_FEED)
    await remove(PURGE_LOG)
    calls = await remove(PURGE_CALLS)
    runs = await remove(PURGE_RUNS)
    await remove(PURGE_STREAMS, min(before, now - STREAMS_KEPT_SEC))
    return PurgeCount(
        calls=calls, runs=runs, feed_entries=news, files=await remove_in_slices(remove_some_files)
    )


async def count_old(database: DatabaseAddress, before: float, *, now: float) -> PurgeCount:
    """On its own connection: over everything that is stored, this may take longer than any read may."""
    arriving = max(before, now - ARRIVING_SEC)
    try:
        connection = await connect(database, settings={"statement_timeout": str(COUNT_SEC * 1000)})
        try:
            # the database times out first, and says so
            [row] = await connection.fetch(COUNT_OLD, before, arriving, seconds=COUNT_SEC + 5)
        finally:
            await connection.close()
    except (ConnectionLost, StatementFailed, TransactionConflict, ValueError) as error:
        raise StoreDown(f"Could not count old records: {error}.", hint="Try again in a moment.") from error
    return PurgeCount(calls=row[0], runs=row[1], feed_entries=row[2], files=row[3])


async def delete_thread(pool: Pool, feed: FeedWriter, owner: Owner, *, thread_id: str, version: int) -> bool:
    key = (owner.tenant, owner.subject, thread_id)

    async def delete(connection: Connection) -> bool:
        rows = await connection.fetch(LOCK_THREAD, *key, version)
        if not rows:
            return False
        await remove_files(connection, await connection.fetch(FILES_OF_THREAD, rows[0][0]))
        await connection.fetch(DELETE_THREAD, *key, rows[0][0])
        await feed.notify(connection, (THREAD_MOVED, thread_key(owner, thread_id)))
        return True

    try:
        return await pool.transact(delete)
    except Unstorable:
        return False


async def _purge_files(connection: Connection, before: float, *, arriving_before: float) -> int:
    rows = await connection.fetch(OLD_FILES, max(before, arriving_before), before, FILES)
    await remove_files(connection, rows)
    return len(rows)


async def remove_files(connection: Connection, rows: Sequence[Columns]) -> None:
    """By their numbers, the first column."""
    if rows:
        await connection.fetch(REMOVE, [row[0] for row in rows])


# an active run keeps its calls, and the name of a call with a key is never reused
_OLD_CALLS = """
    calls JOIN threads USING (thread_no)
    WHERE settled_at < $1 AND (kept_from IS NULL OR threads.run_id IS DISTINCT FROM calls.run_id)
    AND (request_id IS NULL OR NOT starts_with(request_id, 'key='))
"""

PURGE_CALLS = f"""
    WITH gone AS (
        DELETE FROM calls WHERE call_no IN (
            SELECT call_no FROM {_OLD_CALLS} LIMIT $2 FOR UPDATE OF calls SKIP LOCKED)
        RETURNING 1
    )
    SELECT count(*) FROM gone
"""

PURGE_RUNS = """
    WITH gone AS (
        DELETE FROM runs WHERE (tenant, subject, run_id) IN (
            SELECT tenant, subject, run_id FROM runs WHERE ended_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING 1
    )
    SELECT count(*) FROM gone
"""

PURGE_STREAMS = """
    WITH gone AS (
        DELETE FROM streams WHERE (tenant, subject, client_id) IN (
            SELECT tenant, subject, client_id FROM streams WHERE here_until < $1
            LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING 1
    )
    SELECT count(*) FROM gone
"""

# `least` ignores NULL: without an active run everything that the snapshot covers is removed
PURGE_LOG = """
    WITH old AS MATERIALIZED (
        SELECT log.thread_no, log.version
        FROM log JOIN snapshots USING (thread_no) JOIN threads USING (thread_no)
        WHERE log.at < $1 AND log.version <= least(snapshots.version, kept_from)
        ORDER BY log.at LIMIT $2
    ), locked AS MATERIALIZED (
        SELECT thread_no FROM threads WHERE thread_no IN (SELECT thread_no FROM old)
        ORDER BY tenant, subject, thread_id FOR UPDATE
    ), gone AS (
        DELETE FROM log USING old, locked
        WHERE log.thread_no = old.thread_no AND log.version = old.version AND log.thread_no = locked.thread_no
        RETURNING log.thread_no, octet_length(log.body) AS size
    ), counted AS (
        UPDATE threads SET bytes = bytes - size, is_purged = true
        FROM (SELECT thread_no, sum(size)::bigint AS size FROM gone GROUP BY thread_no) AS sizes
        WHERE threads.thread_no = sizes.thread_no
    )
    SELECT count(*) FROM gone
"""

PURGE_FEED = """
    WITH old AS MATERIALIZED (
        SELECT tenant, subject, no FROM feed WHERE at < $1 ORDER BY at LIMIT $2
    ), locked AS MATERIALIZED (
        SELECT tenant, subject FROM feeds WHERE (tenant, subject) IN (SELECT tenant, subject FROM old)
        ORDER BY tenant, subject FOR UPDATE
    ), gone AS (
        DELETE FROM feed USING old JOIN locked USING (tenant, subject)
        WHERE feed.tenant = old.tenant AND feed.subject = old.subject AND feed.no = old.no
        RETURNING feed.tenant, feed.subject, feed.no, feed.count
    ), marked AS (
        UPDATE feeds SET purged = greatest(purged, ends.no)
        FROM (SELECT tenant, subject, max(no) AS no FROM gone GROUP BY tenant, subject) AS ends
        WHERE feeds.tenant = ends.tenant AND feeds.subject = ends.subject
    )
    SELECT coalesce(sum(count), 0)::bigint FROM gone
"""

OLD_FILES = """
    SELECT file_no FROM files WHERE NOT bound AND written_at < $1 AND (written_at < $2 OR NOT arrived)
    LIMIT $3 FOR UPDATE SKIP LOCKED
"""

COUNT_OLD = f"""
    SELECT
        (SELECT count(*) FROM {_OLD_CALLS}),
        (SELECT count(*) FROM runs WHERE ended_at < $1),
        (SELECT coalesce(sum(count), 0)::bigint FROM feed WHERE at < $1),
        (SELECT count(*) FROM files WHERE NOT bound AND written_at < $2 AND (written_at < $1 OR NOT arrived))
"""

LOCK_THREAD = """
    SELECT thread_no FROM threads
    WHERE tenant = $1 AND subject = $2 AND thread_id = $3 AND version = $4 FOR UPDATE
"""

FILES_OF_THREAD = """
    SELECT file_no FROM file_threads AS this WHERE thread_no = $1 AND NOT EXISTS (
        SELECT 1 FROM file_threads AS other
        WHERE other.file_no = this.file_no AND other.thread_no <> this.thread_no)
"""

DELETE_THREAD = """
    WITH no_thread AS (DELETE FROM threads WHERE thread_no = $4),
    no_log AS (DELETE FROM log WHERE thread_no = $4),
    no_snapshot AS (DELETE FROM snapshots WHERE thread_no = $4),
    no_calls AS (DELETE FROM calls WHERE thread_no = $4),
    no_runs AS (DELETE FROM runs WHERE thread_no = $4),
    no_files AS (DELETE FROM file_threads WHERE thread_no = $4)
    DELETE FROM feed WHERE tenant = $1 AND subject = $2 AND thread_id = $3
"""


async def rebuild_thread(connection: Connection, lookups: Lookups, *, dry_run: bool) -> int | None:
    owner = lookups.owner
    key = (owner.tenant, owner.subject, lookups.thread_id)
    locked = await connection.fetch(LOCK_REBUILT, *key)
    if not locked:
        return None
    no, *listed = locked[0]
    # after the lock: a read before it may miss the last append
    [found] = await connection.fetch(VERSION, no)
    if found[0] != lookups.version:
        return None
    calls = await _differing_calls(connection, no, lookups)
    runs = await _differing_runs(connection, no, lookups)
    wanted = _thread_values(lookups)
    if not dry_run:
        await connection.fetch(UPDATE_THREAD, no, *wanted)
        await _write_lookups(connection, owner, no, calls=calls, runs=runs)
    return (tuple(listed) != wanted) + len(calls) + len(runs)


def _thread_values(lookups: Lookups) -> Values:
    """In the order of `LOCK_REBUILT` and `UPDATE_THREAD`."""
    row = lookups.thread
    return (
        lookups.version,
        row.updated_at,
        row.run_id,
        can_go_on(row),
        is_running(row),
        row.kept_from,
        encode(row),
    )


async def _differing_calls(connection: Connection, no: int, lookups: Lookups) -> Difference[Values]:
    owner = lookups.owner
    rows = await connection.fetch(CALLS, no)
    stored: dict[str, Values] = {row["call_id"]: tuple(row) for row in rows}
    still_open = {row["call_id"] for row in rows if row["settled_at"] is None}
    lost = await _lost_requests(connection, lookups)
    wanted = [call for call in lookups.calls if call.call_id not in lost]
    return difference(
        stored,
        {call.call_id: (no, *call_values(owner, call, at=call.opened_at)) for call in wanted},
        kept={call.call_id for call in wanted if is_call_kept(lookups, call)},
        still_open=still_open,
        is_whole=lookups.is_whole,
    )


async def _differing_runs(connection: Connection, no: int, lookups: Lookups) -> Difference[Values]:
    rows = await connection.fetch(RUNS, no)
    return difference(
        {row["run_id"]: tuple(row) for row in rows},
        {run.run_id: (no, *run_values(lookups.owner, run)) for run in lookups.runs},
        kept={run.run_id for run in lookups.runs if is_run_kept(lookups, run)},
        still_open={row["run_id"] for row in rows if row["ended_at"] is None},
        is_whole=lookups.is_whole,
    )


async def _lost_requests(connection: Connection, lookups: Lookups) -> set[str]:
    """Calls whose request id belongs to another call of the owner that was opened no earlier."""
    asked = [(key_of(call, "request"), call.call_id, call.opened_at) for call in lookups.calls]
    asked = [each for each in asked if each[0] is not None]
    if not asked:
        return set()
    owner = lookups.owner
    rows = await connection.fetch(LATER_REQUESTS, owner.tenant, owner.subject, *columns(asked, 3))
    return {row[0] for row in rows}


async def _write_lookups(
    connection: Connection, owner: Owner, no: int, *, calls: Difference[Values], runs: Difference[Values]
) -> None:
    put = list(calls.put.values())
    requests = [row[REQUEST_ID] for row in put if row[REQUEST_ID] is not None]
    gone = ([*calls.drop, *calls.put], requests, [*runs.drop, *runs.put])
    await connection.fetch(DROP_LOOKUPS, owner.tenant, owner.subject, *gone)
    statement = WriteStatement(HELD, [no])
    # by its place instead of its number, which the statement adds
    statement.add("calls", [(1, *row[1:]) for row in put])
    statement.add("runs", [(1, *row[1:]) for row in runs.put.values()])
    if put or runs.put:
        sql, values = statement.finish(" SELECT 1")
        await connection.fetch(sql, *values)


LOCK_REBUILT = """
    SELECT thread_no, version, updated_at, run_id, can_go_on, is_running, kept_from, body FROM threads
    WHERE tenant = $1 AND subject = $2 AND thread_id = $3 FOR UPDATE
"""

VERSION = """
    SELECT greatest(
        (SELECT max(version) FROM log WHERE thread_no = $1),
        (SELECT version FROM snapshots WHERE thread_no = $1))
"""

UPDATE_THREAD = """
    UPDATE threads SET version = $2, updated_at = $3, run_id = $4, can_go_on = $5, is_running = $6,
        kept_from = $7, body = $8,
        written_at = coalesce(log.last_at, written_at),
        written_hour = coalesce(floor(log.last_at / 3600)::bigint, written_hour),
        is_covered = coalesce(snapshot.version, 0) = $2,
        is_purged = log.rows < $2,
        bytes = log.bytes,
        snapshot_bytes = coalesce(snapshot.bytes, 0)
    FROM (
        SELECT count(*) AS rows, coalesce(sum(octet_length(body)), 0) AS bytes,
            (SELECT at FROM log WHERE thread_no = $1 ORDER BY version DESC LIMIT 1) AS last_at
        FROM log WHERE thread_no = $1
    ) AS log LEFT JOIN (
        SELECT version, octet_length(body) AS bytes FROM snapshots WHERE thread_no = $1
    ) AS snapshot ON true
    WHERE thread_no = $1
"""

REQUEST_ID = 6
"""Its index among these columns."""

CALLS = f"SELECT {CALL_COLUMNS} FROM calls WHERE thread_no = $1"

LATER_REQUESTS = """
    SELECT asked.call_id
    FROM unnest($3::text[], $4::text[], $5::float8[]) AS asked (request_id, call_id, opened_at)
        JOIN calls ON calls.tenant = $1 AND calls.subject = $2 AND calls.request_id = asked.request_id
    WHERE calls.call_id <> asked.call_id AND calls.opened_at >= asked.opened_at
"""

DROP_LOOKUPS = """
    WITH no_runs AS (
        DELETE FROM runs WHERE tenant = $1 AND subject = $2 AND run_id = ANY($5::text[])
    )
    DELETE FROM calls WHERE tenant = $1 AND subject = $2
        AND (call_id = ANY($3::text[]) OR request_id = ANY($4::text[]))
"""

RUNS = f"SELECT {RUN_COLUMNS} FROM runs WHERE thread_no = $1"

REMOVE = """
    WITH gone AS (DELETE FROM files WHERE file_no = ANY($1::bigint[]) RETURNING file_no),
    no_pieces AS (DELETE FROM pieces WHERE file_no = ANY($1::bigint[])),
    no_threads AS (DELETE FROM file_threads WHERE file_no = ANY($1::bigint[]))
    SELECT count(*) FROM gone
"""
