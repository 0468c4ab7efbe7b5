"""The connections that read, and that write what is in no thread's log: a few, each used by one task at a
time.

A connection that was idle while the database restarted is found dead only when it is used: then all idle ones
are dropped and the work is tried again on a new one. While the database cannot be reached, callers get an
error at once instead of each waiting for its own connection to fail. If it accepts no more connections,
callers share the existing ones. A read has one time limit overall: for its turn, a connection and the answer.
Reads by key that arrive together share a statement, as appends share a transaction.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from farhand.errors import StoreDown
from farhand.store.outage_log import QUIET_SEC, OutageLog
from farhand.store.postgres.connection import (
    BY_INDEX,
    Columns,
    Connection,
    ConnectionLost,
    DatabaseAddress,
    StatementFailed,
    TooManyConnections,
    TransactionConflict,
    Unstorable,
    connect,
    is_writable,
)

log = logging.getLogger("farhand.store")

POOL_SIZE = 8
STATEMENTS_AT_ONCE = 2
"""Statements of one kind of reads by key that run at the same time: one long thread does not hold up all."""
KEYS_PER_STATEMENT = 64
"""Keys per statement: the first of a flood must not wait for the last."""
READ_SEC = 5.0
"""How long a caller waits: for its turn, then for an answer, on as many connections as that takes."""
RETRY_SEC = 0.25
"""When a database that could not be reached is tried again."""
FULL_SEC = 1.0
"""When a database that accepted no more connections is asked for one again."""
TRANSACTION_SEC = 60.0
"""For several statements together: each also has its own limit."""
RUN_ATTEMPTS = 5

R = TypeVar("R")


class CommitUnknown(Exception):
    """The connection broke during COMMIT: the transaction may or may not have been applied."""


class Pool:
    def __init__(self, database: DatabaseAddress, *, size: int = POOL_SIZE) -> None:
        self._database = database
        self._idle: list[Connection] = []
        self._out = 0
        """Connections that are not idle: in use, being opened or being checked."""
        self._returned = asyncio.Event()
        self._full_until = -math.inf
        self._turn = asyncio.Semaphore(size)
        self._down_until = 0.0
        self._closed = False
        self._is_silent = False
        """Whether the last request to the database got no answer."""
        self._is_connecting = False
        self._outages = OutageLog(log, "the store completes requests again")

    async def fetch(self, sql: str, *values: object) -> list[Columns]:
        """The stored rows; empty if a value is a text that no record can hold."""
        try:
            return await self.run(lambda connection: connection.fetch(sql, *values))
        except Unstorable:
            return []

    async def run(self, work: Callable[[Connection], Awaitable[R]]) -> R:
        """For work that may run twice: a read, or a statement that changes nothing the second time."""
        return await self._run(work, READ_SEC)

    async def transact(self, work: Callable[[Connection], Awaitable[R]]) -> R:
        """For work that belongs together and runs once. If the answer to COMMIT is lost, the transaction
        may or may not have been applied: that raises `StoreDown`, and is never retried here."""

        async def transaction(connection: Connection) -> R:
            try:
                await connection.execute("BEGIN")
                done = await work(connection)
                await commit(connection)
            except BaseException:
                # closing the connection rolls back the half-done work
                connection.abort()
                raise
            return done

        return await self._run(transaction, TRANSACTION_SEC)

    async def check(self) -> None:
        """Raises `StoreDown` unless the database can be read and accepts writes."""
        await self.run(_check_writable)

    async def close(self) -> None:
        self._closed = True
        for connection in self._idle:
            await connection.close()
        self._idle.clear()

    async def _run(self, work: Callable[[Connection], Awaitable[R]], seconds: float) -> R:
        now = asyncio.get_running_loop().time()
        await self._get_turn()
        try:
            return await self._try(work, now + seconds)
        finally:
            self._turn.release()

    async def _try(self, work: Callable[[Connection], Awaitable[R]], until: float) -> R:
        for _ in range(RUN_ATTEMPTS):
            connection, is_new = await self._get_connection(until)
            connection.deadline = until
            try:
                done = await work(connection)
                self._outages.note_success()
                return done
            except TransactionConflict:
                continue
            except (StatementFailed, CommitUnknown) as error:
                raise self._down(error) from error
            except ConnectionLost as error:
                self._drop_idle()
                if connection.timed_out:
                    self._note_silence()
                if is_new or connection.timed_out:
                    raise self._down(error) from error
            finally:
                self._put_back(connection)
        raise StoreDown("The store is too busy.", hint="Try again in a moment.")

    async def _get_turn(self) -> None:
        if self._closed:
            raise StoreDown("The store is closed.")
        if not self._turn.locked():
            await self._turn.acquire()
            return
        try:
            async with asyncio.timeout(READ_SEC):
                await self._turn.acquire()
        except TimeoutError as error:
            raise StoreDown("The store is too busy.", hint="Try again in a moment.") from error

    async def _get_connection(self, until: float) -> tuple[Connection, bool]:
        """Also returns whether it is new. With none of ours to wait for, the database is asked for a while: a
        connection that was just closed still occupies its slot for a moment."""
        now = asyncio.get_running_loop().time
        give_up_at = min(until, now() + FULL_SEC)
        while True:
            try:
                return await self._find_connection(until)
            except TooManyConnections as error:
                if not self._out and now() >= give_up_at:
                    raise self._down(error) from error
            if self._out:
                await self._wait_for_connection(until)
            else:
                await asyncio.sleep(RETRY_SEC)

    async def _find_connection(self, until: float) -> tuple[Connection, bool]:
        """Raises `TooManyConnections` if none is idle and no other can be opened."""
        self._out += 1
        try:
            connection = await self._take_idle()
            if connection is not None:
                return connection, False
            if self._out > 1 and asyncio.get_running_loop().time() < self._full_until:
                raise TooManyConnections("the database accepts no more connections")
            return await self._connect(until), True
        except BaseException:
            self._note_returned()
            raise

    async def _wait_for_connection(self, until: float) -> None:
        self._returned.clear()
        try:
            async with asyncio.timeout_at(until):
                await self._returned.wait()
        except TimeoutError as error:
            raise StoreDown("The store is too busy.", hint="Try again in a moment.") from error

    async def _take_idle(self) -> Connection | None:
        """The most recently used one, if it is still alive: else none of them may be."""
        if not self._idle:
            return None
        connection = self._idle.pop()
        if await connection.is_alive():
            return connection
        self._drop_idle()
        return None

    async def _connect(self, until: float = math.inf) -> Connection:
        """While the database is silent, one caller's request serves all: the others need not find out
        themselves."""
        now = asyncio.get_running_loop().time()
        left = until - now
        if now < self._down_until or self._is_connecting or left <= 0:
            raise StoreDown("The store is not responding.", hint="Try again in a moment.")
        self._is_connecting = self._is_silent
        try:
            connection = await connect(self._database, settings=BY_INDEX, seconds=left)
        except TooManyConnections as error:
            self._note_full(error)
            raise
        except (ConnectionLost, ValueError) as error:
            self._note_silence()
            raise self._down(error) from error
        finally:
            self._is_connecting = False
        self._is_silent = False
        return connection

    def _put_back(self, connection: Connection) -> None:
        if self._closed or connection.is_closed:
            connection.abort()
        else:
            connection.deadline = math.inf
            self._idle.append(connection)
        self._note_returned()

    def _note_returned(self) -> None:
        self._out -= 1
        self._returned.set()

    def _drop_idle(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def _note_full(self, error: TooManyConnections) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._full_until > QUIET_SEC:
            log.warning("the database accepts no more connections, so reads wait for each other: %s", error)
        self._full_until = now + FULL_SEC

    def _note_silence(self) -> None:
        self._is_silent = True
        self._down_until = asyncio.get_running_loop().time() + RETRY_SEC

    def _down(self, error: Exception) -> StoreDown:
        self._outages.note_failure("the store did not complete a request: %s", error)
        if isinstance(error, CommitUnknown):
            return StoreDown(
                "The store did not confirm the change; it may or may not have been applied.",
                hint="Check whether it was applied before you try again.",
            )
        return StoreDown("The store did not complete the request.", hint="Try again in a moment.")


async def commit(connection: Connection, *, seconds: float | None = None) -> None:
    try:
        await connection.execute("COMMIT", seconds=seconds)
    except ConnectionLost as error:
        raise CommitUnknown(str(error)) from error


async def _check_writable(connection: Connection) -> None:
    """Raises `ConnectionLost` if it is not: another connection may find the database that took over."""
    if not await is_writable(connection):
        connection.abort()
        raise ConnectionLost("the database accepts no writes; it is a replica, or was made read-only")


class _Read(Struct, eq=False):
    """Columns of one read, and its caller."""

    key: tuple[object, ...]
    rows: asyncio.Future[list[Columns]]


class KeyedReads:
    """Reads of single records by one statement. It takes the keys as columns, and the first column of its
    rows is the position of their key, from 1. Reads that arrive in one turn of the loop, or while every lane
    is busy, share a statement."""

    def __init__(self, pool: Pool, sql: str) -> None:
        self._pool = pool
        self._sql = sql
        self._waiting: deque[_Read] = deque()
        self._lanes: set[asyncio.Task[None]] = set()
        self._is_starting = False
        """Whether a lane is about to take what waits."""

    async def rows(self, *key: object) -> list[Columns]:
        """The rows of this key; none if it holds a text that no record can hold."""
        rows: asyncio.Future[list[Columns]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Read(key, rows))
        if not self._is_starting and len(self._lanes) < STATEMENTS_AT_ONCE:
            self._is_starting = True
            # without a group: it ends as soon as nothing waits, and nobody else waits for it
            lane = asyncio.create_task(self._serve())  # noqa: TID251
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return await rows

    async def _serve(self) -> None:
        self._is_starting = False
        try:
            await self._serve_waiting()
        finally:
            # not by its callback, which comes later: a read that arrives before that would wait for a lane
            # that serves nobody any more
            lane = asyncio.current_task()
            assert lane is not None, "a lane is a task"
            self._lanes.discard(lane)

    async def _serve_waiting(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(KEYS_PER_STATEMENT, len(self._waiting)))]
            try:
                await self._read(batch)
            except BaseException:
                # cancelled with the process
                _fail(batch, StoreDown("The store is closed."))
                raise

    async def _read(self, batch: list[_Read]) -> None:
        wanted = [read for read in batch if not read.rows.done()]
        if not wanted:
            return
        columns = [list(column) for column in zip(*(read.key for read in wanted), strict=True)]
        try:
            rows = await self._pool.run(lambda connection: connection.fetch(self._sql, *columns))
        except Unstorable:
            await self._read_alone(wanted)
        # of each caller, whatever it is: none is left waiting
        except Exception as error:  # noqa: BLE001
            _fail(wanted, error)
        else:
            found: dict[int, list[Columns]] = {}
            for row in rows:
                found.setdefault(row[0], []).append(row)
            for position, read in enumerate(wanted, 1):
                if not read.rows.done():
                    read.rows.set_result(found.get(position, []))

    async def _read_alone(self, batch: list[_Read]) -> None:
        """One of them has a text that no record can hold: it finds nothing, and the others what they seek."""
        if len(batch) == 1:
            batch[0].rows.set_result([])
            return
        for read in batch:
            await self._read([read])


def _fail(batch: list[_Read], error: Exception) -> None:
    for read in batch:
        if not read.rows.done():
            read.rows.set_exception(error)
