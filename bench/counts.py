"""Counts what one round trip does. Counts do not depend on the load of the machine, so small differences
show. The app is complete but has no HTTP server; the trip is the one that `tests/guards` bounds.

Functions and bytecode are counted by Python's own tracing, machine instructions by valgrind if it is
installed.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import farhand
from bench.machine import ROOT
from bench.server_process import scratch
from bench.table import Effort

# the trip counted here must be the one that the guards bound
from tests.guards.counted_round_trip import Trip, make_app

TRIPS = 20
WARM = 5
"""Trips before those that are counted: one-time compilation and caching is not part of a trip."""
NO_VALGRIND = "valgrind is not installed, so machine instructions are not counted (apt install valgrind)."

_OURS = str(Path(farhand.__file__).parent)
_LEFT_OUT = (str(Path(asyncio.__file__).parent), str(ROOT / "tests"), str(ROOT / "bench"))
_INSTRUCTIONS = re.compile(r"I\s+refs:\s+([\d,]+)")


@dataclass
class Count:
    """Of all trips together; a coroutine is entered again whenever it resumes."""

    ours: int = 0
    others: int = 0
    bytecode: int = 0


def report_counts(effort: Effort) -> str:
    """The counts of one trip, in lines. A small effort leaves valgrind out, which takes minutes."""
    trips = effort.many(TRIPS)
    count = Count()
    asyncio.run(make_trips("memory:", trips, count))
    ours, others = count.ours / trips, count.others / trips
    lines = [
        f"One round trip without the HTTP server, mean of {trips}; asyncio is in machine instructions alone.",
        f"functions entered, in memory      {ours:,.0f} of farhand, {others:,.0f} of others",
        f"bytecode instructions, in memory  {count.bytecode / trips:,.0f}",
    ]
    if effort.scale < 1:
        return "\n".join([*lines, "Left out: machine instructions."])
    if shutil.which("valgrind") is None:
        return "\n".join([*lines, NO_VALGRIND])
    for name, store in {"in memory": "memory:", "with SQLite": "sqlite"}.items():
        print(f"counting machine instructions {name} …", file=sys.stderr, flush=True)
        lines.append(f"machine instructions, {f'{name}:':12} {_machine(store, trips) / 1e6:,.2f} M")
    return "\n".join(lines)


async def make_trips(store: str, trips: int, count: Count | None = None) -> None:
    """Makes this many trips after the warm-up; their functions and instructions are added to `count`."""
    app = make_app(store)
    async with app.lifespan():
        for number in range(WARM):
            await Trip(app, f"warm-{number}").run()
        with _tracing(count):
            for number in range(trips):
                await Trip(app, f"counted-{number}").run()


@contextmanager
def _tracing(count: Count | None) -> Iterator[None]:
    # Any: a trace function returns another one, or None
    def enter(frame: FrameType, what: str, about: object) -> Any:
        file = frame.f_code.co_filename
        if count is None or file.startswith(_LEFT_OUT):
            return None
        if file.startswith(_OURS):
            count.ours += 1
        else:
            count.others += 1
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return step

    def step(frame: FrameType, what: str, about: object) -> Any:
        if what == "opcode" and count is not None:
            count.bytecode += 1
        return step

    before = sys.gettrace()
    sys.settrace(None if count is None else enter)
    try:
        yield
    finally:
        sys.settrace(before)


def _machine(store: str, trips: int) -> float:
    """Instructions of one trip in all threads, without the kernel: compared with a process without trips."""
    return (_instructions(store, trips) - _instructions(store, 0)) / trips


def _instructions(store: str, trips: int) -> int:
    with scratch() as folder:
        address = f"sqlite:///{folder}/counts.db" if store == "sqlite" else store
        tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/out"]
        ran = subprocess.run(
            [*tool, sys.executable, "-m", "bench.counts", address, str(trips)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
    found = _INSTRUCTIONS.search(ran.stderr)
    if ran.returncode or found is None:
        raise RuntimeError(f"valgrind could not count: {ran.stderr[-300:]}")
    return int(found[1].replace(",", ""))


if __name__ == "__main__":
    asyncio.run(make_trips(sys.argv[1], int(sys.argv[2])))
