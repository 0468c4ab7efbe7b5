"""What has been kept for long enough goes; threads, messages and whatever still goes on stay."""

from __future__ import annotations

import asyncio

from farhand.core.event import TextAdded
from farhand.store.base import InsertCall, SwapCall, WriteRun
from farhand.testing.store_laws.given import ANN, Laws


class RetentionLaws(Laws):
    async def test_settled_calls_and_events_of_ended_runs_go_and_what_was_said_stays(self) -> None:
        async with self.given() as given:
            run = await given.run()
            message = await given.message("m1")
            approval = given.asking()
            call, asked = await given.call(run), await given.call(run, approval=approval)
            await given.settle(call)
            await given.write(SwapCall(asked, given.stopped(asked)))
            await given.end(run)
            given.clock.advance(10)
            old = await given.store.count_old(settled_before=given.clock.now())
            assert (old.calls, old.journals) == (2, 1)
            assert await given.store.purge(settled_before=given.clock.now()) == old, "told what was counted"
            after = await given.store.count_old(settled_before=given.clock.now())
            assert (after.calls, after.journals, after.files) == (0, 0, 0)
            assert await given.store.get_call(ANN, call.call_id) is None
            assert await given.store.get_asking(ANN, approval.approval_id) is None
            assert await given.store.calls_of(ANN, run.run_id) == []
            assert await given.store.events(ANN, run.run_id) == []
            assert await given.store.messages(ANN, "t1") == [message]
            assert await given.store.get_thread(ANN, "t1") is not None
            assert await given.store.last_run(ANN, "t1") == await given.stored_run(run)

    async def test_what_is_younger_stays(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            await given.settle(call)
            await given.end(run)
            assert (await given.store.count_old(settled_before=given.clock.now())).calls == 0
            assert (await given.store.purge(settled_before=given.clock.now())).calls == 0
            assert (await given.stored_call(call)).outcome is not None
            assert len(await given.store.events(ANN, run.run_id)) == 1

    async def test_a_run_that_goes_on_keeps_its_events_and_its_settled_calls(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call, still_open = await given.call(run), await given.call(run)
            await given.settle(call)
            await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
            given.clock.advance(10**7)
            assert (await given.store.purge(settled_before=given.clock.now())).calls == 0
            assert len(await given.store.calls_of(ANN, run.run_id)) == 2
            assert await given.store.open_calls(ANN) == [still_open]
            assert len(await given.store.events(ANN, run.run_id)) == 1

    async def test_a_settled_call_without_a_run_goes_and_an_open_one_stays(self) -> None:
        async with self.given() as given:
            settled, still_open = await given.call(), await given.call()
            await given.settle(settled)
            given.clock.advance(10)
            assert (await given.store.purge(settled_before=given.clock.now())).calls == 1
            assert await given.store.get_call(ANN, settled.call_id) is None
            assert await given.stored_call(still_open) == still_open

    async def test_after_a_purge_numbers_go_on_where_they_were(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.end(run)
            given.clock.advance(10)
            await given.store.purge(settled_before=given.clock.now())
            await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "late"),)))
            [late] = await given.store.events(ANN, run.run_id)
            assert (late.seq, late.event) == (2, TextAdded(0, "late"))
            assert await given.store.events(ANN, run.run_id, after=2) == []

    async def test_a_purge_of_much_is_whole(self) -> None:
        async with self.given() as given:
            calls = [given.new_call() for _ in range(1100)]
            await asyncio.gather(*(given.write(InsertCall(call)) for call in calls))
            await asyncio.gather(*(given.settle(call) for call in calls))
            given.clock.advance(10)
            assert (await given.store.purge(settled_before=given.clock.now())).calls == len(calls)
            assert (await given.store.purge(settled_before=given.clock.now())).calls == 0
