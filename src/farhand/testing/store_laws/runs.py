"""A run belongs to one holder at a time; the store counts what is open in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from msgspec.structs import replace

from farhand.core import call as table
from farhand.core.approval import Answer
from farhand.core.call import Phase
from farhand.core.event import RunParked, TextAdded
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.store.base import (
    Commit,
    Committed,
    InsertCall,
    InsertMessage,
    InsertRun,
    InsertThread,
    ParkRun,
    SwapCall,
    WriteRun,
)
from farhand.testing.store_laws.given import ANN, BOB, Laws


class RunLaws(Laws):
    async def test_a_run_comes_back_as_it_was_written(self) -> None:
        async with self.given() as given:
            run = await given.run(step=3, fence=5, error="odd", state=RunState.WAITING)
            assert await given.store.get_run(ANN, run.run_id) == run
            assert await given.store.last_run(ANN, "t1") == run

    async def test_runs_at_work_are_counted_by_owner_and_by_tenant(self) -> None:
        async with self.given() as given:
            lease = given.store.now() + 20.0
            running = await given.run("t1", lease_until=lease)
            await given.run("t2", lease_until=lease, state=RunState.WAITING)
            parked = await given.run("t3", lease_until=lease)
            await given.call(parked)
            await given.park(parked)
            await given.end(await given.run("t4", lease_until=lease))
            for key in ((ANN.tenant, ANN.subject), (ANN.tenant, None)):
                assert await given.store.count_running(*key) == 1
            assert await given.store.count_running(ANN.tenant, "nobody") == 0
            assert await given.store.count_running("nobody") == 0
            await given.end(running)
            assert await given.store.count_running(ANN.tenant, ANN.subject) == 0

    async def test_a_run_needs_a_thread_of_its_owner(self) -> None:
        async with self.given() as given:
            await given.thread("t1", BOB)
            assert await given.refuse(InsertRun(given.new_run("t1"))) == "missing"

    async def test_a_run_id_is_used_once(self) -> None:
        async with self.given() as given:
            run = await given.run("t1")
            await given.thread("t2")
            assert await given.refuse(InsertRun(replace(run, thread_id="t2"))) == "exists"

    async def test_one_run_is_active_in_a_thread(self) -> None:
        async with self.given() as given:
            run = await given.run()
            assert await given.refuse(InsertRun(given.new_run())) == "active"
            await given.write(WriteRun(run_id=run.run_id, fence=run.fence, state=RunState.DONE))
            second = given.new_run()
            await given.write(InsertRun(second))
            assert await given.store.last_run(ANN, "t1") == second

    async def test_whoever_sees_that_a_run_has_ended_sees_what_it_said_last(self) -> None:
        """Also in the moment in which the commit is there and has not been answered yet."""
        async with self.given() as given:
            run = await given.run()
            said = await given.message("m1")
            last = replace(said, message_id="m2")
            commits = [given.store.commit(InsertThread(given.new_thread(f"t{n}"))) for n in range(2, 300)]
            end = WriteRun(run_id=run.run_id, fence=run.fence, state=RunState.DONE)
            ended = given.store.commit(InsertMessage(ANN, "t1", last), end)
            async with asyncio.TaskGroup() as tasks:
                for commit in (*commits, ended):
                    tasks.create_task(_done(commit))
                # whoever looks looks now: there is nothing to wait for
                while (await given.stored_run(run)).active:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                assert await given.store.messages(ANN, "t1") == [said, last]

    async def test_a_parked_run_is_active_too(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.call(run)
            await given.write(ParkRun(run.run_id, run.fence, RunParked()))
            assert await given.refuse(InsertRun(given.new_run())) == "active"

    async def test_a_run_may_end_and_the_next_begin_in_one_commit(self) -> None:
        async with self.given() as given:
            run = await given.run()
            following = given.new_run()
            await given.write(
                WriteRun(run_id=run.run_id, fence=run.fence, state=RunState.STOPPED), InsertRun(following)
            )
            assert await given.store.last_run(ANN, "t1") == following

    async def test_of_many_runs_begun_at_once_in_a_thread_one_is_there(self) -> None:
        async with self.given() as given:
            await given.thread()
            runs = [given.new_run() for _ in range(20)]
            commits = await asyncio.gather(*(given.store.commit(InsertRun(run)) for run in runs))
            begun = [run for run, commit in zip(runs, commits, strict=True) if isinstance(commit, Committed)]
            assert begun == [await given.store.last_run(ANN, "t1")]

    async def test_runs_of_all_threads_are_listed_the_last_begun_first_page_by_page(self) -> None:
        async with self.given() as given:
            begun = []
            for number in range(7):
                # all at one moment of the clock: the order is that of the writes
                begun.append(await given.run(f"t{number % 3}"))
                await given.end(begun[-1])
            stored = [await given.stored_run(run) for run in reversed(begun)]
            assert await given.store.runs(ANN, limit=100) == stored
            pages, after = [], None
            while page := await given.store.runs(ANN, limit=3, after=after):
                pages.append([run.run_id for run in page])
                after = page[-1].run_id
            assert [len(page) for page in pages] == [3, 3, 1]
            assert [run_id for page in pages for run_id in page] == [run.run_id for run in stored]
            assert await given.store.runs(ANN, limit=2, after="run_nowhere") == stored[:2]
            assert await given.store.runs(BOB, limit=2) == []
            assert await given.store.runs(BOB, limit=2, after=stored[0].run_id) == []

    async def test_a_write_changes_what_it_names_and_nothing_else(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.write(WriteRun(run_id=run.run_id, fence=1, step=2, state=RunState.WAITING))
            assert await given.stored_run(run) == replace(run, step=2, state=RunState.WAITING)
            given.clock.advance(5)
            await given.write(WriteRun(run_id=run.run_id, fence=1, lease_sec=20.0))
            renewed = replace(run, step=2, state=RunState.WAITING, lease_until=given.clock.now() + 20.0)
            assert await given.stored_run(run) == renewed

    async def test_an_ended_run_has_an_end_and_no_lease(self) -> None:
        async with self.given() as given:
            run = await given.run()
            ended_at = given.clock.advance(5)
            failed = WriteRun(run_id=run.run_id, fence=1, state=RunState.FAILED, error="the model is away")
            await given.write(failed)
            given.clock.advance(5)
            await given.write(WriteRun(run_id=run.run_id, fence=1, events=(TextAdded(0, "late"),)))
            stored = await given.stored_run(run)
            assert (stored.state, stored.error) == (RunState.FAILED, "the model is away")
            assert (stored.ended_at, stored.lease_until, stored.last_seq) == (ended_at, 0.0, 1)

    async def test_a_write_to_an_unknown_run_is_refused(self) -> None:
        async with self.given() as given:
            run_id = given.clock.fresh("run")
            assert await given.refuse(WriteRun(run_id=run_id, events=(TextAdded(0, "x"),))) == "missing"
            assert await given.refuse(ParkRun(run_id, 1, RunParked())) == "missing"

    async def test_a_stale_fence_changes_nothing(self) -> None:
        async with self.given() as given:
            run = await given.run(fence=2)
            await given.call(run)
            before = await given.stored_run(run)
            for fence in (1, 3):
                writes = (
                    WriteRun(run_id=run.run_id, fence=fence, events=(TextAdded(0, "x"),)),
                    WriteRun(run_id=run.run_id, fence=fence, state=RunState.DONE),
                    WriteRun(run_id=run.run_id, fence=fence, lease_sec=99.0),
                    ParkRun(run.run_id, fence, RunParked()),
                )
                for write in writes:
                    assert await given.refuse(write) == "fence"
            assert await given.stored_run(run) == before
            assert await given.store.events(ANN, run.run_id) == []

    async def test_a_write_without_a_fence_may_only_append(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
            for change in (
                WriteRun(run_id=run.run_id, state=RunState.DONE),
                WriteRun(run_id=run.run_id, step=4),
                WriteRun(run_id=run.run_id, error="odd"),
                WriteRun(run_id=run.run_id, lease_sec=1.0),
            ):
                assert await given.refuse(change) == "fence"
            assert await given.stored_run(run) == replace(run, last_seq=1)

    async def test_calls_that_only_others_can_move_are_counted_as_they_come_and_go(self) -> None:
        async with self.given() as given:
            run = await given.run()
            far = await given.call(run)
            near = await given.call(run, executor=Executor.SERVER)
            gated = await given.call(run, executor=Executor.SERVER, approval=given.asking())
            assert (await given.stored_run(run)).blockers == 2
            approved = table.approve(gated, Answer(approved=True), at=given.clock.now(), deadline=None)
            assert approved is not None
            await given.write(SwapCall(gated, approved))
            assert (await given.stored_run(run)).blockers == 1
            for call in (approved, near, far):
                await given.settle(call)
            assert (await given.stored_run(run)).blockers == 0

    async def test_what_is_open_is_counted_right_under_many_at_once(self) -> None:
        async with self.given() as given:
            run = await given.run()
            calls = [given.new_call(run) for _ in range(60)]
            await asyncio.gather(*(given.write(InsertCall(call)) for call in calls))
            # each is settled three times at once, and counted once
            await asyncio.gather(*(given.settle(call) for call in calls[:40] * 3))
            stored = await given.stored_run(run)
            opened = await given.store.open_calls(ANN)
            assert stored.blockers == len(opened) == 20
            assert all(call.phase is Phase.READY for call in opened)

    async def test_a_call_that_ended_where_it_began_is_not_waited_for(self) -> None:
        async with self.given() as given:
            run = await given.run()
            rejected = given.settled(given.new_call(run))
            await given.write(InsertCall(rejected))
            assert (await given.stored_run(run)).blockers == 0
            assert await given.store.open_calls(ANN) == []


async def _done(commit: Awaitable[Commit]) -> None:
    await commit
