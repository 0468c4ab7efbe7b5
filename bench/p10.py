"""P10: PostgreSQL and two workers, each answer landing on the other one, against one worker with SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from bench.rounds import alternate, trips
from bench.server_process import Server, app, load, scratch
from bench.table import NO_TARGET, Effort, Line, ms
from tests.postgres import Cluster, running_cluster

USERS = 64
FEW = 4
WAKE_SEC = 0.04
WAKE = "from an answer at one worker to the stream of the other, p99"
WHAT = f"PostgreSQL, 2 workers, answers to the other one, {USERS} users, against one worker with SQLite"


def measure(effort: Effort) -> list[Line]:
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(running_cluster())
        except (FileNotFoundError, AssertionError) as fault:
            # a failure after the start is an error of the measurement, and is reported as one
            return [Line("P10", WHAT, "≥ 0.5x trips/s", "–", None, f"no PostgreSQL here: {fault}")]
        return _measure(effort, cluster)


def _measure(effort: Effort, cluster: Cluster) -> list[Line]:
    cluster.keep_what_is_written()
    address = cluster.address("bench")
    with (
        scratch() as folder,
        app("whole", f"sqlite:///{folder}/p10.db") as one,
        app("whole", address) as first,
        app("whole", address) as second,
    ):
        sqlite_trips = trips(one, effort, users=USERS)
        two_workers = _Two([first, second], effort.seconds, cluster.pid)
        got = alternate(
            {
                "two workers": two_workers.busy,
                "SQLite": sqlite_trips,
                "half as many trips": two_workers.at_half,
                "few users": two_workers.few,
            },
            effort,
        )
    return lines(got)


def lines(got: Mapping[str, dict[str, float]]) -> list[Line]:
    """The wake-up time has a verdict for the number of users in the target; with few users it is
    informative."""
    two, sqlite, half, few = (
        got[name] for name in ("two workers", "SQLite", "half as many trips", "few users")
    )
    ratio = two["rate"] / sqlite["rate"]
    rates = f"{two['rate']:.0f} against {sqlite['rate']:.0f} trips/s; {_spent(two)}"
    wake = f"{_spent(two)}; with {FEW} users it is {ms(few['wake'])}"
    pauses = f"they pause between trips, so that {half['rate']:.0f} are made in a second; {_spent(half)}"
    return [
        Line("P10", WHAT, "≥ 0.5x trips/s", f"{ratio:.2f}x", ratio >= 0.5, rates, dict(got)),
        _wake(f"{USERS} users", two, wake, within=WAKE_SEC),
        _wake(f"{USERS} users, half as many trips", half, pauses),
        _wake(f"{FEW} users", few, _spent(few)),
    ]


def _wake(who: str, got: dict[str, float], detail: str, within: float | None = None) -> Line:
    # with the other values: there is no verdict if the load client was the bottleneck
    values = {who: got}
    if within is None:
        return Line("P10", f"{WAKE}, {who}", NO_TARGET, ms(got["wake"]), None, detail, values)
    target = f"≤ {within * 1000:.0f} ms"
    return Line("P10", f"{WAKE}, {who}", target, ms(got["wake"]), got["wake"] <= within, detail, values)


def _spent(got: dict[str, float]) -> str:
    """The share of a core that each part used; processes that are not pinned compete with the load client."""
    workers, database, client = (got[name] / got["seconds"] for name in ("cpu", "database", "client"))
    return (
        f"both workers used {workers:.0%} of the one core that they have, the database {database:.0%} of a"
        f" core (on whichever is free), the load client {client:.0%} of the other"
    )


class _Two:
    """Two workers under three loads; half of their highest rate is the second load."""

    def __init__(self, workers: Sequence[Server], seconds: float, database: int) -> None:
        self._workers = workers
        self._seconds = seconds
        self._database = database
        self._most = 0.0

    def busy(self, _: int) -> dict[str, Any]:
        got = self._load(users=USERS)
        self._most = got["rate"]
        return got

    def at_half(self, _: int) -> dict[str, Any]:
        pause = USERS / (self._most / 2)
        return self._load(users=USERS, pause=pause, warm=0.5 + pause)

    def few(self, _: int) -> dict[str, Any]:
        return self._load(users=FEW)

    def _load(self, **spec: object) -> dict[str, Any]:
        return load(self._workers, "trips", seconds=self._seconds, database=self._database, **spec)
