"""One timer of the event loop for everything that waits. Owns the time slots; must not know what they are
for.

One loop timer per wait would cost more time and memory than the wait, and nearly all waits end early. A timer
may fire late by up to one slot.
"""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Protocol

SLOT_SEC = 0.05


class Timed(Protocol):
    def fire(self, now: float) -> None: ...


class TimerWheel:
    def __init__(self) -> None:
        self._slots: dict[int, set[Timed]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = 0

    def set(self, timed: Timed, until: float) -> int:
        """Fires at this loop time or a moment later; returns the slot, for `drop`."""
        slot = ceil(until / SLOT_SEC)
        listed = self._slots.get(slot)
        if listed is None:
            self._slots[slot] = {timed}
        else:
            listed.add(timed)
        if self._timer is None or slot < self._fires_at:
            self._start(slot)
        return slot

    def drop(self, timed: Timed, slot: int) -> None:
        """Cancels the timer."""
        listed = self._slots.get(slot)
        if listed is None:
            return
        listed.discard(timed)
        if not listed:
            del self._slots[slot]
        if not self._slots and self._timer is not None:
            # not left behind in a loop that may end now
            self._timer.cancel()
            self._timer = None

    def _start(self, slot: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._fires_at = slot
        self._timer = loop.call_at(slot * SLOT_SEC, self._fire, loop)

    def _fire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        # loop timers may fire early by the clock's resolution
        due, now = self._fires_at, max(loop.time(), self._fires_at * SLOT_SEC)
        for slot in [slot for slot in self._slots if slot <= due or slot * SLOT_SEC <= now]:
            for timed in self._slots.pop(slot):
                timed.fire(now)
        if self._slots:
            self._start(min(self._slots))
