"""P5: text deltas to one reader, against a bare ASGI writer that gives way after each."""

from __future__ import annotations

from typing import Any

from bench.rounds import Measure, in_turns
from bench.served import Server, app
from bench.table import Effort, Line, us

DELTAS = 30_000


def measure(effort: Effort) -> list[Line]:
    with app("whole", "memory:") as ours, app("bare") as theirs:
        got = in_turns(
            {
                "one at a time": _deltas(ours, effort, "one"),
                "bare": _deltas(theirs, effort, "one"),
                "backlog": _deltas(ours, effort, "burst"),
            },
            effort,
        )
    return [_line(got, "one at a time", 0.8), _line(got, "backlog", 3.0)]


def _line(got: dict[str, dict[str, float]], which: str, target: float) -> Line:
    ratio = got["bare"]["each"] / got[which]["each"]
    return Line(
        "P5",
        f"text deltas to one reader, {which}, against a bare ASGI writer",
        f"≥ {target:g}x",
        f"{ratio:.2f}x",
        ratio >= target,
        f"processor time per delta {us(got[which]['each'])} against {us(got['bare']['each'])}",
        {which: got[which], "bare": got["bare"]},
    )


def _deltas(server: Server, effort: Effort, pace: str) -> Measure:
    def load(number: int) -> dict[str, Any]:
        if number == 0:
            server.load("deltas", pace=pace, thread=f"warm-{pace}", count=1000)
        return server.load("deltas", pace=pace, thread=f"{pace}-{number}", count=effort.many(DELTAS))

    return load
