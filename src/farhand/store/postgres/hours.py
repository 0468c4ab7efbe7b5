"""The database's time, as this process knows it between two looks.

Every look tells a time that has passed when it arrives, so what is kept is never ahead of the database: a
deadline that is over here is over there. Two windows, so that an old look is forgotten in the end: clocks
drift, and are set right.
"""

from __future__ import annotations

from collections.abc import Callable

from farhand.clock import Clock

WINDOW_SEC = 30.0


class Hours:
    """`clock` is given by tests that own time; then the database is told the time instead of asked."""

    def __init__(self, monotonic: Callable[[], float], clock: Clock | None = None) -> None:
        self.clock = clock
        self._monotonic = monotonic
        self._ahead: float | None = None
        self._ahead_before: float | None = None
        self._since = monotonic()

    @property
    def told(self) -> float | None:
        """What the database is told instead of looking at its own clock."""
        return None if self.clock is None else self.clock.now()

    def now(self) -> float:
        if self.clock is not None:
            return self.clock.now()
        known = [ahead for ahead in (self._ahead, self._ahead_before) if ahead is not None]
        assert known, "the database was asked for its time when the store was opened"
        return self._monotonic() + max(known)

    def seen(self, at: float) -> None:
        """The database has just said that it is so late."""
        here = self._monotonic()
        if here - self._since > WINDOW_SEC:
            self._ahead_before, self._ahead, self._since = self._ahead, None, here
        ahead = at - here
        self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)
