"""P11: how long `farhand run` takes to answer requests after a restart with very many parked calls."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from bench.server_process import configurations, run_alone, scratch, serving
from bench.table import Effort, Line

CALLS = 100_000


def measure(effort: Effort) -> Line:
    count = effort.many(CALLS)
    full: list[float] = []
    empty: list[float] = []
    with scratch() as folder:
        run_alone("bench.p07", "fill", str(folder / "p11.db"), str(count))
        configurations.append("`farhand run`, its modules compiled by a start before, as an installation has")
        _ready_after(folder, "empty.db")
        for _ in range(effort.rounds):
            full.append(_ready_after(folder, "p11.db"))
            empty.append(_ready_after(folder, "empty.db"))
    took = median(full)
    return Line(
        "P11",
        f"restart with {count:,} parked calls",
        "ready in ≤ 1 s",
        f"{took:.2f} s",
        took <= 1,
        f"median of {len(full)} starts, {min(full):.2f} to {max(full):.2f} s; {median(empty):.2f} s with an"
        f" empty store, median of {len(empty)}; most of both is Python's own start",
        {"full": full, "empty": empty},
    )


def _ready_after(folder: Path, name: str) -> float:
    store = ("--store", f"sqlite:///{folder / name}")
    command = [sys.executable, "-m", "farhand", "run", "bench.apps.whole:agent", *store, "--port"]
    # compiled once, like an installed package, even if Python is told to write no bytecode
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    with serving(command, {**compiled, "XDG_CONFIG_HOME": str(folder)}, is_farhand=True) as ours:
        return ours.ready_after
