"""What this process holds, and for how long it may believe so.

A store that only one process opens gives leases that end with the process. In one that others share, a lease
is short and renewed, for all runs together: whoever cannot renew loses its runs to the others. What counts is
the store's answer; the time kept here only tells when to stop speaking before one has come.
"""

from __future__ import annotations

import asyncio
from math import inf

from farhand.core.run import Run
from farhand.core.settings import Patience
from farhand.store.base import Stale, Store, WriteRun

FOREVER = 10 * 365 * 24 * 3600.0
RENEWALS = 3
"""So often a lease is renewed before it could lapse."""


def lease_sec(store: Store, patience: Patience) -> float:
    return patience.lease if store.is_shared else FOREVER


class Leases:
    def __init__(self, store: Store, patience: Patience) -> None:
        self.seconds = lease_sec(store, patience)
        self._store = store
        self._held: dict[str, tuple[int, float]] = {}
        """Of each run: its fence, and until when nobody else can have it."""

    @property
    def pause_sec(self) -> float:
        """Between two renewals."""
        return self.seconds / RENEWALS

    def hold(self, run: Run) -> None:
        """It was claimed or begun for this process, a moment ago at most."""
        # nobody else can have what is in a store of this process alone
        until = _now() + run.lease_until - self._store.now() if self._store.is_shared else inf
        self._held[run.run_id] = (run.fence, until)

    def drop(self, run: Run) -> None:
        """Nobody works on it here any more; unless it was claimed anew."""
        fence, _ = self._held.get(run.run_id, (0, 0.0))
        if fence <= run.fence:
            self._held.pop(run.run_id, None)

    def is_sure(self, run: Run, now: float) -> bool:
        """True as long as nobody else can have taken the run; `now` by the loop's clock."""
        held, until = self._held.get(run.run_id, (0, 0.0))
        return held == run.fence and now < until

    async def renew(self) -> list[str]:
        """All of them at once; which of them others have taken."""
        held = dict(self._held)
        asked_at = _now()
        commits = await asyncio.gather(*(self._write(run_id, fence) for run_id, (fence, _) in held.items()))
        lost: list[str] = []
        for (run_id, entry), commit in zip(held.items(), commits, strict=True):
            if self._held.get(run_id) != entry:
                # dropped, or claimed anew, while the store was asked
                continue
            if commit:
                self._held[run_id] = (entry[0], asked_at + self.seconds)
            else:
                lost.append(run_id)
        return lost

    async def hand_over(self, runs: list[Run]) -> None:
        """Voids the leases of runs that are not done, so that another process takes them up at once."""
        await asyncio.gather(*(self._write(run.run_id, run.fence, seconds=0.0) for run in runs))

    async def _write(self, run_id: str, fence: int, *, seconds: float | None = None) -> bool:
        lease = self.seconds if seconds is None else seconds
        commit = await self._store.commit(WriteRun(run_id=run_id, fence=fence, lease_sec=lease))
        return not isinstance(commit, Stale)


def _now() -> float:
    return asyncio.get_running_loop().time()
