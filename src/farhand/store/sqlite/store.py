"""The store itself: writes go to the writer's thread, reads run on the loop or, if long, in another thread.

A read sees every acknowledged write. What belongs to another owner is never found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

import msgspec

from farhand.clock import Clock
from farhand.core.client import Client
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.tool import Tool
from farhand.errors import StoreDown
from farhand.store.base import (
    ARRIVING_SEC,
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
)
from farhand.store.guards import is_wanted, sort_key
from farhand.store.presence import Streams
from farhand.store.records import (
    decode_call,
    decode_client,
    decode_or_raise,
    decode_or_skip,
    decode_run,
    decode_tool,
    next_registration,
)
from farhand.store.sqlite import queries
from farhand.store.sqlite.append import (
    END_LEASES,
    RENEW_LEASES,
    RESERVE,
    append_all,
    put_snapshot,
    write_held,
)
from farhand.store.sqlite.file import StoreFile, open_file
from farhand.store.sqlite.files import SqliteFiles, drop_incomplete_files
from farhand.store.sqlite.purge import count_old, delete_thread, purge, rebuild_thread, sweep_log
from farhand.store.sqlite.queries import CLIENTS, CLIENTS_OF_OWNER, Columns, Reads, fetch
from farhand.store.sqlite.writer import WriteConnection, Writer

SMALL_BYTES = 64 * 1024
"""How much of a thread is read on the loop."""

TOOLS_AT_HAND = 256


class SqliteStore:
    """Created by `open`."""

    is_shared: bool = False
    streams: Streams | None = None

    def __init__(self, file: StoreFile, clock: Clock) -> None:
        self.now: Callable[[], float] = clock.now
        self._file = file
        self._reads = Reads(file)
        self._writing = WriteConnection(file, clock.now)
        self._held = self._writing.held
        self._writer = Writer(self._writing)
        self._files = SqliteFiles(self._reads, self._writer)
        self.files: FileStore = self._files
        self.clients: ClientStore = SqliteClients(self._reads, self._writer)
        self._tools: dict[str, Tool] = {}

    @classmethod
    async def open(cls, path: str, clock: Clock, *, as_is: bool = False) -> SqliteStore:
        """Raises `BadSetting` for a path that cannot be a store, `StoreLocked` if another process has it.
        Opened `as_is`, a missing file or one of another version cannot be a store."""
        store = cls(await asyncio.to_thread(open_file, path, as_is=as_is), clock)
        try:
            if not as_is:
                await store._writer.do(_tidy_up)
                await store._sweep()
        except BaseException:
            await store.close()
            raise
        return store

    async def check(self) -> None:
        # first: whatever else touches a disk that stalls may wait for it
        self._writer.check_stalled()
        self._reads.one("SELECT 1", ())
        if not self._file.is_in_place():
            raise StoreDown(
                "The store cannot write: its file, or its lock, was moved or removed.",
                hint="Try again in a moment.",
            )
        if not await asyncio.to_thread(self._file.has_space):
            raise StoreDown("The store cannot write: the disk is full.", hint="Try again in a moment.")
        await self._writer.check()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        return await self._writer.do(partial(append_all, appends=appends))

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        key: tuple[object, ...] = (owner.tenant, owner.subject, thread_id)
        found = self._reads.one(queries.SIZE, key)
        if found is None:
            return Loaded(())
        version, size = found
        sql, values = queries.LOAD, (*key, *key)
        if after is not None:
            sql, values = queries.LOAD_AFTER, (*key, after)
            if version <= after:
                return Loaded(())
        if size <= SMALL_BYTES:
            rows = self._reads.near(lambda db: db.execute(sql, values).fetchall())
        else:
            rows = await self._reads.far(lambda db: db.execute(sql, values).fetchall())
        return queries.loaded_of(rows)

    async def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        held = self._held.find_call(owner, kind, value)
        if held is not None:
            return held
        found = self._reads.one(queries.FIND_CALL[kind], (value, owner.tenant, owner.subject))
        return None if found is None else FoundCall(owner, found[2], decode_or_raise(decode_call, found[4]))

    async def open_calls(self, which: CallFilter, *, limit: int = 1000) -> list[FoundCall]:
        # first: what is written meanwhile is found in the table
        held = {each.call.call_id: each for each in self._held.calls()}

        def make(row: Columns) -> FoundCall | None:
            return None if row[3] in held else queries.listed_call(row)

        sql, values = queries.open_calls(which)
        found = await self._reads.page(sql, values, make, limit=limit)
        wanted = [each for each in held.values() if is_wanted(which, each)]
        return sorted([*found, *wanted], key=partial(sort_key, which))[:limit] if wanted else found

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[FoundThread]:
        sql = queries.THREADS if after is None else queries.THREADS_AFTER
        key = (owner.tenant, owner.subject, *(after or ()))
        return await self._reads.page(sql, key, queries.listed_thread, limit=limit)

    async def find_run(self, owner: Owner, run_id: str) -> Run | None:
        held = self._held.find_run(owner, run_id)
        if held is not None:
            return held
        found = self._reads.one(queries.RUN, (run_id, owner.tenant, owner.subject))
        return None if found is None else decode_or_raise(decode_run, found[1])

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        held = {run.run_id: run for run in self._held.runs(owner)}
        place = self._place_of_run(owner, after)

        def make(row: Columns) -> Run | None:
            return None if row[0] in held else queries.listed_run(row)

        sql = queries.RUNS if place is None else queries.RUNS_AFTER
        values = (owner.tenant, owner.subject, *(place or ()))
        found = await self._reads.page(sql, values, make, limit=limit)
        wanted = [run for run in held.values() if place is None or _start_order(run) < place]
        return sorted([*found, *wanted], key=_start_order, reverse=True)[:limit] if wanted else found

    def _place_of_run(self, owner: Owner, run_id: str | None) -> tuple[float, str] | None:
        if run_id is None:
            return None
        held = self._held.find_run(owner, run_id)
        if held is not None:
            return _start_order(held)
        found: tuple[float, str] | None = self._reads.one(
            queries.RUN_PLACE, (run_id, owner.tenant, owner.subject)
        )
        return found

    async def find_tool(self, version: str) -> Tool | None:
        # a version never changes, so a cached copy is as good as the stored one
        tool = self._tools.get(version)
        if tool is not None:
            return tool
        found = self._reads.one(queries.TOOL, (version,))
        if found is None:
            return None
        if len(self._tools) >= TOOLS_AT_HAND:
            self._tools.clear()
        tool = self._tools[version] = decode_or_raise(decode_tool, found[0])
        return tool

    async def count(self, what: Counted, tenant: str, subject: str | None = None) -> int:
        counts = self._writing.counts
        if tenant not in counts.tenants:
            counts = await self._writer.do(lambda writing: writing.count_tenant(tenant))
        return counts.totals.get(what, tenant, subject)

    async def claimable(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0, worker: str = ""
    ) -> list[FoundThread]:
        values = (worker, self.now(), worker, msgspec.json.encode(list(skip)).decode())
        found = await self._reads.page(queries.CLAIMABLE, values, _claimable_row, limit=limit)
        if found and reserve_sec > 0:
            leases = [(self.now() + reserve_sec, no) for no, _ in found]
            await self._writer.do(lambda writing: _reserve(writing, leases))
        return [thread for _, thread in found]

    async def renew(self, worker: str, until: float) -> None:
        await self._writer.do(lambda writing: _execute(writing, RENEW_LEASES, (until, worker)))

    async def add_to_feed(self, owner: Owner, body: bytes, thread_id: str | None = None) -> None:
        await self._writer.do(lambda writing: writing.add_to_feed(owner, body, thread_id=thread_id))

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        key = (owner.tenant, owner.subject, after)
        return await self._reads.page(queries.FEED, key, queries.feed_row, limit=limit)

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        first, last = self._reads.one(queries.FEED_SPAN, (owner.tenant, owner.subject)) or (1, 0)
        return first, last

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        deleted = await self._writer.do(
            partial(delete_thread, owner=owner, thread_id=thread_id, version=version)
        )
        if deleted:
            await self._sweep()
        return deleted

    async def _sweep(self) -> None:
        """Only the caller that removes something waits for it; the next start or purge removes what a crash
        left."""
        while await self._writer.do(sweep_log):
            pass
        await self._files.sweep()

    async def without_snapshot(self, *, before: float, limit: int) -> list[ThreadKey]:
        values = (before, before, limit)
        found = await self._reads.far(lambda db: db.execute(queries.WITHOUT_SNAPSHOT, values).fetchall())
        return [(Owner(tenant, subject), thread_id) for tenant, subject, thread_id in found]

    async def put_snapshot(
        self, owner: Owner, thread_id: str, version: int, body: bytes, *, at: float
    ) -> None:
        await self._writer.do(
            partial(put_snapshot, owner=owner, thread_id=thread_id, version=version, body=body, at=at)
        )

    async def purge(self, *, before: float, dry_run: bool = False) -> PurgeCount:
        arriving_before = self.now() - ARRIVING_SEC
        if dry_run:
            return await self._reads.far(lambda db: count_old(db, before, arriving_before))
        old = await purge(self._reads, self._writer, before=before, arriving_before=arriving_before)
        await self._sweep()
        return old

    async def thread_keys(
        self, *, limit: int, after: tuple[Owner, str] | None = None
    ) -> list[tuple[Owner, str]]:
        key = ("", "", "") if after is None else (after[0].tenant, after[0].subject, after[1])
        found = await self._reads.far(lambda db: db.execute(queries.THREAD_KEYS, (*key, limit)).fetchall())
        return [(Owner(tenant, subject), thread_id) for tenant, subject, thread_id in found]

    async def rebuild(self, lookups: Lookups, *, dry_run: bool = False) -> int | None:
        return await self._writer.do(partial(rebuild_thread, lookups=lookups, dry_run=dry_run))

    def listen(self, listener: HintListener) -> None:
        """No other process writes."""

    def notify(self, topic: str, item: str) -> None:
        """No other process reads."""

    async def close(self) -> None:
        """Writes what was queued and what was held back, then releases the file."""
        with suppress(StoreDown):
            await self._writer.do(lambda writing: write_held(writing, writing.held.numbers()))
        await self._writer.close()
        await asyncio.to_thread(self._reads.close)
        self._file.close()


def _tidy_up(writing: WriteConnection) -> None:
    """This process has the file to itself: no other process advances a run, or sends the rest of a file."""
    writing.db.execute(END_LEASES)
    drop_incomplete_files(writing.db)


def _start_order(run: Run) -> tuple[float, str]:
    return run.started_at, run.run_id


def _claimable_row(row: Columns) -> tuple[int, FoundThread] | None:
    found = queries.listed_thread(row)
    return None if found is None else (row[5], found)


def _reserve(writing: WriteConnection, leases: list[tuple[float, int]]) -> None:
    writing.db.executemany(RESERVE, leases)


def _execute(writing: WriteConnection, sql: str, values: tuple[object, ...]) -> None:
    writing.db.execute(sql, values)


ALL = 1_000_000_000


class SqliteClients:
    def __init__(self, reads: Reads, writer: Writer) -> None:
        self._reads = reads
        self._writer = writer

    async def all(self, owner: Owner | None = None) -> list[Client]:
        if owner is None:
            return await self._reads.far(lambda db: fetch(db, CLIENTS, (), _listed, limit=ALL))
        key = (owner.tenant, owner.subject)
        return await self._reads.page(CLIENTS_OF_OWNER, key, _listed, limit=ALL)

    async def put(self, client: Client, notice: bytes = b"") -> Literal["put", "moved", "name_taken"]:
        return await self._writer.do(lambda writing: _put(writing, client, notice))

    async def drop(
        self, client: Client, notice: bytes = b"", *, if_away: bool = False
    ) -> Literal["dropped", "moved", "here"]:
        """This process knows its own streams, so no client is `here` for the store."""
        return await self._writer.do(lambda writing: _drop(writing, client, notice))


def _put(writing: WriteConnection, client: Client, notice: bytes) -> Literal["put", "moved", "name_taken"]:
    others = [record for (record,) in writing.db.execute(OTHERS, _key(client))]
    record = next_registration(client, _stored(writing, client), others)
    if isinstance(record, str):
        return record
    writing.db.execute(PUT, (*_key(client), client.version, record))
    _tell(writing, client.owner, notice)
    return "put"


def _drop(writing: WriteConnection, client: Client, notice: bytes) -> Literal["dropped", "moved"]:
    stored = _stored(writing, client)
    if stored is None or stored[0] != client.version:
        return "moved"
    writing.db.execute(DROP, _key(client))
    _tell(writing, client.owner, notice)
    return "dropped"


def _tell(writing: WriteConnection, owner: Owner, body: bytes) -> None:
    if body:
        writing.add_to_feed(owner, body)


def _stored(writing: WriteConnection, client: Client) -> tuple[int, bytes] | None:
    found: tuple[int, bytes] | None = writing.db.execute(FIND, _key(client)).fetchone()
    return found


def _listed(row: Columns) -> Client | None:
    return decode_or_skip(decode_client, row[1], kind="client", name=row[0])


def _key(client: Client) -> tuple[str, str, str]:
    return client.owner.tenant, client.owner.subject, client.client_id


FIND = "SELECT version, record FROM clients WHERE tenant = ? AND subject = ? AND client_id = ?"
OTHERS = "SELECT record FROM clients WHERE tenant = ? AND subject = ? AND client_id <> ?"
PUT = "INSERT OR REPLACE INTO clients (tenant, subject, client_id, version, record) VALUES (?, ?, ?, ?, ?)"
DROP = "DELETE FROM clients WHERE tenant = ? AND subject = ? AND client_id = ?"
