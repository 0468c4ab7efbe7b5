"""Removes what has been kept for long enough, a slice at a time: appends get their turn in between."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TypeAlias

from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.store.base import Lookups, PurgeCount, remove_in_slices
from farhand.store.guards import Difference, can_go_on, difference, is_call_kept, is_run_kept, key_of
from farhand.store.records import encode
from farhand.store.sqlite.append import (
    CALL_COLUMNS,
    PUT_CALL,
    PUT_RUN,
    RUN_COLUMNS,
    call_columns,
    run_columns,
    run_state_columns,
    write_held,
)
from farhand.store.sqlite.files import drop_files_of, remove_files
from farhand.store.sqlite.queries import Reads
from farhand.store.sqlite.writer import WriteConnection, Writer

RECORDS_PER_TRANSACTION = 500
"""Calls, runs or files removed in one transaction."""
ROWS_PER_TRANSACTION = 2000
"""Rows of the log, or of feeds."""
THREADS_PER_PAGE = 50
"""Threads checked at once."""
OWNERS_PER_PAGE = 1000
"""Owners whose feeds are checked at once."""


async def purge(reads: Reads, writer: Writer, *, before: float, arriving_before: float) -> PurgeCount:
    # feeds first: their entries refer to rows of the log
    news = await _purge_feeds(reads, writer, before)
    calls = await remove_in_slices(lambda: writer.do(partial(_purge_calls, before=before)))
    runs = await remove_in_slices(lambda: writer.do(partial(_purge_runs, before=before)))
    await _purge_log(reads, writer, before)
    old_files = partial(_purge_files, before=before, arriving_before=arriving_before)
    files = await remove_in_slices(lambda: writer.do(old_files))
    return PurgeCount(calls=calls, runs=runs, feed_entries=news, files=files)


def count_old(db: sqlite3.Connection, before: float, arriving_before: float) -> PurgeCount:
    """Scans feeds, so it must not run on the loop."""
    limits = (before, before, before, max(before, arriving_before), before)
    calls, runs, news, files = db.execute(COUNT_OLD, limits).fetchone()
    return PurgeCount(calls=calls, runs=runs, feed_entries=news, files=files)


def _purge_calls(writing: WriteConnection, *, before: float) -> int:
    return writing.db.execute(PURGE_CALLS, (before, RECORDS_PER_TRANSACTION)).rowcount


def _purge_runs(writing: WriteConnection, *, before: float) -> int:
    return writing.db.execute(PURGE_RUNS, (before, RECORDS_PER_TRANSACTION)).rowcount


def _purge_files(writing: WriteConnection, *, before: float, arriving_before: float) -> int:
    values = (max(before, arriving_before), before, RECORDS_PER_TRANSACTION)
    numbers: list[tuple[int]] = writing.db.execute(OLD_FILES, values).fetchall()
    remove_files(writing.db, numbers)
    return len(numbers)


async def _purge_feeds(reads: Reads, writer: Writer, before: float) -> int:
    """One owner after the other: the entries of one are in order of time."""
    total, after = 0, None
    while True:
        owners, after = await reads.far(partial(_old_feeds, before=before, after=after))
        for owner in owners:
            old_entries = partial(_purge_feed, owner=owner, before=before)
            total += await remove_in_slices(partial(writer.do, old_entries))
        if after is None:
            return total


def _old_feeds(
    db: sqlite3.Connection, *, before: float, after: Owner | None
) -> tuple[list[Owner], Owner | None]:
    """Owners with old entries among the next ones, and the last of those; None if there are no more."""
    found: list[Owner] = []
    for _ in range(OWNERS_PER_PAGE):
        sql, key = (FIRST_FEED, ()) if after is None else (NEXT_FEED, (after.tenant, after.subject))
        row = db.execute(sql, key).fetchone()
        if row is None:
            return found, None
        after = Owner(*row)
        first = db.execute(FIRST_ENTRY, row).fetchone()
        if first is not None and first[0] < before:
            found.append(after)
    return found, after


def _purge_feed(writing: WriteConnection, *, owner: Owner, before: float) -> int:
    """Removes the first entries of an owner, as far as they are old; returns how many. The last row stays,
    without entries: the next number follows it."""
    key = (owner.tenant, owner.subject)
    rows: list[tuple[int, int, float]] = writing.db.execute(
        FIRST_ENTRIES, (*key, ROWS_PER_TRANSACTION)
    ).fetchall()
    old: list[tuple[int, int]] = []
    for no, count, at in rows:
        if at >= before:
            break
        old.append((no, count))
    if not old:
        return 0
    last = old[-1][0]
    writing.db.execute(DELETE_FEED, (*key, last, *key))
    writing.db.execute(EMPTY_FEED, (*key, last))
    return sum(count for _, count in old)


async def _purge_log(reads: Reads, writer: Writer, before: float) -> None:
    place = (-1.0, 0)
    while True:
        # bound as arguments: the position changes while this is read
        found = await reads.far(partial(_old_threads, before=before, place=place))
        if not found:
            return
        place = found[-1]
        rest = [no for _, no in found]
        while rest:
            done = await writer.do(partial(_purge_threads, numbers=tuple(rest), before=before))
            rest = rest[done:]


def _old_threads(
    db: sqlite3.Connection, *, before: float, place: tuple[float, int]
) -> list[tuple[float, int]]:
    return db.execute(OLD_THREADS, (before, *place, THREADS_PER_PAGE)).fetchall()


def _purge_threads(writing: WriteConnection, *, numbers: tuple[int, ...], before: float) -> int:
    """Removes their old rows that a snapshot covers; returns how many of these threads are done."""
    left = ROWS_PER_TRANSACTION
    for done, no in enumerate(numbers):
        removed = writing.db.execute(PURGE_LOG, (no, before, left)).rowcount
        if removed:
            _measure(writing, no)
        left -= removed
        if not left:
            return done
    return len(numbers)


def _measure(writing: WriteConnection, no: int) -> None:
    """What is left of a thread in the log; its snapshot replaces the rest."""
    tenant, subject, before = writing.db.execute(SIZE, (no,)).fetchone()
    (size,) = writing.db.execute(MEASURE, (no,)).fetchone()
    writing.count(Owner(tenant, subject), size=size - before)
    writing.forget_threads()


def delete_thread(writing: WriteConnection, owner: Owner, thread_id: str, version: int) -> bool:
    """From now on it cannot be found; `sweep_log` removes the rows of its log."""
    db = writing.db
    found = db.execute(FIND_DELETED, (owner.tenant, owner.subject, thread_id, version)).fetchone()
    if found is None:
        return False
    no, is_running, open_calls, size = found
    for statement in DELETE_BY_NO:
        db.execute(statement, (no,))
    db.execute(DELETE_RUNS, (owner.tenant, owner.subject, no))
    db.execute(FORGET_FEED, (owner.tenant, owner.subject, no, thread_id))
    drop_files_of(db, no)
    writing.count(owner, threads=-1, running=-is_running, open_calls=-open_calls, size=-size)
    writing.held.put(no, None)
    writing.forget_threads()
    return True


def sweep_log(writing: WriteConnection) -> int:
    """Removes some rows of deleted threads; returns how many."""
    swept = writing.db.execute(SWEEP_LOG, (ROWS_PER_TRANSACTION,)).rowcount
    if not swept:
        writing.db.execute("DELETE FROM removed_threads")
    return swept


# an active run keeps its calls, and the name of a call with a key is never reused
_OLD_CALLS = """
    calls c JOIN threads t ON t.no = c.thread_no
    WHERE c.settled_at < ? AND (t.kept_from IS NULL OR t.run_id IS NOT c.run_id)
        AND (c.request_id IS NULL OR substr(c.request_id, 1, 4) <> 'key=')"""

PURGE_CALLS = f"DELETE FROM calls WHERE no IN (SELECT c.no FROM {_OLD_CALLS} LIMIT ?)"

PURGE_RUNS = "DELETE FROM runs WHERE no IN (SELECT no FROM runs WHERE ended_at < ? LIMIT ?)"

OLD_FILES = """
SELECT no FROM files WHERE is_bound = 0 AND written_at < ? AND (written_at < ? OR is_complete = 0) LIMIT ?"""

FIRST_FEED = "SELECT tenant, subject FROM feed ORDER BY tenant, subject LIMIT 1"
NEXT_FEED = """
SELECT tenant, subject FROM feed WHERE (tenant, subject) > (?, ?) ORDER BY tenant, subject LIMIT 1"""
FIRST_ENTRY = "SELECT at FROM feed WHERE tenant = ? AND subject = ? AND count > 0 ORDER BY no LIMIT 1"
FIRST_ENTRIES = "SELECT no, count, at FROM feed WHERE tenant = ? AND subject = ? ORDER BY no LIMIT ?"

DELETE_FEED = """
DELETE FROM feed WHERE tenant = ? AND subject = ? AND no <= ?
    AND no < (SELECT max(no) FROM feed WHERE tenant = ? AND subject = ?)"""
EMPTY_FEED = """
UPDATE feed SET count = 0, thread_no = NULL, version = NULL, thread_id = NULL, body = NULL
WHERE tenant = ? AND subject = ? AND no = ?"""

OLD_THREADS = """
SELECT oldest_at, no FROM threads WHERE oldest_at < ? AND (oldest_at, no) > (?, ?) AND snapshot_version > 0
ORDER BY oldest_at, no LIMIT ?"""

PURGE_LOG = """
DELETE FROM log WHERE (thread_no, version) IN (
    SELECT l.thread_no, l.version FROM threads t JOIN log l ON l.thread_no = t.no
    WHERE t.no = ? AND l.version <= min(t.snapshot_version, coalesce(t.kept_from, t.snapshot_version))
        AND l.at < ?
    ORDER BY l.version LIMIT ?)"""

SIZE = "SELECT tenant, subject, size FROM threads WHERE no = ?"

COUNT_OLD = f"""
SELECT
    (SELECT count(*) FROM {_OLD_CALLS}),
    (SELECT count(*) FROM runs WHERE ended_at < ?),
    (SELECT coalesce(sum(count), 0) FROM feed WHERE at < ?),
    (SELECT count(*) FROM files
     WHERE is_bound = 0 AND written_at < ? AND (written_at < ? OR is_complete = 0))"""

FIND_DELETED = """
SELECT no, is_running, open_calls, size FROM threads
WHERE tenant = ? AND subject = ? AND thread_id = ? AND version = ?"""

DELETE_BY_NO = (
    "DELETE FROM calls WHERE thread_no = ?",
    "DELETE FROM snapshots WHERE thread_no = ?",
    "DELETE FROM threads WHERE no = ?",
    "INSERT INTO removed_threads (no) VALUES (?)",
)

DELETE_RUNS = "DELETE FROM runs WHERE tenant = ? AND subject = ? AND thread_no = ?"

FORGET_FEED = """
UPDATE feed SET thread_no = NULL, version = NULL, thread_id = NULL, body = NULL
WHERE tenant = ? AND subject = ? AND (thread_no = ? OR thread_id = ?)"""
"""The numbers stay: a reader's position must keep its meaning."""

SWEEP_LOG = """
DELETE FROM log WHERE (thread_no, version) IN (
    SELECT thread_no, version FROM removed_threads CROSS JOIN log ON thread_no = no LIMIT ?)"""


Columns: TypeAlias = tuple[object, ...]


def rebuild_thread(writing: WriteConnection, *, lookups: Lookups, dry_run: bool) -> int | None:
    db, owner = writing.db, lookups.owner
    found = db.execute(FIND_REBUILT, (owner.tenant, owner.subject, lookups.thread_id)).fetchone()
    if found is None:
        return None
    no, version, snapshot_version, *listed = found
    if version != lookups.version:
        return None
    write_held(writing, [no])
    calls, runs = _differing_calls(db, no, lookups), _differing_runs(db, no, lookups)
    wanted = _thread_columns(lookups, snapshot_version)
    if not dry_run:
        db.execute(REBUILD_THREAD, (*wanted, *[can_go_on(lookups.thread)] * 2, no))
        db.execute(MEASURE, (no,)).fetchone()
        _write_calls(db, owner, calls)
        _write_runs(db, owner, runs)
        writing.forget_counts()
        writing.forget_threads()
    return (tuple(listed) != wanted) + len(calls) + len(runs)


def _thread_columns(lookups: Lookups, snapshot_version: int) -> Columns:
    """In the order of `FIND_REBUILT` and `REBUILD_THREAD`."""
    row = lookups.thread
    return (lookups.version, snapshot_version, row.updated_at, *run_state_columns(row), encode(row))


def _differing_calls(db: sqlite3.Connection, no: int, lookups: Lookups) -> Difference[Columns]:
    stored: dict[str, Columns] = {row[0]: row for row in db.execute(CALLS, (no,))}
    wanted = [call for call in lookups.calls if not _is_request_lost(db, lookups.owner, call)]
    return difference(
        stored,
        {call.call_id: call_columns(no, lookups.owner, call) for call in wanted},
        kept={call.call_id for call in wanted if is_call_kept(lookups, call)},
        still_open={call_id for call_id, row in stored.items() if row[SETTLED_AT] is None},
        is_whole=lookups.is_whole,
    )


def _differing_runs(db: sqlite3.Connection, no: int, lookups: Lookups) -> Difference[Columns]:
    owner = lookups.owner
    key = (owner.tenant, owner.subject, no)
    stored: dict[str, Columns] = {row[0]: row for row in db.execute(RUNS, key)}
    return difference(
        stored,
        {run.run_id: run_columns(no, owner, run) for run in lookups.runs},
        kept={run.run_id for run in lookups.runs if is_run_kept(lookups, run)},
        still_open={run_id for run_id, row in stored.items() if row[ENDED_AT] is None},
        is_whole=lookups.is_whole,
    )


def _is_request_lost(db: sqlite3.Connection, owner: Owner, call: Call) -> bool:
    """Whether another call of the owner, opened no earlier, has its request id."""
    request_id = key_of(call, "request")
    if request_id is None:
        return False
    key = (owner.tenant, owner.subject, request_id, call.call_id, call.opened_at)
    return db.execute(LATER_REQUEST, key).fetchone() is not None


def _write_calls(db: sqlite3.Connection, owner: Owner, calls: Difference[Columns]) -> None:
    key = (owner.tenant, owner.subject)
    db.executemany(DROP_CALL, [(*key, call_id) for call_id in (*calls.drop, *calls.put)])
    requests = [row[REQUEST_ID] for row in calls.put.values() if row[REQUEST_ID] is not None]
    db.executemany(DROP_REQUEST, [(*key, request_id) for request_id in requests])
    db.executemany(PUT_CALL, list(calls.put.values()))


def _write_runs(db: sqlite3.Connection, owner: Owner, runs: Difference[Columns]) -> None:
    key = (owner.tenant, owner.subject)
    db.executemany(DROP_RUN, [(*key, run_id) for run_id in (*runs.drop, *runs.put)])
    db.executemany(PUT_RUN, list(runs.put.values()))


# the versions of the log and the snapshot, then what the row says
FIND_REBUILT = """
SELECT t.no,
    max(coalesce((SELECT max(version) FROM log WHERE thread_no = t.no), 0), coalesce(s.version, 0)),
    coalesce(s.version, 0),
    t.version, t.snapshot_version, t.updated_at, t.kept_from, t.can_go_on, t.is_running, t.open_calls,
    t.run_id, t.record
FROM threads t LEFT JOIN snapshots s ON s.thread_no = t.no
WHERE t.tenant = ? AND t.subject = ? AND t.thread_id = ?"""

REBUILD_THREAD = """
UPDATE threads SET version = ?, snapshot_version = ?, updated_at = ?,
    kept_from = ?, can_go_on = ?, is_running = ?, open_calls = ?, run_id = ?, record = ?,
    worker = CASE WHEN ? THEN worker END, lease_until = CASE WHEN ? THEN lease_until END
WHERE no = ?"""

# removed rows are counted by the snapshot that replaces them
MEASURE = """
UPDATE threads SET
    size = (SELECT coalesce(sum(length(body)), 0) FROM log WHERE thread_no = threads.no)
        + CASE WHEN (SELECT count(*) FROM log WHERE thread_no = threads.no) = version THEN 0
        ELSE (SELECT coalesce(sum(length(body)), 0) FROM snapshots WHERE thread_no = threads.no) END,
    oldest_at = (SELECT at FROM log WHERE thread_no = threads.no ORDER BY version LIMIT 1),
    appended_at = coalesce(
        (SELECT at FROM log WHERE thread_no = threads.no ORDER BY version DESC LIMIT 1), appended_at)
WHERE no = ? RETURNING size"""

CALLS = f"SELECT {CALL_COLUMNS} FROM calls WHERE thread_no = ?"

REQUEST_ID, SETTLED_AT = 6, 10
"""Their indexes among these columns."""

LATER_REQUEST = """
SELECT 1 FROM calls WHERE tenant = ? AND subject = ? AND request_id = ? AND call_id <> ? AND opened_at >= ?"""

DROP_CALL = "DELETE FROM calls WHERE tenant = ? AND subject = ? AND call_id = ?"

DROP_REQUEST = "DELETE FROM calls WHERE tenant = ? AND subject = ? AND request_id = ?"

RUNS = f"SELECT {RUN_COLUMNS} FROM runs WHERE tenant = ? AND subject = ? AND thread_no = ?"

ENDED_AT = 5

DROP_RUN = "DELETE FROM runs WHERE tenant = ? AND subject = ? AND run_id = ?"
