"""Clients on many workers: a client may register at one, have its stream at another and be asked by a third.

Which stream is the newest, and how long a client has been away, is judged by the store for all workers
together. What the others change here is heard of, and looked for now and then.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable

from farhand.calls.desk import Desk
from farhand.clients.attendance import DISCONNECTED, Attendance
from farhand.clients.presence import Key, now
from farhand.core.call import Phase
from farhand.core.client import Client
from farhand.core.principal import Owner
from farhand.errors import Broken
from farhand.store.base import Store
from farhand.store.hub import CLIENTS_CHANGED, STREAM_BEGUN
from farhand.store.streams import Streams

log = logging.getLogger("farhand.clients")

LOOK_SEC = 1.0
LASTING_SEC = 15.0
"""What fails again within this time is still the same trouble: longer than one attempt may take."""
RENEWALS = 3


class Elsewhere:
    def __init__(self, attendance: Attendance, desk: Desk, store: Store, streams: Streams) -> None:
        self._attendance = attendance
        self._desk = desk
        self._store = store
        self._streams = streams
        self._since = now()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for watch in (self._say_who_is_here, self._look_for_absent, self._hear_changes, self._hear_begun):
                group.create_task(_again_if_broken(watch))

    async def _say_who_is_here(self) -> None:
        presence, lease = self._attendance.presence, self._attendance.settings.patience.lease
        while True:
            for seat in await self._streams.stay(presence.seats(), lease_sec=lease):
                presence.supersede(seat)
            await asyncio.sleep(lease / RENEWALS)

    async def _look_for_absent(self) -> None:
        """Any worker may do it. One that has just started gives everybody the time to come back."""
        presence = self._attendance.presence
        while True:
            presence.changed.clear()
            for seat in presence.take_left():
                await self._streams.leave(seat)
            up_for = now() - self._since
            for absence in await self._streams.absent():
                key = (absence.owner, absence.client_id)
                await self._dismiss_if_due(key, min(absence.seconds, up_for))
            try:
                async with asyncio.timeout(LOOK_SEC):
                    await presence.changed.wait()
            except TimeoutError:
                continue

    async def _dismiss_if_due(self, key: Key, away: float) -> None:
        attendance = self._attendance
        client = attendance.roster.client(*key) or await attendance.find(key)
        if client is not None and away >= attendance.grace(client):
            await attendance.dismiss(key)

    async def _hear_changes(self) -> None:
        with self._store.hub.watch(CLIENTS_CHANGED, limit=1_000) as watch:
            while True:
                if watch.lost:
                    watch.lost = False
                    watch.news.clear()
                    await self._attendance.roster.load()
                await watch.wait(self._store.hub.recheck)
                owners = {owner for owner in watch.news if isinstance(owner, Owner)}
                watch.news.clear()
                for owner in owners:
                    await self._refresh(owner)

    async def _refresh(self, owner: Owner) -> None:
        """What was asked of tools that left while the call was opened is not left waiting."""
        before = self._attendance.roster.clients(owner)
        after = {client.client_id: client for client in await self._attendance.roster.load(owner)}
        for client in before:
            kept = after.get(client.client_id)
            names = set() if kept is None else {tool.name for tool in kept.tools}
            if any(tool.name not in names for tool in client.tools):
                await self._fail_calls(client, names)
        self._attendance.presence.rouse(owner)

    async def _fail_calls(self, client: Client, kept: set[str]) -> None:
        asked = await self._store.client_calls(client.owner, client.client_id)
        gone = [call for call in asked if call.phase is Phase.READY and call.tool not in kept]
        for call in gone:
            await self._desk.give_up([call], DISCONNECTED)

    async def _hear_begun(self) -> None:
        with self._store.hub.watch(STREAM_BEGUN, limit=10_000) as watch:
            while True:
                await watch.wait(self._store.hub.recheck)
                while watch.news:
                    told = watch.news.pop(0)
                    assert isinstance(told, str), "the topic tells texts"
                    self._attendance.presence.outnumber(told)


async def _again_if_broken(watch: Callable[[], Awaitable[None]]) -> None:
    failed_at = -math.inf
    while True:
        try:
            return await watch()
        except Broken as error:
            # once, for as long as it lasts
            level = logging.WARNING if now() - failed_at > LASTING_SEC else logging.DEBUG
            failed_at = now()
            log.log(level, "what other workers know of clients is asked again soon: %s", error)
        except Exception:
            log.exception("something broke beside the clients; the watch begins again")
        await asyncio.sleep(LOOK_SEC)
