"""Reads: statements, the values made of rows, and the threads on which they run.

A WAL reader never waits for the writer, and a hop to another thread costs several times as much as a look-up
by key, so short reads run on the loop. A long history may not be cached, so it is read and decoded off the
loop.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.errors import StoreDown
from farhand.store.base import CallFilter, CallKey, FeedRow, FoundCall, FoundThread, Loaded, Row
from farhand.store.guards import open_calls_condition
from farhand.store.records import decode_call, decode_or_skip, decode_run, decode_thread
from farhand.store.sqlite.file import StoreFile, error_kind

SHORT = 64
"""Rows that are read on the loop."""

# the type of a driver's row follows from the selected columns
Columns: TypeAlias = Any
Values: TypeAlias = Sequence[object]
T = TypeVar("T")


class Reads:
    def __init__(self, file: StoreFile) -> None:
        self._near = file.connect()
        self._far = file.connect()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="farhand-store-reader")

    def one(self, sql: str, values: Values) -> Columns | None:
        return _read(self._near, lambda db: db.execute(sql, values).fetchone())

    def near(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """For reads that are known to be short."""
        return _read(self._near, work)

    async def far(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """For reads that may be long or large."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, _read, self._far, work)
        except RuntimeError as error:
            # the thread is shut down
            raise _down() from error

    async def page(
        self, sql: str, values: Values, make: Callable[[Columns], T | None], *, limit: int
    ) -> list[T]:
        """As many as can be decoded, or all there are: a short page counts as the last one."""
        found = self.near(lambda db: fetch(db, sql, values, make, limit=min(limit, SHORT)))
        if len(found) < SHORT or limit == SHORT:
            return found
        return await self.far(lambda db: fetch(db, sql, values, make, limit=limit))

    def close(self) -> None:
        self._thread.shutdown()
        self._near.close()
        self._far.close()


def fetch(
    db: sqlite3.Connection, sql: str, values: Values, make: Callable[[Columns], T | None], *, limit: int
) -> list[T]:
    """Reads rows one by one, until enough of them could be decoded."""
    cursor = db.execute(sql, values)
    try:
        made = (make(row) for row in cursor)
        return list(islice((each for each in made if each is not None), limit))
    finally:
        # an unfinished cursor would keep an old snapshot open
        cursor.close()


def _read(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    try:
        return work(db)
    except sqlite3.Error as error:
        if error_kind(error) == sqlite3.SQLITE_CORRUPT:
            raise StoreDown(
                "The store could not be read (the file is damaged).", hint="Restore it from a backup."
            ) from error
        raise _down() from error


def _down() -> StoreDown:
    return StoreDown("The store could not be read.", hint="Try again in a moment.")


SIZE = "SELECT version, size FROM threads WHERE tenant = ? AND subject = ? AND thread_id = ?"

# one statement, so that a purge in between cannot remove rows that the snapshot does not cover. No numbered
# parameters, of which Python 3.12.0 to 3.12.3 warn: the key of the thread is bound twice
LOAD = """
SELECT s.version, t.appended_at, s.body, 1 FROM threads t JOIN snapshots s ON s.thread_no = t.no
WHERE t.tenant = ? AND t.subject = ? AND t.thread_id = ?
UNION ALL
SELECT l.version, l.at, l.body, 0 FROM threads t
JOIN log l ON l.thread_no = t.no AND l.version > t.snapshot_version
WHERE t.tenant = ? AND t.subject = ? AND t.thread_id = ?"""

LOAD_AFTER = """
SELECT l.version, l.at, l.body, 0 FROM threads t JOIN log l ON l.thread_no = t.no
WHERE t.tenant = ? AND t.subject = ? AND t.thread_id = ? AND l.version > ?"""

_CALLS = """
SELECT calls.tenant, calls.subject, t.thread_id, calls.call_id, calls.record
FROM calls JOIN threads t ON t.no = calls.thread_no"""

_FIND_CALL = _CALLS + " WHERE calls.{0} = ? AND calls.tenant = ? AND calls.subject = ?"

FIND_CALL: dict[CallKey, str] = {
    "call": _FIND_CALL.format("call_id"),
    "approval": _FIND_CALL.format("approval_id"),
    "request": _FIND_CALL.format("request_id"),
}

_THREADS = "SELECT tenant, subject, thread_id, version, record FROM threads"

THREADS = f"""{_THREADS} WHERE tenant = ? AND subject = ? ORDER BY updated_at DESC, thread_id DESC"""

THREADS_AFTER = f"""{_THREADS} WHERE tenant = ? AND subject = ? AND (updated_at, thread_id) < (?, ?)
ORDER BY updated_at DESC, thread_id DESC"""

CLAIMABLE = """
SELECT tenant, subject, thread_id, version, record, no FROM threads
WHERE can_go_on = 1 AND CASE ? WHEN '' THEN coalesce(lease_until, 0) <= ? ELSE worker = ? END
    AND coalesce(run_id, '') NOT IN (SELECT value FROM json_each(?))
ORDER BY no"""

RUN = "SELECT run_id, record FROM runs WHERE run_id = ? AND tenant = ? AND subject = ?"

RUN_PLACE = "SELECT started_at, run_id FROM runs WHERE run_id = ? AND tenant = ? AND subject = ?"

_RUNS = "SELECT run_id, record FROM runs WHERE tenant = ? AND subject = ?"

RUNS = f"{_RUNS} ORDER BY started_at DESC, run_id DESC"

RUNS_AFTER = f"{_RUNS} AND (started_at, run_id) < (?, ?) ORDER BY started_at DESC, run_id DESC"

TOOL = "SELECT record FROM tools WHERE version = ?"

FEED = """
SELECT f.no, f.count, f.at, coalesce(f.body, l.body), coalesce(f.thread_id, t.thread_id), f.version
FROM feed f
LEFT JOIN log l ON l.thread_no = f.thread_no AND l.version = f.version
LEFT JOIN threads t ON t.no = f.thread_no
WHERE f.tenant = ? AND f.subject = ? AND f.no > ? AND (f.body IS NOT NULL OR l.body IS NOT NULL)
ORDER BY f.no"""

FEED_SPAN = """
SELECT coalesce(min(no - count + 1), 1), coalesce(max(no), 0) FROM feed WHERE tenant = ? AND subject = ?"""

CLIENTS = "SELECT client_id, record FROM clients"

CLIENTS_OF_OWNER = f"{CLIENTS} WHERE tenant = ? AND subject = ?"

WITHOUT_SNAPSHOT = """
SELECT tenant, subject, thread_id FROM threads
WHERE oldest_at < ? AND appended_at < ? AND snapshot_version < version ORDER BY oldest_at LIMIT ?"""

THREAD_KEYS = """
SELECT tenant, subject, thread_id FROM threads WHERE (tenant, subject, thread_id) > (?, ?, ?)
ORDER BY tenant, subject, thread_id LIMIT ?"""


def open_calls(which: CallFilter) -> tuple[str, list[object]]:
    condition, values = open_calls_condition(which, lambda number: "?")
    return f"{_CALLS} {condition}", values


def loaded_of(rows: list[Columns]) -> Loaded:
    """From rows of `LOAD`, the snapshot first, or of `LOAD_AFTER`."""
    snapshot = rows.pop(0) if rows and rows[0][3] else None
    found = tuple(sorted([Row(*row[:3]) for row in rows], key=_version))
    if snapshot is None:
        return Loaded(found)
    version, written_at, body, _ = snapshot
    return Loaded(found, body, version, written_at)


def listed_call(row: Columns) -> FoundCall | None:
    tenant, subject, thread_id, call_id, record = row
    call = decode_or_skip(decode_call, record, kind="call", name=call_id)
    return None if call is None else FoundCall(Owner(tenant, subject), thread_id, call)


def listed_thread(row: Columns) -> FoundThread | None:
    tenant, subject, thread_id, version, record = row[:5]
    found = decode_or_skip(decode_thread, record, kind="thread", name=thread_id)
    return None if found is None else FoundThread(Owner(tenant, subject), thread_id, version, found)


def listed_run(row: Columns) -> Run | None:
    return decode_or_skip(decode_run, row[1], kind="run", name=row[0])


def feed_row(row: Columns) -> FeedRow:
    return FeedRow(*row)


def _version(row: Row) -> int:
    return row.version
