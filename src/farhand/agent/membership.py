"""Which workers are alive. A call without a run keeps the name of the worker that its caller is attached to,
or that runs its tool: once that worker is gone, another one looks after the call.

In a store that only one process opens, every other worker is a former one, and gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from farhand.clock import SystemClock
from farhand.core.principal import Owner
from farhand.store.base import Store
from farhand.store.streams import Seat

WORKERS = Owner("", "farhand workers")
"""Nobody who signs in has an empty tenant: the seats of workers are beside those of registered clients."""


class Membership:
    def __init__(self, store: Store, *, lease_sec: float) -> None:
        # not of the clock that is handed around: two workers of one test must not have the same name
        self.name = SystemClock().fresh("wrk")
        self._store = store
        self._lease_sec = lease_sec
        self._seat: Seat | None = None

    async def renew(self) -> None:
        """Joins, or stays for another lease."""
        streams = self._store.streams
        if streams is None:
            return
        if self._seat is None or await streams.stay([self._seat], lease_sec=self._lease_sec):
            self._seat = await streams.arrive(WORKERS, self.name, lease_sec=self._lease_sec)

    async def leave(self) -> None:
        """Others may look after its calls at once."""
        if self._store.streams is not None and self._seat is not None:
            await self._store.streams.leave(self._seat)

    async def gone(self, names: Iterable[str]) -> set[str]:
        """Those of these workers that are not alive any more."""
        return {name for name in set(names) if not await self._is_alive(name)}

    async def _is_alive(self, name: str) -> bool:
        if name == self.name:
            return True
        streams = self._store.streams
        return streams is not None and await streams.is_here(WORKERS, name)
