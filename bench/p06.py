"""P6: memory of a held stream with a call that waits."""

from __future__ import annotations

from typing import Any

from bench.rounds import alternate
from bench.server_process import app, scratch
from bench.table import Effort, Line

STREAMS = 10_000


def measure(effort: Effort) -> Line:
    count = effort.many(STREAMS)
    got = alternate({"farhand": lambda _: _ours(count), "bare": lambda _: _bare(count)}, effort)
    ours, bare = got["farhand"], got["bare"]
    kib = ours["each"] / 1024
    return Line(
        "P6",
        f"{ours['count']:,.0f} held streams with a waiting call",
        "≤ 17 KiB each",
        f"{kib:.1f} KiB",
        kib <= 17,
        f"a bare ASGI server holds the same with {bare['each'] / 1024:.1f} KiB;"
        f" medians of {effort.rounds} rounds, each with a new server",
        got,
    )


def _ours(count: int) -> dict[str, Any]:
    with scratch() as folder, app("whole", f"sqlite:///{folder}/p6.db") as server:
        return server.load("hold", count=count)


def _bare(count: int) -> dict[str, Any]:
    with app("bare") as server:
        return server.load("hold", count=count)
