"""P9: the latency of a durable round trip with a single user, against FastAPI with futures."""

from __future__ import annotations

from bench.rounds import alternate, trips
from bench.server_process import app, scratch
from bench.table import Effort, Line, ms


def measure(effort: Effort) -> Line:
    with (
        scratch() as folder,
        app("whole", f"sqlite:///{folder}/p9.db") as ours,
        app("fastapi_futures") as theirs,
    ):
        got = alternate(
            {"farhand": trips(ours, effort, users=1), "FastAPI": trips(theirs, effort, users=1)}, effort
        )
    ratio = got["farhand"]["p50"] / got["FastAPI"]["p50"]
    return Line(
        "P9",
        "latency of one durable round trip, 1 user, p50, against FastAPI + futures",
        "≤ 1.6x",
        f"{ratio:.2f}x",
        ratio <= 1.6,
        f"{ms(got['farhand']['p50'])} against {ms(got['FastAPI']['p50'])}",
        got,
    )
