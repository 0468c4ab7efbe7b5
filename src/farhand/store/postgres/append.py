"""Appends: the only task of this process that writes to logs.

Appends that arrive during a transaction share the next one, so that one wait for the disk serves all of them.
A transaction is one statement. Callers are answered once it is durable. If the connection breaks before the
database has answered, it is unknown whether it was written: `StoreDown` for the whole transaction.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from farhand.errors import StoreDown, Unreadable
from farhand.store.base import Append, Appended, AppendResult
from farhand.store.outage_log import OutageLog
from farhand.store.postgres.batch import WRITE_NOTHING, AppendBatch, EncodedAppend, Key, Values
from farhand.store.postgres.connection import (
    BY_KEY,
    Columns,
    Connection,
    ConnectionLost,
    DatabaseAddress,
    DatabaseClock,
    DuplicateRow,
    StatementFailed,
    TransactionConflict,
    connect,
)
from farhand.store.postgres.pool import CommitUnknown

log = logging.getLogger("farhand.store")

BATCH = 256
"""Appends per transaction: a flood must not make the first one wait for the last."""
BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of their records, unless a single append has more: a statement that takes too long fails all of its
appends, now and whenever they are tried again."""
APPEND_ATTEMPTS = 8
"""How often a transaction that lost a race is tried again."""
RETRY_SEC = 0.25
STALLED_SEC = 2.0
"""A transaction that takes longer than this may never end: until it does, the store is not ready."""
REBUILD = "Run `farhand rebuild`."
MAX_KNOWN_TOOLS = 1_000
"""Versions of tools that are known to be stored and need not be sent again."""


class QueuedAppend(Struct):
    """Appends of one caller that may share a statement, and the caller."""

    appends: list[EncodedAppend]
    names: set[Values]
    answer: asyncio.Future[dict[Key, AppendResult]]

    @property
    def size(self) -> int:
        return sum(each.size for each in self.appends)


class AppendQueue:
    """`append` may be called by any number of tasks; `run` does the work."""

    def __init__(self, database: DatabaseAddress, clock: DatabaseClock, sender: str) -> None:
        self.transactions = 0
        self._database = database
        self._clock = clock
        self._sender = sender
        self._connection: Connection | None = None
        self._queue: deque[QueuedAppend] = deque()
        self._arrived = asyncio.Event()
        self._closed = False
        self._down_until = 0.0
        self._has_failed = False
        """Whether the last transaction failed."""
        self._outages = OutageLog(log, "the store can be written again")
        self._busy_since = math.inf
        self._tools: set[str] = set()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        if self._closed:
            raise StoreDown("The store is closed.")
        # here, so that an append that cannot be encoded fails only its caller
        encoded = [EncodedAppend(each) for each in appends]
        if len({each.key for each in encoded}) != len(encoded):
            raise ValueError("one call appends to each thread at most once")
        results: dict[Key, AppendResult] = {}
        for answer in await asyncio.gather(*(self._put(group) for group in _groups(encoded))):
            results |= answer
        return [results[each.key] for each in encoded]

    def _put(self, group: list[EncodedAppend]) -> asyncio.Future[dict[Key, AppendResult]]:
        answer: asyncio.Future[dict[Key, AppendResult]] = asyncio.get_running_loop().create_future()
        names: set[Values] = set().union(*(each.names for each in group))
        self._queue.append(QueuedAppend(group, names, answer))
        self._arrived.set()
        return answer

    async def check(self) -> None:
        """Raises `StoreDown` while nothing can be written. After a failure a transaction is tried."""
        if asyncio.get_running_loop().time() - self._busy_since > STALLED_SEC:
            raise StoreDown("The store has not answered for a while.", hint="Try again in a moment.")
        if self._has_failed:
            await self.append(())

    async def run(self) -> None:
        """Runs until `close()`, then finishes what was queued before it."""
        try:
            while self._queue or not self._closed:
                await self._arrived.wait()
                self._arrived.clear()
                while self._queue:
                    await self._serve(self._next_batch())
        finally:
            self._closed = True
            while self._queue:
                _answer(self._queue.popleft(), StoreDown("The store is closed."))
            if self._connection is not None:
                await self._connection.close()

    def close(self) -> None:
        self._closed = True
        self._arrived.set()

    def _next_batch(self) -> list[QueuedAppend]:
        """What waits, in order, up to a second append to the same thread, or to a call or run of one."""
        batch = [self._queue.popleft()]
        names, count, size = set(batch[0].names), len(batch[0].appends), batch[0].size
        while self._queue:
            following = self._queue[0]
            count, size = count + len(following.appends), size + following.size
            if count > BATCH or size > BATCH_BYTES or not names.isdisjoint(following.names):
                break
            names |= following.names
            batch.append(self._queue.popleft())
        return batch

    async def _serve(self, batch: list[QueuedAppend]) -> None:
        self._busy_since = asyncio.get_running_loop().time()
        try:
            results = await self._write(AppendBatch(append for each in batch for append in each.appends))
        except (ValueError, Unreadable) as error:
            await self._serve_alone(batch, error)
        except asyncio.CancelledError:
            for each in batch:
                _answer(each, StoreDown("The store is closed."))
            raise
        # whatever it is: no caller is left waiting, and the next batch starts normally
        except Exception as error:  # noqa: BLE001
            self._note_failure(batch, error)
            for each in batch:
                _answer(each, _down(error))
        else:
            self._has_failed = False
            self._outages.note_success()
            for each in batch:
                _answer(each, {append.key: results[append.key] for append in each.appends})
        finally:
            self._busy_since = math.inf

    async def _serve_alone(self, batch: list[QueuedAppend], error: Exception) -> None:
        """One of them has a text that the database cannot store, or a thread whose row contradicts its log,
        which must fail only its caller."""
        if len(batch) == 1:
            _answer(batch[0], error)
            return
        for each in batch:
            await self._serve([each])

    async def _write(self, batch: AppendBatch) -> dict[Key, AppendResult]:
        lost: TransactionConflict | None = None
        for attempt in range(APPEND_ATTEMPTS):
            try:
                return await self._try(batch, look_at_all_requests=attempt > 0)
            except TransactionConflict as error:
                log.debug("another transaction was faster: %s", error)
                lost = error
        if isinstance(lost, DuplicateRow):
            raise Unreadable("The tables of the store contradict each other.", hint=REBUILD) from lost
        raise StatementFailed("lost the race to other transactions every time")

    async def _try(self, batch: AppendBatch, *, look_at_all_requests: bool) -> dict[Key, AppendResult]:
        connection = await self._get_connection()
        if not batch.appends:
            await _fetch(connection, WRITE_NOTHING, seconds=STALLED_SEC)
            return {}
        sql, values = batch.statement(
            self._tools,
            notify=(self._database.channel, self._sender),
            now=self._clock.override,
            everywhere=look_at_all_requests,
        )
        asked_at = self._clock.monotonic()
        rows = await _fetch(connection, sql, *values)
        self.transactions += 1
        if rows:
            self._clock.update(max(row[3] for row in rows), asked_at=asked_at)
        results = batch.results(rows)
        self._remember_tools([each for each in batch.appends if isinstance(results[each.key], Appended)])
        return results

    def _remember_tools(self, accepted: list[EncodedAppend]) -> None:
        if len(self._tools) > MAX_KNOWN_TOOLS:
            self._tools.clear()
        self._tools.update(version for each in accepted for version, _ in each.tools)

    async def _get_connection(self) -> Connection:
        if self._connection is not None and await self._connection.is_alive():
            return self._connection
        now = asyncio.get_running_loop().time
        if now() < self._down_until:
            raise ConnectionLost("the database could not be reached a moment ago")
        try:
            self._connection = await connect(self._database, settings=BY_KEY)
        except (ConnectionLost, ValueError) as error:
            self._down_until = now() + RETRY_SEC
            raise ConnectionLost(str(error)) from error
        return self._connection

    def _note_failure(self, batch: list[QueuedAppend], error: Exception) -> None:
        is_expected = isinstance(error, ConnectionLost | CommitUnknown | StatementFailed)
        count = sum(len(each.appends) for each in batch)
        trace = None if is_expected else error
        self._outages.note_failure("a transaction of %d appends failed: %s", count, error, trace=trace)
        self._has_failed = True


def _groups(appends: list[EncodedAppend]) -> list[list[EncodedAppend]]:
    """Those that share a name come one after the other, in their order; as a rule none do. Nor do as many as
    are too large for one statement."""
    groups: list[list[EncodedAppend]] = []
    names: set[Values] = set()
    size = 0
    for each in appends:
        size += each.size
        if not groups or size > BATCH_BYTES or not names.isdisjoint(each.names):
            groups.append([])
            names.clear()
            size = each.size
        groups[-1].append(each)
        names |= each.names
    return groups or [[]]


async def _fetch(
    connection: Connection, sql: str, *values: object, seconds: float | None = None
) -> list[Columns]:
    try:
        return await connection.fetch(sql, *values, seconds=seconds)
    except ConnectionLost as error:
        raise CommitUnknown(str(error)) from error


def _answer(pending: QueuedAppend, answer: dict[Key, AppendResult] | Exception) -> None:
    """A caller that was cancelled is skipped."""
    if pending.answer.done():
        return
    if isinstance(answer, Exception):
        pending.answer.set_exception(answer)
    else:
        pending.answer.set_result(answer)


def _down(error: Exception) -> StoreDown:
    if isinstance(error, CommitUnknown):
        what, hint = (
            "The store has not confirmed yet whether this was stored.",
            "Send the same again in a moment.",
        )
    else:
        what, hint = "The store could not write; nothing of this was stored.", "Try again in a moment."
    down = StoreDown(what, hint=hint)
    down.__cause__ = error
    return down
