"""P5: text deltas to one reader, against a bare ASGI writer.

One at a time: the model is slower than the interval in which words are joined, so that each is sent in its
own event; the bare writer has the same pace. Under backlog: the model never waits; the bare writer yields
after each word.
"""

from __future__ import annotations

from typing import Any

from bench.dialects import PACE_SEC
from bench.rounds import Measure, alternate
from bench.server_process import Server, app
from bench.table import Effort, Line, us

PACED, BACKLOG = 300, 30_000
ALONE = 0.95
"""The share of words that must have been sent alone for the figure to be valid."""

Got = dict[str, dict[str, float]]


def measure(effort: Effort) -> list[Line]:
    # with too few words, the cost of the request itself would dominate
    paced, backlog = max(100, effort.many(PACED)), effort.many(BACKLOG)
    with app("whole", "memory:") as ours, app("bare") as theirs:
        got = alternate(
            {
                "paced": _deltas(ours, "paced", paced),
                "bare paced": _deltas(theirs, "paced", paced),
                "backlog": _deltas(ours, "backlog", backlog),
                "bare backlog": _deltas(theirs, "backlog", backlog),
            },
            effort,
        )
    return [_one_at_a_time(got), _backlog(got)]


def _one_at_a_time(got: Got) -> Line:
    ours, bare = got["paced"], got["bare paced"]
    for name, side in {"farhand": ours, "the bare writer": bare}.items():
        if side["events"] < ALONE * side["count"]:
            raise RuntimeError(f"{name} joined words: {side['count']:.0f} in {side['events']:.0f} events")
    ratio = bare["each_event"] / ours["each_event"]
    return Line(
        "P5",
        f"text deltas to one reader, one each {PACE_SEC * 1000:g} ms, against a bare ASGI writer",
        "≥ 0.8x",
        f"{ratio:.2f}x",
        ratio >= 0.8,
        f"processor time per event {us(ours['each_event'])} against {us(bare['each_event'])};"
        f" {_events(ours)} against {_events(bare)}",
        {"paced": ours, "bare paced": bare},
    )


def _backlog(got: Got) -> Line:
    ours, bare = got["backlog"], got["bare backlog"]
    ratio = bare["each"] / ours["each"]
    return Line(
        "P5",
        "words to one reader, under backlog, against a bare ASGI writer",
        "≥ 3x",
        f"{ratio:.2f}x",
        ratio >= 3,
        f"processor time per word {us(ours['each'])} against {us(bare['each'])};"
        f" {_events(ours)} against {_events(bare)}",
        {"backlog": ours, "bare backlog": bare},
    )


def _events(side: dict[str, float]) -> str:
    each = side["events"] / side["count"]
    return f"{side['count']:,.0f} words in {side['events']:,.0f} events ({each:.3g} per word)"


def _deltas(server: Server, pace: str, count: int) -> Measure:
    def load(number: int) -> dict[str, Any]:
        if number == 0:
            server.load("deltas", pace=pace, thread=f"warm-{pace}", count=min(count, 300))
        return server.load("deltas", pace=pace, thread=f"{pace}-{number}", count=count)

    return load
