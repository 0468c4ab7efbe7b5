"""The one thread that writes, and its group commit.

Everything that queued up while the last transaction ran goes into the next one, so that one wait for the disk
serves all of them. Nobody is answered before it is durable. If the disk refuses, everybody in the transaction
is told so, nothing of it was written, and the next one is tried afresh.

Must not know what a write means.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeAlias

import msgspec
from msgspec import Struct

from farhand.clock import Clock
from farhand.errors import StoreDown, Unreadable
from farhand.store.base import Commit, Committed, Write
from farhand.store.hub import Hub, tell_commit
from farhand.store.sqlite.commit import commit
from farhand.store.sqlite.draft import SqliteDraft
from farhand.store.sqlite.flush import flush
from farhand.store.told import Told

AT_MOST = 512
"""Orders in one transaction: a flood must not make the first one wait for the last."""

ANSWERED_AT_ONCE = 64
"""Orders that are answered in one turn of the loop."""

UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What is raised for a record that JSON or SQLite cannot hold: the fault of that record alone."""

Chore: TypeAlias = Callable[[sqlite3.Connection], int]
"""Work that is no commit, such as a purge: how many rows it removed."""

log = logging.getLogger("farhand.store")


class Order(Struct):
    """Writes of one commit, or a chore; who waits for it, and what came of it."""

    writes: tuple[Write, ...]
    waiter: asyncio.Future[Commit]
    chore: Chore | None = None
    answer: Commit | Exception | None = None
    told: Told | None = None
    removed: int = 0
    """Rows, by a chore."""


class Writer:
    def __init__(self, db: sqlite3.Connection, clock: Clock, hub: Hub) -> None:
        self.transactions = 0
        self._db = db
        self._clock = clock
        self._hub = hub
        self._draft = SqliteDraft(db)
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[list[Order] | None] = SimpleQueue()
        self._ordered: list[Order] = []
        """Of this moment of the loop: handed over together: to wake a thread costs more than one."""
        self._unanswered: deque[Order] = deque()
        self._closed = False
        self._has_failed = False
        """Whether the disk refused the last transaction."""
        self._ended: asyncio.Future[None] = self._loop.create_future()
        # a daemon: a program that ends without closing the store has lost nothing, and must not hang
        threading.Thread(target=self._run, name="farhand-store", daemon=True).start()

    def commit(self, writes: tuple[Write, ...]) -> asyncio.Future[Commit]:
        """Answered once it is durable."""
        return self._order(Order(writes, self._loop.create_future()))

    async def do(self, chore: Chore) -> int:
        order = Order((), self._loop.create_future(), chore)
        await self._order(order)
        return order.removed

    async def check(self) -> None:
        """Raises `StoreDown` while the disk refuses; if it did last, it is tried again."""
        if self._has_failed:
            await self.do(_write_a_page)

    async def close(self) -> None:
        """After everything that was queued before."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.shield(self._ended)

    def _order(self, order: Order) -> asyncio.Future[Commit]:
        if self._closed:
            raise StoreDown("The store is closed.")
        if not self._ordered:
            self._loop.call_soon(self._hand_over)
        self._ordered.append(order)
        return order.waiter

    def _hand_over(self) -> None:
        ordered, self._ordered = self._ordered, []
        for start in range(0, len(ordered), AT_MOST):
            self._queue.put(ordered[start : start + AT_MOST])

    def _run(self) -> None:
        orders: list[Order] = []
        try:
            last = False
            while not last:
                orders, last = self._next_orders()
                self._transact(orders)
                self._on_loop(self._answer, orders)
        finally:
            self._db.close()
            self._on_loop(self._end, orders)

    def _next_orders(self) -> tuple[list[Order], bool]:
        """Waits for one and takes all the others that are there; and whether they are the last."""
        orders: list[Order] = []
        ordered = self._queue.get()
        while ordered is not None:
            orders += ordered
            # nobody else takes from it, so what it is seen to have is there
            if len(orders) >= AT_MOST or self._queue.empty():
                break
            ordered = self._queue.get()
        return orders, ordered is None

    def _transact(self, orders: list[Order]) -> None:
        if not orders:
            return
        self.transactions += 1
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._fill(orders)
            self._db.execute("COMMIT")
            self._has_failed = False
        except (sqlite3.Error, *UNWRITABLE) as error:
            self._roll_back()
            self._after_fault(orders, error)

    def _fill(self, orders: list[Order]) -> None:
        now = self._clock.now()
        for order in orders:
            self._draft_order(order, Told(now))
        flush(self._draft)
        for order in orders:
            if order.chore is not None:
                order.removed = order.chore(self._db)
                self._draft.forget()

    def _draft_order(self, order: Order, told: Told) -> None:
        order.told = None
        try:
            order.answer = commit(self._draft, told, order.writes)
            if type(order.answer) is Committed:
                order.told = told
        except msgspec.DecodeError as error:
            # of a row that a guard had to look at
            order.answer = Unreadable(f"A stored record cannot be read by this version of farhand: {error}.")
        except UNWRITABLE as error:
            order.answer = error

    def _roll_back(self) -> None:
        self._draft.forget()
        if self._db.in_transaction:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    def _after_fault(self, orders: list[Order], error: Exception) -> None:
        """A disk that refuses refuses everybody; any other fault is somebody's own, and the others go on."""
        if not self._draft.careful and not isinstance(error, sqlite3.OperationalError):
            self._one_by_one(orders)
            return
        # once, until something can be written again
        level = logging.DEBUG if self._has_failed else logging.WARNING
        log.log(level, "a transaction of %d commits failed: %s", len(orders), error)
        self._has_failed = self._has_failed or isinstance(error, sqlite3.OperationalError)
        for order in orders:
            order.told = None
            order.answer = _refusal(error)

    def _one_by_one(self, orders: list[Order]) -> None:
        self._draft.careful = True
        for order in orders:
            self._transact([order])
        self._draft.careful = False

    def _on_loop(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            # a program ended without closing the store
            log.debug("the loop is gone: nobody is left to tell")

    def _answer(self, orders: list[Order]) -> None:
        """On the loop, in the order of the commits. Whoever is answered goes on in the loop's next turn, and
        hundreds of them in one turn would hold up everybody else."""
        is_under_way = bool(self._unanswered)
        self._unanswered.extend(orders)
        if not is_under_way:
            self._answer_some()

    def _answer_some(self) -> None:
        for _ in range(min(ANSWERED_AT_ONCE, len(self._unanswered))):
            self._answer_one(self._unanswered.popleft())
        if self._unanswered:
            self._loop.call_soon(self._answer_some)

    def _answer_one(self, order: Order) -> None:
        """Who was cancelled while waiting is not waited for."""
        if order.told is not None:
            tell_commit(self._hub, order.told)
        waiter, answer = order.waiter, order.answer
        if waiter.done():
            return
        if isinstance(answer, Exception):
            waiter.set_exception(answer)
        elif answer is not None:
            waiter.set_result(answer)

    def _end(self, orders: list[Order]) -> None:
        """Nobody is left waiting, also if the thread has died of a fault of ours."""
        self._closed = True
        while self._unanswered:
            self._answer_one(self._unanswered.popleft())
        self._hand_over()
        while not self._queue.empty():
            orders += self._queue.get_nowait() or []
        for order in orders:
            order.told, order.answer = None, StoreDown("The store is closed.")
            self._answer_one(order)
        if not self._ended.done():
            self._ended.set_result(None)


def _write_a_page(db: sqlite3.Connection) -> int:
    """Changes nothing, and needs room as anything does: a number in the head of the file is written again."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.execute(f"PRAGMA user_version = {version}")
    return 0


def _refusal(error: Exception) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    down = StoreDown(
        f"The store could not write ({_reason(error)}); nothing of this was kept.",
        hint="Try again in a moment.",
    )
    down.__cause__ = error
    return down


def _reason(error: sqlite3.Error) -> str:
    """For everybody to read: in words of ours, since SQLite's may hold a path."""
    # the low byte is the kind, whatever the rest says of it; one that Python raised itself has none
    return _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "the disk refuses")


_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk is full or failing",
    sqlite3.SQLITE_BUSY: "another program has locked the file",
    sqlite3.SQLITE_LOCKED: "another program has locked the file",
    sqlite3.SQLITE_READONLY: "the file cannot be written any more",
}
