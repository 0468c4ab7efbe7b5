"""Settles overdue calls as TimedOut.

The wheel holds only what is due soon and is a hint: the store judges, inside the compare-and-swap. What the
wheel never heard of (a restart, another worker) is found by the scan that refills it. Scans come by a clock
that never goes back; only deadlines themselves are by the store's.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from math import isfinite

from farhand.calls.desk import Desk
from farhand.errors import StoreDown
from farhand.store.base import Due, Store

log = logging.getLogger("farhand.calls")

AHEAD_SEC = 30.0
REFILL_SEC = 10.0
AGAIN_SEC = 1.0
PAGE = 1000
SLICE = 24


class Deadlines:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._soon: list[tuple[float, str, Due]] = []
        self._listed: set[tuple[str, float]] = set()
        """What is in the wheel; and what cannot be expired, so that no scan brings it back."""
        self._scan_at = 0.0
        self._earlier = asyncio.Event()

    def expect(self, due: Due) -> None:
        """A deadline was set; those that lie far ahead are left to the scan."""
        entry = (due.call_id, due.deadline)
        is_soon = isfinite(due.deadline) and due.deadline <= self._store.now() + AHEAD_SEC
        if not is_soon or entry in self._listed:
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
                await (self.sweep(desk) if _monotonic() >= self._scan_at else self._expire(desk))
            except StoreDown:
                # the record is the store's; when it is back, the scan finds what was missed
                self._scan_at = _monotonic() + AGAIN_SEC
            await self._sleep()

    async def sweep(self, desk: Desk) -> int:
        """Scans, and expires everything that is overdue now; how many calls that were."""
        expired = 0
        while True:
            is_all = await self._refill()
            now_expired = await self._expire(desk)
            expired += now_expired
            if is_all or now_expired == 0:
                return expired

    async def _refill(self) -> bool:
        """False if there may be more that is overdue already."""
        now = self._store.now()
        found = await self._store.due(before=now + AHEAD_SEC, limit=PAGE)
        for due in found:
            self.expect(due)
        # behind a full page there may be more: that is asked for as soon as the last one of this is due
        wait = min(found[-1].deadline - now, REFILL_SEC) if len(found) == PAGE else REFILL_SEC
        self._scan_at = _monotonic() + (wait if wait > 0.0 else AGAIN_SEC)
        return wait > 0.0

    async def _expire(self, desk: Desk) -> int:
        expired = 0
        # in slices, so that a hundred thousand at once do not hold up the loop
        while batch := self._next_slice():
            expired += sum(await asyncio.gather(*(self._expire_one(desk, due) for due in batch)))
        return expired

    async def _expire_one(self, desk: Desk, due: Due) -> bool:
        try:
            return await desk.expire(due)
        except StoreDown:
            raise
        except Exception:
            log.exception("call %s cannot be expired and is left alone", due.call_id)
            self._listed.add((due.call_id, due.deadline))
            return False

    def _next_slice(self) -> list[Due]:
        now = self._store.now()
        batch: list[Due] = []
        while self._soon and self._soon[0][0] <= now and len(batch) < SLICE:
            due = heapq.heappop(self._soon)[2]
            self._listed.discard((due.call_id, due.deadline))
            batch.append(due)
        return batch

    async def _sleep(self) -> None:
        seconds = self._scan_at - _monotonic()
        if self._soon:
            seconds = min(seconds, self._soon[0][0] - self._store.now())
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._earlier.wait()
        except TimeoutError:
            return


def _monotonic() -> float:
    return asyncio.get_running_loop().time()
