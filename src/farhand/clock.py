"""The only reader of time and maker of fresh ids.

Everything else is handed a `Clock`, so that a test can own both time and chance.
"""

from __future__ import annotations

import os
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970, as the store compares deadlines."""
        ...

    def fresh(self, kind: str) -> str:
        """A new id of this kind: unguessable, never given out before."""
        ...


monotonic = time.monotonic
"""Seconds that never go back, for what is counted in this process alone."""


class SystemClock:
    now = staticmethod(time.time)

    def fresh(self, kind: str) -> str:
        return f"{kind}_{os.urandom(16).hex()}"
