"""A thread of an event log for tests: a run that starts, writes, asks and ends, in one line each."""

from __future__ import annotations

import asyncio

from farhand.core.decide import runs
from farhand.core.decide.decision import Decision
from farhand.core.decide.direct import open_direct
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import StepResult
from farhand.core.event import Event, StepStarted, TextAdded
from farhand.core.position import START, Entry, Position
from farhand.core.run import Run
from farhand.core.settings import Settings
from farhand.core.state import ThreadState
from farhand.eventlog.log import EventLog
from farhand.eventlog.reader import LogReader
from tests.unit.core.thread_builder import said
from tests.unit.core.thread_log import ANN

PATIENCE_SEC = 10.0
SETTINGS = Settings()


class ThreadStory:
    def __init__(self, eventlog: EventLog, thread_id: str = "t1") -> None:
        self.log = eventlog
        self.thread_id = thread_id

    async def begin(self, run_id: str = "run_1", message_id: str = "m1") -> Run:
        message = said("hello", message_id)
        await self.log.decide(
            ANN, self.thread_id, lambda thread, _: runs.begin(thread, message, runs.NewRun(run_id))
        )
        return await self.run(run_id)

    async def run(self, run_id: str = "run_1") -> Run:
        found = await self.log.get_run(ANN, run_id)
        assert found is not None
        return found

    async def write(self, *events: Event | str) -> None:
        written = tuple(TextAdded(0, each) if isinstance(each, str) else each for each in events)

        def write(thread: ThreadState, now: float) -> Decision[int | None]:
            assert thread.run is not None
            return runs.write(thread, thread.run.fence, written, after=thread.run.seq)

        assert await self.log.decide(ANN, self.thread_id, write) is not None

    async def finish(self, *calls: Opening, text: str = "") -> None:
        """One step; without calls, the last one."""

        def finish(thread: ThreadState, now: float) -> Decision[bool]:
            assert thread.run is not None
            result = StepResult(
                step=thread.run.step + 1,
                stop_reason="calls" if calls else "end",
                written=(StepStarted(thread.run.step + 1), TextAdded(0, text)) if text else (),
                after=thread.run.seq,
                calls=calls,
                is_last=not calls,
            )
            return runs.finish_step(
                thread, thread.run.fence, result, now=now, settings=SETTINGS, calls_left=9
            )

        assert await self.log.decide(ANN, self.thread_id, finish)

    async def take_over(self) -> None:
        def claim(thread: ThreadState, now: float) -> Decision[int | None]:
            assert thread.run is not None
            run = thread.run
            return runs.claim(
                thread, run.run_id, run.fence, lambda call: False, now=now, timeouts=SETTINGS.timeouts
            )

        assert await self.log.decide(ANN, self.thread_id, claim) is not None

    async def open_direct(self, opening: Opening) -> None:
        await self.log.decide(
            ANN,
            self.thread_id,
            lambda thread, now: open_direct(
                thread, opening, title="", now=now, settings=SETTINGS, calls_left=9
            ),
        )


async def read_all(eventlog: EventLog, run: Run, after: Position = START) -> list[Entry]:
    """Everything there is for a reader of an ended run."""
    found: list[Entry] = []
    with LogReader(eventlog, run, after) as reader:
        async with asyncio.timeout(PATIENCE_SEC):
            while (entries := await reader.next(0.01)) is not None:
                found += entries
    return found


async def next_of(reader: LogReader) -> list[Entry]:
    """What comes next, however often nothing comes in time."""
    async with asyncio.timeout(PATIENCE_SEC):
        while True:
            entries = await reader.next(1)
            assert entries is not None
            if entries:
                return entries


def text_of(entries: list[Entry]) -> str:
    return "".join(entry.event.text for entry in entries if isinstance(entry.event, TextAdded))
