"""The only thread that writes, its connection, and its group commit.

Everything that queued up during the last transaction goes into the next one, so that one wait for the disk
serves all of it. Callers are answered once it is durable. If the disk refuses, every caller in the
transaction gets an error, nothing of it is written, and the next one is tried as usual.

No other process writes the file, so versions, feed numbers, tools and totals stay valid once read. What a
transaction adds to them counts once it is committed, and is dropped on rollback.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf
from queue import SimpleQueue
from time import monotonic
from typing import Any, Generic, TypeVar

from farhand.core.principal import Owner
from farhand.errors import StoreDown
from farhand.store.guards import Counts, Totals
from farhand.store.outage_log import OutageLog
from farhand.store.sqlite.file import StoreFile, error_kind
from farhand.store.sqlite.held_rows import HeldRows
from farhand.store.sqlite.migrate import rewrite_header

MAX_CACHED_ROWS = 10_000
"""Threads, feeds and tools whose rows are not looked up again."""

COUNTED = 200_000
"""Totals that are kept before all are counted again: some tens of MiB."""


class ThreadHeader:
    """The columns of a thread that an append needs."""

    __slots__ = (
        "can_go_on",
        "has_rows",
        "is_running",
        "last_at",
        "no",
        "open_calls",
        "updated_at",
        "version",
    )

    def __init__(
        self,
        no: int,
        place: tuple[int, float],
        updated_at: float,
        flags: tuple[bool, bool, bool],
        open_calls: int,
    ) -> None:
        """`place` is the version and the time of the last append."""
        self.no = no
        self.version, self.last_at = place
        self.updated_at = updated_at
        self.can_go_on, self.is_running, self.has_rows = flags
        self.open_calls = open_calls


class FileMoved(sqlite3.OperationalError):
    """SQLite itself notices this only without a write-ahead log."""

    sqlite_errorcode = sqlite3.SQLITE_READONLY_DBMOVED


class WriteConnection:
    def __init__(self, file: StoreFile, now: Callable[[], float]) -> None:
        # kept, since the writer's thread outlives a store that a program forgets: so does the file's lock
        self._file = file
        self.db = file.connect()
        self.now = now
        self.held = HeldRows()
        self._counts = TenantCounts()
        self._pending: list[tuple[Owner, Counts]] = []
        """Changes that count from the next commit on."""
        self._threads: dict[tuple[Owner, str], ThreadHeader] = {}
        self._last_thread_no: int | None = None
        self._feeds: dict[Owner, int] = {}
        self._tools: set[str] = set()

    @property
    def counts(self) -> TenantCounts:
        """As of the last commit."""
        return self._counts

    def begin(self) -> None:
        if not self._file.is_in_place():
            raise FileMoved("the file of the store, or its lock, was moved or removed")
        self.db.execute("BEGIN IMMEDIATE")
        if len(self._feeds) >= MAX_CACHED_ROWS:
            # not in the middle: numbers that an append has just reserved are not in the table yet
            self._feeds.clear()

    def commit(self) -> None:
        self.db.execute("COMMIT")
        self.held.commit()
        if len(self._counts.totals) + len(self._counts.tenants) > COUNTED:
            self.forget_counts()
        tenants, totals = self._counts.tenants, self._counts.totals
        for owner, more in self._pending:
            if owner.tenant in tenants:
                totals.add_counts(owner, more)
        self._pending = []

    def roll_back(self) -> None:
        self.held.roll_back()
        self._pending = []
        self._threads.clear()
        self._last_thread_no = None
        self._feeds.clear()
        self._tools.clear()
        if self.db.in_transaction:
            with suppress(sqlite3.Error):
                self.db.execute("ROLLBACK")

    def count(
        self, owner: Owner, *, threads: int = 0, running: int = 0, open_calls: int = 0, size: int = 0
    ) -> None:
        """Counts from the next commit on."""
        self._pending.append((owner, (threads, running, open_calls, size)))

    def count_tenant(self, tenant: str) -> TenantCounts:
        """From now on its totals are known."""
        if tenant not in self._counts.tenants:
            totals = self._counts.totals
            for subject, threads, running, calls, size in self.db.execute(COUNT_THREADS, (tenant,)):
                owner = Owner(tenant, subject)
                totals.add(owner, threads=threads, running=running, open_calls=calls, size=size)
            self._counts.tenants[tenant] = None
            # these sums include what this transaction has written, which is added at its commit
            for owner, more in self._pending:
                if owner.tenant == tenant:
                    totals.subtract_counts(owner, more)
        return self._counts

    def forget_counts(self) -> None:
        """All are counted again."""
        # a new one, since the loop may be reading the old one
        self._counts = TenantCounts()

    def find_thread(self, owner: Owner, thread_id: str) -> ThreadHeader | None:
        found = self._threads.get((owner, thread_id))
        if found is not None:
            return found
        row = self.db.execute(FIND_THREAD, (owner.tenant, owner.subject, thread_id)).fetchone()
        if row is None:
            return None
        no, version, last_at, updated_at, can_go_on, is_running, has_rows, open_calls = row
        flags = (bool(can_go_on), bool(is_running), bool(has_rows))
        header = ThreadHeader(no, (version, last_at), updated_at, flags, open_calls)
        return self.keep_thread(owner, thread_id, header)

    def keep_thread(self, owner: Owner, thread_id: str, header: ThreadHeader) -> ThreadHeader:
        if len(self._threads) >= MAX_CACHED_ROWS:
            self._threads.clear()
        self._threads[owner, thread_id] = header
        return header

    def forget_threads(self) -> None:
        """Something other than an append changed their rows."""
        self._threads.clear()

    def next_thread_no(self) -> int:
        """Never that of a thread whose rows are not all removed."""
        if self._last_thread_no is None:
            (self._last_thread_no,) = self.db.execute(LAST_THREAD_NO).fetchone()
        self._last_thread_no += 1
        return self._last_thread_no

    def next_feed_no(self, owner: Owner, count: int) -> int:
        """Reserves this many numbers; returns the last."""
        last = self._feeds.get(owner)
        if last is None:
            (last,) = self.db.execute(LAST_FEED_NO, (owner.tenant, owner.subject)).fetchone()
        self._feeds[owner] = last + count
        return last + count

    def add_to_feed(self, owner: Owner, body: bytes, *, thread_id: str | None = None) -> None:
        no = self.next_feed_no(owner, 1)
        self.db.execute(INSERT_ENTRY, (owner.tenant, owner.subject, no, self.now(), thread_id, body))

    def is_new_tool(self, version: str) -> bool:
        if version in self._tools:
            return False
        if len(self._tools) >= MAX_CACHED_ROWS:
            self._tools.clear()
        self._tools.add(version)
        return True


class TenantCounts:
    """Totals of the tenants that were asked for; nothing is known about others."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.tenants: dict[str, None] = {}


FIND_THREAD = """
SELECT no, version, appended_at, updated_at, can_go_on, is_running, oldest_at IS NOT NULL, open_calls
FROM threads WHERE tenant = ? AND subject = ? AND thread_id = ?"""
COUNT_THREADS = """
SELECT subject, count(*), sum(is_running), sum(open_calls), sum(size) FROM threads WHERE tenant = ?
GROUP BY subject"""
LAST_THREAD_NO = """
SELECT max(coalesce((SELECT max(no) FROM threads), 0), coalesce((SELECT max(no) FROM removed_threads), 0))"""
LAST_FEED_NO = "SELECT coalesce(max(no), 0) FROM feed WHERE tenant = ? AND subject = ?"
INSERT_ENTRY = """
INSERT INTO feed (tenant, subject, no, count, at, thread_id, body) VALUES (?, ?, ?, 1, ?, ?, ?)"""


AT_MOST = 512
"""Jobs per transaction: a flood must not make the first one wait for the last."""

STALLED_SEC = 5.0
"""A transaction that takes longer than this may never end: until it does, the store is not ready."""

ANSWERED_AT_ONCE = 64
"""Jobs answered in one turn of the loop."""

T = TypeVar("T")

log = logging.getLogger("farhand.store")


class Job(Generic[T]):
    """What to write, the waiter, and the result. If it runs twice, the first time was undone."""

    __slots__ = ("answer", "error", "waiter", "work")

    def __init__(self, work: Callable[[WriteConnection], T], waiter: asyncio.Future[T]) -> None:
        self.work = work
        self.waiter = waiter
        self.answer: T | None = None
        self.error: Exception | None = None

    def run(self, writing: WriteConnection) -> None:
        self.answer, self.error = self.work(writing), None

    def conclude(self) -> None:
        """A waiter that was cancelled is skipped."""
        if self.waiter.done():
            return
        if self.error is not None:
            self.waiter.set_exception(self.error)
        else:
            # None is an answer too: that of work that returns None
            self.waiter.set_result(self.answer)  # type: ignore[arg-type]


class Writer:
    def __init__(self, writing: WriteConnection) -> None:
        self.transactions = 0
        self._writing = writing
        self._loop = asyncio.get_running_loop()
        # Any: the jobs of one transaction have answers of any type
        self._queue: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._unanswered: deque[Job[Any]] = deque()
        self._is_closed = False
        self._has_failed = False
        """Whether the disk refused the last transaction."""
        self._outages = OutageLog(log, "the store can be written again")
        self._busy_since = inf
        self._ended: asyncio.Future[None] = self._loop.create_future()
        # a daemon: a program that ends without closing the store has lost nothing, and must not hang
        threading.Thread(target=self._run, name="farhand-store", daemon=True).start()

    def do(self, work: Callable[[WriteConnection], T]) -> asyncio.Future[T]:
        """Answered once its writes are durable. It shares a transaction with others; if it raises, nothing of
        it is stored."""
        if self._is_closed:
            raise StoreDown("The store is closed.")
        job = Job(work, self._loop.create_future())
        self._queue.put(job)
        return job.waiter

    async def check(self) -> None:
        """Raises `StoreDown` while the disk refuses writes; after a refusal, a write is tried."""
        if self._has_failed:
            await self.do(lambda writing: rewrite_header(writing.db))

    def check_stalled(self) -> None:
        if monotonic() - self._busy_since > STALLED_SEC:
            raise StoreDown("The disk has not answered for a while.", hint="Try again in a moment.")

    async def close(self) -> None:
        """Waits for everything that was queued before."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
        await asyncio.shield(self._ended)

    def _run(self) -> None:
        jobs: list[Job[Any]] = []
        try:
            is_last = False
            while not is_last:
                jobs, is_last = self._next_jobs()
                if jobs:
                    self._transact(jobs)
                    self._busy_since = inf
                    self._on_loop(self._answer, jobs)
                    jobs = []
        finally:
            self._writing.db.close()
            self._on_loop(self._end, jobs)

    def _next_jobs(self) -> tuple[list[Job[Any]], bool]:
        """Waits for one and takes all others that are queued; also returns whether they are the last."""
        jobs: list[Job[Any]] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            # this is the only consumer, so what the queue shows is there
            if len(jobs) >= AT_MOST or self._queue.empty():
                break
            job = self._queue.get()
        return jobs, job is None

    def _transact(self, jobs: list[Job[Any]]) -> None:
        self.transactions += 1
        self._busy_since = monotonic()
        try:
            self._writing.begin()
            for job in jobs:
                job.run(self._writing)
            self._writing.commit()
            self._has_failed = False
            self._outages.note_success()
        # the error of a job goes to its caller; this thread serves the others
        except Exception as error:  # noqa: BLE001
            self._writing.roll_back()
            self._after_fault(jobs, error)

    def _after_fault(self, jobs: list[Job[Any]], error: Exception) -> None:
        """A disk that refuses refuses every job; any other error belongs to one job, and the others
        continue."""
        is_of_disk = isinstance(error, sqlite3.OperationalError)
        if len(jobs) > 1 and not is_of_disk:
            for job in jobs:
                self._transact([job])
            return
        if isinstance(error, sqlite3.Error):
            self._outages.note_failure("a transaction of %d writes failed: %s", len(jobs), error)
            self._has_failed = self._has_failed or is_of_disk
        for job in jobs:
            job.error = _refusal(error)

    def _on_loop(self, function: Callable[[list[Job[Any]]], None], jobs: list[Job[Any]]) -> None:
        try:
            self._loop.call_soon_threadsafe(function, jobs)
        except RuntimeError:
            # a program ended without closing the store
            log.debug("the event loop has ended; dropping answers")

    def _answer(self, jobs: list[Job[Any]]) -> None:
        """On the loop, in the order of the jobs. An answered caller continues in the loop's next turn, and
        hundreds of them in one turn would hold up everything else."""
        is_under_way = bool(self._unanswered)
        self._unanswered.extend(jobs)
        if not is_under_way:
            self._answer_some()

    def _answer_some(self) -> None:
        for _ in range(min(ANSWERED_AT_ONCE, len(self._unanswered))):
            self._unanswered.popleft().conclude()
        if self._unanswered:
            self._loop.call_soon(self._answer_some)

    def _end(self, jobs: list[Job[Any]]) -> None:
        """Leaves no caller waiting, even if a bug of ours ended the thread."""
        self._is_closed = True
        while self._unanswered:
            self._unanswered.popleft().conclude()
        while not self._queue.empty():
            left = self._queue.get_nowait()
            if left is not None:
                jobs.append(left)
        for job in jobs:
            job.error = StoreDown("The store is closed.")
            job.conclude()
        if not self._ended.done():
            self._ended.set_result(None)


def _refusal(error: Exception) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    is_damaged = error_kind(error) == sqlite3.SQLITE_CORRUPT
    down = StoreDown(
        f"The store could not write ({_reason(error)}); nothing of this was stored.",
        hint="Restore it from a backup." if is_damaged else "Try again in a moment.",
    )
    down.__cause__ = error
    return down


def _reason(error: sqlite3.Error) -> str:
    """Shown to everyone, so in our own terms: SQLite's may contain a path."""
    if isinstance(error, FileMoved):
        return str(error)
    return _REASONS.get(error_kind(error), "the disk refuses")


_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk is full or failing",
    sqlite3.SQLITE_BUSY: "another program has locked the file",
    sqlite3.SQLITE_LOCKED: "another program has locked the file",
    sqlite3.SQLITE_READONLY: "the file cannot be written any more",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
}
