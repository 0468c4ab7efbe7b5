"""How large a log grows: that of a busy day, before and after retention, and the memory of parked calls.

The day is written through the event log as runs write it: a message, its answer in ticks, its end. No model
is involved.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from functools import partial
from pathlib import Path

from bench.machine import memory_of
from bench.server_process import app, run_alone, scratch
from bench.table import Effort
from farhand.clock import SystemClock
from farhand.core.decide import runs
from farhand.core.decide.decision import Decision
from farhand.core.decide.runs import StepResult
from farhand.core.event import Event, StepStarted, TextAdded
from farhand.core.principal import Owner
from farhand.core.settings import Settings
from farhand.core.state import ThreadState
from farhand.eventlog.log import EventLog
from farhand.messages import Text, UserMessage
from farhand.store.open import open_store

RUNS, OF_A_THREAD = 10_000, 10
FLUSHES, JOINED = 40, 3
"""For an answer of 120 words: at 50 words a second, a tick of 50 ms joins two or three."""
PARKED = 100_000
AT_ONCE = 64
USERS = 100
SEEN = 50_000
"""Bytes; smaller tables are not listed."""
SETTINGS = Settings()
CLOCK = SystemClock()


def report_sizes(effort: Effort) -> str:
    count, parked = max(OF_A_THREAD, effort.many(RUNS)), effort.many(PARKED)
    with scratch() as folder:
        file = folder / "day.db"
        run_alone("bench.logs", "day", str(file), str(count))
        before = sizes(file)
        run_alone("bench.logs", "purge", str(file))
        after = sizes(file)
        memory = _memory(folder, parked)
    rows = [
        ("", "before retention", "after"),
        ("---", "---", "---"),
        *(
            (name, _mib(before[name]), _mib(after[name]))
            for name in before
            if max(before[name], after[name]) >= SEEN
        ),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    head = (
        f"{count:,} runs of {FLUSHES * JOINED} words in {count // OF_A_THREAD:,} threads, SQLite; a run takes"
        f" {before['in use'] / count / 1024:.1f} KiB before retention, {after['in use'] / count / 1024:.1f}"
        " after:"
    )
    return f"{head}\n\n{table}\n\n{memory}"


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def _memory(folder: Path, parked: int) -> str:
    run_alone("bench.p07", "fill", str(folder / "parked.db"), str(parked))
    with app("whole", f"sqlite:///{folder}/empty.db") as empty:
        without = memory_of(empty.pid)
    with app("whole", f"sqlite:///{folder}/parked.db") as full:
        with_them = memory_of(full.pid)
    return (
        f"A server with {parked:,} parked calls holds {_mib(with_them)} when it is ready, one with an empty"
        f" store {_mib(without)}: {(with_them - without) / parked:.0f} B a call."
    )


def sizes(file: Path) -> dict[str, int]:
    """The size of a store that nobody has open: the total in use, and each table with its indexes."""
    with closing(sqlite3.connect(file)) as base:
        (pages,), (free,), (size,) = (
            base.execute(f"PRAGMA {name}").fetchone()
            for name in ("page_count", "freelist_count", "page_size")
        )
        found = {"in use": (pages - free) * size}
        try:
            tables = base.execute(BY_TABLE).fetchall()
        except sqlite3.OperationalError:
            # a SQLite that was built without dbstat provides only the total
            tables = []
    return found | dict(tables)


BY_TABLE = """
SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_schema m ON m.name = s.name
GROUP BY m.tbl_name ORDER BY m.tbl_name"""


async def day(file: str, count: str) -> dict[str, float]:
    log = EventLog(await open_store(f"sqlite:///{file}"))
    threads = int(count) // OF_A_THREAD
    for start in range(0, threads, AT_ONCE):
        some = range(start, min(start + AT_ONCE, threads))
        await asyncio.gather(*(_chat(log, number) for number in some))
    await log.close()
    return {"runs": threads * OF_A_THREAD}


async def purge(file: str) -> dict[str, float]:
    """Removes everything that a purge may remove, as if the day were long ago."""
    log = EventLog(await open_store(f"sqlite:///{file}"))
    old = await log.purge(before=log.now() + 1.0)
    await log.close()
    return {"journals": old.runs, "news": old.feed_entries}


async def _chat(log: EventLog, number: int) -> None:
    owner, thread_id = Owner(f"tenant{number % USERS:02}", f"user-{number % USERS}"), f"thread-{number}"
    for no in range(OF_A_THREAD):
        message = UserMessage(f"m{no}", (Text(f"Question {no} of this chat, asked in a sentence or two."),))
        await log.decide(owner, thread_id, partial(_begin, message))
        for flush in range(FLUSHES):
            words = "".join(f"word{flush * JOINED + place} " for place in range(JOINED))
            await log.decide(owner, thread_id, partial(_write, TextAdded(0, words)))
        await log.decide(owner, thread_id, _finish)


def _begin(message: UserMessage, thread: ThreadState, now: float) -> Decision[object]:
    begun = runs.begin(thread, message, runs.NewRun(CLOCK.fresh("run")))
    assert isinstance(begun.answer, runs.Started), "the run before has ended"
    return Decision(None, (*begun.events, StepStarted(1)))


def _write(event: Event, thread: ThreadState, now: float) -> Decision[object]:
    assert thread.run is not None, "a message has begun one"
    return Decision(None, runs.write(thread, thread.run.fence, (event,), after=thread.run.seq).events)


def _finish(thread: ThreadState, now: float) -> Decision[object]:
    assert thread.run is not None, "a message has begun one"
    result = StepResult(step=1, stop_reason="end", after=thread.run.seq, is_last=True, is_delivered=True)
    ended = runs.finish_step(thread, thread.run.fence, result, now=now, settings=SETTINGS, calls_left=0)
    return Decision(None, ended.events)


if __name__ == "__main__":
    STEPS: dict[str, Callable[..., Coroutine[None, None, dict[str, float]]]] = {"day": day, "purge": purge}
    print(json.dumps(asyncio.run(STEPS[sys.argv[1]](*sys.argv[2:]))))
