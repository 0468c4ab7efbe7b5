"""How farhand grows: plays up to a million waiting calls with the costs of a few things.

`make bench ARGS=scale` measures those costs here and prints two tables: those, and what they mean for many
waiting calls; so does `make bench` behind its own. With `ARGS=scale-keep` the costs are kept, and
`ARGS=scale-kept` plays them again: those of docs/explanation/scale.md, which says the same.
"""

from __future__ import annotations

import random
from statistics import quantiles

from bench.costs import TRIPS, Costs
from bench.held import HELD

WAITING = (1_000, 10_000, 100_000, 1_000_000)
MEAN_WAIT_SEC = 600.0
"""How long a call waits for its person, on average."""
BUSY_AT_MOST = 0.6
"""A worker or a database that is busier than this is too full for bursts."""
PLAYED_SEC = 30.0
ANSWERS_AT_MOST = 60_000


def tables(costs: Costs) -> str:
    """Both, as Markdown."""
    return f"{_table_of_costs(costs)}\n\n{_table_of_plays(costs)}"


def _table_of_costs(costs: Costs) -> str:
    rows: list[tuple[str, ...]] = [
        ("a round trip, processor time of its worker", f"{costs.trip_cpu * 1e3:.1f} ms"),
        ("the same, of the database", f"{costs.trip_database_cpu * 1e3:.1f} ms"),
        (
            "a transaction",
            f"{costs.batch * 1e3:.1f} ms, and {costs.commit * 1e6:.0f} µs a commit in it",
        ),
        ("a run with its parked call, in the database", f"{costs.parked_bytes / 1024:.1f} KiB"),
        ("a look for what is overdue or stray, with nothing parked", f"{costs.scan_few * 1e3:.1f} ms"),
        (f"the same with {TRIPS} parked", f"{costs.scan_many * 1e3:.1f} ms"),
        ("a worker with nothing to do", f"{costs.idle_transactions:.0f} transactions a second"),
        (f"the same with {HELD} held streams that say nothing", _held(costs)),
    ]
    return _markdown(("what", "cost"), rows)


def _held(costs: Costs) -> str:
    each = max(0.0, costs.held_transactions - costs.idle_transactions) / HELD
    return f"{costs.held_transactions:.0f} transactions a second, {each:.2f} for each stream"


def _table_of_plays(costs: Costs) -> str:
    head = (
        f"calls waiting, {MEAN_WAIT_SEC / 60:.0f} minutes each on average",
        "answers a second",
        "workers",
        "cores of the database",
        "wake p50 / p99",
        "room",
    )
    return _markdown(head, [_row(costs, waiting) for waiting in WAITING])


def _row(costs: Costs, waiting: int) -> tuple[str, ...]:
    rate = waiting / MEAN_WAIT_SEC
    workers = workers_for(costs, rate)
    played = play(costs, rate, workers)
    return (
        f"{waiting:,}".replace(",", " "),
        f"{rate:,.0f}".replace(",", " "),
        f"{workers}",
        f"{database_load(costs, rate):.2f}",
        f"{played[49] * 1e3:.0f} / {played[98] * 1e3:.0f} ms",
        _room(waiting * costs.parked_bytes),
    )


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
        self._running_until = 0.0
        self._next_until = 0.0
        """Of the transaction behind the one that runs; the same if nobody waits for one."""

    def commit(self, at: float) -> float:
        """When it is kept."""
        if at >= self._running_until:
            # the one behind has begun, if there was one
            self._running_until = self._next_until
        if at >= self._running_until:
            self._running_until = self._next_until = at + self._costs.batch + self._costs.commit
        elif self._next_until == self._running_until:
            self._next_until = self._running_until + self._costs.batch + self._costs.commit
        else:
            self._next_until += self._costs.commit
        return self._next_until


def _room(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
