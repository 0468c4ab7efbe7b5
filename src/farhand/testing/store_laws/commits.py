"""A commit happens as a whole or not at all."""

from __future__ import annotations

from farhand.core import call as table
from farhand.core.call import Phase
from farhand.core.event import RunStarted, TextAdded
from farhand.core.run import RunState
from farhand.store.base import (
    AllowTool,
    ClaimRun,
    Committed,
    InsertCall,
    InsertMessage,
    InsertRun,
    InsertThread,
    Stale,
    SwapCall,
    WriteRun,
)
from farhand.testing.store_laws.given import ANN, OPEN_URL, Given, Laws, user_message


class CommitLaws(Laws):
    async def test_a_commit_of_nothing_is_committed_at_the_stores_time(self) -> None:
        async with self.given() as given:
            assert await given.store.commit() == Committed(given.clock.now())

    async def test_the_writes_of_one_commit_build_on_each_other(self) -> None:
        async with self.given() as given:
            run = given.new_run()
            call = given.new_call(run, approval=given.asking())
            await given.write(
                InsertThread(given.new_thread("t1")),
                InsertMessage(ANN, "t1", user_message("m1")),
                InsertRun(run),
                WriteRun(run_id=run.run_id, events=(RunStarted("t1", "m1"),)),
                InsertCall(call, OPEN_URL),
                AllowTool(ANN, "t1", OPEN_URL.version),
            )
            assert await given.store.messages(ANN, "t1") == [user_message("m1")]
            assert (await given.stored_run(run)).blockers == 1
            assert (await given.stored_call(call)).phase is Phase.ASKING
            assert len(await given.store.events(ANN, run.run_id)) == 1

    async def test_one_call_may_move_twice_in_one_commit(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            taken = table.take(call, "tab", at=given.clock.now())
            assert taken is not None
            settled = given.settled(taken)
            again = SwapCall(taken, settled)
            assert await given.refuse(SwapCall(call, taken), again, again) == "version"
            assert await given.stored_call(call) == call
            await given.write(SwapCall(call, taken), SwapCall(taken, settled))
            assert await given.stored_call(call) == settled
            assert (await given.stored_run(run)).blockers == 0

    async def test_nothing_of_a_refused_commit_is_kept_when_everything_in_it_was_new(self) -> None:
        async with self.given() as given:
            run = given.new_run()
            call = given.new_call(run, approval=given.asking())
            why = await given.refuse(
                InsertThread(given.new_thread("t1")),
                InsertMessage(ANN, "t1", user_message("m1")),
                InsertRun(run),
                InsertCall(call, OPEN_URL),
                WriteRun(run_id=run.run_id, events=(RunStarted("t1"),)),
                InsertRun(given.new_run()),
            )
            assert why == "active"
            await self._nothing_is_there(given, run.run_id, call.call_id)

    async def test_nothing_of_a_refused_commit_is_kept_when_it_changed_what_was_there(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            thread = await given.store.get_thread(ANN, "t1")
            before = await given.stored_run(run)
            given.clock.advance(1)
            why = await given.refuse(
                InsertThread(given.new_thread("t1")),
                AllowTool(ANN, "t1", "some version"),
                SwapCall(call, given.settled(call)),
                ClaimRun(run.run_id, 15.0, by_force=True),
                WriteRun(run_id=run.run_id, fence=2, state=RunState.DONE, events=(TextAdded(0, "x"),)),
                ClaimRun(run.run_id, 15.0),
            )
            assert why == "ended"
            assert await given.store.get_thread(ANN, "t1") == thread
            assert await given.stored_call(call) == call
            assert await given.stored_run(run) == before
            assert await given.store.events(ANN, run.run_id) == []

    async def test_what_comes_after_a_refused_commit_finds_no_trace_of_it(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = given.new_call(run)
            assert await given.refuse(InsertCall(call), WriteRun(run_id=run.run_id, fence=9)) == "fence"
            await given.write(InsertCall(call), WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
            stored = await given.stored_run(run)
            assert (stored.blockers, stored.last_seq) == (1, 1)

    async def test_a_refusal_names_the_write_whose_guard_did_not_hold(self) -> None:
        async with self.given() as given:
            await given.thread()
            missing = InsertMessage(ANN, "no such thread", user_message("m1"))
            commit = await given.store.commit(InsertMessage(ANN, "t1", user_message("m1")), missing)
            assert commit == Stale(missing, "missing")

    async def test_a_commit_answers_with_every_run_it_touched_as_it_is_now(self) -> None:
        async with self.given() as given:
            first, second = await given.run("t1"), await given.run("t2")
            call = await given.call(second)
            touched = await given.write(
                WriteRun(run_id=first.run_id, fence=first.fence, step=3), SwapCall(call, given.settled(call))
            )
            assert touched.at == given.clock.now()
            assert touched.runs == {
                first.run_id: await given.stored_run(first),
                second.run_id: await given.stored_run(second),
            }

    async def _nothing_is_there(self, given: Given, run_id: str, call_id: str) -> None:
        store = given.store
        assert await store.get_thread(ANN, "t1") is None
        assert await store.messages(ANN, "t1") == []
        assert await store.get_run(ANN, run_id) is None
        assert await store.last_run(ANN, "t1") is None
        assert await store.get_call(ANN, call_id) is None
        assert await store.open_calls(ANN) == []
        assert await store.get_tool(OPEN_URL.version) is None
        assert await store.events(ANN, run_id) == []
        assert await store.due(before=given.clock.now() + 10_000, limit=10) == []
