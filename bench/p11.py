"""P11: a restart with very many parked calls. How long until requests are answered?"""

from __future__ import annotations

from statistics import median

from bench.served import app, run_alone, scratch
from bench.table import Effort, Line

CALLS = 100_000


def measure(effort: Effort) -> Line:
    count = effort.many(CALLS)
    with scratch() as folder:
        file = folder / "p11.db"
        run_alone("bench.p07", "fill", str(file), str(count))
        full = [_ready_after(f"sqlite:///{file}") for _ in range(effort.rounds)]
        empty = [_ready_after(f"sqlite:///{folder}/empty.db") for _ in range(effort.rounds)]
    took = median(full)
    return Line(
        "P11",
        f"restart with {count:,} parked calls",
        "ready in ≤ 1 s",
        f"{took:.2f} s",
        took <= 1,
        f"{median(empty):.2f} s with an empty store; most of both is Python's own start",
        {"full": full, "empty": empty},
    )


def _ready_after(store: str) -> float:
    with app("whole", store) as ours:
        return ours.ready_after
