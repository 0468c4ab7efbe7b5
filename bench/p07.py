"""P7: parked calls. What they cost in memory, and what settling one costs when very many wait."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import sys
import time
from pathlib import Path
from statistics import median

from bench.apps.whole import make_app, open_url
from bench.machine import memory_of
from bench.pending import AT_ONCE, OWNER, Pending
from bench.served import app, run_alone, scratch
from bench.table import Effort, Line, us
from farhand.core.outcome import Success
from farhand.core.result import Accepted, Result
from farhand.server.app import App

FEW, MANY = 1_000, 100_000
ROUNDS, SETTLED, ANSWERED, USERS = 3, 160, 480, 16


def measure(effort: Effort) -> list[Line]:
    results = {}
    with scratch() as folder:
        for count in sorted({FEW, effort.many(MANY) // 10, effort.many(MANY)}):
            file = folder / f"{count}.db"
            run_alone("bench.p07", "fill", str(file), str(count))
            results[count] = run_alone("bench.p07", "settle", str(file), str(count))
            with app("whole", f"sqlite:///{file}") as ours:
                served = ours.load("posts", users=USERS, ids=f"{file}.answered")
            results[count] |= {name: served[name] for name in ("rate", "client", "seconds")}
    few, *_, many = results.values()
    ratio = many["each"] / few["each"]
    counts = list(results)
    growth = (many["memory"] - few["memory"]) / (counts[-1] - counts[0])
    return [
        Line(
            "P7",
            f"settling one with {counts[-1]:,} parked against {counts[0]:,}",
            "≤ 2x",
            f"{ratio:.2f}x",
            ratio <= 2,
            f"{us(many['each'])} against {us(few['each'])} of processor time; the server takes"
            f" {many['rate']:.0f} results/s against {few['rate']:.0f}",
            {str(count): result for count, result in results.items()},
        ),
        Line(
            "P7",
            f"memory of the process per parked call, beyond the store ({counts[-1]:,} of them)",
            "none",
            f"{growth:.0f} B",
            growth < 64,
            f"{many['memory'] / 2**20:.1f} MiB against {few['memory'] / 2**20:.1f} MiB in all",
        ),
    ]


async def fill(file: str, count: int) -> dict[str, float]:
    """A store with so many parked calls."""
    program = make_app(f"sqlite:///{file}")
    await program.start()
    ids = await Pending(program.farhand, open_url.tool).open(count)
    # of any age, as answers come
    chosen = random.Random(1).sample(ids, ROUNDS * SETTLED + min(ANSWERED, count // 3))
    Path(file + ".settled").write_text("\n".join(chosen[: ROUNDS * SETTLED]))
    Path(file + ".answered").write_text("\n".join(chosen[ROUNDS * SETTLED :]))
    await program.stop()
    return {"count": len(ids)}


async def settle(file: str, _count: int) -> dict[str, float]:
    """The processor time of this process for each of some results, all of them for parked calls."""
    program = make_app(f"sqlite:///{file}")
    await program.start()
    gc.collect()
    memory = memory_of(os.getpid())
    ids = Path(file + ".settled").read_text().split()
    spent = []
    for start in range(0, len(ids), SETTLED):
        used = time.process_time()
        await _settle(program, ids[start : start + SETTLED])
        spent.append((time.process_time() - used) / SETTLED)
    await program.stop()
    return {"each": median(spent), "memory": memory, "count": len(ids)}


async def _settle(program: App, ids: list[str]) -> None:
    for start in range(0, len(ids), AT_ONCE):
        some = [Result(call_id=call_id, outcome=Success("v")) for call_id in ids[start : start + AT_ONCE]]
        receipts = await asyncio.gather(*(program.farhand.desk.settle(OWNER, result) for result in some))
        assert all(isinstance(receipt, Accepted) for receipt in receipts), receipts


if __name__ == "__main__":
    step = {"fill": fill, "settle": settle}[sys.argv[1]]
    print(json.dumps(asyncio.run(step(sys.argv[2], int(sys.argv[3])))))
