"""The only module that reads the time and creates ids.

Everything else gets a `Clock`, so that a test controls both time and randomness.
"""

from __future__ import annotations

import os
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970, the scale of deadlines in the store."""
        ...

    def fresh(self, kind: str) -> str:
        """A new id of this kind: unguessable and never used before."""
        ...


monotonic = time.monotonic
"""Seconds that never go backwards, for durations within this process."""


class SystemClock:
    now = staticmethod(time.time)

    def fresh(self, kind: str) -> str:
        return f"{kind}_{os.urandom(16).hex()}"
