"""A thread can be cut short or deleted with all that is in it, and nothing else goes with it."""

from __future__ import annotations

import asyncio

from farhand.core.event import TextAdded
from farhand.core.run import Run, RunState
from farhand.store.base import (
    Committed,
    CutThread,
    DeleteThread,
    InsertMessage,
    InsertRun,
    InsertThread,
    SwapCall,
    WriteRun,
)
from farhand.testing.store_laws.given import ANN, BOB, Given, Laws, user_message


class RemovalLaws(Laws):
    async def test_a_cut_removes_a_message_and_all_later_ones(self) -> None:
        async with self.given() as given:
            await given.thread("t1")
            await given.thread("t2")
            first, *_ = [await given.message(f"m{number}") for number in range(4)]
            other = await given.message("m3", "t2")
            await given.write(CutThread(ANN, "t1", "m1"))
            assert await given.store.messages(ANN, "t1") == [first]
            assert await given.store.messages(ANN, "t2") == [other]

    async def test_a_cut_and_what_is_said_instead_are_one_commit(self) -> None:
        async with self.given() as given:
            await given.thread()
            first = await given.message("m1")
            await given.message("m2")
            instead = user_message("m2", "instead")
            said = InsertMessage(ANN, "t1", instead)
            assert await given.refuse(CutThread(ANN, "t1", "m2"), said, said) == "exists"
            assert await given.store.messages(ANN, "t1") == [first, user_message("m2")]
            await given.write(CutThread(ANN, "t1", "m2"), said)
            assert await given.store.messages(ANN, "t1") == [first, instead]

    async def test_a_cut_reaches_what_was_said_in_its_own_commit(self) -> None:
        async with self.given() as given:
            await given.thread()
            await given.write(InsertMessage(ANN, "t1", user_message("m1")), CutThread(ANN, "t1", "m1"))
            assert await given.store.messages(ANN, "t1") == []

    async def test_a_cut_at_an_unknown_message_is_refused(self) -> None:
        async with self.given() as given:
            await given.thread()
            await given.message("m1")
            assert await given.refuse(CutThread(ANN, "t1", "m9")) == "missing"
            assert await given.refuse(CutThread(BOB, "t1", "m1")) == "missing"
            assert len(await given.store.messages(ANN, "t1")) == 1

    async def test_a_deleted_thread_is_gone_with_all_that_was_in_it(self) -> None:
        async with self.given() as given:
            run = await self._ended_run(given, "t1")
            [call] = await given.store.calls_of(ANN, run.run_id)
            alone = await given.call()
            await given.write(DeleteThread(ANN, "t1"))
            store = given.store
            assert await store.get_thread(ANN, "t1") is None
            assert await store.threads(ANN, limit=10) == []
            assert await store.messages(ANN, "t1") == []
            assert await store.get_run(ANN, run.run_id) is None
            assert await store.last_run(ANN, "t1") is None
            assert await store.get_call(ANN, call.call_id) is None
            assert await store.get_call(ANN, alone.call_id) is None
            assert await store.open_calls(ANN) == []
            assert await store.events(ANN, run.run_id) == []
            assert await store.due(before=given.clock.now() + 10_000, limit=10) == []

    async def test_a_deletion_touches_no_other_thread(self) -> None:
        async with self.given() as given:
            await self._ended_run(given, "t1")
            other = await self._ended_run(given, "t2")
            theirs = await given.thread("t1", BOB)
            await given.write(DeleteThread(ANN, "t1"))
            assert await given.store.last_run(ANN, "t2") == other
            assert len(await given.store.messages(ANN, "t2")) == 1
            assert len(await given.store.calls_of(ANN, other.run_id)) == 1
            assert len(await given.store.events(ANN, other.run_id)) == 1
            assert await given.store.get_thread(BOB, "t1") == theirs

    async def test_a_thread_whose_run_is_active_is_not_deleted(self) -> None:
        async with self.given() as given:
            run = await given.run()
            assert await given.refuse(DeleteThread(ANN, "t1")) == "active"
            assert await given.store.last_run(ANN, "t1") == run
            assert await given.refuse(DeleteThread(BOB, "t1")) == "missing"

    async def test_a_run_may_end_and_its_thread_go_in_one_commit(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            commit = await given.write(
                SwapCall(call, given.stopped(call)),
                WriteRun(run_id=run.run_id, fence=1, state=RunState.STOPPED, events=(TextAdded(0, "bye"),)),
                DeleteThread(ANN, "t1"),
            )
            assert commit.runs == {}
            assert await given.store.get_run(ANN, run.run_id) is None

    async def test_nothing_is_gone_when_a_commit_that_deletes_is_refused(self) -> None:
        async with self.given() as given:
            run = await self._ended_run(given, "t1")
            thread = await given.store.get_thread(ANN, "t1")
            again = DeleteThread(ANN, "t1")
            assert await given.refuse(again, again) == "missing"
            assert await given.store.get_thread(ANN, "t1") == thread
            assert await given.store.last_run(ANN, "t1") == run
            assert len(await given.store.calls_of(ANN, run.run_id)) == 1
            assert len(await given.store.events(ANN, run.run_id)) == 1
            await given.message("m2")

    async def test_the_name_of_a_deleted_thread_is_free_again(self) -> None:
        async with self.given() as given:
            await self._ended_run(given, "t1")
            fresh, run = given.new_thread("t1"), given.new_run("t1")
            await given.write(DeleteThread(ANN, "t1"), InsertThread(fresh), InsertRun(run))
            assert await given.store.get_thread(ANN, "t1") == fresh
            assert await given.store.messages(ANN, "t1") == []
            assert await given.store.last_run(ANN, "t1") == run
            assert await given.store.calls_of(ANN, run.run_id) == []

    async def test_deletions_and_other_commits_at_once_do_not_disturb_each_other(self) -> None:
        async with self.given() as given:
            for number in range(10):
                await self._ended_run(given, f"t{number}")
            kept = await given.run("kept")
            commits = await asyncio.gather(
                *(
                    given.store.commit(
                        DeleteThread(ANN, f"t{number // 4}")
                        if number % 4 == 0
                        else WriteRun(run_id=kept.run_id, events=(TextAdded(number, "x"),))
                    )
                    for number in range(40)
                )
            )
            assert all(isinstance(commit, Committed) for commit in commits)
            assert [thread.thread_id for thread in await given.store.threads(ANN, limit=20)] == ["kept"]
            assert (await given.stored_run(kept)).last_seq == 30
            assert len(await given.store.events(ANN, kept.run_id)) == 30

    async def _ended_run(self, given: Given, thread_id: str) -> Run:
        run = await given.run(thread_id)
        await given.message(f"of {thread_id}", thread_id)
        await given.settle(await given.call(run))
        return await given.end(run)
