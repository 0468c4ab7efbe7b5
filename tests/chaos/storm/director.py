"""Injects faults at random, a given number of each kind: a fault counts if it hit something; then waits for
progress.

Counts and not seconds decide when it is over, so that a busy machine makes the run longer and never weaker.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from tests.chaos.fault_proxy import FaultProxy
from tests.chaos.storm.sender import Progress

TIMES = int(os.environ.get("TEST_STORM_FAULTS", "50"))
CALLS = int(os.environ.get("TEST_STORM_CALLS", "2000"))
LONGER = max(1.0, TIMES / 50)
"""Times as long as usual."""
AT_LEAST_SEC = float(os.environ.get("TEST_STORM_SECONDS", "0"))
SEED = int(os.environ.get("TEST_STORM_SEED") or random.SystemRandom().randrange(10**9))

LIFE_GOES_ON = 4
"""So many answers are told between two strikes of one lane."""
STANDSTILL_SEC = 2.0
"""A strike does not wait for longer: at a standstill only the next fault may show what is wrong."""


class Fault(NamedTuple):
    """`strike` answers how many it hit."""

    name: str
    strike: Callable[[], Awaitable[int]]


class Director:
    def __init__(self, lanes: Sequence[Sequence[Fault]], dice: random.Random, progress: Progress) -> None:
        self.struck: Counter[str] = Counter()
        self._lanes = lanes
        self._dice = dice
        self._progress = progress
        self._until = time.monotonic() + AT_LEAST_SEC

    async def run(self) -> None:
        """Every lane at its own pace, until each of its faults has struck often enough."""
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(self._run_lane(lane))

    @property
    def is_over(self) -> bool:
        """Whether it has been long enough, for whoever asked for a long run."""
        return time.monotonic() >= self._until

    async def _run_lane(self, lane: Sequence[Fault]) -> None:
        order = [fault for fault in lane for _ in range(TIMES)]
        self._dice.shuffle(order)
        for fault in order:
            await self._strike(fault)
        while not self.is_over:
            await self._strike(self._dice.choice(lane))

    async def _strike(self, fault: Fault) -> None:
        seen = self._progress.told
        try:
            async with asyncio.timeout(STANDSTILL_SEC):
                await self._progress.until(lambda: self._progress.told >= seen + LIFE_GOES_ON)
        except TimeoutError:
            pass
        # without success while nobody is connected: those who come back are on their way
        while not await fault.strike():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        self.struck[fault.name] += 1


def line_faults(lines: Sequence[FaultProxy], dice: random.Random) -> list[Fault]:
    """What can happen to a line: one of them at a time."""

    async def cut() -> int:
        return dice.choice(lines).cut()

    async def hang() -> int:
        line = dice.choice(lines)
        hit = line.hang()
        await asyncio.sleep(dice.uniform(0.05, 0.4))
        if dice.random() < 0.5:
            line.cut()
        line.flow()
        return hit

    async def half_open() -> int:
        return dice.choice(lines).half_open()

    async def delay() -> int:
        line = dice.choice(lines)
        hit = line.delay(dice.uniform(0.01, 0.1))
        await asyncio.sleep(dice.uniform(0.1, 0.3))
        line.delay(0)
        return hit

    async def drop() -> int:
        return dice.choice(lines).drop_after(dice.randrange(1, 3000))

    faults = {"cut": cut, "hang": hang, "half-open": half_open, "delay": delay, "drop": drop}
    return [Fault(name, strike) for name, strike in faults.items()]
