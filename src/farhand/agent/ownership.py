"""Leases: which runs this process owns, and which workers are alive.

Where processes share a store, a lease is short and is renewed for all runs of a worker at once; a worker that
cannot renew loses its runs to the others. The version of a thread decides; the times kept here only make a
process check before it starts a tool if its lease may have expired since it took the call: it was suspended
for a while, or its store was.

A call without a run keeps the name of the worker that its caller is attached to, or that executes its tool.
Once that worker is gone, another one looks after the call. In a store that only one process opens, every
other worker is a former one, and gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from math import inf

from farhand.clock import SystemClock
from farhand.core.principal import Owner
from farhand.core.settings import Timeouts
from farhand.errors import StoreDown
from farhand.eventlog.log import EventLog
from farhand.store.presence import Seat

RENEWALS = 3
"""How often a lease is renewed before it could expire."""
SLACK_SEC = 2.0
"""How much later than planned a renewal may be without an outage of the store."""
RETRY_SEC = 1.0
"""Between two attempts while the store is down."""
WORKERS = Owner("", "farhand workers")
"""No principal has an empty tenant: the seats of workers are stored beside those of registered clients."""


_time_of_day = SystemClock().now


class Membership:
    def __init__(self, eventlog: EventLog, *, lease_sec: float) -> None:
        # not from the injected clock: two workers of one test must not have the same name
        self.name = SystemClock().fresh("wrk")
        self._streams = eventlog.streams
        self._lease_sec = lease_sec
        self._seat: Seat | None = None
        self._renewed_at: float | None = None
        self._trusted_from = -inf
        """When every other living worker has renewed its lease, by the clock of the event loop."""

    @property
    def trusts_leases(self) -> bool:
        """Whether the worker of an expired lease is gone. After an outage of the store all leases may have
        expired, and each worker needs a moment to renew its own. A worker that has just started does not know
        of an outage before."""
        if self._streams is None:
            return True
        if self._renewed_at is None:
            return False
        now = asyncio.get_running_loop().time()
        return now >= self._trusted_from and now - self._renewed_at <= self._usual_sec

    @property
    def _usual_sec(self) -> float:
        """Between two renewals, at most. Not longer than a lease: one that has expired proves an outage."""
        return min(self._lease_sec / RENEWALS + SLACK_SEC, self._lease_sec)

    async def renew(self) -> None:
        """Registers this worker as alive, for another lease."""
        if self._streams is None:
            return
        await self._renew_seat()
        now = asyncio.get_running_loop().time()
        if self._renewed_at is None or now - self._renewed_at > self._usual_sec:
            # the others try to connect once in RETRY_SEC, and connecting takes time too
            self._trusted_from = now + max(self._lease_sec / RENEWALS, 3 * RETRY_SEC)
        self._renewed_at = now

    async def _renew_seat(self) -> None:
        assert self._streams is not None, "only workers that share a store have seats"
        if self._seat is None or await self._streams.renew_seats([self._seat], lease_sec=self._lease_sec):
            self._seat = await self._streams.arrive(WORKERS, self.name, lease_sec=self._lease_sec)

    async def leave(self) -> None:
        """Lets others take over its calls immediately."""
        if self._streams is not None and self._seat is not None:
            await self._streams.retire(self._seat)

    async def gone(self, names: Iterable[str]) -> set[str]:
        """The workers among these that are no longer alive."""
        return {name for name in set(names) if name != self.name and await self._is_gone(name)}

    async def _is_gone(self, name: str) -> bool:
        if self._streams is None:
            return True
        if self.trusts_leases:
            return not await self._streams.is_here(WORKERS, name)
        return await self._streams.is_retired(WORKERS, name)


class Ownership:
    def __init__(self, eventlog: EventLog, timeouts: Timeouts, membership: Membership) -> None:
        self._log = eventlog
        self._membership = membership
        self._seconds = timeouts.lease if eventlog.is_shared else inf
        self._sure_since = -inf
        self._sure_until = 0.0 if eventlog.is_shared else inf
        """The lease has not expired between these two, by the clock of the event loop."""
        self._wall_until = self._sure_until
        """The same by the time of day, since the other clock stops while the machine sleeps."""
        self._renewing = asyncio.Lock()
        eventlog.worker = membership.name
        eventlog.lease_sec = self._seconds

    @property
    def pause_sec(self) -> float:
        """Between two renewals."""
        return self._seconds / RENEWALS

    def is_sure(self, since: float) -> bool:
        """True if no other process can have taken over what this one has held since this time."""
        return self._sure_since <= since and not self._may_have_expired()

    async def still_holds(self, since: float, look: Callable[[], Awaitable[bool]]) -> bool:
        """Whether what this process held at this time is still its own, so that its tool may start now.
        `look` asks the log; a lease that has not expired since then makes that unnecessary."""
        while not self.is_sure(since):
            try:
                # in this order: nobody can take over what is found to be held while the lease lasts
                if self._may_have_expired():
                    await self.renew()
                asked_at = asyncio.get_running_loop().time()
                if not await look():
                    return False
                since = asked_at
            except StoreDown:
                await asyncio.sleep(RETRY_SEC)
        return True

    async def renew(self) -> None:
        """Renews the leases of this worker and of its runs."""
        async with self._renewing:
            loop = asyncio.get_running_loop()
            asked_at, wall_asked_at = loop.time(), _time_of_day()
            await self._membership.renew()
            await self._log.store.renew(self._membership.name, self._log.now() + self._seconds)
            if self._may_have_expired():
                # before the store renewed it
                self._sure_since = loop.time()
            self._sure_until = asked_at + self._seconds
            self._wall_until = wall_asked_at + self._seconds

    def _may_have_expired(self) -> bool:
        is_over = asyncio.get_running_loop().time() >= self._sure_until
        return is_over or _time_of_day() >= self._wall_until

    async def hand_over(self) -> None:
        """Ends the leases of unfinished runs and leaves, so that other workers take over at once."""
        await self._log.store.renew(self._membership.name, 0.0)
        await self._membership.leave()
