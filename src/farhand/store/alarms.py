"""One timer for all who sleep. Owns the slots of time in which they are woken; must not know what for.

A timer of the loop for each sleeper would cost more than the sleep, in time and in memory, and nearly all of
them are woken by news long before. Whoever sleeps may be woken late by as much as a slot is long.
"""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Protocol

SLOT_SEC = 0.05


class Sleeper(Protocol):
    def ring(self, now: float) -> None: ...


class Alarms:
    def __init__(self) -> None:
        self._slots: dict[int, set[Sleeper]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0

    def set(self, sleeper: Sleeper, until: float) -> int:
        """Rings at this time of the loop or a moment later; returns the slot, to `drop` it from."""
        slot = ceil(until / SLOT_SEC)
        listed = self._slots.get(slot)
        if listed is None:
            self._slots[slot] = {sleeper}
        else:
            listed.add(sleeper)
        if self._timer is None or slot < self._rings_at:
            self._wind(slot)
        return slot

    def drop(self, sleeper: Sleeper, slot: int) -> None:
        """Nobody sleeps there any more."""
        listed = self._slots.get(slot)
        if listed is None:
            return
        listed.discard(sleeper)
        if not listed:
            del self._slots[slot]
        if not self._slots and self._timer is not None:
            # not left behind in a loop that may end now
            self._timer.cancel()
            self._timer = None

    def _wind(self, slot: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._rings_at = slot
        self._timer = loop.call_at(slot * SLOT_SEC, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        # timers of an event loop may come early by as much as it rounds
        rung, now = self._rings_at, max(loop.time(), self._rings_at * SLOT_SEC)
        for slot in [slot for slot in self._slots if slot <= rung or slot * SLOT_SEC <= now]:
            for sleeper in self._slots.pop(slot):
                sleeper.ring(now)
        if self._slots:
            self._wind(min(self._slots))
