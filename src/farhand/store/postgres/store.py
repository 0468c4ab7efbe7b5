"""The store itself: writes go to the writer's task, reads to a few shared connections.

A read sees every commit that was answered. What belongs to another owner is never found.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection

from farhand.clock import Clock
from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.event import Entry, News
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import Message, Thread, Used
from farhand.core.tool import Tool
from farhand.store.base import Commit, Due, Old, Write
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
    body_of_thread,
    call_if_readable,
    call_if_there,
    calls_in,
    due_of,
    entry_of,
    messages_of,
    named_run_of,
    news_of,
    number_of,
    run_if_there,
    run_of,
    span_of,
    tool_if_there,
)
from farhand.store.hub import Hub
from farhand.store.postgres import sql
from farhand.store.postgres.at_once import AtOnce
from farhand.store.postgres.bell import Bell
from farhand.store.postgres.files import PostgresFiles
from farhand.store.postgres.hints import ASIDE
from farhand.store.postgres.hours import Hours
from farhand.store.postgres.lines import Lines
from farhand.store.postgres.migrate import prepare
from farhand.store.postgres.place import Place, place_of
from farhand.store.postgres.purge import count_old, purge
from farhand.store.postgres.streams import PostgresStreams
from farhand.store.postgres.writer import Writer

TOOLS_AT_HAND = 256


class PostgresStore:
    """Made by `open`."""

    is_shared: bool = True

    def __init__(self, place: Place, hours: Hours) -> None:
        name = os.urandom(8).hex()
        self.hub = Hub(aside=lambda topic, item: self._bell.say((ASIDE, topic, item)))
        self._place = place
        self._hours = hours
        self._lines = Lines(place)
        self._writer = Writer(place, hours, self.hub, name)
        self._bell = Bell(place, self._lines, self.hub, name)
        self.files = PostgresFiles(self._lines)
        self.streams = PostgresStreams(self._lines, hours)
        self._messages = AtOnce(self._lines, sql.MESSAGES, messages_of)
        self._tool = AtOnce(self._lines, sql.TOOL, tool_if_there)
        self._run = AtOnce(self._lines, sql.RUN, run_if_there)
        self._calls_of = AtOnce(self._lines, sql.CALLS_OF_RUN, calls_in)
        self._call = AtOnce(self._lines, sql.CALL, call_if_there)
        self._count_open = AtOnce(self._lines, sql.COUNT_OPEN, number_of)
        self._tools: dict[str, Tool] = {}
        # without a group, like the other below: it lives as long as the store does
        self._writing = asyncio.create_task(self._writer.run())  # noqa: TID251
        # it owns the group that its own live in
        self._hearing = asyncio.create_task(self._bell.run())  # noqa: TID251

    @classmethod
    async def open(cls, address: str, clock: Clock | None = None, *, as_is: bool = False) -> PostgresStore:
        """Raises `BadSetting` for a database that cannot be used, and, opened `as_is`, for one whose tables
        are not those of this version. The database's own clock counts, unless one is given."""
        place = place_of(address)
        hours = Hours(asyncio.get_running_loop().time, clock)
        hours.seen(await prepare(place, as_is=as_is))
        return cls(place, hours)

    def now(self) -> float:
        return self._hours.now()

    async def commit(self, *writes: Write) -> Commit:
        return await self._writer.commit(writes)

    async def check(self) -> None:
        await self._lines.check()
        await self._writer.check()

    async def get_thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return await self._lines.one(sql.THREAD, (*_key(owner), thread_id), body_of_thread)

    async def threads(self, owner: Owner, *, limit: int, after: Used | None = None) -> list[Thread]:
        async def page(after: Used | None, limit: int) -> list[tuple[Used | None, Thread | None]]:
            if after is None:
                return await self._lines.many(sql.THREADS, (*_key(owner), limit), listed_thread)
            return await self._lines.many(sql.THREADS_AFTER, (*_key(owner), *after, limit), listed_thread)

        return await whole_page(limit, after, page)

    async def count_threads(self, owner: Owner) -> int:
        return await self._lines.one(sql.COUNT_THREADS, _key(owner), number_of) or 0

    async def count_running(self, tenant: str, subject: str | None = None) -> int:
        return await self._lines.one(sql.COUNT_RUNNING, (tenant, subject), number_of) or 0

    async def message_bytes(self, tenant: str, subject: str | None = None) -> int:
        return await self._lines.one(sql.MESSAGE_BYTES, (tenant, subject), number_of) or 0

    async def messages(self, owner: Owner, thread_id: str) -> list[Message]:
        return await self._messages.read(*_key(owner), thread_id)

    async def get_run(self, owner: Owner, run_id: str) -> Run | None:
        return await self._run.read(*_key(owner), run_id)

    async def last_run(self, owner: Owner, thread_id: str) -> Run | None:
        return await self._lines.one(sql.LAST_RUN, (*_key(owner), thread_id), run_of)

    async def count_runs(self, owner: Owner, thread_id: str) -> int:
        return await self._lines.one(sql.COUNT_RUNS, (*_key(owner), thread_id), number_of) or 0

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        async def page(after: str | None, limit: int) -> list[tuple[str | None, Run | None]]:
            return await self._lines.many(sql.RUNS, (*_key(owner), after, limit), listed_run)

        return await whole_page(limit, after, page)

    async def get_call(self, owner: Owner, call_id: str) -> Call | None:
        return await self._call.read(*_key(owner), call_id)

    async def get_asking(self, owner: Owner, approval_id: str) -> Call | None:
        return await self._lines.one(sql.ASKING, (*_key(owner), approval_id), body_of_call)

    async def calls_of(self, owner: Owner, run_id: str, step: int | None = None) -> list[Call]:
        return await self._calls_of.read(*_key(owner), run_id, None if step is None else str(step))

    async def open_calls(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        return readable(await self._lines.many(sql.OPEN_CALLS, (*_key(owner), thread_id), listed_call))

    async def count_open(self, owner: Owner, thread_id: str) -> int:
        return await self._count_open.read(*_key(owner), thread_id)

    async def count_open_of_tenant(self, tenant: str) -> int:
        return await self._lines.one(sql.COUNT_OPEN_OF_TENANT, (tenant,), number_of) or 0

    async def get_requested(self, owner: Owner, request_id: str) -> Call | None:
        return await self._lines.one(sql.REQUESTED, (*_key(owner), request_id), body_of_call)

    async def client_calls(self, owner: Owner, client_id: str) -> list[Call]:
        return await self._lines.many(sql.CLIENT_CALLS, (*_key(owner), client_id), body_of_call)

    async def clients(self, owner: Owner | None = None) -> list[Client]:
        key = (None, None) if owner is None else _key(owner)
        return readable(await self._lines.many(sql.CLIENTS, key, listed_client))

    async def get_tool(self, version: str) -> Tool | None:
        # a version never changes, so a copy at hand is as good as the record
        tool = self._tools.get(version)
        if tool is None:
            tool = await self._tool.read(version)
            self._keep_at_hand(version, tool)
        return tool

    async def events(self, owner: Owner, run_id: str, *, after: int = 0, limit: int = 500) -> list[Entry]:
        return await self._lines.many(sql.EVENTS, (*_key(owner), run_id, after, limit), entry_of)

    async def feed(self, owner: Owner, *, after: int = 0, limit: int = 500) -> list[News]:
        return await self._lines.many(sql.FEED, (*_key(owner), after, limit), news_of)

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        [span] = await self._lines.many(sql.FEED_SPAN, _key(owner), span_of)
        return span

    async def direct_calls(self) -> list[Call]:
        found = await self._lines.many(sql.DIRECT_CALLS, (), call_if_readable)
        return [call for call in found if call is not None]

    async def due(self, *, before: float, limit: int) -> list[Due]:
        return await self._lines.many(sql.DUE, (before, limit), due_of)

    async def stray_runs(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0
    ) -> list[Run]:
        left = list(skip)
        while True:
            if reserve_sec:
                key: tuple[object, ...] = (self._hours.told, left, limit, reserve_sec)
                found = await self._lines.many(sql.RESERVE_STRAYS, key, named_run_of)
            else:
                found = await self._lines.many(sql.STRAY_RUNS, (self._hours.told, left, limit), named_run_of)
            readable = [run for _, run in found if run is not None]
            if readable or not found:
                return readable
            left += [run_id for run_id, _ in found]

    async def purge(self, *, settled_before: float) -> Old:
        return await purge(self._lines, settled_before, now=self.now())

    async def count_old(self, *, settled_before: float) -> Old:
        return await count_old(self._place, settled_before, now=self.now())

    async def close(self) -> None:
        """Writes what was queued, then lets go of the database."""
        self._writer.close()
        await asyncio.wait([self._writing])
        self._hearing.cancel()
        await asyncio.wait([self._hearing])
        await self._lines.close()

    def _keep_at_hand(self, version: str, tool: Tool | None) -> None:
        if tool is None:
            return
        if len(self._tools) >= TOOLS_AT_HAND:
            self._tools.clear()
        self._tools[version] = tool


def _key(owner: Owner) -> tuple[str, str]:
    return owner.tenant, owner.subject
