"""Settles overdue calls as TimedOut.

The heap holds only calls due soon and is a hint: the decision judges, and the store's clock when it is
written. A scan refills the heap and finds calls it does not know (after a restart, or of another worker).
Scans are timed by a monotonic clock; only the deadlines themselves are the store's.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from math import isfinite

from farhand.calls.desk import Desk
from farhand.core.call import Call
from farhand.errors import StoreDown
from farhand.eventlog.log import EventLog

log = logging.getLogger("farhand.calls")

SCAN_AHEAD_SEC = 30.0
REFILL_SEC = 10.0
RESCAN_SEC = 1.0
CALLS_PER_SCAN = 1000
CALLS_PER_BATCH = 24


class Deadlines:
    def __init__(self, eventlog: EventLog) -> None:
        self._log = eventlog
        self._soon: list[tuple[float, str, Call]] = []
        self._listed: set[tuple[str, float]] = set()
        """What is in the heap; also what cannot be expired, so that no scan adds it again."""
        self._scan_at = 0.0
        self._earlier = asyncio.Event()

    def expect(self, call: Call) -> None:
        """The call got a deadline; one that is far ahead is left to the scan."""
        deadline = call.deadline
        if deadline is None or not isfinite(deadline) or deadline > self._log.now() + SCAN_AHEAD_SEC:
            return
        entry = (call.call_id, deadline)
        if entry in self._listed:
            return
        is_first = not self._soon or deadline < self._soon[0][0]
        self._listed.add(entry)
        heapq.heappush(self._soon, (deadline, call.call_id, call))
        if is_first:
            self._earlier.set()

    async def run(self, desk: Desk) -> None:
        """Runs until cancelled. Expires what is due, scans now and then, sleeps until the next deadline."""
        while True:
            self._earlier.clear()
            try:
                await (self.sweep(desk) if _monotonic() >= self._scan_at else self._expire(desk))
            except StoreDown:
                # the store has the record; when it is back, the scan finds what was missed
                self._scan_at = _monotonic() + RESCAN_SEC
            await self._sleep()

    async def sweep(self, desk: Desk) -> int:
        """Scans, and expires everything that is overdue now; returns the number of calls."""
        expired = 0
        while True:
            is_all = await self._refill()
            now_expired = await self._expire(desk)
            expired += now_expired
            if is_all or now_expired == 0:
                return expired

    async def _refill(self) -> bool:
        """False if there may be more overdue calls."""
        now = self._log.now()
        found = await self._log.due(before=now + SCAN_AHEAD_SEC, limit=CALLS_PER_SCAN)
        for call in found:
            self.expect(call)
        # there may be more after a full page: scan again as soon as the last call of this page is due
        is_full = len(found) == CALLS_PER_SCAN
        wait = min((found[-1].deadline or now) - now, REFILL_SEC) if is_full else REFILL_SEC
        self._scan_at = _monotonic() + (wait if wait > 0.0 else RESCAN_SEC)
        return wait > 0.0

    async def _expire(self, desk: Desk) -> int:
        expired = 0
        # in slices, so that a hundred thousand at once do not block the loop
        while batch := self._next_slice():
            expired += sum(await asyncio.gather(*(self._expire_one(desk, call) for call in batch)))
        return expired

    async def _expire_one(self, desk: Desk, call: Call) -> bool:
        try:
            return await desk.expire(call)
        except StoreDown:
            raise
        # a thread whose log cannot be read must not keep other calls from expiring
        except Exception:
            log.exception("could not expire call %s; skipping it", call.call_id)
            self._listed.add((call.call_id, call.deadline or 0.0))
            return False

    def _next_slice(self) -> list[Call]:
        now = self._log.now()
        batch: list[Call] = []
        while self._soon and self._soon[0][0] <= now and len(batch) < CALLS_PER_BATCH:
            deadline, call_id, call = heapq.heappop(self._soon)
            self._listed.discard((call_id, deadline))
            batch.append(call)
        return batch

    async def _sleep(self) -> None:
        seconds = self._scan_at - _monotonic()
        if self._soon:
            seconds = min(seconds, self._soon[0][0] - self._log.now())
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._earlier.wait()
        except TimeoutError:
            return


def _monotonic() -> float:
    return asyncio.get_running_loop().time()
