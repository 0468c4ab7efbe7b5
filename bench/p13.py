"""P13: a turn as pages with the AI SDK take it (two posts, the run parked between), against a held trip."""

from __future__ import annotations

import asyncio

from bench.machine import ROOT
from bench.reads import Reads, read_by_turns
from bench.rounds import alternate, trips
from bench.server_process import app, configurations, home, scratch
from bench.table import Effort, Line, ms

USERS = 64


def measure(effort: Effort) -> list[Line]:
    with (
        scratch() as folder,
        app("whole", f"sqlite:///{folder}/turns.db") as turns,
        app("whole", f"sqlite:///{folder}/held.db") as held,
    ):
        got = alternate(
            {
                "turn": trips(turns, effort, users=USERS, dialect="turns"),
                "held": trips(held, effort, users=USERS),
            },
            effort,
        )
    turn, trip = got["turn"], got["held"]
    ratio = turn["each"] / trip["each"]
    spent = Line(
        "P13",
        f"an AI SDK turn (two posts, parked between), SQLite, {USERS} users, against the held trip",
        "processor time ≤ 1.3x",
        f"{ratio:.2f}x",
        ratio <= 1.3,
        f"{ms(turn['each'])} against {ms(trip['each'])} per trip; {turn['rate']:.0f} against"
        f" {trip['rate']:.0f} trips/s",
        got,
    )
    # the reads are counted in this process, which can only import its own farhand
    return [spent, _reads()] if home.get() == ROOT else [spent]


def _reads() -> Line:
    with scratch() as folder:
        reads = asyncio.run(read_by_turns(f"sqlite:///{folder}/reads.db"))
    configurations.append("the whole app without an HTTP server, in this process")
    return Line(
        "P13",
        "store reads of an AI SDK answer, SQLite",
        "0 when cached",
        f"{reads.cached.total()}",
        reads.cached.total() == 0,
        describe_reads(reads),
        {"cached": dict(reads.cached), "not cached": dict(reads.afresh)},
    )


def describe_reads(reads: Reads) -> str:
    """The reads by name."""
    cached = ", ".join(f"{name} {count}" for name, count in reads.cached.items()) or "nothing"
    afresh = ", ".join(f"{name} {count}" for name, count in reads.afresh.items()) or "nothing"
    return f"cached: {cached}; by a server that has just started: {afresh}"
