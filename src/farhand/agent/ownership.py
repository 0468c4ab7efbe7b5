"""Leases: which runs are this process's own, and which workers are alive.

Where processes share a store, a lease is short and is renewed for all runs of a worker at once; a worker that
cannot renew loses its runs to the others. The version of a thread is what decides; the times kept here only
tell a process that was suspended for a while to look before it starts a tool.

A call without a run keeps the name of the worker that its caller is attached to, or that executes its tool.
Once that worker is gone, another one looks after the call. In a store that only one process opens, every
other worker is a former one, and gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from math import inf

from farhand.clock import SystemClock
from farhand.core.principal import Owner
from farhand.core.settings import Patience
from farhand.eventlog.log import EventLog
from farhand.store.presence import Seat

RENEWALS = 3
"""So often a lease is renewed before it could lapse."""


class Ownership:
    def __init__(self, eventlog: EventLog, patience: Patience, worker: str) -> None:
        self._log = eventlog
        self._worker = worker
        self._seconds = patience.lease if eventlog.is_shared else inf
        self._sure_until = 0.0 if eventlog.is_shared else inf
        eventlog.worker = worker
        eventlog.lease_sec = self._seconds

    @property
    def pause_sec(self) -> float:
        """Between two renewals."""
        return self._seconds / RENEWALS

    def is_sure(self) -> bool:
        """True as long as nobody else can have taken a run of this process."""
        return asyncio.get_running_loop().time() < self._sure_until

    async def renew(self, since: float | None = None) -> None:
        """`since` is when this worker began to say that it is alive, by the clock of the event loop."""
        asked_at = asyncio.get_running_loop().time() if since is None else since
        await self._log.store.renew(self._worker, self._log.now() + self._seconds)
        self._sure_until = asked_at + self._seconds

    async def hand_over(self) -> None:
        """Ends the leases of runs that are not done, so that another process takes them up at once."""
        await self._log.store.renew(self._worker, 0.0)


WORKERS = Owner("", "farhand workers")
"""Nobody who signs in has an empty tenant: the seats of workers are beside those of registered clients."""


class Membership:
    def __init__(self, eventlog: EventLog, *, lease_sec: float) -> None:
        # not of the clock that is handed around: two workers of one test must not have the same name
        self.name = SystemClock().fresh("wrk")
        self._streams = eventlog.streams
        self._lease_sec = lease_sec
        self._seat: Seat | None = None

    async def renew(self) -> None:
        """Joins, or stays for another lease."""
        if self._streams is None:
            return
        if self._seat is None or await self._streams.stay([self._seat], lease_sec=self._lease_sec):
            self._seat = await self._streams.arrive(WORKERS, self.name, lease_sec=self._lease_sec)

    async def leave(self) -> None:
        """Others may look after its calls at once."""
        if self._streams is not None and self._seat is not None:
            await self._streams.leave(self._seat)

    async def gone(self, names: Iterable[str]) -> set[str]:
        """Those of these workers that are not alive any more."""
        return {name for name in set(names) if not await self._is_alive(name)}

    async def _is_alive(self, name: str) -> bool:
        if name == self.name:
            return True
        return self._streams is not None and await self._streams.is_here(WORKERS, name)
