"""Simulates up to a million waiting calls with the measured costs of a few operations.

`make bench ARGS=scale` measures those costs and prints two tables: the costs, and what they mean for many
waiting calls; so does `make bench` after its own table. `ARGS=scale-keep` also saves the costs and writes the
tables into docs/explanation/scale.md; `ARGS=scale-kept` repeats the simulation with the saved costs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from heapq import heappop, heappush
from statistics import quantiles

from bench.costs import TRIPS, Costs
from bench.held_streams import HELD
from bench.results import measured_on

WAITING = (1_000, 10_000, 100_000, 1_000_000)
MEAN_WAIT_SEC = 600.0
"""How long a call waits for its person, on average."""
BUSY_AT_MOST = 0.6
"""A worker or a database that is busier than this is too full for bursts."""
SIMULATED_SEC = 30.0
ANSWERS_AT_MOST = 15_000
COMMITS = 4
"""Commits of a trip: the message, the call, its result, the end. `tests/guards` counts them."""


def page_text(costs: Costs, about: dict[str, str]) -> str:
    """Both tables, and the circumstances of the measurement: the text of the page."""
    return f"{tables(costs)}\n\n{measured_on(about)} The database: {about['database']}."


def tables(costs: Costs) -> str:
    """Both tables, as Markdown."""
    return f"{_costs_table(costs)}\n\n{_simulation_table(costs)}"


def _costs_table(costs: Costs) -> str:
    rows: list[tuple[str, ...]] = [
        ("round trip: processor time of the worker", f"{costs.trip_cpu * 1e3:.1f} ms"),
        ("round trip: processor time of the database", f"{costs.trip_database_cpu * 1e3:.1f} ms"),
        (
            "transaction",
            f"{costs.batch * 1e3:.1f} ms, plus {costs.commit * 1e6:.0f} µs per append in it",
        ),
        (
            "commit of a transaction with a NOTIFY, serialised in the whole server",
            f"{costs.alone * 1e3:.2f} ms",
        ),
        ("run with a parked call: size in the database", f"{costs.parked_bytes / 1024:.1f} KiB"),
        ("scan for overdue calls and abandoned runs, nothing parked", f"{costs.scan_few * 1e3:.1f} ms"),
        (f"the same with {TRIPS} parked runs", f"{costs.scan_many * 1e3:.1f} ms"),
        ("idle worker", f"{costs.idle_transactions:.0f} transactions/s"),
        (f"idle worker with {HELD} held streams", _held(costs)),
    ]
    return _markdown(("what", "cost"), rows)


def _held(costs: Costs) -> str:
    each = max(0.0, costs.held_transactions - costs.idle_transactions) / HELD
    return f"{costs.held_transactions:.0f} transactions/s, {each:.2f} per stream"


def _simulation_table(costs: Costs) -> str:
    head = (
        f"waiting calls ({MEAN_WAIT_SEC / 60:.0f} minutes on average)",
        "answers/s",
        "workers",
        "database cores",
        "wake p50 / p99",
        "disk",
    )
    return _markdown(head, [_row(costs, waiting) for waiting in WAITING])


def _row(costs: Costs, waiting: int) -> tuple[str, ...]:
    rate = waiting / MEAN_WAIT_SEC
    workers = workers_for(costs, rate)
    waits = simulate(costs, rate, workers)
    return (
        f"{waiting:,}".replace(",", " "),
        f"{rate:,.0f}".replace(",", " "),
        f"{workers}",
        f"{database_load(costs, rate):.2f}",
        f"{waits[49] * 1e3:.0f} / {waits[98] * 1e3:.0f} ms",
        _room(waiting * costs.parked_bytes),
    )


def workers_for(costs: Costs, rate: float) -> int:
    """The number of workers at which none is too busy."""
    return max(1, -(-int(rate * costs.trip_cpu * 1000) // int(BUSY_AT_MOST * 1000)))


def database_load(costs: Costs, rate: float) -> float:
    """The number of busy database cores."""
    return rate * costs.trip_database_cpu


def simulate(costs: Costs, rate: float, workers: int) -> list[float]:
    """Answers arrive at random at any worker. Returns the percentiles of the time until the run continues."""
    dice = random.Random(1)
    piece = costs.trip_cpu / COMMITS
    free = [0.0] * workers
    database = _Database(costs, workers)
    moment = 0.0
    for number in range(COMMITS * ANSWERS_AT_MOST):
        # the other commits of a trip happen minutes before or after the answer, so each arrives alone
        moment += dice.expovariate(COMMITS * rate)
        if moment > SIMULATED_SEC:
            break
        worker = dice.randrange(workers)
        free[worker] = max(moment, free[worker]) + piece
        database.write(free[worker], worker, answered_at=moment if number % COMMITS == 0 else None)
    return quantiles((each + piece for each in database.times_until_stored()), n=100)


class _Database:
    """Each worker has one transaction at a time; everything that arrives while it runs shares the next one.
    All transactions commit one after the other, since NOTIFY takes a lock of the whole server."""

    def __init__(self, costs: Costs, workers: int) -> None:
        self._costs = costs
        self._moments: list[tuple[float, int, str, int]] = []
        self._waiting: list[list[float | None]] = [[] for _ in range(workers)]
        self._running: list[list[float | None]] = [[] for _ in range(workers)]
        self._arrivals: dict[int, float | None] = {}
        self._number = 0
        self._unlocked_at = 0.0

    def write(self, at: float, worker: int, *, answered_at: float | None) -> None:
        self._arrivals[self._number] = answered_at
        self._will(at, "arrives", worker)

    def times_until_stored(self) -> Iterator[float]:
        """Simulates all writes; yields how long each answer took until it was stored."""
        while self._moments:
            at, number, what, worker = heappop(self._moments)
            if what == "arrives":
                self._waiting[worker].append(self._arrivals.pop(number))
            elif what == "is written":
                self._unlocked_at = max(at, self._unlocked_at) + self._costs.alone
                self._will(self._unlocked_at, "is stored", worker)
            else:
                yield from (at - each for each in self._running[worker] if each is not None)
                self._running[worker] = []
            if self._waiting[worker] and not self._running[worker]:
                self._begin(at, worker)

    def _begin(self, at: float, worker: int) -> None:
        self._running[worker], self._waiting[worker] = self._waiting[worker], []
        commits = len(self._running[worker]) * self._costs.commit
        self._will(at + max(0.0, self._costs.batch - self._costs.alone) + commits, "is written", worker)

    def _will(self, at: float, what: str, worker: int) -> None:
        heappush(self._moments, (at, self._number, what, worker))
        self._number += 1


def _room(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
