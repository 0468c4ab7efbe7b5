"""Clients on several workers: a client may register at one, stream from another and get calls from a third.

The store decides for all workers which stream is the newest and how long a client has been away. Changes that
other workers make arrive as notifications, and are polled for in case one is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from farhand.clients.presence import ClientKey, loop_time
from farhand.clients.sessions import ClientSessions
from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import STREAM_BEGUN
from farhand.store.base import CLIENTS_CHANGED
from farhand.store.presence import Absence, Streams
from farhand.supervisor import supervise

log = logging.getLogger("farhand.clients")

POLL_SEC = 1.0
SLOW_SEC = 1.0
"""A store that takes longer to answer counts as down."""
RENEWALS_PER_LEASE = 3


FailCalls: TypeAlias = Callable[[list[Call]], Awaitable[None]]


class ClusterSync:
    def __init__(
        self, sessions: ClientSessions, fail_orphans: FailCalls, eventlog: EventLog, streams: Streams
    ) -> None:
        self._sessions = sessions
        self._fail_orphans = fail_orphans
        self._log = eventlog
        self._streams = streams
        self._since = loop_time()
        """Since when the store can be reached, by this worker and so by its clients."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for watch in (self._renew_seats, self._remove_absent, self._follow_changes, self._follow_streams):
                group.create_task(supervise(watch, log, pause_sec=POLL_SEC))

    async def _renew_seats(self) -> None:
        presence, lease = self._sessions.presence, self._sessions.settings.timeouts.lease
        while True:
            for seat in await self._streams.renew_seats(presence.seats(), lease_sec=lease):
                presence.supersede(seat)
            await asyncio.sleep(lease / RENEWALS_PER_LEASE)

    async def _remove_absent(self) -> None:
        """Any worker may do it. One that has just started gives every client the time to reconnect, and so
        does one whose store was down: nobody can begin a stream then."""
        presence = self._sessions.presence
        while True:
            presence.changed.clear()
            absences = await self._find_absent()
            up_for = loop_time() - self._since
            for absence in absences:
                key = (absence.owner, absence.client_id)
                await self._dismiss_if_due(key, min(absence.seconds, up_for))
            try:
                async with asyncio.timeout(POLL_SEC):
                    await presence.changed.wait()
            except TimeoutError:
                continue

    async def _find_absent(self) -> list[Absence]:
        """Includes those whose last stream ended here just now."""
        began = loop_time()
        is_reachable = False
        try:
            for seat in self._sessions.presence.take_left():
                await self._streams.leave(seat)
            found = await self._streams.absent()
            # a store that returns while it is asked was down too
            is_reachable = loop_time() - began < SLOW_SEC
            return found
        finally:
            if not is_reachable:
                self._since = loop_time()

    async def _dismiss_if_due(self, key: ClientKey, away: float) -> None:
        sessions = self._sessions
        client = sessions.registry.client(*key) or await sessions.find(key)
        if client is not None and away >= sessions.grace(client):
            await sessions.dismiss(key)

    async def _follow_changes(self) -> None:
        with self._log.broker.subscribe(CLIENTS_CHANGED, limit=1_000) as subscription:
            while True:
                if subscription.is_stale:
                    subscription.is_stale = False
                    subscription.items.clear()
                    await self._sessions.refresh()
                    self._sessions.has_orphans.set()
                await subscription.wait(self._log.broker.recheck)
                owners = {owner for owner in subscription.items if isinstance(owner, Owner)}
                subscription.items.clear()
                for owner in owners:
                    await self._refresh(owner)

    async def _refresh(self, owner: Owner) -> None:
        """The worker that withdrew the tools may have stopped before it failed their calls."""
        before = self._sessions.registry.clients(owner)
        after = {client.client_id: client for client in await self._sessions.refresh(owner)}
        self._sessions.presence.wake(owner)
        for client in before:
            kept = after.get(client.client_id)
            names = set() if kept is None else {tool.name for tool in kept.tools}
            if any(tool.name not in names for tool in client.tools):
                await self._fail_orphans(await self._log.client_calls(owner, client.client_id))

    async def _follow_streams(self) -> None:
        with self._log.broker.subscribe(STREAM_BEGUN, limit=10_000) as subscription:
            while True:
                await subscription.wait(self._log.broker.recheck)
                while subscription.items:
                    item = subscription.items.pop(0)
                    assert isinstance(item, str), "the topic has texts"
                    self._sessions.presence.supersede_older(item)
