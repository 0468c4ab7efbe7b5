"""Settles overdue calls as TimedOut.

The wheel holds only what is due soon and is a hint: the store judges, inside the compare-and-swap. What the
wheel never heard of (a restart, another worker) is found by the scan that refills it.
"""

from __future__ import annotations

import asyncio
import heapq

from farhand.calls.desk import Desk
from farhand.errors import StoreDown
from farhand.store.base import Due, Store

AHEAD_SEC = 30.0
REFILL_SEC = 10.0
PAGE = 1000
SLICE = 64


class Deadlines:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._soon: list[tuple[float, str, Due]] = []
        self._listed: set[tuple[str, float]] = set()
        self._refill_at = 0.0
        self._earlier = asyncio.Event()

    def expect(self, due: Due) -> None:
        """A deadline was set; those that lie far ahead are left to the scan."""
        entry = (due.call_id, due.deadline)
        if due.deadline > self._store.now() + AHEAD_SEC or entry in self._listed:
            return
        first = not self._soon or due.deadline < self._soon[0][0]
        self._listed.add(entry)
        heapq.heappush(self._soon, (due.deadline, due.call_id, due))
        if first:
            self._earlier.set()

    async def run(self, desk: Desk) -> None:
        """For ever: expire what is due, scan now and then, sleep until the next deadline."""
        while True:
            self._earlier.clear()
            try:
                await self.sweep(desk)
            except StoreDown:
                # the record is the store's; when it is back, the scan finds what was missed
                self._refill_at = self._store.now() + 1.0
            await self._sleep_until(min(self._refill_at, self._soon[0][0] if self._soon else self._refill_at))

    async def sweep(self, desk: Desk) -> int:
        """Expires everything that is overdue now; how many calls that were."""
        expired = 0
        while True:
            if self._store.now() >= self._refill_at:
                await self._refill()
            batch = self._next_slice()
            if not batch:
                return expired
            # in slices, so that a hundred thousand at once do not hold up the loop
            expired += sum(await asyncio.gather(*(desk.expire(due) for due in batch)))

    async def _refill(self) -> None:
        now = self._store.now()
        found = await self._store.due(before=now + AHEAD_SEC, limit=PAGE)
        for due in found:
            self.expect(due)
        full = len(found) == PAGE
        self._refill_at = min(now + REFILL_SEC, found[-1].deadline) if full else now + REFILL_SEC

    def _next_slice(self) -> list[Due]:
        now = self._store.now()
        batch: list[Due] = []
        while self._soon and self._soon[0][0] <= now and len(batch) < SLICE:
            due = heapq.heappop(self._soon)[2]
            self._listed.discard((due.call_id, due.deadline))
            batch.append(due)
        return batch

    async def _sleep_until(self, then: float) -> None:
        seconds = max(0.0, then - self._store.now())
        try:
            async with asyncio.timeout(seconds):
                await self._earlier.wait()
        except TimeoutError:
            return
