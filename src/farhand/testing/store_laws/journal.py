"""A run's events are numbered without gaps, whoever appends them."""

from __future__ import annotations

import asyncio

from farhand.core.call import Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallBegun,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    Entry,
    Event,
    InputAdded,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Failure
from farhand.core.run import RunState, Usage
from farhand.core.tool import Executor
from farhand.store.base import WriteRun
from farhand.testing.store_laws.given import ANN, Laws

EVERY_EVENT: tuple[Event, ...] = (
    RunStarted("t1", "m1"),
    StepStarted(1),
    TextAdded(0, "grüß \u0000 \U0001f600"),
    ReasoningAdded(1, "hm"),
    CallBegun("call_1", "open_url"),
    InputAdded("call_1", '{"a'),
    CallOpened(call_id="c", tool="t", executor=Executor.FRONTEND, input={"a": [1, 1.0]}, phase=Phase.ASKING),
    CallRejected(call_id="c", tool="t", input=["odd"], error="no such tool"),
    ApprovalAnswered(call_id="c", approval_id="a", approved=True, input={}, deadline=1.5),
    CallTaken("c", "tab"),
    CallReleased("c"),
    CallSettled(call_id="c", tool="t", executor=Executor.CLIENT, outcome=Failure("no"), digest="d"),
    StepFinished(1, "end", Usage(1, 2)),
    StepDiscarded(2),
    RunParked(),
    RunResumed(),
    RunFinished(RunState.DONE, "why"),
    RunFailed("code", "message"),
)


class JournalLaws(Laws):
    async def test_every_kind_of_event_comes_back_as_it_was_written(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.write(WriteRun(run_id=run.run_id, events=EVERY_EVENT))
            now = given.clock.now()
            expected = [Entry(seq, event, now) for seq, event in enumerate(EVERY_EVENT, 1)]
            assert await given.store.events(ANN, run.run_id) == expected

    async def test_events_are_numbered_without_a_gap_under_many_writers(self) -> None:
        async with self.given() as given:
            run, other = await given.run("t1"), await given.run("t2")
            writes = [
                WriteRun(
                    run_id=(run if number % 3 else other).run_id,
                    fence=1 if number % 2 else None,
                    events=tuple(TextAdded(number, str(piece)) for piece in range(number % 4)),
                )
                for number in range(120)
            ]
            await asyncio.gather(*(given.write(write) for write in writes))
            for each in (run, other):
                entries = await given.store.events(ANN, each.run_id)
                assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
                assert (await given.stored_run(each)).last_seq == len(entries)
                assert sum(len(write.events) for write in writes if write.run_id == each.run_id) == len(
                    entries
                )

    async def test_the_events_of_one_write_stay_together(self) -> None:
        async with self.given() as given:
            run = await given.run()
            pieces = [tuple(TextAdded(number, str(piece)) for piece in range(3)) for number in range(40)]
            await asyncio.gather(
                *(given.write(WriteRun(run_id=run.run_id, events=events)) for events in pieces)
            )
            told = [entry.event for entry in await given.store.events(ANN, run.run_id)]
            assert {tuple(told[at : at + 3]) for at in range(0, 120, 3)} == set(pieces)

    async def test_two_writes_of_one_commit_are_numbered_one_after_the_other(self) -> None:
        async with self.given() as given:
            run = await given.run()
            first, second = (
                WriteRun(run_id=run.run_id, events=(TextAdded(0, "a"), TextAdded(0, "b"))),
                WriteRun(run_id=run.run_id, fence=1, events=(TextAdded(0, "c"),)),
            )
            await given.write(first, second)
            entries = await given.store.events(ANN, run.run_id)
            assert [(entry.seq, entry.event) for entry in entries] == [
                (1, TextAdded(0, "a")),
                (2, TextAdded(0, "b")),
                (3, TextAdded(0, "c")),
            ]

    async def test_a_reader_gets_what_comes_after_its_position_a_page_at_a_time(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.write(
                WriteRun(run_id=run.run_id, events=tuple(StepStarted(step) for step in range(1, 301)))
            )
            for after, limit, expected in (
                (0, 2, [1, 2]),
                (2, 3, [3, 4, 5]),
                (64, 64, list(range(65, 129))),
                (100, 150, list(range(101, 251))),
                (299, 10, [300]),
                (300, 10, []),
                (999, 10, []),
            ):
                page = await given.store.events(ANN, run.run_id, after=after, limit=limit)
                assert [entry.seq for entry in page] == expected

    async def test_a_run_without_events_and_an_unknown_run_have_an_empty_journal(self) -> None:
        async with self.given() as given:
            run = await given.run()
            assert await given.store.events(ANN, run.run_id) == []
            assert await given.store.events(ANN, given.clock.fresh("run")) == []
