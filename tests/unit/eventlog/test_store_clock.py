"""In a shared store, a process only estimates the time: the store's own clock decides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from farhand.core.decide import calls
from farhand.core.decide.calls import CheckedResult
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import opened
from farhand.core.event import ThreadCreated
from farhand.core.outcome import Success
from farhand.core.result import Receipt, Refused, Result
from farhand.core.state import ThreadState
from farhand.eventlog.threads import Threads
from farhand.store.base import Append, AppendResult
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.unit.core.thread_builder import TIMEOUTS, asks_for
from tests.unit.core.thread_log import ANN


class SlowClockStore(MemoryStore):
    """What a process takes for the store's time is behind it."""

    is_shared = True

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.slow_by = 0.0
        self.appends = 0
        self.now = lambda: clock.now() - self.slow_by

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        self.appends += 1
        slow_by, self.slow_by = self.slow_by, 0.0
        try:
            return await super().append(appends)
        finally:
            self.slow_by = slow_by


async def test_what_the_store_refused_by_its_clock_is_decided_again_by_that_clock(clock: FakeClock) -> None:
    store = SlowClockStore(clock)
    threads = Threads(store)
    await threads.decide(ANN, "t1", _open)
    store.slow_by = TIMEOUTS.park_for
    clock.advance(TIMEOUTS.park_for)
    async with asyncio.timeout(5):
        receipt = await threads.decide(ANN, "t1", _settle)
    assert isinstance(receipt, Refused)
    assert receipt.reason == "expired"
    assert store.appends == 3, "refused once, and decided again"


def _open(thread: ThreadState, now: float) -> Decision[None]:
    event = opened(thread, asks_for("call_1", direct=True), now=now, timeouts=TIMEOUTS)
    return Decision(None, (ThreadCreated("t"), event))


def _settle(thread: ThreadState, now: float) -> Decision[Receipt]:
    result = Result(call_id="call_1", outcome=Success("late"))
    return calls.settle(thread, CheckedResult(result, result.outcome), now=now)
