"""P7: the memory of parked calls, and the cost of settling one when very many wait."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path

from bench.apps.whole import make_app, open_url
from bench.pending import AT_ONCE, OWNER, Pending
from bench.rounds import Measure, alternate
from bench.server_process import app, run_alone, scratch
from bench.table import Effort, Line, us
from farhand.core.outcome import Success
from farhand.core.result import Accepted, Result
from farhand.server.app import App

FEW, MANY = 1_000, 100_000
WARM, SETTLED, ANSWERED, USERS = 64, 160, 96, 16
"""Of one round; three of them must find enough among the few."""
PARKED, PARKERS = 150_000, 64
FILLED = 100_000
"""With so many, what the server keeps of anything is full: threads, ids, the 32 MiB of pages of the store,
and what the allocator has between its blocks. With 40,000 the last two still grow."""
NOTHING = 64
"""Bytes per call: a reference to it would be more, with what it refers to."""


def measure(effort: Effort) -> list[Line]:
    return [_settling(effort), _memory(effort)]


def _settling(effort: Effort) -> Line:
    counts = sorted({FEW, effort.many(MANY) // 10, effort.many(MANY)})
    with scratch() as folder:
        for count in counts:
            run_alone("bench.p07", "fill", str(folder / f"{count}.db"), str(count))
        got = alternate({str(count): _settled(folder / f"{count}.db") for count in counts}, effort)
    few, *_, many = got.values()
    ratio = many["each"] / few["each"]
    return Line(
        "P7",
        f"settling one with {counts[-1]:,} parked against {counts[0]:,}",
        "≤ 2x",
        f"{ratio:.2f}x",
        ratio <= 2,
        f"{us(many['each'])} against {us(few['each'])} of processor time; the server takes"
        f" {many['rate']:.0f} results/s against {few['rate']:.0f}; medians of {effort.rounds} rounds",
        dict(got),
    )


def _settled(file: Path) -> Measure:
    """Each round settles calls of its own, at the desk and through the server."""

    def settled(number: int) -> dict[str, float]:
        each = WARM + SETTLED + ANSWERED
        ids = Path(f"{file}.ids").read_text().split()[number * each : (number + 1) * each]
        answered = Path(f"{file}.answered")
        answered.write_text("\n".join(ids[-ANSWERED:]))
        alone = run_alone("bench.p07", "settle", str(file), *ids[:-ANSWERED])
        with app("whole", f"sqlite:///{file}") as ours:
            served = ours.load("posts", users=USERS, ids=str(answered))
        return alone | {name: served[name] for name in ("rate", "client", "seconds")}

    return settled


def _memory(effort: Effort) -> Line:
    counts = [FEW, effort.many(FILLED), effort.many(PARKED)]
    is_full = counts[1] >= FILLED
    # once: to park so many takes a while
    got = _parked(counts)
    growth = got["growth"]
    sizes = ", ".join(f"{got[str(count)] / 2**20:.1f} MiB with {count:,}" for count in counts)
    return Line(
        "P7",
        f"memory of the server per parked call, from {counts[1]:,} to {counts[2]:,}",
        "none",
        f"{growth:.0f} B",
        growth < NOTHING if is_full else None,
        f"{sizes}, parked by the server itself, each for its own message; its caches of a fixed size are"
        f" full with {FILLED:,}; one round{'' if is_full else ', no verdict'}",
        {"parked": got},
    )


def _parked(counts: list[int]) -> dict[str, float]:
    """The memory of one server with so many; what it keeps of runs that have parked is its own."""
    with scratch() as folder, app("whole", f"sqlite:///{folder}/p7.db") as ours:
        held: dict[str, float] = {}
        for before, count in pairwise([0, *counts]):
            got = ours.load("park", users=PARKERS, count=count - before)
            if got["asked"] != count - before:
                raise RuntimeError(f"{got['asked']} calls wait, and {count - before} were to")
            held[str(count)] = got["memory"]
    grown = held[str(counts[-1])] - held[str(counts[-2])]
    return held | {"growth": grown / (counts[-1] - counts[-2])}


async def fill(file: str, count: str) -> dict[str, float]:
    """A store with so many parked calls, and the ids of all of them in any order: answers come at any age."""
    program = make_app(f"sqlite:///{file}")
    await program.start()
    ids = await Pending(program.service, open_url.tool).open(int(count))
    random.Random(1).shuffle(ids)
    Path(file + ".ids").write_text("\n".join(ids))
    await program.stop()
    return {"count": len(ids)}


async def settle(file: str, *ids: str) -> dict[str, float]:
    """The processor time of this process for each of these results, all of them for parked calls."""
    program = make_app(f"sqlite:///{file}")
    await program.start()
    # what a process does once is not the price of a result
    await _settle(program, ids[:WARM])
    used = time.process_time()
    for start in range(WARM, len(ids), AT_ONCE):
        await _settle(program, ids[start : start + AT_ONCE])
    spent = time.process_time() - used
    await program.stop()
    return {"each": spent / (len(ids) - WARM), "count": len(ids) - WARM}


async def _settle(program: App, ids: tuple[str, ...]) -> None:
    some = [Result(call_id=call_id, outcome=Success("v")) for call_id in ids]
    receipts = await asyncio.gather(*(program.service.desk.settle(OWNER, result) for result in some))
    assert all(isinstance(receipt, Accepted) for receipt in receipts), receipts


if __name__ == "__main__":
    STEPS: dict[str, Callable[..., Coroutine[None, None, dict[str, float]]]] = {
        "fill": fill,
        "settle": settle,
    }
    print(json.dumps(asyncio.run(STEPS[sys.argv[1]](*sys.argv[2:]))))
