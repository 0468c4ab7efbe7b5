"""Processor time of a round trip, a word or a result, by part of the program and by function."""

from __future__ import annotations

import pstats
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bench import p04, p14
from bench.machine import cpu_of
from bench.server_process import Server, app, scratch
from bench.table import Effort, us

USERS = 64
PARTS = {
    "uvicorn": "HTTP server (uvicorn)",
    "starlette": "HTTP server (uvicorn)",
    "farhand/cli": "HTTP server (uvicorn)",
    "farhand/server": "authentication, limits, routing",
    "farhand/wire": "reading and framing",
    "farhand/faces": "chat stream and results",
    "farhand/agent": "loop and model",
    "farhand/models": "loop and model",
    "farhand/calls": "desk",
    "farhand/core": "desk",
    "farhand/tools": "desk",
    "farhand/eventlog": "log, on the loop",
    "farhand/store": "store, on the loop",
}
OTHERS = "event loop and the rest"


def measure(effort: Effort) -> list[tuple[str, float]]:
    """Seconds of a durable round trip for each part, including the C code it calls; the largest first."""
    trip = _spent(DURABLE, effort)
    spent: dict[str, float] = {}
    for (file, _, _), share in _shares(trip.profile, with_c=True).items():
        spent[_part(file)] = spent.get(_part(file), 0.0) + share
    parts = [(name, share * trip.on_loop) for name, share in spent.items()]
    return sorted([*parts, ("store, writer's thread", trip.beside)], key=lambda part: -part[1])


def report_profile(effort: Effort, most: int = 12) -> str:
    """Tables of the functions with the largest own time in each case."""
    return "\n\n".join(_table(way, _spent(way, effort), most) for way in (DURABLE, IN_MEMORY, WORD, RESULT))


Where: TypeAlias = tuple[str, int, str]
"""File, line and name of a function."""


@dataclass(frozen=True)
class _Way:
    """A load, and the options of the server that gets it; each has its own folder."""

    name: str
    options: Callable[[Path, Effort], tuple[str, ...]]
    load: Callable[[Server, Path, Effort], dict[str, Any]]


@dataclass(frozen=True)
class _Spent:
    on_loop: float
    beside: float
    profile: dict[Any, Any]


def _trips(server: Server, _: Path, effort: Effort) -> dict[str, Any]:
    return server.load("trips", users=USERS, seconds=effort.seconds)


def _chats(server: Server, _: Path, effort: Effort) -> dict[str, Any]:
    return server.load("chats", count=p14.CHATS, rate=p14.RATE, seconds=effort.seconds)


def _results(server: Server, folder: Path, _: Effort) -> dict[str, Any]:
    return server.load("posts", users=p04.USERS, ids=str(folder / "ids"))


DURABLE = _Way(
    "A durable round trip (P1, P2, P9)", lambda folder, _: (f"sqlite:///{folder}/trips.db",), _trips
)
IN_MEMORY = _Way("A round trip in memory (P3)", lambda folder, _: ("memory:",), _trips)
WORD = _Way("A word of a durable chat (P14)", lambda folder, _: (f"sqlite:///{folder}/chats.db",), _chats)
RESULT = _Way(
    "A result for a call that waits in memory (P4)",
    lambda folder, effort: ("memory:", "--pending", str(effort.many(p04.CALLS)), str(folder / "ids")),
    _results,
)


def _spent(way: _Way, effort: Effort) -> _Spent:
    """The cost, measured without the profiler, which would slow the loop's thread, and how it is divided."""
    with scratch() as folder:
        file = folder / "profile"
        with app("whole", *way.options(folder, effort), "--profile", str(file)) as ours:
            way.load(ours, folder, effort)
        # Any: the module does not say what its table holds
        table: dict[Any, Any] = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    with scratch() as folder, app("whole", *way.options(folder, effort)) as ours:
        before = cpu_of(ours.pid), cpu_of(ours.pid, thread=ours.pid)
        each = way.load(ours, folder, effort)["each"]
        whole = cpu_of(ours.pid) - before[0]
        on_loop = cpu_of(ours.pid, thread=ours.pid) - before[1]
    return _Spent(each * on_loop / whole, each * (1 - on_loop / whole), table)


def _table(way: _Way, spent: _Spent, most: int) -> str:
    own = sorted(_shares(spent.profile).items(), key=lambda item: -item[1])
    head = (
        f"{way.name}: {us(spent.on_loop)} of processor time on the loop, {us(spent.beside)} beside it. Of"
        f" {len(own):,} functions on the loop the {most} largest, by their own:"
    )
    rows = [head, "", "| function | own time | of the loop |", "|---|---|---|"]
    rows += [
        f"| {_describe(where)} | {us(share * spent.on_loop)} | {share:.1%} |" for where, share in own[:most]
    ]
    rest = sum(share for _, share in own[most:])
    return "\n".join([*rows, f"| all others | {us(rest * spent.on_loop)} | {rest:.1%} |"])


def _shares(profile: dict[Any, Any], *, with_c: bool = False) -> dict[Where, float]:
    """Each function's own share of the loop's time; `with_c` includes the C code it calls."""
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


def _describe(where: Where) -> str:
    """Its name and the end of its path; C functions have only a name."""
    file, line, name = where
    if file == "~":
        return f"`{name.strip('<>')}`"
    return f"`{name}` ({'/'.join(Path(file).parts[-2:])}:{line})"
