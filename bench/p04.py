"""P4: the result endpoint alone, for calls that wait in memory, against a plain ASGI POST."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.rounds import alternate
from bench.server_process import app, scratch
from bench.table import Effort, Line, us

CALLS = 8_000
USERS = 16


def measure(effort: Effort) -> Line:
    with scratch() as folder, app("bare") as bare:
        got = alternate(
            {
                "farhand": lambda number: _answers(folder / f"{number}.ids", effort.many(CALLS)),
                "plain": lambda _: bare.load("bare_posts", users=USERS, seconds=effort.seconds / 2),
            },
            effort,
        )
    ratio = got["farhand"]["each"] / got["plain"]["each"]
    return Line(
        "P4",
        "result endpoint alone, memory, against a plain ASGI POST",
        "processor time ≤ 1.8x",
        f"{ratio:.2f}x",
        ratio <= 1.8,
        f"{us(got['farhand']['each'])} against {us(got['plain']['each'])}",
        got,
    )


def _answers(ids: Path, calls: int) -> dict[str, Any]:
    with app("whole", "memory:", "--pending", str(calls), str(ids)) as ours:
        return ours.load("posts", users=USERS, ids=str(ids))
