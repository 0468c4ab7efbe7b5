"""Rate limits per principal: one token bucket per owner. Owns the buckets; time is passed in.

Costs one look-up and two additions per request. Must not know what is limited.
"""

from __future__ import annotations

from math import ceil

from farhand.core.principal import Owner
from farhand.errors import TooMany

MAX_OWNERS = 10_000


class RateLimiter:
    """`what` is a plural for the error message."""

    def __init__(self, what: str, *, per_sec: float, burst: int) -> None:
        self._what = what
        self._per_sec = per_sec
        self._burst = float(burst)
        self._left: dict[Owner, list[float]] = {}

    def count(self, owner: Owner, now: float) -> None:
        """Counts one request; `TooMany` if the bucket is empty."""
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
        if len(self._left) >= MAX_OWNERS:
            # the oldest is forgotten, so that memory stays bounded
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
