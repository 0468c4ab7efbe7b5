"""The one task of this process that writes, and its batches.

Everything that queued up while the last transaction ran goes into the next one, so that one wait for the disk
serves all of them. Each commit keeps its own guards: one that does not hold fails alone. Nobody is answered
before it is durable. If the connection breaks while the end of a transaction is under way, nobody is answered
before the database has said what became of it.

Must not know what a write means.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress

import msgspec
from msgspec import Struct

from farhand.errors import StoreDown, Unreadable
from farhand.store.base import Commit, Committed, Write
from farhand.store.draft.commit import draft_commit, is_direct
from farhand.store.draft.draft import Draft, Find
from farhand.store.hub import Hub, tell_commit
from farhand.store.postgres.direct import commit_directly
from farhand.store.postgres.flush import Announcement, flush
from farhand.store.postgres.gather import Wanted, gather
from farhand.store.postgres.hints import hints_of, notifications
from farhand.store.postgres.hours import Hours
from farhand.store.postgres.line import Declined, Line, Lost, Raced, connect
from farhand.store.postgres.place import Place
from farhand.store.told import Told

AT_MOST = 256
"""Orders in one transaction: a flood must not make the first one wait for the last."""
TRIES = 8
"""How often one commit that others were faster than looks again."""
IN_A_ROW = 16
"""Transactions that begin with the end of the one before; then the connection is free for a moment, in which
the database counts what it wrote: the vacuum goes by that."""
AGAIN_SEC = 0.25
DOUBT_SEC = 0.1
DOUBT_PATIENCE_SEC = 1.0
"""How long those behind a transaction that may or may not be kept wait with it; then they are sent away."""

BY_KEY = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""The writer finds every row by its key, and its statements are few: they are planned once, for tables of any
size. Left alone, a planner that has no figures yet walks through whole tables."""

UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What is raised for a record that JSON or the database cannot hold: the fault of that record alone."""

log = logging.getLogger("farhand.store")


class Untold(Lost):
    """Nobody can wait any longer for what became of a transaction."""


class Order(Struct):
    """What is to be written, who waits for it, and what came of it."""

    writes: tuple[Write, ...]
    waiter: asyncio.Future[Commit]
    is_direct: bool
    answer: Commit | Exception | None = None
    told: Told | None = None


class Writer:
    def __init__(self, place: Place, hours: Hours, hub: Hub, name: str) -> None:
        self.transactions = 0
        self._place = place
        self._hours = hours
        self._hub = hub
        self._name = name
        self._line: Line | None = None
        self._queue: deque[Order] = deque()
        self._more = asyncio.Event()
        self._closed = False
        self._down_until = 0.0
        self._batch = 0
        self._doubt: StoreDown | None = None
        """What everybody is told while the database does not say what became of a transaction."""
        self._has_failed = False
        """Whether the last transaction did."""

    async def commit(self, writes: tuple[Write, ...]) -> Commit:
        if self._closed:
            raise StoreDown("The store is closed.")
        if self._doubt is not None:
            raise self._doubt
        waiter: asyncio.Future[Commit] = asyncio.get_running_loop().create_future()
        self._queue.append(Order(writes, waiter, is_direct(writes)))
        self._more.set()
        return await waiter

    async def check(self) -> None:
        """Raises `StoreDown` while nothing can be written; what failed last is tried again."""
        if self._has_failed or self._doubt is not None:
            await self.commit(())

    async def run(self) -> None:
        """Until `close()`, and then whatever was queued before it."""
        try:
            while self._queue or not self._closed:
                await self._more.wait()
                self._more.clear()
                while self._queue:
                    await self._serve(self._next_orders())
        finally:
            self._closed = True
            self._refuse_queued(StoreDown("The store is closed."))
            if self._line is not None:
                await self._line.close()

    def close(self) -> None:
        self._closed = True
        self._more.set()

    def _next_orders(self) -> list[Order]:
        """What is there, in its order; a commit with a rare write in it goes alone."""
        orders = [self._queue.popleft()]
        while self._queue and len(orders) < AT_MOST:
            if orders[0].is_direct or self._queue[0].is_direct:
                break
            orders.append(self._queue.popleft())
        return orders

    async def _serve(self, orders: list[Order]) -> None:
        try:
            await self._write(orders)
            self._has_failed = False
        except (Lost, Declined) as error:
            self._say_failed(len(orders), error)
            for order in orders:
                order.told, order.answer = None, _refusal(error)
        except asyncio.CancelledError:
            for order in orders:
                _set(order.waiter, StoreDown("The store is closed."))
            raise
        except Exception as error:
            # not foreseen: nobody is left waiting, and whoever comes next starts afresh
            log.exception("a transaction of %d commits broke", len(orders))
            for order in orders:
                order.told, order.answer = None, _refusal(error)
        self._answer(orders)

    async def _write(self, orders: list[Order]) -> None:
        try:
            await self._transact(orders, careful=False)
        except (Raced, *UNWRITABLE) as error:
            if len(orders) == 1 and not isinstance(error, Raced):
                orders[0].told, orders[0].answer = None, _own_fault(error)
                return
            for order in orders:
                await self._write_alone(order)

    async def _write_alone(self, order: Order) -> None:
        """Looks at everything the guards could mean, since a table refused something it did not expect."""
        for _ in range(TRIES):
            try:
                return await self._transact([order], careful=True)
            except Raced:
                continue
            except UNWRITABLE as error:
                order.told, order.answer = None, _own_fault(error)
                return None
        raise Declined("others were faster every time")

    async def _transact(self, orders: list[Order], *, careful: bool) -> None:
        """All of the orders have their answer, or nothing is written."""
        for is_last in (False, True):
            line, is_fresh = await self._connected()
            self._batch += 1
            transaction = _Transaction(line, self._batch)
            try:
                await self._fill(transaction, orders, careful=careful)
                self.transactions += 1
                return
            except Lost:
                self._line = None
                if transaction.is_in_doubt and await self._was_kept(transaction):
                    return
                # an idle connection may have died long ago; a new one that dies is the database's trouble
                if is_last or is_fresh:
                    raise
            except BaseException:
                await self._roll_back(line)
                raise

    async def _fill(self, transaction: _Transaction, orders: list[Order], *, careful: bool) -> None:
        line = transaction.line
        if not line.is_in_transaction:
            await line.run("BEGIN")
        if orders[0].is_direct:
            await self._commit_directly(transaction, orders[0])
        else:
            await self._draft_all(transaction, orders, careful=careful)
        if all(order.told is None for order in orders):
            await line.run("ROLLBACK")
            return
        transaction.is_in_doubt = True
        await line.run("COMMIT AND CHAIN" if self._goes_on(line) else "COMMIT")

    def _goes_on(self, line: Line) -> bool:
        """Whether the next transaction begins with the end of this one: only if somebody waits for it, since
        none is left open."""
        return bool(self._queue) and self._batch % IN_A_ROW != 0 and line.notifies_at_commit

    async def _draft_all(self, transaction: _Transaction, orders: list[Order], *, careful: bool) -> None:
        line = transaction.line
        wanted = Wanted(write for order in orders for write in order.writes)
        gathered = await gather(line, wanted, careful=careful, told_time=self._hours.told)
        draft, transaction.id = gathered.draft, gathered.transaction
        self._hours.seen(gathered.at)
        for order in orders:
            told = Told(gathered.at)
            try:
                order.answer = draft_commit(draft, told, order.writes)
                order.told = told if isinstance(order.answer, Committed) else None
            except UNWRITABLE as error:
                order.told, order.answer = None, _own_fault(error)
        await flush(line, draft, self._announcement(orders))

    async def _commit_directly(self, transaction: _Transaction, order: Order) -> None:
        answer, told, transaction.id = await commit_directly(
            transaction.line, order.writes, told_time=self._hours.told
        )
        order.answer, order.told = answer, told if isinstance(answer, Committed) else None
        await flush(transaction.line, Draft(Find()), self._announcement([order]))

    def _announcement(self, orders: list[Order]) -> Announcement:
        hints = (hint for order in orders if order.told is not None for hint in hints_of(order.told))
        notes = tuple(notifications(self._name, hints))
        return Announcement(self._place.channel, notes, self._name, self._batch)

    async def _was_kept(self, transaction: _Transaction) -> bool:
        """Asks until the database says it: telling either half of the truth would be a lie."""
        now = asyncio.get_running_loop().time
        until = now() + DOUBT_PATIENCE_SEC
        try:
            while True:
                try:
                    kept = await self._find(transaction)
                    why = "the database is still at it"
                except (Lost, Declined) as error:
                    self._line = None
                    kept, why, until = None, str(error), now()
                if kept is not None:
                    return kept
                if self._closed:
                    raise Untold(why)
                if now() >= until:
                    self._turn_away(why)
                await asyncio.sleep(DOUBT_SEC)
        finally:
            self._doubt = None

    async def _find(self, transaction: _Transaction) -> bool | None:
        """Whether it was kept; None while it may still be."""
        line, _ = await self._connected()
        if await _is_in_progress(line, transaction.id):
            return None
        found = await line.fetch("SELECT batch FROM writers WHERE name = $1", self._name)
        return bool(found) and found[0][0] == transaction.batch

    def _turn_away(self, why: str) -> None:
        """Whoever is behind the transaction in doubt, and whoever comes, until it is resolved."""
        if self._doubt is None:
            log.warning("what became of a transaction is not known yet: %s", why)
            self._doubt = _refusal(Lost(why))
        self._refuse_queued(self._doubt)

    def _say_failed(self, count: int, error: Exception) -> None:
        """Once, until something can be written again."""
        level = logging.DEBUG if self._has_failed else logging.WARNING
        log.log(level, "a transaction of %d commits failed: %s", count, error)
        self._has_failed = True

    async def _connected(self) -> tuple[Line, bool]:
        """The connection, and whether it is new."""
        if self._line is not None and await self._line.is_alive():
            return self._line, False
        now = asyncio.get_running_loop().time
        if now() < self._down_until:
            raise Lost("the database could not be reached a moment ago")
        try:
            self._line = await connect(self._place, settings=BY_KEY)
        except (Lost, ValueError) as error:
            self._down_until = now() + AGAIN_SEC
            raise Lost(str(error)) from error
        return self._line, True

    async def _roll_back(self, line: Line) -> None:
        with suppress(Lost, Declined, Raced):
            await line.run("ROLLBACK")
            return
        line.cut()

    def _refuse_queued(self, error: Exception) -> None:
        while self._queue:
            _set(self._queue.popleft().waiter, error)

    def _answer(self, orders: list[Order]) -> None:
        """In the order of the commits. Who was cancelled while waiting is not waited for."""
        for order in orders:
            if order.told is not None:
                tell_commit(self._hub, order.told)
            _set(order.waiter, order.answer)


async def _is_in_progress(line: Line, transaction: str) -> bool:
    """Whether the session that was lost is still at it. Nothing more is believed of a transaction's number:
    after a crash of the database it may be unknown there, or another's."""
    try:
        [row] = await line.fetch("SELECT pg_xact_status($1::text::xid8)", transaction)
    except ValueError:
        return False
    return row[0] == "in progress"


class _Transaction:
    def __init__(self, line: Line, batch: int) -> None:
        self.line = line
        self.batch = batch
        self.id = ""
        self.is_in_doubt = False
        """From the moment its end was asked for until that is answered."""


def _set(waiter: asyncio.Future[Commit], answer: Commit | Exception | None) -> None:
    if waiter.done():
        return
    if isinstance(answer, Exception):
        waiter.set_exception(answer)
    elif answer is not None:
        waiter.set_result(answer)


def _own_fault(error: Exception) -> Exception:
    if isinstance(error, msgspec.DecodeError):
        # of a row that a guard had to look at
        return Unreadable(f"A stored record cannot be read by this version of farhand: {error}.")
    return error


def _refusal(error: Exception) -> StoreDown:
    what = "nobody knows whether this was kept" if isinstance(error, Untold) else "nothing of this was kept"
    down = StoreDown(f"The store could not write; {what}.", hint="Try again in a moment.")
    down.__cause__ = error
    return down
