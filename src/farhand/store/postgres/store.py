"""The store itself, its files and its clients: appends go to the queue's task, everything else to a few
shared connections.

A read sees every acknowledged append. What belongs to another owner is never found.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Sequence
from typing import Literal

from msgspec.structs import replace

from farhand.clock import Clock
from farhand.core.client import Client
from farhand.core.file import Kept, StoredFile
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.tool import Tool
from farhand.store.base import (
    CLIENTS_CHANGED,
    Append,
    AppendResult,
    CallFilter,
    CallKey,
    ClientStore,
    Counted,
    FeedRow,
    FileStore,
    FoundCall,
    FoundThread,
    HintListener,
    Loaded,
    Lookups,
    PurgeCount,
    ThreadKey,
    owner_key,
)
from farhand.store.postgres import queries
from farhand.store.postgres.append import AppendQueue
from farhand.store.postgres.batch import columns, compare_versions
from farhand.store.postgres.connection import (
    Columns,
    Connection,
    DatabaseAddress,
    DatabaseClock,
    Unstorable,
    parse_address,
)
from farhand.store.postgres.notify import FeedWriter, Notifier
from farhand.store.postgres.pool import KeyedReads, Pool
from farhand.store.postgres.purge import count_old, delete_thread, purge, rebuild_thread, remove_files
from farhand.store.postgres.schema import prepare
from farhand.store.presence import Absence, Seat, Streams
from farhand.store.records import (
    decode_client,
    decode_file,
    decode_or_raise,
    decode_or_skip,
    decode_run,
    decode_tool,
    encode,
    next_registration,
)

CACHED_TOOLS = 256
RETIRED = 0.0
"""Until when a stream was there whose client will not return."""


class PostgresStore:
    """Created by `open`."""

    is_shared: bool = True

    def __init__(self, database: DatabaseAddress, clock: DatabaseClock) -> None:
        sender = os.urandom(8).hex()
        self._database = database
        self._clock = clock
        self._pool = Pool(database)
        self._threads = KeyedReads(self._pool, queries.LOAD)
        self._calls = {kind: KeyedReads(self._pool, sql) for kind, sql in queries.FIND_CALL.items()}
        self._appends = AppendQueue(database, clock, sender)
        self._notifier = Notifier(database, self._pool, sender)
        self._feed = FeedWriter(database.channel, sender, clock)
        self.files: FileStore = PostgresFiles(self._pool, clock)
        self.clients: ClientStore = PostgresClients(self._pool, clock, self._feed)
        self.streams: Streams | None = PostgresStreams(self._pool, clock)
        self._tools: dict[str, Tool] = {}
        # without a group, like the other one below: it runs until the store is closed
        self._appending = asyncio.create_task(self._appends.run())  # noqa: TID251
        # it owns the group that its own tasks live in
        self._notifying = asyncio.create_task(self._notifier.run())  # noqa: TID251

    @classmethod
    async def open(cls, address: str, clock: Clock | None = None, *, as_is: bool = False) -> PostgresStore:
        """Raises `BadSetting` for a database that cannot be used, and, opened `as_is`, for one whose tables
        are not of this version. The database's own clock counts, unless `clock` is set."""
        database = parse_address(address)
        database_clock = DatabaseClock(asyncio.get_running_loop().time, clock)
        asked_at = database_clock.monotonic()
        database_clock.update(await prepare(database, as_is=as_is), asked_at=asked_at)
        return cls(database, database_clock)

    def now(self) -> float:
        return self._clock.now()

    async def check(self) -> None:
        await self._pool.check()
        await self._appends.check()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        if any(each.body for each in appends):
            return await self._appends.append(appends)
        return await compare_versions(self._pool, appends, self._clock) if appends else []

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        return queries.loaded_of(await self._threads.rows(*_key(owner), thread_id, after))

    async def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        rows = await self._calls[kind].rows(*_key(owner), value)
        return queries.call_of(rows[0]) if rows else None

    async def open_calls(self, which: CallFilter, *, limit: int = 1000) -> list[FoundCall]:
        sql, values = queries.open_calls_query(which)
        return queries.calls_of(await self._pool.fetch(sql, *values, limit))

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[FoundThread]:
        async def read(after: tuple[float, str] | None, limit: int) -> list[Columns]:
            if after is None:
                return await self._pool.fetch(queries.THREADS, *_key(owner), limit)
            return await self._pool.fetch(queries.THREADS_AFTER, *_key(owner), limit, *after)

        return await queries.full_page(
            limit,
            after,
            read=read,
            cursor_of=lambda row: (row["updated_at"], row["thread_id"]),
            decode=queries.thread_of_row,
        )

    async def find_run(self, owner: Owner, run_id: str) -> Run | None:
        rows = await self._pool.fetch(queries.FIND_RUN, *_key(owner), run_id)
        return decode_or_raise(decode_run, rows[0][0]) if rows else None

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        async def read(after: str | None, limit: int) -> list[Columns]:
            return await self._pool.fetch(queries.RUNS, *_key(owner), after, limit)

        return await queries.full_page(
            limit, after, read=read, cursor_of=lambda row: str(row["run_id"]), decode=queries.run_of_row
        )

    async def find_tool(self, version: str) -> Tool | None:
        # a version never changes, so a cached copy is as good as the stored one
        tool = self._tools.get(version)
        if tool is not None:
            return tool
        rows = await self._pool.fetch(queries.FIND_TOOL, version)
        if not rows:
            return None
        if len(self._tools) >= CACHED_TOOLS:
            self._tools.clear()
        self._tools[version] = tool = decode_or_raise(decode_tool, rows[0][0])
        return tool

    async def count(self, what: Counted, tenant: str, subject: str | None = None) -> int:
        rows = await self._pool.fetch(queries.COUNT[what], tenant, subject)
        return int(rows[0][0]) if rows else 0

    async def claimable(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0, worker: str = ""
    ) -> list[FoundThread]:
        unreadable: list[int] = []
        while True:
            values = (self._clock.override, list(skip), unreadable, limit)
            if reserve_sec:
                rows = await self._pool.fetch(queries.RESERVE_CLAIMABLE, *values, reserve_sec)
            else:
                rows = await self._pool.fetch(queries.CLAIMABLE, *values, worker)
            found = [each for each in map(queries.thread_of_row, rows) if each is not None]
            if found or not rows:
                return found
            # none of these can be read: they must not hide the others
            unreadable += [row["thread_no"] for row in rows]

    async def renew(self, worker: str, until: float) -> None:
        # from the database's own time: a process that appends nothing does not notice that its clock was set
        # ahead, or that another database took over
        await self._pool.fetch(queries.RENEW, worker, until - self.now(), self._clock.override)

    async def add_to_feed(self, owner: Owner, body: bytes, thread_id: str | None = None) -> None:
        await self._pool.transact(lambda connection: self._feed.write(connection, owner, body, thread_id))

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        rows = await self._pool.fetch(queries.FEED, *_key(owner), after, limit)
        return [queries.feed_row_of(row) for row in rows]

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        rows = await self._pool.fetch(queries.FEED_SPAN, *_key(owner))
        return (rows[0][0], rows[0][1]) if rows else (1, 0)

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        return await delete_thread(self._pool, self._feed, owner, thread_id=thread_id, version=version)

    async def without_snapshot(self, *, before: float, limit: int) -> list[ThreadKey]:
        rows = await self._pool.fetch(queries.WITHOUT_SNAPSHOT, before, limit)
        return [(Owner(row[0], row[1]), row[2]) for row in rows]

    async def put_snapshot(
        self, owner: Owner, thread_id: str, version: int, body: bytes, *, at: float
    ) -> None:
        await self._pool.fetch(queries.PUT_SNAPSHOT, *_key(owner), thread_id, version, body, at)

    async def purge(self, *, before: float, dry_run: bool = False) -> PurgeCount:
        if dry_run:
            return await count_old(self._database, before, now=self.now())
        return await purge(self._pool, before, now=self.now())

    async def thread_keys(
        self, *, limit: int, after: tuple[Owner, str] | None = None
    ) -> list[tuple[Owner, str]]:
        key = ("", "", "") if after is None else (*_key(after[0]), after[1])
        rows = await self._pool.fetch(queries.THREAD_KEYS, *key, limit)
        return [(Owner(row[0], row[1]), row[2]) for row in rows]

    async def rebuild(self, lookups: Lookups, *, dry_run: bool = False) -> int | None:
        return await self._pool.transact(
            lambda connection: rebuild_thread(connection, lookups, dry_run=dry_run)
        )

    def listen(self, listener: HintListener) -> None:
        self._notifier.listen(listener)

    def notify(self, topic: str, item: str) -> None:
        self._notifier.send((topic, item))

    async def close(self) -> None:
        """Writes what was queued, then disconnects from the database."""
        self._appends.close()
        await asyncio.wait([self._appending])
        self._notifying.cancel()
        await asyncio.wait([self._notifying])
        await self._pool.close()


def _key(owner: Owner) -> tuple[str, str]:
    return owner.tenant, owner.subject


class PostgresFiles:
    """Files in pieces. A file can be found once its last piece has arrived."""

    def __init__(self, pool: Pool, clock: DatabaseClock) -> None:
        self._pool = pool
        self._clock = clock

    async def get(self, owner: Owner, ref: str) -> StoredFile | None:
        rows = await self._pool.fetch(queries.FIND_FILE, owner.tenant, owner.subject, ref)
        return replace(decode_or_raise(decode_file, rows[0][0]), size=rows[0][1]) if rows else None

    async def piece(self, owner: Owner, ref: str, no: int) -> bytes | None:
        rows = await self._pool.fetch(queries.FIND_PIECE, owner.tenant, owner.subject, ref, no)
        return bytes(rows[0][0]) if rows else None

    async def kept(self, tenant: str, subject: str | None = None) -> Kept:
        rows = await self._pool.fetch(queries.KEPT_FILES, tenant, subject)
        return Kept(*rows[0]) if rows else Kept()

    async def put(self, file: StoredFile, no: int, pieces: Sequence[bytes], *, is_last: bool) -> bool:
        size = sum(map(len, pieces))
        values = [file.owner.tenant, file.owner.subject, file.ref, no, list(pieces), size, is_last]
        values.append(self._clock.override)
        if no == 0:
            values.append(encode(file))
        statement = queries.BEGIN_FILE if no == 0 else queries.CONTINUE_FILE
        rows = await self._pool.transact(lambda connection: connection.fetch(statement, *values))
        return bool(rows)

    async def drop(self, owner: Owner, ref: str) -> None:
        async def drop(connection: Connection) -> None:
            rows = await connection.fetch(queries.LOCK_FILE, owner.tenant, owner.subject, ref)
            await remove_files(connection, rows)

        try:
            await self._pool.transact(drop)
        except Unstorable:
            return


class PostgresClients:
    """Registrations. One changes under a lock of its owner, together with its entry in the owner's feed."""

    def __init__(self, pool: Pool, clock: DatabaseClock, feed: FeedWriter) -> None:
        self._pool = pool
        self._clock = clock
        self._feed = feed

    async def all(self, owner: Owner | None = None) -> list[Client]:
        key = (None, None) if owner is None else (owner.tenant, owner.subject)
        rows = await self._pool.fetch(queries.CLIENTS, *key)
        found = [decode_or_skip(decode_client, body, kind="client", name=name) for name, _, body in rows]
        return [client for client in found if client is not None]

    async def put(self, client: Client, notice: bytes = b"") -> Literal["put", "moved", "name_taken"]:
        async def put(connection: Connection) -> Literal["put", "moved", "name_taken"]:
            stored = await self._lock(connection, client.owner)
            before = stored.pop(client.client_id, None)
            record = next_registration(client, before, [other for _, other in stored.values()])
            if isinstance(record, str):
                return record
            await connection.fetch(queries.PUT_CLIENT, *_client_key(client), client.version, record)
            await self._tell(connection, client.owner, notice)
            return "put"

        return await self._pool.transact(put)

    async def drop(
        self, client: Client, notice: bytes = b"", *, if_away: bool = False
    ) -> Literal["dropped", "moved", "here"]:
        async def drop(connection: Connection) -> Literal["dropped", "moved", "here"]:
            stored = await self._lock(connection, client.owner)
            if client.client_id not in stored or stored[client.client_id][0] != client.version:
                return "moved"
            if if_away and await connection.fetch(
                queries.LOCK_STREAM, *_client_key(client), self._clock.override
            ):
                return "here"
            await connection.fetch(queries.DROP_CLIENT, *_client_key(client))
            await self._tell(connection, client.owner, notice)
            return "dropped"

        return await self._pool.transact(drop)

    async def _lock(self, connection: Connection, owner: Owner) -> dict[str, tuple[int, bytes]]:
        """Locks the owner's clients. Nobody else can take a name between the read and the write."""
        await connection.fetch(queries.LOCK_CLIENTS, owner.tenant, owner.subject)
        rows = await connection.fetch(queries.CLIENTS, owner.tenant, owner.subject)
        return {name: (version, body) for name, version, body in rows}

    async def _tell(self, connection: Connection, owner: Owner, body: bytes) -> None:
        if body:
            await self._feed.write(connection, owner, body)
        await self._feed.notify(connection, (CLIENTS_CHANGED, owner_key(owner)))


class PostgresStreams:
    """Which registered clients have a stream, in any process.

    The table has the newest stream of each client, and until when it is valid: a process renews it before
    that; one that dies does not.
    """

    def __init__(self, pool: Pool, clock: DatabaseClock) -> None:
        self._pool = pool
        self._clock = clock

    async def arrive(self, owner: Owner, client_id: str, *, lease_sec: float) -> Seat:
        key = (owner.tenant, owner.subject, client_id)
        [row] = await self._pool.fetch(queries.STREAM_ARRIVES, *key, self._clock.override, lease_sec)
        return Seat(owner, client_id, row[0])

    async def renew_seats(self, seats: Sequence[Seat], *, lease_sec: float) -> list[Seat]:
        if not seats:
            return []
        keys = [(seat.owner.tenant, seat.owner.subject, seat.client_id, seat.number) for seat in seats]
        rows = await self._pool.fetch(queries.RENEW_SEATS, *columns(keys, 4), self._clock.override, lease_sec)
        kept = {tuple(row) for row in rows}
        return [seat for seat, key in zip(seats, keys, strict=True) if key not in kept]

    async def leave(self, seat: Seat) -> None:
        key = (seat.owner.tenant, seat.owner.subject, seat.client_id, seat.number)
        await self._pool.fetch(queries.STREAM_LEAVES, *key, self._clock.override)

    async def retire(self, seat: Seat) -> None:
        key = (seat.owner.tenant, seat.owner.subject, seat.client_id, seat.number)
        await self._pool.fetch(queries.STREAM_LEAVES, *key, RETIRED)

    async def is_retired(self, owner: Owner, client_id: str) -> bool:
        key = (owner.tenant, owner.subject, client_id)
        return bool(await self._pool.fetch(queries.STREAM_IS_RETIRED, *key, RETIRED))

    async def expect(self, owner: Owner, client_id: str) -> None:
        await self._pool.fetch(
            queries.EXPECT_STREAM, owner.tenant, owner.subject, client_id, self._clock.override
        )

    async def is_here(self, owner: Owner, client_id: str) -> bool:
        key = (owner.tenant, owner.subject, client_id)
        return bool(await self._pool.fetch(queries.STREAM_IS_HERE, *key, self._clock.override))

    async def absent(self) -> list[Absence]:
        return [
            _absence_of(row) for row in await self._pool.fetch(queries.ABSENT_CLIENTS, self._clock.override)
        ]


def _client_key(client: Client) -> tuple[str, str, str]:
    return client.owner.tenant, client.owner.subject, client.client_id


def _absence_of(row: Columns) -> Absence:
    return Absence(Owner(row[0], row[1]), row[2], row[3])
