"""How many calls of one tenant may wait for people and far hands at once.

The store counts. A tenant may have very many, so the remainder of the last count is used up before it counts
again. Calls that several runs open at the same moment may exceed the limit by a few; calls that programs make
may not, if one process makes them. The limit of one thread is decided with the thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from farhand.core.settings import Limits
from farhand.eventlog.log import EventLog

TENANTS_COUNTED = 10_000
"""Tenants whose last count is remembered."""


class OpenCallLimit:
    def __init__(self, eventlog: EventLog, limits: Limits) -> None:
        self._log = eventlog
        self._limit = limits.open_calls_per_tenant
        self._step = limits.open_calls_per_run
        """The most calls a model may request at once: with fewer left, the store counts again."""
        self._left: dict[str, int] = {}
        self._reserved: Counter[str] = Counter()
        self._counting = asyncio.Lock()
        self._under_way: set[asyncio.Future[None]] = set()

    async def left(self, tenant: str) -> int:
        """How many more calls the tenant may open."""
        left = self._left.get(tenant, 0)
        if left >= self._step:
            return left
        return await self._count(tenant)

    def use(self, tenant: str, count: int) -> None:
        """Counts calls that were opened since."""
        if tenant in self._left:
            self._left[tenant] -= count

    @asynccontextmanager
    async def reserve(self, tenant: str) -> AsyncIterator[int]:
        """Reserves a place for one call while it is being stored; yields how many places there were,
        including its own.

        Nobody is refused while another call is being stored: that one may not need its place.
        """
        # one at a time: a place that is counted and not reserved yet would be given away twice
        async with self._counting:
            left = await self._find(tenant)
            self._reserved[tenant] += 1
            self.use(tenant, 1)
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way.add(stored)
        try:
            yield left
        finally:
            self._under_way.discard(stored)
            stored.set_result(None)
            self._reserved[tenant] -= 1
            if not self._reserved[tenant]:
                del self._reserved[tenant]

    async def _find(self, tenant: str) -> int:
        while True:
            others = set(self._under_way)
            left = await self.left(tenant)
            if left > 0 or not others:
                return left
            # a call that was stored while the store counted is counted twice: count again once that is
            # settled
            await asyncio.wait(others)

    async def _count(self, tenant: str) -> int:
        count = await self._log.count_open_of_tenant(tenant)
        if len(self._left) >= TENANTS_COUNTED:
            # they are counted again
            self._left.clear()
        self._left[tenant] = self._limit - count - self._reserved[tenant]
        return self._left[tenant]
