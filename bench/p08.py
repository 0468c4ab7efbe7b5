"""P8: how long the event loop is blocked when very many calls expire within one second."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import uvloop

from bench.apps.whole import make_app, open_url
from bench.pending import Pending
from bench.server_process import run_alone, scratch
from bench.table import Effort, Line, medians, ms
from farhand.cli.gc_tuning import tune_gc
from farhand.store.base import CallFilter

CALLS = 100_000
WITHIN_SEC = 240.0
OPEN_SEC = 30.0
"""How long opening them may take."""


def measure(effort: Effort) -> Line:
    count = effort.many(CALLS)
    rounds = [_expired(count) for _ in range(effort.rounds)]
    got = medians(rounds)
    each = ", ".join(ms(one["stall"]) for one in rounds)
    return Line(
        "P8",
        f"{count:,} calls expire within one second",
        "no stall over 20 ms",
        ms(got["stall"]),
        got["stall"] <= 0.020,
        "longest time between two turns of the loop, as processor time of the whole process (loop and writer,"
        f" on one core), median of the worst of {len(rounds)} rounds: {each}. Judged by that, since by the"
        f" wall it is also the time that others had the core: {ms(got['wall'])}, median of the worst,"
        f" {ms(max(one['wall'] for one in rounds))} the worst of all; of the loop's thread alone:"
        f" {ms(got['loop'])}; all settled after {got['seconds']:.1f} s",
        {**got, "rounds": rounds},
    )


def _expired(count: int) -> dict[str, float]:
    with scratch() as folder:
        return run_alone("bench.p08", str(folder / "p8.db"), str(count))


async def expire(file: str, count: int) -> dict[str, float]:
    app = make_app(f"sqlite:///{file}")
    await app.start()
    # as the server does once it is ready
    tune_gc()
    store = app.service.log.store
    due_at = store.now() + OPEN_SEC * count / CALLS + 3.0
    await Pending(app.service, open_url.tool, beside=False, due_at=due_at).open(count)
    assert store.now() < due_at, "the calls were not opened in time"
    await asyncio.sleep(due_at - store.now() - 0.2)
    ticker = _Ticker()
    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(ticker.run())
        async with asyncio.timeout(WITHIN_SEC):
            # there is no event for the last settled call
            # the cheapest question there is: to count them all would be a stall of its own
            while await store.open_calls(CallFilter(due_before=due_at + 1.0), limit=1):  # noqa: ASYNC110
                await asyncio.sleep(0.5)
        took = store.now() - due_at
        ticking.cancel()
    await app.stop()
    found = {"stall": ticker.whole, "wall": ticker.wall, "loop": ticker.loop}
    return {**found, "seconds": took, "count": count}


class _Ticker:
    """Runs on the loop all the time, and records the longest time it had to wait."""

    def __init__(self) -> None:
        self.wall = 0.0
        self.whole = 0.0
        self.loop = 0.0

    async def run(self) -> None:
        while True:
            # time used by other processes is not a stall of ours; time used by the writer is, whether it held
            # the interpreter lock or the core
            wall, whole, loop = time.perf_counter(), time.process_time(), time.thread_time()
            await asyncio.sleep(0.001)
            self.wall = max(self.wall, time.perf_counter() - wall)
            self.whole = max(self.whole, time.process_time() - whole)
            self.loop = max(self.loop, time.thread_time() - loop)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(expire(sys.argv[1], int(sys.argv[2])))))
