"""Leases: which worker advances a run, and how a run without a worker is found."""

from __future__ import annotations

from farhand.core.run import RunState
from farhand.store.base import Lease
from farhand.testing.store_laws.fixture import LEASE_SEC, Laws

NONE = Lease("", 0.0)


class LeaseLaws(Laws):
    async def test_a_run_is_claimable_once_its_lease_has_lapsed(self) -> None:
        async with self.opened() as fixture:
            until = fixture.clock.now() + LEASE_SEC
            await fixture.append(thread=fixture.running(), lease=Lease("w1", until))
            assert await fixture.claimable_ids() == []
            fixture.clock.advance(LEASE_SEC)
            assert await fixture.claimable_ids() == ["t1"]

    async def test_a_run_without_a_lease_is_claimable_and_so_is_one_whose_lease_has_ended(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1", thread=fixture.running())
            assert await fixture.claimable_ids() == ["t1"]
            lease = Lease("w1", fixture.clock.now() + LEASE_SEC)
            await fixture.append("t1", thread=fixture.running(), lease=lease)
            assert await fixture.claimable_ids() == []
            # an append without a lease leaves it unchanged
            await fixture.append("t1", thread=fixture.running())
            assert await fixture.claimable_ids() == []
            await fixture.append("t1", thread=fixture.running(), lease=NONE)
            assert await fixture.claimable_ids() == ["t1"]

    async def test_those_that_are_skipped_hide_no_others(self) -> None:
        async with self.opened() as fixture:
            for no in range(6):
                await fixture.append(f"t{no}", thread=fixture.running(f"run_{no}"))
            skip = tuple(f"run_{no}" for no in range(4))
            assert sorted(await fixture.claimable_ids(skip=skip, limit=2)) == ["t4", "t5"]
            assert len(await fixture.claimable_ids(limit=3)) == 3

    async def test_a_parked_run_is_claimable_once_nothing_is_open_in_it(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(thread=fixture.parked(), lease=NONE)
            assert await fixture.claimable_ids() == []
            await fixture.append(thread=fixture.parked(run_state=RunState.RUNNING))
            assert await fixture.claimable_ids() == ["t1"]
            await fixture.append(thread=fixture.parked(run_state=RunState.DONE))
            assert await fixture.claimable_ids() == []

    async def test_a_run_that_is_held_at_a_pause_is_claimable_when_its_holder_is_gone(self) -> None:
        async with self.opened() as fixture:
            lease = Lease("w1", fixture.clock.now() + LEASE_SEC)
            await fixture.append(thread=fixture.running(run_state=RunState.WAITING), lease=lease)
            fixture.clock.advance(LEASE_SEC)
            assert await fixture.claimable_ids() == ["t1"]

    async def test_threads_without_an_active_run_are_not_claimable(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1")
            for no, state in enumerate((RunState.DONE, RunState.STOPPED, RunState.FAILED)):
                await fixture.append(f"ended{no}", thread=fixture.running(run_state=state))
            assert await fixture.claimable_ids() == []

    async def test_what_is_found_is_hidden_for_a_while(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1", thread=fixture.running("run_1"))
            await fixture.append("t2", thread=fixture.running("run_2"))
            [found] = await fixture.claimable_ids(limit=1, reserve_sec=5)
            others = {"t1", "t2"} - {found}
            assert set(await fixture.claimable_ids()) == others
            # a reservation belongs to no worker, so none renews it
            await fixture.store.renew("w1", fixture.clock.now() + LEASE_SEC)
            fixture.clock.advance(5)
            assert set(await fixture.claimable_ids()) == {"t1", "t2"}

    async def test_a_worker_renews_all_its_leases_and_ends_them(self) -> None:
        async with self.opened() as fixture:
            now = fixture.clock.now()
            for no, worker in enumerate(("w1", "w1", "w3")):
                await fixture.append(
                    f"t{no}", thread=fixture.running(f"run_{no}"), lease=Lease(worker, now + LEASE_SEC)
                )
            fixture.clock.advance(LEASE_SEC - 1)
            await fixture.store.renew("w1", fixture.clock.now() + LEASE_SEC)
            fixture.clock.advance(1)
            assert await fixture.claimable_ids() == ["t2"]
            await fixture.store.renew("w1", fixture.clock.now() - 1)
            assert sorted(await fixture.claimable_ids()) == ["t0", "t1", "t2"]

    async def test_a_worker_can_ask_for_its_own_leases_alone(self) -> None:
        async with self.opened() as fixture:
            until = fixture.clock.now() + LEASE_SEC
            await fixture.append("free", thread=fixture.running("run_1"))
            await fixture.append("own", thread=fixture.running("run_2"), lease=Lease("w1", until))
            await fixture.append("other", thread=fixture.running("run_3"), lease=Lease("w2", until))
            await fixture.append("ended", thread=fixture.running("run_4"), lease=Lease("w1", until))
            await fixture.append(
                "ended", thread=fixture.running("run_4", run_state=RunState.DONE), lease=NONE
            )
            own = await fixture.store.claimable(limit=9, worker="w1")
            assert [each.thread_id for each in own] == ["own"]
            assert await fixture.store.claimable(limit=9, skip={"run_2"}, worker="w1") == []
            assert await fixture.claimable_ids() == ["free"]
            fixture.clock.advance(LEASE_SEC)
            own = await fixture.store.claimable(limit=9, worker="w1")
            assert [each.thread_id for each in own] == ["own"], "also expired ones, and no others"

    async def test_a_claimable_run_is_found_with_its_row(self) -> None:
        async with self.opened() as fixture:
            row = fixture.running()
            await fixture.append(thread=row)
            [found] = await fixture.store.claimable(limit=9)
            assert (found.thread_id, found.version, found.row) == ("t1", 1, row)
