"""P1: a durable round trip of 64 users, against FastAPI with a dictionary of futures in memory."""

from __future__ import annotations

from bench.rounds import alternate, busy, trips
from bench.server_process import app, scratch
from bench.table import Effort, Line, ms

USERS = 64


def measure(effort: Effort) -> Line:
    with (
        scratch() as folder,
        app("whole", f"sqlite:///{folder}/p1.db") as ours,
        app("fastapi_futures") as theirs,
    ):
        got = alternate(
            {"farhand": trips(ours, effort, users=USERS), "FastAPI": trips(theirs, effort, users=USERS)},
            effort,
        )
    farhand, fastapi = got["farhand"], got["FastAPI"]
    ratio = farhand["rate"] / fastapi["rate"]
    return Line(
        "P1",
        f"durable round trip, {USERS} users, against FastAPI + futures",
        "≥ 1.7x trips/s",
        f"{ratio:.2f}x",
        ratio >= 1.7,
        f"{farhand['rate']:.0f} against {fastapi['rate']:.0f} trips/s; processor time per trip"
        f" {ms(farhand['each'])} against {ms(fastapi['each'])} ({fastapi['each'] / farhand['each']:.2f}x)"
        + busy(fastapi),
        got,
    )
