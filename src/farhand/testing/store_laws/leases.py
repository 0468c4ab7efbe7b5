"""Claims, leases and parking: who may advance a run, and who finds one that nobody advances."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from farhand.core.event import RunParked, TextAdded
from farhand.core.run import Run, RunState
from farhand.core.thread import AssistantMessage, Text
from farhand.store.base import ClaimRun, Committed, InsertMessage, ParkRun, Stale, WriteRun
from farhand.testing.store_laws.given import ANN, LEASE_SEC, Given, Laws


class LeaseLaws(Laws):
    async def test_a_claim_brings_a_new_fence_and_a_lease_and_makes_the_old_fence_stale(self) -> None:
        async with self.given() as given:
            run = await given.run(state=RunState.WAITING)
            given.clock.advance(LEASE_SEC)
            claimed = (await given.write(ClaimRun(run.run_id, 20.0))).runs[run.run_id]
            lease = given.clock.now() + 20.0
            assert claimed == replace(run, fence=2, lease_until=lease, state=RunState.RUNNING)
            assert await given.stored_run(run) == claimed
            assert await given.refuse(WriteRun(run_id=run.run_id, fence=1, step=9)) == "fence"
            await given.write(WriteRun(run_id=run.run_id, fence=2, step=9))

    async def test_what_the_model_said_is_written_once_by_whoever_holds_the_run(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.write(ClaimRun(run.run_id, 15.0, by_force=True))
            said = AssistantMessage(run.run_id, 1, (Text("hello"),))
            spoken = InsertMessage(ANN, "t1", said)
            lost = WriteRun(run_id=run.run_id, fence=1, step=1)
            assert await given.refuse(spoken, lost) == "fence"
            await given.write(spoken, WriteRun(run_id=run.run_id, fence=2, step=1))
            # a store may also see that it is there
            assert await given.refuse(spoken, lost) in ("fence", "exists")
            assert await given.store.messages(ANN, "t1") == [said]

    async def test_a_run_that_is_held_cannot_be_claimed_before_its_lease_has_lapsed(self) -> None:
        async with self.given() as given:
            run = await given.run()
            given.clock.advance(LEASE_SEC - 0.001)
            assert await given.refuse(ClaimRun(run.run_id, 15.0)) == "held"
            given.clock.advance(0.001)
            await given.write(ClaimRun(run.run_id, 15.0))

    async def test_a_claim_by_force_takes_a_run_that_is_held(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.write(ClaimRun(run.run_id, 15.0, by_force=True))
            assert (await given.stored_run(run)).fence == 2

    async def test_a_run_that_has_moved_on_since_it_was_seen_cannot_be_claimed(self) -> None:
        async with self.given() as given:
            seen = await given.run()
            await given.write(WriteRun(run_id=seen.run_id, events=(TextAdded(0, "more"),)))
            assert await given.refuse(ClaimRun(seen.run_id, 15.0, by_force=True, seen=seen)) == "grown"
            now = await given.stored_run(seen)
            assert await given.refuse(ClaimRun(seen.run_id, 15.0, seen=now)) == "held"
            claimed = await given.write(ClaimRun(seen.run_id, 15.0, by_force=True, seen=now))
            assert claimed.runs[seen.run_id].fence == now.fence + 1
            assert await given.refuse(ClaimRun(seen.run_id, 15.0, by_force=True, seen=now)) == "fence"

    async def test_a_parked_run_can_be_claimed_at_once_and_is_no_longer_parked(self) -> None:
        async with self.given() as given:
            run = await self._parked(given)
            claimed = (await given.write(ClaimRun(run.run_id, 15.0))).runs[run.run_id]
            assert (claimed.parked, claimed.state, claimed.fence) == (False, RunState.RUNNING, 2)

    async def test_an_ended_or_unknown_run_cannot_be_claimed(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.write(WriteRun(run_id=run.run_id, fence=1, state=RunState.DONE))
            assert await given.refuse(ClaimRun(run.run_id, 15.0, by_force=True)) == "ended"
            assert await given.refuse(ClaimRun(given.clock.fresh("run"), 15.0)) == "missing"

    async def test_of_many_claims_at_once_one_wins(self) -> None:
        async with self.given() as given:
            run = await self._parked(given)
            claims = (given.store.commit(ClaimRun(run.run_id, 15.0)) for _ in range(20))
            commits = await asyncio.gather(*claims)
            assert sum(isinstance(commit, Committed) for commit in commits) == 1
            assert {commit.why for commit in commits if isinstance(commit, Stale)} == {"held"}

    async def test_a_run_is_parked_with_its_event_and_without_a_lease(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.call(run)
            parked = (await given.write(ParkRun(run.run_id, 1, RunParked()))).runs[run.run_id]
            assert (parked.parked, parked.state, parked.lease_until) == (True, RunState.WAITING, 0.0)
            assert await given.stored_run(run) == parked
            assert [entry.event for entry in await given.store.events(ANN, run.run_id)] == [RunParked()]

    async def test_a_run_with_nothing_open_cannot_be_parked(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            await given.settle(call)
            before = await given.stored_run(run)
            assert await given.refuse(ParkRun(run.run_id, 1, RunParked())) == "nothing_open"
            assert await given.stored_run(run) == before

    async def test_between_the_last_result_and_the_park_one_notices_the_other(self) -> None:
        async with self.given() as given:
            for number in range(20):
                run = await given.run(f"t{number}")
                call = await given.call(run)
                park, _ = await asyncio.gather(
                    given.store.commit(ParkRun(run.run_id, 1, RunParked())), given.settle(call)
                )
                strays = await given.store.stray_runs(limit=100)
                found = run.run_id in {stray.run_id for stray in strays}
                # parked after all: then somebody finds it; or not parked: then its holder goes on
                assert found == isinstance(park, Committed)

    async def test_strays_are_the_runs_that_nobody_advances_though_somebody_could(self) -> None:
        async with self.given() as given:
            lapsed = await given.run("lapsed")
            given.clock.advance(LEASE_SEC)
            free = await self._parked(given, "free")
            [call] = await given.store.open_calls(ANN, "free")
            await given.settle(call)
            await self._parked(given, "waiting")
            await given.run("held")
            ended = await given.run("ended")
            await given.write(WriteRun(run_id=ended.run_id, fence=1, state=RunState.DONE))
            strays = await given.store.stray_runs(limit=10)
            assert {stray.run_id for stray in strays} == {lapsed.run_id, free.run_id}
            assert strays == [await given.stored_run(stray) for stray in strays]
            assert len(await given.store.stray_runs(limit=1)) == 1

    async def test_a_claimed_stray_is_no_stray(self) -> None:
        async with self.given() as given:
            run = await given.run()
            given.clock.advance(LEASE_SEC)
            await given.write(ClaimRun(run.run_id, 15.0))
            assert await given.store.stray_runs(limit=10) == []
            given.clock.advance(14.0)
            await given.write(WriteRun(run_id=run.run_id, fence=2, lease_sec=15.0))
            given.clock.advance(14.0)
            assert await given.store.stray_runs(limit=10) == []
            given.clock.advance(1.0)
            assert len(await given.store.stray_runs(limit=10)) == 1

    async def test_an_event_from_aside_does_not_make_a_run_held_or_free(self) -> None:
        async with self.given() as given:
            run = await self._parked(given)
            await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
            assert (await given.stored_run(run)).parked
            assert await given.store.stray_runs(limit=10) == []

    async def _parked(self, given: Given, thread_id: str = "t1") -> Run:
        run = await given.run(thread_id)
        await given.call(run)
        return await given.park(run)
