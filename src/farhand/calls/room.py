"""How many calls may wait for far hands at once: in one thread, and for one tenant.

The store counts. A tenant may have very many, so what fitted by the last count is used up before it counts
again. Calls that several runs open in the same moment may pass the limit of their tenant by a few.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from farhand.core.principal import Owner
from farhand.core.settings import Limits
from farhand.errors import TooMany
from farhand.store.base import Store


class Fit(Struct, frozen=True):
    """How many of the wanted calls may be opened, and what stands in the way of the others."""

    count: int
    why: str = ""


class Room:
    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._opening: Counter[tuple[Owner, str]] = Counter()
        self._left_of_tenant: dict[str, int] = {}
        self._counting = asyncio.Lock()
        self._under_way: set[asyncio.Future[None]] = set()

    async def fit(self, owner: Owner, thread_id: str, wanted: int) -> Fit:
        limits = self._limits
        here = await self._store.count_open(owner, thread_id) + self._opening.get((owner, thread_id), 0)
        in_thread = max(0, min(wanted, limits.open_calls_per_thread - here))
        left = self._left_of_tenant.get(owner.tenant, 0)
        if left < in_thread:
            left = await self._count(owner.tenant)
        in_tenant = max(0, min(in_thread, left))
        self._left_of_tenant[owner.tenant] = left - in_tenant
        if in_tenant < in_thread:
            return Fit(in_tenant, _why(limits.open_calls_per_tenant, "a tenant"))
        return Fit(in_thread, "" if in_thread == wanted else _why(limits.open_calls_per_thread, "a thread"))

    @asynccontextmanager
    async def place(self, owner: Owner, thread_id: str) -> AsyncIterator[None]:
        """Keeps the place of one call that is about to be stored; raises `TooMany` if there is none."""
        key = (owner, thread_id)
        # one at a time: a place that is counted and not kept yet would be given away twice
        async with self._counting:
            await self._find(owner, thread_id)
            self._opening[key] += 1
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way.add(stored)
        try:
            yield
        finally:
            self._under_way.discard(stored)
            stored.set_result(None)
            self._opening[key] -= 1
            if not self._opening[key]:
                del self._opening[key]

    async def _find(self, owner: Owner, thread_id: str) -> None:
        while True:
            others = set(self._under_way)
            fit = await self.fit(owner, thread_id, 1)
            if fit.count > 0:
                return
            if not others:
                raise TooMany(fit.why, hint="Try again when some are answered.")
            # one that was stored while the store counted is counted twice: look again when it is known
            await asyncio.wait(others)

    async def _count(self, tenant: str) -> int:
        """How many more the tenant may open."""
        opening = sum(count for (owner, _), count in self._opening.items() if owner.tenant == tenant)
        count = await self._store.count_open_of_tenant(tenant)
        return self._limits.open_calls_per_tenant - count - opening


def _why(limit: int, whose: str) -> str:
    return f"{whose.capitalize()} may have {limit} open calls at most."
