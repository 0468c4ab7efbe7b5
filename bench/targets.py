"""Targets of the event log and the store, and their current values. They are counted, so the load of the
machine does not matter.

The trip is the one that `tests/guards` bounds, through the complete app with SQLite, without an HTTP server.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import farhand
from bench.machine import ROOT
from bench.reads import read_by_turns
from bench.server_process import run_alone, scratch
from farhand.server.app import App
from farhand.store.base import ClientStore, FileStore, Store
from tests.guards.counted_round_trip import Trip, make_app
from tests.postgres import running_cluster

SOURCES = Path(farhand.__file__).parent
STORE = SOURCES / "store"
TRIPS, WARM = 20, 5
_LEFT_OUT = (str(Path(asyncio.__file__).parent), str(ROOT / "tests"), str(ROOT / "bench"))


def report_targets() -> str:
    """The table, as Markdown."""
    rows = [("", "wanted", "is"), ("---", "---", "---"), *_store(), *_trip(), *_answers()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _store() -> list[tuple[str, str, str]]:
    files = sorted(STORE.rglob("*.py"))
    lines = sum(len(file.read_text().splitlines()) for file in files)
    methods = {kind: len(_methods(kind)) for kind in (Store, FileStore, ClientStore)}
    return [
        ("store package: lines", "≤ 4,000", f"{lines:,}"),
        ("its files", "≤ 30", f"{len(files)}"),
        (
            "its methods",
            "≤ 12",
            f"{methods[Store]}, and {methods[FileStore]} of files, {methods[ClientStore]} of clients",
        ),
        ("ways to write to a thread", "1", "1 (`append`)"),
    ]


def _methods(contract: type) -> list[str]:
    return [name for name, what in vars(contract).items() if inspect.isfunction(what) and name[0] != "_"]


def _trip() -> list[tuple[str, str, str]]:
    with scratch() as folder:
        got = run_alone("bench.targets", f"sqlite:///{folder}/wanted.db")
    return [
        ("held trip: functions entered", "≤ 350", f"{got['entered']:.0f} ({got['functions']:.0f} different)"),
        ("modules of farhand in it", "≤ 45", f"{got['modules']:.0f}"),
        (
            "switches: to another module / of tasks",
            "≤ 200",
            f"{got['switches']:.0f} / {got['steps']:.0f} of {got['tasks']:.0f} tasks",
        ),
        ("its bytecodes, all threads", "≤ 9,000", f"{got['bytecodes']:,.0f}"),
        ("its waits for the disk", "≤ 2", f"{got['commits']:.1f}"),
        ("rows it writes", "≤ 6", f"{got['rows']:.1f}"),
    ]


def _answers() -> list[tuple[str, str, str]]:
    with scratch() as folder:
        sqlite = asyncio.run(read_by_turns(f"sqlite:///{folder}/reads.db"))
    rows = [_answer("SQLite", sqlite.cached, sqlite.afresh)]
    try:
        with running_cluster() as cluster:
            postgres = asyncio.run(read_by_turns(cluster.address("wanted")))
    except (FileNotFoundError, AssertionError) as fault:
        return [*rows, ("AI SDK answer: store reads, PostgreSQL", "≤ 3", f"no PostgreSQL here: {fault}")]
    return [*rows, _answer("PostgreSQL", postgres.cached, postgres.afresh)]


def _answer(name: str, cached: Counter[str], afresh: Counter[str]) -> tuple[str, str, str]:
    named = ", ".join(f"{what} {count}" for what, count in sorted(afresh.items()))
    return (
        f"AI SDK answer: store reads, {name}",
        "0 when cached, ≤ 3 else",
        f"{cached.total()} when cached, {afresh.total()} else ({named})",
    )


@dataclass
class _Count:
    """Counts of all trips together. `is_on` during a trip; threads of the store are traced from their start.

    `switches` counts calls from one module of farhand to another.
    """

    is_on: bool = False
    entered: int = 0
    bytecodes: int = 0
    switches: int = 0
    functions: set[object] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    # Any: a trace function returns another one, or None
    def enter(self, frame: FrameType, what: str, about: object) -> Any:
        file = frame.f_code.co_filename
        if not self.is_on or file.startswith(_LEFT_OUT):
            return None
        self.entered += 1
        self.functions.add(frame.f_code)
        if file.startswith(str(SOURCES)):
            self.modules.add(file)
            # a coroutine that continues has been entered before, and keeps its trace function
            self.switches += frame.f_trace is None and _calling_module(frame) not in (None, file)
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._step

    def _step(self, frame: FrameType, what: str, about: object) -> Any:
        self.bytecodes += what == "opcode"
        return self._step


def _calling_module(frame: FrameType) -> str | None:
    """The file of ours from which the call came, also through a library; None if the event loop made it."""
    caller = frame.f_back
    while caller is not None:
        if caller.f_code.co_filename.startswith(str(SOURCES)):
            return caller.f_code.co_filename
        caller = caller.f_back
    return None


class _Disk:
    """Commits and rows of every connection to SQLite that it makes."""

    def __init__(self) -> None:
        self.commits = 0
        self._connections: list[sqlite3.Connection] = []
        self._connect = sqlite3.connect

    # Any: whatever SQLite takes
    def connect(self, *arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = self._connect(*arguments, **named)
        connection.set_trace_callback(self._note)
        self._connections.append(connection)
        return connection

    def rows(self) -> int:
        rows = 0
        for connection in self._connections:
            # one that was for the start alone is closed
            with suppress(sqlite3.ProgrammingError):
                rows += connection.total_changes
        return rows

    def _note(self, statement: str) -> None:
        self.commits += statement.startswith("COMMIT")


async def count_trips(address: str) -> dict[str, float]:
    count, disk = _Count(), _Disk()
    threading.settrace(count.enter)
    app = make_app(address)
    with mock.patch("sqlite3.connect", disk.connect):
        await app.start()
    try:
        for number in range(WARM):
            await Trip(app, f"warm-{number}").run()
        commits, rows = disk.commits, disk.rows()
        count.is_on = True
        sys.settrace(count.enter)
        for number in range(TRIPS):
            await Trip(app, f"counted-{number}").run()
        sys.settrace(None)
        count.is_on = False
        commits, rows = disk.commits - commits, disk.rows() - rows
        tasks = await _task_steps(app)
    finally:
        await app.stop()
    return {
        "entered": count.entered / TRIPS,
        "bytecodes": count.bytecodes / TRIPS,
        "switches": count.switches / TRIPS,
        "functions": len(count.functions),
        "modules": len(count.modules),
        "commits": commits / TRIPS,
        "rows": rows / TRIPS,
        **tasks,
    }


class _Stepped(Coroutine[Any, Any, Any]):
    """A coroutine that counts how often it resumes."""

    def __init__(self, inner: Coroutine[Any, Any, Any], steps: Counter[str]) -> None:
        self._inner = inner
        self._steps = steps

    # Any: whatever a task sends and receives
    def send(self, value: Any) -> Any:
        self._steps["steps"] += 1
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        self._steps["steps"] += 1
        return self._inner.throw(*error)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()


async def _task_steps(app: App) -> dict[str, float]:
    """The tasks that a trip creates, and how often they resume."""
    loop, counted = asyncio.get_running_loop(), Counter[str]()

    # Any: a task of any coroutine
    def make_task(loop: asyncio.AbstractEventLoop, inner: Any, **named: Any) -> asyncio.Task[Any]:
        counted["tasks"] += 1
        return asyncio.Task(_Stepped(inner, counted), loop=loop, **named)

    before = loop.get_task_factory()
    loop.set_task_factory(make_task)
    for number in range(TRIPS):
        await Trip(app, f"stepped-{number}").run()
    loop.set_task_factory(before)
    # without the task of the load that answers each trip
    return {"tasks": counted["tasks"] / TRIPS - 1, "steps": counted["steps"] / TRIPS}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(count_trips(sys.argv[1]))))
