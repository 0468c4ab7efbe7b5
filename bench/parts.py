"""Processor time of one durable round trip by part: whose code it went to, with all that it called in C."""

from __future__ import annotations

import pstats
from pathlib import Path
from typing import Any

from bench.machine import cpu_of
from bench.served import app, scratch
from bench.table import Effort

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
    with scratch() as folder:
        profile = folder / "profile"
        with app("whole", f"sqlite:///{folder}/parts.db", "--profile", str(profile)) as ours:
            before = cpu_of(ours.pid), cpu_of(ours.pid, thread=ours.pid)
            result = ours.load("trips", users=USERS, seconds=effort.seconds)
            whole = cpu_of(ours.pid) - before[0]
            on_loop = cpu_of(ours.pid, thread=ours.pid) - before[1]
        with app("whole", f"sqlite:///{folder}/plain.db") as ours:
            # the profile tells shares; what a trip costs is measured without it
            result = ours.load("trips", users=USERS, seconds=effort.seconds)
        shares = _shares(profile)
    each, loop_share = result["each"], on_loop / whole
    parts = [(name, share * loop_share * each) for name, share in shares.items()]
    parts.append(("store, writer's thread", (1 - loop_share) * each))
    return sorted(parts, key=lambda part: -part[1])


def _shares(profile: Path) -> dict[str, float]:
    spent: dict[str, float] = {}
    # Any: the module does not say what its table holds
    table: dict[Any, Any] = pstats.Stats(str(profile)).stats  # type: ignore[attr-defined]
    for (file, _, _), (_, _, own, _, callers) in table.items():
        if file != "~":
            spent[_part(file)] = spent.get(_part(file), 0.0) + own
            continue
        for (caller, _, _), (_, _, for_caller, _) in callers.items():
            spent[_part(caller)] = spent.get(_part(caller), 0.0) + for_caller
    total = sum(spent.values())
    return {name: seconds / total for name, seconds in spent.items()}


def _part(file: str) -> str:
    return next((name for place, name in PARTS.items() if f"/{place}/" in file), OTHERS)
