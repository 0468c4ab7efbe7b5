"""Logs in a SQLite file of one process: one thread writes, another reads, each with a connection of its own.

A batch of appends is one transaction and one wait for the disk. Versions are checked in it, though no other
process can have moved them: the file says what is true, not this program's memory. Must not know who locks
the file or brings its tables up to date.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from farhand.clock import Clock
from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.errors import StoreDown
from farhand.store.log.base import (
    Append,
    Appended,
    AppendResult,
    CallKey,
    FeedRow,
    FoundCall,
    Loaded,
    Moved,
    OutOfTime,
    Row,
    ThreadFound,
    ThreadRow,
)
from farhand.store.log.memory import can_go_on, is_in_time, key_of

T = TypeVar("T")

SCHEMA = """
CREATE TABLE IF NOT EXISTS threads (
    no INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    subject TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at REAL NOT NULL,
    can_go_on INTEGER NOT NULL,
    worker TEXT,
    lease_until REAL,
    record BLOB NOT NULL,
    UNIQUE (tenant, subject, thread_id)
);
CREATE INDEX IF NOT EXISTS threads_used ON threads (tenant, subject, updated_at, thread_id);
CREATE INDEX IF NOT EXISTS threads_going ON threads (can_go_on) WHERE can_go_on = 1;
CREATE TABLE IF NOT EXISTS log (
    thread_no INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at REAL NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (thread_no, version)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS snapshots (
    thread_no INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS calls (
    call_id TEXT PRIMARY KEY,
    thread_no INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    subject TEXT NOT NULL,
    approval_id TEXT,
    request_id TEXT,
    client_id TEXT,
    deadline REAL,
    opened_at REAL NOT NULL,
    settled_at REAL,
    record BLOB NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS calls_approval ON calls (approval_id) WHERE approval_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS calls_request ON calls (tenant, subject, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS calls_open ON calls (tenant, subject, opened_at) WHERE settled_at IS NULL;
CREATE INDEX IF NOT EXISTS calls_due ON calls (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX IF NOT EXISTS calls_settled ON calls (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS calls_thread ON calls (thread_no);
CREATE TABLE IF NOT EXISTS feed (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    subject TEXT NOT NULL,
    thread_no INTEGER NOT NULL,
    version INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS feed_owner ON feed (tenant, subject, no);
CREATE INDEX IF NOT EXISTS feed_thread ON feed (thread_no, version);
"""

_encode = msgspec.json.Encoder().encode
_call = msgspec.json.Decoder(Call).decode
_thread = msgspec.json.Decoder(ThreadRow).decode


class SqliteLogStore:
    is_shared = False

    def __init__(self, connect: Callable[[], sqlite3.Connection], clock: Clock) -> None:
        """`connect` opens the file: in autocommit mode, usable from any thread."""
        self._clock = clock
        self._writing, self._reading = connect(), connect()
        self._writing.executescript(SCHEMA)
        # nobody else has the file: whoever held a lease is gone
        self._writing.execute("UPDATE threads SET worker = NULL, lease_until = NULL WHERE worker IS NOT NULL")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="farhand-store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="farhand-store-reader")

    def now(self) -> float:
        return self._clock.now()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        return await self._write(lambda db: [self._append(db, each) for each in appends])

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        return await self._read(lambda db: _load(db, owner, thread_id, after))

    async def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        column = {"call": "call_id", "approval": "approval_id", "request": "request_id"}[kind]
        # the column is one of these three names
        where = f"c.{column} = ? AND c.tenant = ? AND c.subject = ?"
        found = await self._read(
            lambda db: _calls(db, where, (value, owner.tenant, owner.subject), "c.call_id", 1)
        )
        return found[0] if found else None

    async def open_calls(
        self,
        *,
        owner: Owner | None = None,
        client_id: str | None = None,
        due_before: float | None = None,
        limit: int = 1000,
    ) -> list[FoundCall]:
        where, values = ["c.settled_at IS NULL"], list[object]()
        if owner is not None:
            where.append("c.tenant = ? AND c.subject = ?")
            values += [owner.tenant, owner.subject]
        if client_id is not None:
            where.append("c.client_id = ?")
            values.append(client_id)
        if due_before is not None:
            where.append("c.deadline < ?")
            values.append(due_before)
        order = "c.opened_at, c.call_id" if due_before is None else "c.deadline, c.call_id"
        return await self._read(lambda db: _calls(db, " AND ".join(where), values, order, limit))

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[ThreadFound]:
        where, values = "tenant = ? AND subject = ?", [owner.tenant, owner.subject, *(after or ())]
        if after is not None:
            where += " AND (updated_at, thread_id) < (?, ?)"
        return await self._read(
            lambda db: _threads(db, where, values, "updated_at DESC, thread_id DESC", limit)
        )

    async def strays(self, *, worker: str, limit: int) -> list[ThreadFound]:
        where = "can_go_on = 1 AND coalesce(lease_until, 0) <= ?"
        return await self._read(lambda db: _threads(db, where, [self.now()], "no", limit))

    async def renew(self, worker: str, until: float) -> None:
        update = "UPDATE threads SET lease_until = ? WHERE worker = ?"
        await self._write(lambda db: db.execute(update, (until, worker)).rowcount)

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        return await self._read(lambda db: _feed(db, owner, after, limit))

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        return await self._write(lambda db: _delete(db, owner, thread_id, version))

    async def purge(self, *, before: float) -> int:
        return await self._write(lambda db: _purge(db, before))

    async def close(self) -> None:
        """After everything that was asked before."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, self._writing.close)
        await loop.run_in_executor(self._reader, self._reading.close)
        self._writer.shutdown(wait=False)
        self._reader.shutdown(wait=False)

    def _append(self, db: sqlite3.Connection, append: Append) -> AppendResult:
        no, version = _thread_no(db, append.owner, append.thread_id)
        if version != append.version:
            return Moved(version)
        now = self.now()
        if not is_in_time(append, now):
            return OutOfTime(now)
        if append.body:
            _write(db, no, append)
        return Appended()

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._in(self._writer, lambda: _in_transaction(self._writing, work))

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._in(self._reader, lambda: work(self._reading))

    async def _in(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, work)
        except (sqlite3.Error, RuntimeError) as error:
            raise StoreDown(f"The store cannot be used: {error}") from error


def _in_transaction(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    db.execute("BEGIN IMMEDIATE")
    try:
        done = work(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return done


def _thread_no(db: sqlite3.Connection, owner: Owner, thread_id: str) -> tuple[int | None, int]:
    """Its number in this file and its version; a thread that is not there is at version 0."""
    found = db.execute(
        "SELECT no, version FROM threads WHERE tenant = ? AND subject = ? AND thread_id = ?",
        (owner.tenant, owner.subject, thread_id),
    ).fetchone()
    return (None, 0) if found is None else (found[0], found[1])


def _write(db: sqlite3.Connection, no: int | None, append: Append) -> None:
    version = append.version + 1
    no = _put_thread(db, no, version, append)
    db.execute("INSERT INTO log VALUES (?, ?, ?, ?)", (no, version, append.at, append.body))
    if append.calls:
        db.executemany(
            "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [_call_row(no, append.owner, call) for call in append.calls],
        )
    if append.lease is not None:
        db.execute(
            "UPDATE threads SET worker = ?, lease_until = ? WHERE no = ?",
            (append.lease.worker or None, append.lease.until if append.lease.worker else None, no),
        )
    if append.snapshot is not None:
        db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (no, version, append.snapshot))
    if append.in_feed:
        db.execute(
            "INSERT INTO feed (tenant, subject, thread_no, version) VALUES (?, ?, ?, ?)",
            (append.owner.tenant, append.owner.subject, no, version),
        )


def _put_thread(db: sqlite3.Connection, no: int | None, version: int, append: Append) -> int:
    row = append.thread
    assert row is not None, "an append with events says how the thread is listed"
    values = (version, row.updated_at, can_go_on(row), _encode(row))
    if no is not None:
        db.execute(
            "UPDATE threads SET version = ?, updated_at = ?, can_go_on = ?, record = ? WHERE no = ?",
            (*values, no),
        )
        return no
    key = (append.owner.tenant, append.owner.subject, append.thread_id)
    inserted = db.execute(
        "INSERT INTO threads (version, updated_at, can_go_on, record, tenant, subject, thread_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*values, *key),
    )
    assert inserted.lastrowid is not None, "an insert has a row"
    return inserted.lastrowid


def _call_row(no: int, owner: Owner, call: Call) -> tuple[object, ...]:
    return (
        call.call_id,
        no,
        owner.tenant,
        owner.subject,
        key_of(call, "approval"),
        key_of(call, "request"),
        call.client_id,
        call.deadline,
        call.opened_at,
        call.settled_at if call.phase is Phase.SETTLED else None,
        _encode(call),
    )


def _load(db: sqlite3.Connection, owner: Owner, thread_id: str, after: int | None) -> Loaded:
    no, _ = _thread_no(db, owner, thread_id)
    if no is None:
        return Loaded(())
    snapshot, version = None, after or 0
    if after is None:
        found = db.execute("SELECT body, version FROM snapshots WHERE thread_no = ?", (no,)).fetchone()
        snapshot, version = (None, 0) if found is None else found
    rows = db.execute(
        "SELECT version, at, body FROM log WHERE thread_no = ? AND version > ? ORDER BY version",
        (no, version),
    )
    return Loaded(tuple([Row(*row) for row in rows]), snapshot, 0 if after is not None else version)


def _calls(
    db: sqlite3.Connection, where: str, values: Sequence[object], order: str, limit: int
) -> list[FoundCall]:
    """`where` and `order` are made of names of columns; what comes from outside is bound."""
    sql = f"{_SELECT_CALLS} WHERE {where} ORDER BY {order} LIMIT ?"
    return [
        FoundCall(Owner(tenant, subject), thread_id, _call(record))
        for tenant, subject, thread_id, record in db.execute(sql, (*values, limit)).fetchall()
    ]


_SELECT_CALLS = (
    "SELECT c.tenant, c.subject, t.thread_id, c.record FROM calls c JOIN threads t ON t.no = c.thread_no"
)
_SELECT_THREADS = "SELECT tenant, subject, thread_id, version, record FROM threads"


def _threads(
    db: sqlite3.Connection, where: str, values: Sequence[object], order: str, limit: int
) -> list[ThreadFound]:
    """`where` and `order` are made of names of columns; what comes from outside is bound."""
    sql = f"{_SELECT_THREADS} WHERE {where} ORDER BY {order} LIMIT ?"
    return [
        ThreadFound(Owner(tenant, subject), thread_id, version, _thread(record))
        for tenant, subject, thread_id, version, record in db.execute(sql, (*values, limit)).fetchall()
    ]


def _feed(db: sqlite3.Connection, owner: Owner, after: int, limit: int) -> list[FeedRow]:
    found = db.execute(
        "SELECT f.no, t.thread_id, l.version, l.at, l.body FROM feed f JOIN threads t ON t.no = f.thread_no"
        " JOIN log l ON l.thread_no = f.thread_no AND l.version = f.version"
        " WHERE f.tenant = ? AND f.subject = ? AND f.no > ? ORDER BY f.no LIMIT ?",
        (owner.tenant, owner.subject, after, limit),
    ).fetchall()
    return [FeedRow(no, thread_id, Row(version, at, body)) for no, thread_id, version, at, body in found]


def _delete(db: sqlite3.Connection, owner: Owner, thread_id: str, version: int) -> bool:
    no, stored = _thread_no(db, owner, thread_id)
    if no is None or stored != version:
        return False
    db.execute("DELETE FROM feed WHERE thread_no = ?", (no,))
    db.execute("DELETE FROM calls WHERE thread_no = ?", (no,))
    db.execute("DELETE FROM snapshots WHERE thread_no = ?", (no,))
    db.execute("DELETE FROM log WHERE thread_no = ?", (no,))
    db.execute("DELETE FROM threads WHERE no = ?", (no,))
    return True


def _purge(db: sqlite3.Connection, before: float) -> int:
    db.execute(_PURGE_FEED, (before,))
    removed = db.execute(_PURGE_LOG, (before,))
    db.execute("DELETE FROM calls WHERE settled_at < ?", (before,))
    return removed.rowcount


_PURGE_FEED = """
DELETE FROM feed WHERE (thread_no, version) IN (
    SELECT l.thread_no, l.version FROM log l JOIN snapshots s ON s.thread_no = l.thread_no
    WHERE l.version <= s.version AND l.at < ?
)"""
_PURGE_LOG = """
DELETE FROM log WHERE (thread_no, version) IN (
    SELECT l.thread_no, l.version FROM log l JOIN snapshots s ON s.thread_no = l.thread_no
    WHERE l.version <= s.version AND l.at < ?
)"""
