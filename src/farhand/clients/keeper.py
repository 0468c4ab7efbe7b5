"""Keeps the house while it is open: who stays away for longer than its grace is dismissed, and a call for a
tool that left while the call was opened is not left waiting.
"""

from __future__ import annotations

import asyncio
import logging

from farhand.calls.desk import Desk
from farhand.clients.attendance import DISCONNECTED, Attendance
from farhand.clients.elsewhere import Elsewhere
from farhand.clients.presence import Key
from farhand.core.call import Call, Phase
from farhand.errors import Broken
from farhand.store.base import Store
from farhand.store.hub import CLIENT_CALLS

log = logging.getLogger("farhand.clients")

AGAIN_SEC = 1.0
"""After how long a farewell is tried again that the store could not write."""


class Keeper:
    def __init__(self, attendance: Attendance, desk: Desk, store: Store) -> None:
        self._attendance = attendance
        self._desk = desk
        self._store = store
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._attendance.load()
        # the one task without a group: it owns the group that the others live in
        self._serving = asyncio.create_task(self._serve())  # noqa: TID251

    async def close(self) -> None:
        """Registrations stay: whoever opens the store next knows them."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])

    async def _serve(self) -> None:
        streams = self._store.streams
        async with asyncio.TaskGroup() as group:
            if streams is None:
                group.create_task(self._watch_absent())
            else:
                group.create_task(Elsewhere(self._attendance, self._desk, self._store, streams).run())
            group.create_task(self._watch_calls())

    async def _watch_absent(self) -> None:
        presence = self._attendance.presence
        while True:
            presence.changed.clear()
            waits = [await self._dismiss_if_due(key, seconds) for key, seconds in presence.absent()]
            try:
                async with asyncio.timeout(min(waits, default=None)):
                    await presence.changed.wait()
            except TimeoutError:
                continue

    async def _dismiss_if_due(self, key: Key, away: float) -> float:
        """Seconds until this client has to be looked at again."""
        left = self._grace(key) - away
        if left > 0:
            return left
        try:
            await self._attendance.dismiss(key)
        except Broken as error:
            log.warning("client %s could not be dismissed yet: %s", key[1], error)
        return AGAIN_SEC

    def _grace(self, key: Key) -> float:
        client = self._attendance.roster.client(*key)
        return 0.0 if client is None else self._attendance.grace(client)

    async def _watch_calls(self) -> None:
        with self._store.hub.watch(CLIENT_CALLS, limit=10_000) as watch:
            while True:
                await watch.wait(self._store.hub.recheck)
                while watch.news:
                    call = watch.news.pop(0)
                    assert isinstance(call, Call), "the topic tells calls"
                    await self._fail_if_nobody_is_there(call)

    async def _fail_if_nobody_is_there(self, call: Call) -> None:
        """Only for what was opened, or approved, after its tool had left: the others went with the tool."""
        if call.phase is not Phase.READY or self._attendance.roster.is_client_tool(call.owner, call.tool):
            return
        try:
            if await self._attendance.is_offered(call.owner, call.tool):
                return
            await self._desk.give_up([call], DISCONNECTED)
        except Broken as error:
            log.warning("call %s is left to its deadline: %s", call.call_id, error)
