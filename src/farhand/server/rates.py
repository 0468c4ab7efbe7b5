"""How often one principal may ask for one kind of thing. Owns the counts; time is handed in.

One bucket for each owner, filled as time passes and emptied by asking: a look-up and two sums for a
request, whoever comes. Must not know what is asked for.
"""

from __future__ import annotations

from math import ceil

from farhand.core.principal import Owner
from farhand.errors import TooMany

REMEMBERED = 10_000


class Rates:
    """`what` is the plural of what is counted."""

    def __init__(self, what: str, *, per_sec: float, burst: int) -> None:
        self._what = what
        self._per_sec = per_sec
        self._burst = float(burst)
        self._left: dict[Owner, list[float]] = {}

    def count(self, owner: Owner, now: float) -> None:
        """One more; `TooMany` once they come faster than they may."""
        bucket = self._left.get(owner)
        if bucket is None:
            bucket = self._begin(owner, now)
        left, since = bucket
        left += (now - since) * self._per_sec
        left = min(left, self._burst)
        bucket[1] = now
        if left < 1.0:
            bucket[0] = left
            raise self._too_many(left)
        bucket[0] = left - 1.0

    def _begin(self, owner: Owner, now: float) -> list[float]:
        if len(self._left) >= REMEMBERED:
            # whoever came first is forgotten: memory stays bounded, however many there are
            del self._left[next(iter(self._left))]
        bucket = self._left[owner] = [self._burst, now]
        return bucket

    def _too_many(self, left: float) -> TooMany:
        wait = max(1, ceil((1.0 - left) / self._per_sec))
        return TooMany(
            f"Too many {self._what} in a short time.",
            hint=f"Try again in {wait} s; nothing was applied.",
            retry_after=wait,
        )
