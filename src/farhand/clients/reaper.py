"""Background work for registered clients: removes those that are gone, and fails calls that nobody can run.

A client that has no stream for longer than its grace period is removed. Calls whose tool no client offers
any more fail instead of waiting for their deadline: a process that stops between a withdrawal and the failing
of its calls leaves such calls, and so does one that opens a call at the moment its tool is withdrawn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from farhand.calls.desk import Desk
from farhand.clients.cluster import POLL_SEC, ClusterSync
from farhand.clients.presence import ClientKey
from farhand.clients.sessions import DISCONNECTED, ClientSessions
from farhand.core.call import Call, Phase
from farhand.core.event import ClientUnregistered
from farhand.core.position import News
from farhand.core.principal import Owner
from farhand.errors import Broken, StoreDown, Unreadable
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import CLIENT_CALLS
from farhand.supervisor import supervise

log = logging.getLogger("farhand.clients")

LAST_NEWS = 500
"""How many entries of a feed are searched for the withdrawal of a tool."""
RETRY_SEC = 1.0
"""Wait between two attempts while the store cannot be written."""
ORPHANS_SEC = 15.0
"""How often a shared store is searched for orphaned calls: another process may have left some."""


class ClientReaper:
    def __init__(self, sessions: ClientSessions, desk: Desk, eventlog: EventLog) -> None:
        self._sessions = sessions
        self._desk = desk
        self._log = eventlog
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._sessions.load()
        # the one task without a group: it owns the group that the others live in
        self._serving = asyncio.create_task(self._serve())  # noqa: TID251

    async def close(self) -> None:
        """Registrations stay: the next process that opens the store loads them."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])

    async def _serve(self) -> None:
        streams = self._log.streams
        async with asyncio.TaskGroup() as group:
            if streams is None:
                group.create_task(supervise(self._watch_absent, log, pause_sec=POLL_SEC))
            else:
                group.create_task(ClusterSync(self._sessions, self._fail, self._log, streams).run())
            group.create_task(supervise(self._watch_calls, log, pause_sec=POLL_SEC))
            group.create_task(supervise(self._watch_orphans, log, pause_sec=POLL_SEC))

    async def _watch_absent(self) -> None:
        presence = self._sessions.presence
        while True:
            presence.changed.clear()
            waits = [await self._dismiss_if_due(key, seconds) for key, seconds in presence.absent()]
            try:
                async with asyncio.timeout(min(waits, default=None)):
                    await presence.changed.wait()
            except TimeoutError:
                continue

    async def _dismiss_if_due(self, key: ClientKey, away: float) -> float:
        """Seconds until this client has to be checked again."""
        left = self._grace(key) - away
        if left > 0:
            return left
        try:
            await self._sessions.dismiss(key)
        except Broken as error:
            log.log(_level(error), "cannot remove client %s yet: %s", key[1], error)
        return RETRY_SEC

    def _grace(self, key: ClientKey) -> float:
        client = self._sessions.registry.client(*key)
        return 0.0 if client is None else self._sessions.grace(client)

    async def _watch_calls(self) -> None:
        """Fails calls that are opened or approved after the withdrawal of their tool."""
        with self._log.broker.subscribe(CLIENT_CALLS, limit=10_000) as subscription:
            while True:
                await subscription.wait(self._log.broker.recheck)
                calls = [
                    call
                    for call in subscription.items
                    if isinstance(call, Call) and call.phase is Phase.READY
                ]
                subscription.items.clear()
                if subscription.is_stale:
                    subscription.is_stale = False
                    self._sessions.has_orphans.set()
                if calls:
                    await self._fail_new_orphans(calls)

    async def _fail_new_orphans(self, calls: list[Call]) -> None:
        try:
            await self._fail_orphans(calls)
        except Exception:
            # nobody has these calls any more: they are searched for
            self._sessions.has_orphans.set()
            raise

    async def _watch_orphans(self) -> None:
        """At the start, after an incomplete withdrawal, and at intervals in a shared store."""
        has_orphans = self._sessions.has_orphans
        while True:
            has_orphans.clear()
            await self._fail_orphans()
            if has_orphans.is_set():
                await asyncio.sleep(RETRY_SEC)
                continue
            try:
                async with asyncio.timeout(ORPHANS_SEC if self._log.is_shared else None):
                    await has_orphans.wait()
            except TimeoutError:
                continue

    async def _fail_orphans(self, among: list[Call] | None = None) -> None:
        try:
            await self._fail(await self._log.calls_for_clients() if among is None else among)
        except Broken as error:
            log.log(_level(error), "cannot fail calls of withdrawn tools yet: %s", error)
            self._sessions.has_orphans.set()

    async def _fail(self, calls: Iterable[Call]) -> None:
        """Fails the calls among these whose tool nobody offers, with the reason for its withdrawal."""
        suspects: dict[Owner, list[Call]] = {}
        for call in self._without_tool(calls):
            suspects.setdefault(call.owner, []).append(call)
        for owner, asked in suspects.items():
            if self._log.is_shared:
                # another worker may have registered the tool just now
                await self._sessions.refresh(owner)
            orphans = self._without_tool(asked)
            if orphans:
                await self._fail_of(owner, orphans)

    def _without_tool(self, calls: Iterable[Call]) -> list[Call]:
        registry = self._sessions.registry
        return [call for call in calls if registry.get(call.owner, call.tool) is None]

    async def _fail_of(self, owner: Owner, orphans: list[Call]) -> None:
        first, last = await self._log.feed_span(owner)
        news = await self._log.feed(owner, after=max(first - 1, last - LAST_NEWS), limit=LAST_NEWS)
        for call in orphans:
            try:
                await self._desk.give_up([call], _reason(call, news))
            except Unreadable as error:
                log.warning("cannot fail call %s before its deadline: %s", call.call_id, error)


def _level(error: Broken) -> int:
    """The store logs its outages, and this is tried every second."""
    return logging.DEBUG if isinstance(error, StoreDown) else logging.WARNING


def _reason(call: Call, news: list[News]) -> str:
    """Why the tool was withdrawn, if that was after the call was opened."""
    for each in reversed(news):
        event = each.event
        if isinstance(event, ClientUnregistered) and call.tool in event.tools and each.at > call.opened_at:
            return event.reason
    return DISCONNECTED
