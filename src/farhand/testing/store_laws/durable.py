"""What was answered is still there after the process is gone."""

from __future__ import annotations

import asyncio

from farhand.clock import Clock
from farhand.core.call import Request
from farhand.core.event import ClientRegistered, RunParked, TextAdded
from farhand.core.file import Kept
from farhand.core.run import RunState
from farhand.store.base import (
    BindFiles,
    ClaimRun,
    DeleteThread,
    InsertCall,
    InsertRun,
    ParkRun,
    PutClient,
    Store,
    SwapCall,
    Tell,
    WriteRun,
)
from farhand.testing.store_laws.clients import asked, new_client
from farhand.testing.store_laws.files import put_file
from farhand.testing.store_laws.given import ANN, OPEN_URL, Given, Laws


class DurabilityLaws(Laws):
    async def reopen(self, store: Store, clock: Clock) -> Store:
        """What another process finds when this one is gone: best without closing it, as after a crash."""
        raise NotImplementedError

    async def test_everything_that_was_answered_is_there_again(self) -> None:
        async with self.given() as given:
            run = await given.run()
            message = await given.message("m1")
            approval = given.asking()
            call = await given.call(run, approval=approval)
            await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
            await given.write(ParkRun(run.run_id, 1, RunParked()))
            thread, parked = await given.store.get_thread(ANN, "t1"), await given.stored_run(run)
            entries = await given.store.events(ANN, run.run_id)
            await self._reopen(given)
            assert await given.store.get_thread(ANN, "t1") == thread
            assert await given.store.messages(ANN, "t1") == [message]
            assert await given.store.last_run(ANN, "t1") == parked
            assert await given.store.get_asking(ANN, approval.approval_id) == call
            assert await given.store.open_calls(ANN) == [call]
            assert await given.store.get_tool(OPEN_URL.version) == OPEN_URL
            assert await given.store.events(ANN, run.run_id) == entries

    async def test_registrations_requests_and_feeds_go_on_where_they_were(self) -> None:
        async with self.given() as given:
            client = new_client(given, "notes", "read")
            await given.write(PutClient(client), Tell(ANN, (ClientRegistered("notes", ("read",)),)))
            call = await asked(given, "notes", request=Request("job-1"))
            news = await given.store.feed(ANN)
            await self._reopen(given)
            assert await given.store.clients() == [client]
            assert await given.store.client_calls(ANN, "notes") == [call]
            assert await given.refuse(InsertCall(given.new_call(request=Request("job-1")))) == "exists"
            await given.write(Tell(ANN, (ClientRegistered("notes", ("read",)),)))
            assert (await given.store.feed(ANN))[:-1] == news
            assert await given.store.feed_span(ANN) == (1, 2)

    async def test_a_file_that_arrived_is_there_again_and_goes_with_its_thread_still(self) -> None:
        async with self.given() as given:
            await given.thread()
            file = await put_file(given, b"one", b"two")
            await given.write(BindFiles(ANN, "t1", (file.ref,)))
            await self._reopen(given)
            assert await given.store.files.piece(ANN, file.ref, 1) == b"two"
            assert await given.store.files.kept(ANN.tenant) == Kept(1, 6)
            await given.write(DeleteThread(ANN, "t1"))
            assert await given.store.files.get(ANN, file.ref) is None

    async def test_a_result_that_was_accepted_wins_after_a_crash_too(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            await given.settle(call)
            settled = await given.stored_call(call)
            await self._reopen(given)
            assert await given.stored_call(call) == settled
            assert (await given.stored_run(run)).blockers == 0
            assert await given.refuse(SwapCall(call, given.settled(call, "another"))) == "version"

    async def test_guards_and_numbers_go_on_where_they_were(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "a"),)))
            await given.write(ClaimRun(run.run_id, 15.0, by_force=True))
            await self._reopen(given)
            assert await given.refuse(InsertCall(call)) == "exists"
            assert await given.refuse(InsertRun(given.new_run())) == "active"
            assert await given.refuse(WriteRun(run_id=run.run_id, fence=1, step=1)) == "fence"
            await given.write(WriteRun(run_id=run.run_id, fence=2, events=(TextAdded(0, "b"),)))
            entries = await given.store.events(ANN, run.run_id)
            assert [entry.seq for entry in entries] == [1, 2]
            await given.write(WriteRun(run_id=run.run_id, fence=2, state=RunState.DONE))
            second = await given.run()
            assert await given.store.last_run(ANN, "t1") == second
            assert (await given.stored_run(second)).last_seq == 0

    async def test_of_many_commits_at_once_all_that_were_answered_are_there(self) -> None:
        async with self.given() as given:
            run = await given.run()
            calls = [given.new_call(run) for _ in range(200)]
            await asyncio.gather(*(given.write(InsertCall(call)) for call in calls))
            await self._reopen(given)
            found = await given.store.calls_of(ANN, run.run_id)
            assert {call.call_id for call in found} == {call.call_id for call in calls}
            assert (await given.stored_run(run)).blockers == 200

    async def _reopen(self, given: Given) -> None:
        given.store = await self.reopen(given.store, given.clock)
