"""The store itself: writes go to the writer's thread, reads happen on the spot or, if long, in another one.

A read sees every commit that was answered. What belongs to another owner is never found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TypeVar

from farhand.clock import Clock
from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.event import Entry, News
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import Message, Thread, Used
from farhand.core.tool import Tool
from farhand.errors import StoreDown
from farhand.store.base import Commit, DeleteThread, DropFile, Due, Old, Write
from farhand.store.draft.listed import (
    listed_call,
    listed_client,
    listed_run,
    listed_thread,
    readable,
    whole_page,
)
from farhand.store.draft.records import (
    body_of_call,
    body_of_message,
    body_of_thread,
    body_of_tool,
    call_if_readable,
    due_of,
    entries_of,
    named_run_of,
    news_among,
    number_of,
    run_of,
    span_of,
)
from farhand.store.hub import Hub
from farhand.store.rules import ARRIVING_SEC
from farhand.store.slices import in_slices
from farhand.store.sqlite import sql
from farhand.store.sqlite.file import StoreFile, open_file
from farhand.store.sqlite.files import SqliteFiles, purge_files, sweep_pieces
from farhand.store.sqlite.purge import count_old, purge_calls, purge_feed, purge_journals
from farhand.store.sqlite.reads import Reads
from farhand.store.sqlite.writer import Writer
from farhand.store.streams import Unshared

TOOLS_AT_HAND = 256
Owned = TypeVar("Owned", Call, Run)


class SqliteStore(Unshared):
    """Made by `open`."""

    def __init__(self, file: StoreFile, clock: Clock) -> None:
        self.hub = Hub()
        self._clock = clock
        self._file = file
        self._reads = Reads(file)
        self.files = SqliteFiles(self._reads)
        self._writer = Writer(file.connect(), clock, self.hub)
        self._tools: dict[str, Tool] = {}

    @classmethod
    async def open(cls, path: str, clock: Clock, *, as_is: bool = False) -> SqliteStore:
        """Raises `BadSetting` for a path that cannot be a store, `StoreLocked` if another process has it.
        Opened `as_is`, a file that is not there, or of another version, is none."""
        return cls(await asyncio.to_thread(open_file, path, as_is=as_is), clock)

    def now(self) -> float:
        return self._clock.now()

    async def commit(self, *writes: Write) -> Commit:
        commit = await self._writer.commit(writes)
        if not _REMOVING.isdisjoint(map(type, writes)):
            await self._sweep()
        return commit

    async def check(self) -> None:
        self._reads.one("SELECT 1", (), number_of)
        if not await asyncio.to_thread(self._file.has_room):
            raise StoreDown("The store has no room left: the disk is full.", hint="Try again in a moment.")
        await self._writer.check()

    async def get_thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return self._reads.one(sql.THREAD, (owner.tenant, owner.subject, thread_id), body_of_thread)

    async def threads(self, owner: Owner, *, limit: int, after: Used | None = None) -> list[Thread]:
        key = (owner.tenant, owner.subject)

        async def page(after: Used | None, limit: int) -> list[tuple[Used | None, Thread | None]]:
            if after is None:
                return await self._reads.many(sql.THREADS, key, listed_thread, limit=limit)
            return await self._reads.many(sql.THREADS_AFTER, (*key, *after), listed_thread, limit=limit)

        return await whole_page(limit, after, page)

    async def count_threads(self, owner: Owner) -> int:
        return self._reads.one(sql.COUNT_THREADS, (owner.tenant, owner.subject), number_of) or 0

    async def messages(self, owner: Owner, thread_id: str) -> list[Message]:
        return await self._reads.many(sql.MESSAGES, (owner.tenant, owner.subject, thread_id), body_of_message)

    async def get_run(self, owner: Owner, run_id: str) -> Run | None:
        return _owned(owner, self._reads.one(sql.RUN_BY_ID, (run_id,), run_of))

    async def last_run(self, owner: Owner, thread_id: str) -> Run | None:
        return self._reads.one(sql.LAST_RUN, (owner.tenant, owner.subject, thread_id), run_of)

    async def count_runs(self, owner: Owner, thread_id: str) -> int:
        return self._reads.one(sql.COUNT_RUNS, (owner.tenant, owner.subject, thread_id), number_of) or 0

    async def count_running(self, tenant: str, subject: str | None = None) -> int:
        return self._reads.one(sql.COUNT_RUNNING, (tenant, subject), number_of) or 0

    async def message_bytes(self, tenant: str, subject: str | None = None) -> int:
        [total] = await self._reads.far(sql.MESSAGE_BYTES, (tenant, subject), number_of)
        return total

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        key = (owner.tenant, owner.subject)

        async def page(after: str | None, limit: int) -> list[tuple[str | None, Run | None]]:
            return await self._reads.many(sql.RUNS, (*key, after, *key), listed_run, limit=limit)

        return await whole_page(limit, after, page)

    async def get_call(self, owner: Owner, call_id: str) -> Call | None:
        return _owned(owner, self._reads.one(sql.CALL, (call_id,), body_of_call))

    async def get_asking(self, owner: Owner, approval_id: str) -> Call | None:
        return _owned(owner, self._reads.one(sql.ASKING, (approval_id,), body_of_call))

    async def calls_of(self, owner: Owner, run_id: str, step: int | None = None) -> list[Call]:
        key = (run_id, owner.tenant, owner.subject, step, step)
        return await self._reads.many(sql.CALLS_OF_RUN, key, body_of_call)

    async def open_calls(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        key = (owner.tenant, owner.subject)
        if thread_id is None:
            return readable(await self._reads.many(sql.OPEN_CALLS, key, listed_call))
        return readable(await self._reads.many(sql.OPEN_CALLS_OF_THREAD, (*key, thread_id), listed_call))

    async def count_open(self, owner: Owner, thread_id: str) -> int:
        return self._reads.one(sql.COUNT_OPEN, (owner.tenant, owner.subject, thread_id), number_of) or 0

    async def count_open_of_tenant(self, tenant: str) -> int:
        return self._reads.one(sql.COUNT_OPEN_OF_TENANT, (tenant,), number_of) or 0

    async def get_requested(self, owner: Owner, request_id: str) -> Call | None:
        return self._reads.one(sql.REQUESTED, (owner.tenant, owner.subject, request_id), body_of_call)

    async def client_calls(self, owner: Owner, client_id: str) -> list[Call]:
        return await self._reads.many(
            sql.CLIENT_CALLS, (owner.tenant, owner.subject, client_id), body_of_call
        )

    async def clients(self, owner: Owner | None = None) -> list[Client]:
        found = readable(await self._reads.many(sql.CLIENTS, (), listed_client))
        return [client for client in found if owner in (None, client.owner)]

    async def get_tool(self, version: str) -> Tool | None:
        # a version never changes, so a copy at hand is as good as the record
        tool = self._tools.get(version)
        if tool is None:
            tool = self._reads.one(sql.TOOL, (version,), body_of_tool)
            self._keep_at_hand(version, tool)
        return tool

    async def events(self, owner: Owner, run_id: str, *, after: int = 0, limit: int = 500) -> list[Entry]:
        key = (after, run_id, owner.tenant, owner.subject)
        found = await self._reads.many(sql.EVENTS, key, entries_of, limit=limit)
        # a row may begin before the reader's place, and end behind its page
        return [entry for said in found for entry in said if entry.seq > after][:limit]

    async def feed(self, owner: Owner, *, after: int = 0, limit: int = 500) -> list[News]:
        key = (owner.tenant, owner.subject, after)
        return await self._reads.many(sql.FEED, key, news_among, limit=limit)

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        span = self._reads.one(sql.FEED_SPAN, (owner.tenant, owner.subject), span_of)
        assert span is not None, "a minimum and a maximum are always answered"
        return span

    async def direct_calls(self) -> list[Call]:
        found = await self._reads.many(sql.DIRECT_CALLS, (), call_if_readable)
        return [call for call in found if call is not None]

    async def due(self, *, before: float, limit: int) -> list[Due]:
        return await self._reads.many(sql.DUE, (before,), due_of, limit=limit)

    async def stray_runs(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0
    ) -> list[Run]:
        left = set(skip)
        while True:
            found = await self._reads.many(
                sql.STRAY_RUNS, (self.now(),), named_run_of, limit=limit + len(left)
            )
            unknown = [(run_id, run) for run_id, run in found if run_id not in left]
            readable = [run for _, run in unknown if run is not None]
            if readable or not unknown:
                return readable[:limit]
            left.update(run_id for run_id, _ in unknown)

    async def purge(self, *, settled_before: float) -> Old:
        # in slices, each an own transaction: nobody waits for the whole of it
        do, lost = self._writer.do, self.now() - ARRIVING_SEC
        removed = Old(
            calls=await in_slices(lambda: do(lambda db: purge_calls(db, settled_before))),
            journals=await in_slices(lambda: do(lambda db: purge_journals(db, settled_before))),
            news=await in_slices(lambda: do(lambda db: purge_feed(db, settled_before))),
            files=await in_slices(
                lambda: do(lambda db: purge_files(db, settled_before, arriving_before=lost))
            ),
        )
        await self._sweep()
        return removed

    async def count_old(self, *, settled_before: float) -> Old:
        arriving = max(settled_before, self.now() - ARRIVING_SEC)
        # a walk through feeds, which nobody else should wait for
        return await asyncio.to_thread(count_old, self._file, settled_before, arriving)

    async def close(self) -> None:
        """Writes what was queued, then lets go of the file."""
        await self._writer.close()
        await asyncio.to_thread(self._reads.close)
        self._file.close()

    async def _sweep(self) -> None:
        """Who removes files waits for it, and nobody else does; what is left by a crash goes with a purge."""
        while await self._writer.do(sweep_pieces):
            pass

    def _keep_at_hand(self, version: str, tool: Tool | None) -> None:
        if tool is None:
            return
        if len(self._tools) >= TOOLS_AT_HAND:
            self._tools.clear()
        self._tools[version] = tool


_REMOVING = frozenset({DeleteThread, DropFile})
"""Writes after which bytes of files may be left to sweep away."""


def _owned(owner: Owner, record: Owned | None) -> Owned | None:
    return record if record is not None and record.owner == owner else None
