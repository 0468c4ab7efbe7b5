"""How farhand grows: measures what a few things cost here, and plays up to a million waiting calls with that.

`python -m bench.simulate_scale` takes a minute and prints two tables: the measured costs, and what follows
from them for growing numbers of waiting calls. docs/explanation/scale.md explains them.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from dataclasses import dataclass
from statistics import quantiles

from farhand import Agent, ScriptedModel, Success, tool
from farhand.core.principal import LOCAL
from farhand.core.thread import Thread
from farhand.models.scripted import Ask, Moment, Step
from farhand.store.address import open_store
from farhand.store.base import InsertThread, Store
from farhand.store.postgres.line import connect
from farhand.store.postgres.place import place_of
from tests.postgres import Cluster, running_cluster

WAITING = (1_000, 10_000, 100_000, 1_000_000)
MEAN_WAIT_SEC = 600.0
"""How long a call waits for its person, on average."""
TRIPS, IN_FLIGHT = 384, 64
BUSY_AT_MOST = 0.6
"""A worker or a database that is busier than this is too full for bursts."""
PLAYED_SEC = 30.0
ANSWERS_AT_MOST = 60_000


@dataclass(frozen=True)
class Costs:
    """Of this machine, in seconds and bytes."""

    trip_cpu: float
    """What a worker computes for one round trip."""
    trip_database_cpu: float
    batch: float
    """A transaction with nothing in it but its beginning and its end."""
    commit: float
    """What each commit adds to its transaction."""
    parked_bytes: float
    scan_few: float
    scan_many: float
    """A look for overdue calls and stray runs, with few and with many parked runs."""


def main() -> None:
    with running_cluster() as cluster:
        costs = asyncio.run(measure(cluster))
    print_costs(costs)
    print_plays(costs)


async def measure(cluster: Cluster) -> Costs:
    address = cluster.address("scale")
    store = await open_store(address)
    try:
        alone, together = await _commit_sec(store, 1), await _commit_sec(store, IN_FLIGHT)
        few = await _scan_sec(store)
        before = await _size(address)
        cpu, database_cpu = await _trip_cpu(cluster, address)
        many = await _scan_sec(store)
        grown = await _size(address) - before
    finally:
        await store.close()
    per_commit = max(0.0, (together - alone) / (IN_FLIGHT - 1))
    batch = max(0.0, alone - per_commit)
    return Costs(cpu, database_cpu, batch, per_commit, grown / (2 * TRIPS), few, many)


def print_costs(costs: Costs) -> None:
    rows = [
        ("a round trip, processor time of its worker", f"{costs.trip_cpu * 1e3:.2f} ms"),
        ("the same, of the database", f"{costs.trip_database_cpu * 1e3:.2f} ms"),
        (
            "a transaction",
            f"{costs.batch * 1e3:.2f} ms, and {costs.commit * 1e6:.0f} µs a commit",
        ),
        ("a run with its parked call, in the database", f"{costs.parked_bytes / 1024:.1f} KiB"),
        ("a look for what is overdue or stray", f"{costs.scan_few * 1e3:.1f} ms with nothing parked"),
        (f"the same with {TRIPS} parked", f"{costs.scan_many * 1e3:.1f} ms"),
    ]
    _print("measured here", rows)


def print_plays(costs: Costs) -> None:
    rows = []
    for waiting in WAITING:
        rate = waiting / MEAN_WAIT_SEC
        workers = workers_for(costs, rate)
        played = play(costs, rate, workers)
        told = f"{rate:>6.0f} answers/s {workers:>3} workers {database_load(costs, rate):>5.2f} db cores"
        wake = f"  wake p50 {played[49] * 1e3:>5.1f} ms p99 {played[98] * 1e3:>5.1f} ms"
        room = f"{waiting * costs.parked_bytes / 2**30:>5.1f} GiB"
        rows.append((f"{waiting:>9,} waiting", f"{told}{wake} {room}"))
    _print(f"played with that, a call waiting {MEAN_WAIT_SEC:.0f} s on average", rows)


def workers_for(costs: Costs, rate: float) -> int:
    """So many that none is too busy."""
    return max(1, -(-int(rate * costs.trip_cpu * 1000) // int(BUSY_AT_MOST * 1000)))


def database_load(costs: Costs, rate: float) -> float:
    """How many of its cores are busy."""
    return rate * costs.trip_database_cpu


def play(costs: Costs, rate: float, workers: int) -> list[float]:
    """Answers arrive at random at any worker: from the answer to the run that goes on, by percent."""
    dice = random.Random(1)
    free = [0.0] * workers
    writers = [_Writer(costs) for _ in range(workers)]
    woken: list[float] = []
    moment = 0.0
    while moment < PLAYED_SEC and len(woken) < ANSWERS_AT_MOST:
        moment += dice.expovariate(rate)
        worker = dice.randrange(workers)
        # the receiving half of a trip, the commit, then the half that goes on
        read = max(moment, free[worker]) + costs.trip_cpu / 2
        kept = writers[worker].commit(read)
        free[worker] = read + costs.trip_cpu / 2
        woken.append(kept + costs.trip_cpu / 2 - moment)
    return quantiles(woken, n=100)


class _Writer:
    """One transaction at a time; who comes while it runs shares the next."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._ends: list[float] = [0.0]

    def commit(self, at: float) -> float:
        while len(self._ends) > 1 and self._ends[0] <= at:
            heapq.heappop(self._ends)
        busy_until = max(at, self._ends[0])
        end = busy_until + self._costs.batch + self._costs.commit
        self._ends = [busy_until, end] if busy_until > at else [end]
        return end


@tool(executor="frontend")
def open_page(address: str) -> dict[str, object]:
    """Open a page.

    Args:
        address: Its address.

    Returns:
        The key of the view.
    """
    raise NotImplementedError(address)


def _script(moment: Moment) -> Step:
    return "Done." if moment.results else Ask("open_page", {"address": "https://example.org/"})


async def _trip_cpu(cluster: Cluster, address: str) -> tuple[float, float]:
    """Of this process, and of the database."""
    agent = Agent(ScriptedModel(_script), frontend_tools=[open_page], store=address)
    turn = asyncio.Semaphore(IN_FLIGHT)

    async def trip(name: str, *, answer: bool) -> None:
        async with turn:
            paused = await agent.run("open", thread=name)
            if answer:
                [pending] = paused.pending
                await agent.answer(name, [(pending.call_id, Success({"viewKey": "v"}))])

    began, database_began = time.process_time(), cluster.cpu_sec()
    await asyncio.gather(*(trip(f"t{number}", answer=True) for number in range(TRIPS)))
    cpu, database_cpu = time.process_time() - began, cluster.cpu_sec() - database_began
    await asyncio.gather(*(trip(f"p{number}", answer=False) for number in range(TRIPS)))
    await agent.close()
    return cpu / TRIPS, database_cpu / TRIPS


async def _commit_sec(store: Store, at_once: int) -> float:
    """Until so many commits that were made together are kept; the best of some."""
    best = 1.0
    for round_ in range(20):
        threads = [
            Thread(owner=LOCAL, thread_id=f"c{at_once}-{round_}-{number}", created_at=0.0, updated_at=0.0)
            for number in range(at_once)
        ]
        began = time.perf_counter()
        await asyncio.gather(*(store.commit(InsertThread(thread)) for thread in threads))
        best = min(best, time.perf_counter() - began)
    return best


async def _scan_sec(store: Store) -> float:
    began = time.perf_counter()
    for _ in range(10):
        await store.due(before=store.now() + 30, limit=500)
        await store.stray_runs(limit=500)
    return (time.perf_counter() - began) / 10


async def _size(address: str) -> float:
    line = await connect(place_of(address))
    [row] = await line.fetch("SELECT pg_database_size(current_database())")
    await line.close()
    assert isinstance(row[0], int), "a size"
    return float(row[0])


def _print(title: str, rows: list[tuple[str, str]]) -> None:
    # printing is what this program is for
    print(f"\n{title}")
    for name, value in rows:
        print(f"  {name:<46}{value}")


if __name__ == "__main__":
    main()
