"""Processor time of one durable round trip by part: whose code it went to, with all that it called in C."""

from __future__ import annotations

import pstats
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bench.machine import cpu_of
from bench.served import app, scratch
from bench.table import Effort, us

USERS = 64
PARTS = {
    "uvicorn": "HTTP server (uvicorn)",
    "starlette": "HTTP server (uvicorn)",
    "farhand/cli": "HTTP server (uvicorn)",
    "farhand/server": "door, limits, routing",
    "farhand/wire": "reading and framing",
    "farhand/faces": "chat stream and results",
    "farhand/agent": "loop, journal, readers",
    "farhand/models": "loop, journal, readers",
    "farhand/calls": "desk",
    "farhand/core": "desk",
    "farhand/tools": "desk",
    "farhand/store": "store, on the loop",
}
OTHERS = "event loop and the rest"


def measure(effort: Effort) -> list[tuple[str, float]]:
    """Seconds for each part, the largest first."""
    trip = _trip(effort)
    spent: dict[str, float] = {}
    for (file, _, _), share in _shares(trip.profile, with_c=True).items():
        spent[_part(file)] = spent.get(_part(file), 0.0) + share
    parts = [(name, share * trip.on_loop) for name, share in spent.items()]
    return sorted([*parts, ("store, writer's thread", trip.beside)], key=lambda part: -part[1])


def profiled(effort: Effort, most: int = 25) -> str:
    """The functions that a durable round trip spends most in itself, as a table."""
    trip = _trip(effort)
    own = sorted(_shares(trip.profile).items(), key=lambda item: -item[1])
    head = (
        f"A durable round trip: {us(trip.on_loop)} of processor time on the loop, {us(trip.beside)} beside it"
        f" (the writer's thread). Of {len(own):,} functions on the loop the {most} largest, by their own:"
    )
    rows = [head, "", "| function | own time | of the loop |", "|---|---|---|"]
    rows += [
        f"| {_called(where)} | {us(share * trip.on_loop)} | {share:.1%} |" for where, share in own[:most]
    ]
    rest = sum(share for _, share in own[most:])
    return "\n".join([*rows, f"| all others | {us(rest * trip.on_loop)} | {rest:.1%} |"])


Where: TypeAlias = tuple[str, int, str]
"""File, line and name of a function."""


@dataclass(frozen=True)
class _Trip:
    on_loop: float
    beside: float
    profile: dict[Any, Any]


def _trip(effort: Effort) -> _Trip:
    """What it costs, and how it is divided: without the profile, which slows the loop's thread alone."""
    with scratch() as folder:
        file = folder / "profile"
        with app("whole", f"sqlite:///{folder}/parts.db", "--profile", str(file)) as ours:
            ours.load("trips", users=USERS, seconds=effort.seconds)
        with app("whole", f"sqlite:///{folder}/plain.db") as ours:
            before = cpu_of(ours.pid), cpu_of(ours.pid, thread=ours.pid)
            each = ours.load("trips", users=USERS, seconds=effort.seconds)["each"]
            whole = cpu_of(ours.pid) - before[0]
            on_loop = cpu_of(ours.pid, thread=ours.pid) - before[1]
        # Any: the module does not say what its table holds
        table: dict[Any, Any] = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    return _Trip(each * on_loop / whole, each * (1 - on_loop / whole), table)


def _shares(profile: dict[Any, Any], *, with_c: bool = False) -> dict[Where, float]:
    """Of the loop's time, each function's own; `with_c`, what it called in C is its own, too."""
    spent: dict[Where, float] = {}
    for where, (_, _, own, _, callers) in profile.items():
        if where[0] != "~" or not with_c:
            spent[where] = spent.get(where, 0.0) + own
            continue
        for caller, (_, _, for_caller, _) in callers.items():
            spent[caller] = spent.get(caller, 0.0) + for_caller
    total = sum(spent.values())
    return {where: seconds / total for where, seconds in spent.items()}


def _part(file: str) -> str:
    return next((name for place, name in PARTS.items() if f"/{place}/" in file), OTHERS)


def _called(where: Where) -> str:
    """Its name, and the last part of its place; what is written in C has only a name."""
    file, line, name = where
    if file == "~":
        return f"`{name.strip('<>')}`"
    return f"`{name}` ({'/'.join(Path(file).parts[-2:])}:{line})"
