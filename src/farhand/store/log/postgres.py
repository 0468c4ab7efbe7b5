"""Logs in PostgreSQL, for many workers: versions are checked under row locks, the database's clock judges.

A batch of appends is one transaction: its threads are locked in one order, so that two workers never wait for
each other in a circle; what holds is written by a few statements for the whole batch, and one notification
names the threads that moved. Must not know who makes the tables or which events there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

# has no types of its own
import asyncpg  # type: ignore[import-untyped]
import msgspec

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
from farhand.store.log.postgres_sql import (
    ADD_CALLS,
    ADD_FEED,
    ADD_LEASES,
    ADD_ROWS,
    ADD_SNAPSHOTS,
    CALLS,
    COUNT_FEED,
    DELETE,
    FEED,
    LOCK,
    MAKE_THREADS,
    NOW,
    PURGE,
    PURGE_CALLS,
    RENEW,
    ROWS,
    SNAPSHOT,
    THREADS,
    UPDATE_THREADS,
)

CHANNEL = "farhand_log"
PAYLOAD_BYTES = 7_000
"""PostgreSQL takes notifications of up to 8,000 bytes."""

_encode = msgspec.json.Encoder().encode
_call = msgspec.json.Decoder(Call).decode
_thread = msgspec.json.Decoder(ThreadRow).decode
_moved = msgspec.json.Decoder(list[tuple[str, str, str]]).decode

# the driver has no types of its own
Connection: TypeAlias = Any
Heard = Callable[[Owner, str], None]

LOST = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncio.TimeoutError)


class PostgresLogStore:
    is_shared = True

    def __init__(self, pool: Connection, *, offset: Callable[[], float] = lambda: 0.0) -> None:
        """`offset` is added to the database's time, for tests that own the time."""
        self._pool = pool
        self._offset = offset
        self._ahead = 0.0
        """How far the database's clock is ahead of this loop's, by the last answer."""

    async def measure_clock(self) -> None:
        async with self._connection() as line:
            self._set_clock(await line.fetchval(NOW))

    def now(self) -> float:
        return asyncio.get_running_loop().time() + self._ahead + self._offset()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        # one order for all workers
        order = sorted(range(len(appends)), key=lambda no: _key(appends[no]))
        batch = [appends[no] for no in order]
        async with self._connection() as line, line.transaction():
            results = await self._append(line, batch)
        return [result for _, result in sorted(zip(order, results, strict=True), key=lambda pair: pair[0])]

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        key = (owner.tenant, owner.subject, thread_id)
        async with self._connection() as line, line.transaction(isolation="repeatable_read", readonly=True):
            found = await line.fetchrow(SNAPSHOT, *key) if after is None else None
            version = after or 0 if found is None else found["version"]
            rows = await line.fetch(ROWS, *key, version)
        kept = tuple([Row(row["version"], row["at"], row["body"]) for row in rows])
        if found is None:
            return Loaded(kept)
        return Loaded(kept, found["body"], found["version"])

    async def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        column = {"call": "call_id", "approval": "approval_id", "request": "request_id"}[kind]
        where = f"c.{column} = $1 AND c.tenant = $2 AND c.subject = $3"
        found = await self._calls(where, [value, owner.tenant, owner.subject], "c.call_id", 1)
        return found[0] if found else None

    async def open_calls(
        self,
        *,
        owner: Owner | None = None,
        client_id: str | None = None,
        due_before: float | None = None,
        limit: int = 1000,
    ) -> list[FoundCall]:
        values: list[object] = []
        where = ["c.settled_at IS NULL"]
        for column, value in (
            ("c.tenant =", None if owner is None else owner.tenant),
            ("c.subject =", None if owner is None else owner.subject),
            ("c.client_id =", client_id),
            ("c.deadline <", due_before),
        ):
            if value is not None:
                values.append(value)
                where.append(f"{column} ${len(values)}")
        order = "c.opened_at, c.call_id" if due_before is None else "c.deadline, c.call_id"
        return await self._calls(" AND ".join(where), values, order, limit)

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[ThreadFound]:
        where, values = "tenant = $1 AND subject = $2", [owner.tenant, owner.subject, *(after or ())]
        if after is not None:
            where += " AND (updated_at, thread_id) < ($3, $4)"
        return await self._threads(where, values, "updated_at DESC, thread_id DESC", limit)

    async def strays(self, *, worker: str, limit: int) -> list[ThreadFound]:
        where = "can_go_on AND coalesce(lease_until, 0) <= extract(epoch FROM clock_timestamp()) + $1::float8"
        return await self._threads(where, [self._offset()], "no", limit)

    async def renew(self, worker: str, until: float) -> None:
        async with self._connection() as line:
            await line.execute(RENEW, worker, until)

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        async with self._connection() as line:
            found = await line.fetch(FEED, owner.tenant, owner.subject, after, limit)
        return [
            FeedRow(each["no"], each["thread_id"], Row(each["version"], each["at"], each["body"]))
            for each in found
        ]

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        async with self._connection() as line:
            return await line.fetchval(DELETE, owner.tenant, owner.subject, thread_id, version) is not None

    async def purge(self, *, before: float) -> int:
        async with self._connection() as line, line.transaction():
            removed = await line.fetchval(PURGE, before)
            await line.execute(PURGE_CALLS, before)
        return int(removed)

    @asynccontextmanager
    async def listening(self, heard: Heard) -> AsyncIterator[None]:
        """`heard` is told of every thread that a worker moves, this one included. A hint: it may be lost."""

        def receive(line: Connection, pid: int, channel: str, payload: str) -> None:
            for tenant, subject, thread_id in _moved(payload):
                heard(Owner(tenant, subject), thread_id)

        async with self._connection() as line:
            await line.add_listener(CHANNEL, receive)
            try:
                yield
            finally:
                await line.remove_listener(CHANNEL, receive)

    async def close(self) -> None:
        await self._pool.close()

    async def _append(self, line: Connection, batch: list[Append]) -> list[AppendResult]:
        numbers, now = await self._lock(line, batch)
        results: list[AppendResult] = []
        for append in batch:
            _, version = numbers.get(_key(append), (0, 0))
            if version != append.version:
                results.append(Moved(version))
            else:
                results.append(Appended() if is_in_time(append, now) else OutOfTime(now))
        held = [
            (numbers[_key(append)][0], append)
            for append, result in zip(batch, results, strict=True)
            if append.body and isinstance(result, Appended)
        ]
        if held:
            await _write(line, held)
        return results

    async def _lock(
        self, line: Connection, batch: list[Append]
    ) -> tuple[dict[tuple[str, str, str], tuple[int, int]], float]:
        """The number and the version of each thread, which nobody else can move before this transaction ends;
        and the database's time after that wait."""
        new = [_key(append) for append in batch if append.version == 0 and append.body]
        if new:
            await line.execute(MAKE_THREADS, *_columns(new))
        found = await line.fetch(LOCK, *_columns([_key(append) for append in batch]))
        now = self._set_clock(await line.fetchval(NOW))
        numbers = {
            (row["tenant"], row["subject"], row["thread_id"]): (row["no"], row["version"]) for row in found
        }
        return numbers, now

    def _set_clock(self, now: float) -> float:
        self._ahead = now - asyncio.get_running_loop().time()
        return now + self._offset()

    async def _calls(self, where: str, values: Sequence[object], order: str, limit: int) -> list[FoundCall]:
        """`where` and `order` are made of names of columns; what comes from outside is bound."""
        sql = f"{CALLS} WHERE {where} ORDER BY {order} LIMIT ${len(values) + 1}"
        async with self._connection() as line:
            found = await line.fetch(sql, *values, limit)
        return [
            FoundCall(Owner(each["tenant"], each["subject"]), each["thread_id"], _call(each["record"]))
            for each in found
        ]

    async def _threads(
        self, where: str, values: Sequence[object], order: str, limit: int
    ) -> list[ThreadFound]:
        """`where` and `order` are made of names of columns; what comes from outside is bound."""
        sql = f"{THREADS} WHERE {where} ORDER BY {order} LIMIT ${len(values) + 1}"
        async with self._connection() as line:
            found = await line.fetch(sql, *values, limit)
        return [
            ThreadFound(
                Owner(each["tenant"], each["subject"]),
                each["thread_id"],
                each["version"],
                _thread(each["record"]),
            )
            for each in found
            if each["version"] > 0
        ]

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        try:
            async with self._pool.acquire() as line:
                yield line
        except LOST as error:
            raise StoreDown(f"The database does not answer: {error}") from error


async def _write(line: Connection, held: list[tuple[int, Append]]) -> None:
    """All of them, by as many statements as there are kinds of rows."""
    rows = [(no, append.version + 1, append.at, append.body) for no, append in held]
    await line.execute(ADD_ROWS, *_columns(rows))
    await line.execute(UPDATE_THREADS, *_columns([_thread_values(no, append) for no, append in held]))
    calls = [_call_values(no, append.owner, call) for no, append in held for call in append.calls]
    if calls:
        await line.execute(ADD_CALLS, *_columns(calls))
    leases = [(no, append.lease.worker or None, append.lease.until) for no, append in held if append.lease]
    if leases:
        await line.execute(ADD_LEASES, *_columns(leases))
    snapshots = [
        (no, append.version + 1, append.snapshot) for no, append in held if append.snapshot is not None
    ]
    if snapshots:
        await line.execute(ADD_SNAPSHOTS, *_columns(snapshots))
    await _write_feed(line, [(no, append) for no, append in held if append.in_feed])
    await _notify(line, [_key(append) for _, append in held])


async def _write_feed(line: Connection, fed: list[tuple[int, Append]]) -> None:
    """The counter of an owner is locked until the end of the transaction: numbers appear in their order."""
    counts: dict[tuple[str, str], int] = {}
    for _, append in fed:
        owner = (append.owner.tenant, append.owner.subject)
        counts[owner] = counts.get(owner, 0) + 1
    if not counts:
        return
    wanted = [(*owner, count) for owner, count in sorted(counts.items())]
    found = await line.fetch(COUNT_FEED, *_columns(wanted))
    last = {(row["tenant"], row["subject"]): row["last"] for row in found}
    rows: list[tuple[object, ...]] = []
    for no, append in reversed(fed):
        owner = (append.owner.tenant, append.owner.subject)
        rows.append((*owner, last[owner], no, append.version + 1))
        last[owner] -= 1
    await line.execute(ADD_FEED, *_columns(rows))


async def _notify(line: Connection, moved: list[tuple[str, str, str]]) -> None:
    part: list[tuple[str, str, str]] = []
    for key in moved:
        if part and len(_encode([*part, key])) > PAYLOAD_BYTES:
            await line.execute("SELECT pg_notify($1, $2)", CHANNEL, _encode(part).decode())
            part = []
        part.append(key)
    await line.execute("SELECT pg_notify($1, $2)", CHANNEL, _encode(part).decode())


def _key(append: Append) -> tuple[str, str, str]:
    return (append.owner.tenant, append.owner.subject, append.thread_id)


def _thread_values(no: int, append: Append) -> tuple[object, ...]:
    row = append.thread
    assert row is not None, "an append with events says how the thread is listed"
    return (no, append.version + 1, row.updated_at, can_go_on(row), _encode(row))


def _call_values(no: int, owner: Owner, call: Call) -> tuple[object, ...]:
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


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    """Rows as columns, which is how a statement takes many of them."""
    return [list(column) for column in zip(*rows, strict=True)]
