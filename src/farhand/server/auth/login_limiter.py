"""Limits failed sign-ins per address. Owns the counts; time is passed in."""

from __future__ import annotations

from math import ceil

from farhand.errors import TooMany

AT_MOST = 10
WITHIN_SEC = 60.0
MAX_ADDRESSES = 10_000


class LoginLimiter:
    def __init__(self, at_most: int = AT_MOST) -> None:
        self._at_most = at_most
        self._counted: dict[str, tuple[float, int]] = {}

    def add(self, address: str, now: float) -> None:
        """Counts a failure; `TooMany` beyond the limit per minute."""
        since, count = self._counted.get(address, (now, 0))
        if now - since >= WITHIN_SEC:
            since, count = now, 0
        if len(self._counted) >= MAX_ADDRESSES and address not in self._counted:
            self._forget(now)
        self._counted[address] = (since, count + 1)
        if count >= self._at_most:
            raise self._too_many(since, now)

    def check(self, address: str, now: float) -> None:
        """`TooMany` while the address is over the limit."""
        since, count = self._counted.get(address, (now, 0))
        if count >= self._at_most and now - since < WITHIN_SEC:
            raise self._too_many(since, now)

    def _forget(self, now: float) -> None:
        """Expired entries first, then the oldest, so that memory stays bounded."""
        self._counted = {
            address: (since, count)
            for address, (since, count) in self._counted.items()
            if now - since < WITHIN_SEC
        }
        while len(self._counted) >= MAX_ADDRESSES:
            del self._counted[next(iter(self._counted))]

    def _too_many(self, since: float, now: float) -> TooMany:
        left = max(1, ceil(since + WITHIN_SEC - now))
        return TooMany(
            f"More than {self._at_most} failed sign-ins within a minute.",
            hint=f"Try again in {left} s with a valid credential.",
            retry_after=left,
        )
