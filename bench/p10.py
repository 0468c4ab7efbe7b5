"""P10: PostgreSQL and two workers, each answer landing on the other one, against one worker with SQLite."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from bench.rounds import in_turns, trips
from bench.served import Server, app, load, scratch
from bench.table import NO_TARGET, Effort, Line, ms
from tests.postgres import Cluster, running_cluster

USERS = 64
FEW = 4
WAKE_SEC = 0.05
WAKE = "from an answer at one worker to the stream of the other, p99"
WHAT = f"PostgreSQL, 2 workers, answers to the other one, {USERS} users, against one worker with SQLite"


def measure(effort: Effort) -> list[Line]:
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(running_cluster())
        except (FileNotFoundError, AssertionError) as fault:
            # what fails once it runs is a fault of the measurement, and told as that
            return [Line("P10", WHAT, "≥ 0.5x trips/s", "–", None, f"no PostgreSQL here: {fault}")]
        return _measure(effort, cluster)


def _measure(effort: Effort, cluster: Cluster) -> list[Line]:
    _keep_what_is_written(cluster)
    address = cluster.address("bench")
    with (
        scratch() as folder,
        app("whole", f"sqlite:///{folder}/p10.db") as one,
        app("whole", address) as first,
        app("whole", address) as second,
    ):
        sqlite_trips = trips(one, effort, users=USERS)
        two_workers = _Two([first, second], effort.seconds)
        got = in_turns(
            {
                "two workers": two_workers.busy,
                "SQLite": sqlite_trips,
                "half as many trips": two_workers.at_half,
                "few users": two_workers.few,
            },
            effort,
        )
    two, sqlite, half = got["two workers"], got["SQLite"], got["half as many trips"]
    ratio = two["rate"] / sqlite["rate"]
    told = f"{two['rate']:.0f} against {sqlite['rate']:.0f} trips/s; both workers on one core"
    pauses = f"they pause between trips, so that {half['rate']:.0f} are made in a second"
    return [
        Line("P10", WHAT, "≥ 0.5x trips/s", f"{ratio:.2f}x", ratio >= 0.5, told, got),
        wake_line(two["wake"], got["few users"]["wake"]),
        Line("P10", f"{WAKE}, {USERS} users, half as busy", NO_TARGET, ms(half["wake"]), None, pauses),
        Line("P10", f"{WAKE}, {FEW} users", NO_TARGET, ms(got["few users"]["wake"]), None),
    ]


class _Two:
    """Two workers under three loads; what they can do at most tells how much half of it is."""

    def __init__(self, workers: Sequence[Server], seconds: float) -> None:
        self._workers = workers
        self._seconds = seconds
        self._most = 0.0

    def busy(self, _: int) -> dict[str, Any]:
        got = load(self._workers, "trips", users=USERS, seconds=self._seconds)
        self._most = got["rate"]
        return got

    def at_half(self, _: int) -> dict[str, Any]:
        pause = USERS / (self._most / 2)
        return load(self._workers, "trips", users=USERS, seconds=self._seconds, pause=pause, warm=0.5 + pause)

    def few(self, _: int) -> dict[str, Any]:
        return load(self._workers, "trips", users=FEW, seconds=self._seconds)


def wake_line(many: float, few: float) -> Line:
    """Judged with as many users as the target names; with few it tells what the way itself takes."""
    told = f"they keep the core busy all the time; with {FEW} users it is {ms(few)}"
    return Line("P10", f"{WAKE}, {USERS} users", "≤ 50 ms", ms(many), many <= WAKE_SEC, told)


def _keep_what_is_written(cluster: Cluster) -> None:
    """The tests' database forgets at a power cut; what is compared with SQLite must not."""
    address = f"postgresql://farhand@127.0.0.1:{cluster.port}/postgres"
    for command in ("ALTER SYSTEM SET fsync = on", "ALTER SYSTEM SET full_page_writes = on"):
        subprocess.run(["psql", "-q", "-c", command, address], check=True)
    subprocess.run(["psql", "-q", "-o", "/dev/null", "-c", "SELECT pg_reload_conf()", address], check=True)
