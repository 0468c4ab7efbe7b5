"""Calls that wait, in any number: opened at the desk as a run would open them, and parked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from farhand.agent.farhand import Farhand
from farhand.calls.opening import Opening
from farhand.core.event import RunParked, RunStarted, StepFinished
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.thread import Asked, AssistantMessage, Text, Thread, UserMessage
from farhand.core.tool import Tool
from farhand.store.base import InsertMessage, InsertRun, InsertThread, ParkRun, Write, WriteRun

OWNER = Owner("tenanter", "answerer")
"""Who the load client is when it answers."""

INPUT: dict[str, object] = {"url": "https://example.org/report"}
AT_ONCE = 64


@dataclass(frozen=True)
class Pending:
    """`each`: calls of one run that are to be answered. With `beside`, one more stays open, so that the
    answers wake nobody and cost what they cost alone."""

    farhand: Farhand
    tool: Tool
    each: int = 16
    beside: bool = True
    due_at: float | None = None
    """When they begin to expire, by the store's clock: evenly over one second."""

    async def open(self, count: int) -> list[str]:
        """Their ids."""
        runs = (count + self.each - 1) // self.each
        opened: list[str] = []
        for start in range(0, runs, AT_ONCE):
            some = [self._open_run(number, runs) for number in range(start, min(start + AT_ONCE, runs))]
            opened += [call_id for ids in await asyncio.gather(*some) for call_id in ids]
        return opened[:count]

    async def _open_run(self, number: int, runs: int) -> list[str]:
        store = self.farhand.kit.store
        run = Run(
            run_id=self.farhand.clock.fresh("run"),
            owner=OWNER,
            thread_id=f"pending-{number}",
            started_at=store.now(),
            hold_for=0.0,
            lease_until=store.now() + 1e6,
        )
        within = None if self.due_at is None else self.due_at - store.now() + number / runs
        openings = [self._opening(run, within) for _ in range(self.each + int(self.beside))]
        await store.commit(*_beginning(run))
        prepared = [(self.farhand.desk.prepare(opening), self.tool) for opening in openings]
        await self.farhand.desk.open(prepared, *_parking(run, openings))
        return [opening.call_id for opening in openings[: self.each]]

    def _opening(self, run: Run, within: float | None) -> Opening:
        return Opening(
            call_id=self.farhand.clock.fresh("call"),
            owner=run.owner,
            thread_id=run.thread_id,
            tool=self.tool,
            input=INPUT,
            run_id=run.run_id,
            step=1,
            timeout_sec=within,
        )


def _beginning(run: Run) -> Iterator[Write]:
    at = run.started_at
    yield InsertThread(Thread(owner=run.owner, thread_id=run.thread_id, created_at=at, updated_at=at))
    yield InsertMessage(run.owner, run.thread_id, UserMessage(f"{run.thread_id}-m", (Text("trip"),)))
    yield InsertRun(run)
    yield WriteRun(run_id=run.run_id, events=(RunStarted(run.thread_id),))


def _parking(run: Run, openings: list[Opening]) -> Iterator[Write]:
    asked = tuple(Asked(each.call_id, each.tool.name, INPUT) for each in openings)
    yield InsertMessage(run.owner, run.thread_id, AssistantMessage(run.run_id, 1, asked))
    told = (StepFinished(1, "calls"),)
    yield WriteRun(run_id=run.run_id, fence=run.fence, step=1, state=RunState.WAITING, events=told)
    yield ParkRun(run.run_id, run.fence, RunParked())
