"""P3: a round trip of 64 users in memory, against a bare ASGI server with a dictionary of futures."""

from __future__ import annotations

from bench.rounds import alternate, busy, trips
from bench.server_process import app
from bench.table import Effort, Line, ms

USERS = 64


def measure(effort: Effort) -> Line:
    with app("whole", "memory:") as ours, app("bare") as theirs:
        got = alternate(
            {"farhand": trips(ours, effort, users=USERS), "bare": trips(theirs, effort, users=USERS)}, effort
        )
    farhand, bare = got["farhand"], got["bare"]
    ratio = farhand["rate"] / bare["rate"]
    return Line(
        "P3",
        f"round trip in memory, {USERS} users, against bare ASGI",
        "≥ 0.3x trips/s",
        f"{ratio:.2f}x",
        ratio >= 0.3,
        f"{farhand['rate']:.0f} against {bare['rate']:.0f} trips/s; processor time per trip"
        f" {ms(farhand['each'])} against {ms(bare['each'])} ({bare['each'] / farhand['each']:.2f}x)"
        + busy(bare),
        got,
    )
