"""A clock for tests: time moves only when the test says so, and ids are the same in every run."""

from __future__ import annotations

import hashlib


class FakeClock:
    """A clock that stands still until `advance`. Its ids look like real ones and are the same in every run.

    ```python
    from farhand.testing import FakeClock

    clock = FakeClock()
    before = clock.now()
    assert clock.advance(60) == before + 60
    ```

    Two clocks that create ids for the same store need different seeds.
    """

    def __init__(self, now: float = 1_800_000_000.0, *, seed: str = "") -> None:
        self._now = now
        self._seed = seed
        self._made = 0

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> float:
        """Moves the time forward and returns it. Time never runs backwards."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} seconds")
        self._now += seconds
        return self._now

    def fresh(self, kind: str) -> str:
        self._made += 1
        return f"{kind}_{hashlib.sha256(f'{self._seed}:{self._made}'.encode()).hexdigest()[:32]}"
