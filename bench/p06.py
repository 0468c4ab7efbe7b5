"""P6: memory of a held stream with a call that waits."""

from __future__ import annotations

from bench.served import app, scratch
from bench.table import Effort, Line

STREAMS = 10_000


def measure(effort: Effort) -> Line:
    with scratch() as folder, app("whole", f"sqlite:///{folder}/p6.db") as ours:
        got = ours.load("hold", count=effort.many(STREAMS))
    with app("bare") as theirs:
        bare = theirs.load("hold", count=effort.many(STREAMS))
    kib = got["each"] / 1024
    return Line(
        "P6",
        f"{got['count']:,} held streams with a waiting call",
        "≤ 20 KiB each",
        f"{kib:.1f} KiB",
        kib <= 20,
        f"a bare ASGI server holds the same with {bare['each'] / 1024:.1f} KiB",
        {"farhand": got, "bare": bare},
    )
