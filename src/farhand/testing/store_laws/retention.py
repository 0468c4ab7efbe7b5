"""Retention: old rows are purged; threads, snapshots and everything in progress stay. A thread is deleted
with all its rows and nothing else."""

from __future__ import annotations

import asyncio

from farhand.core.call import ProgramRequest
from farhand.core.run import RunState
from farhand.store.base import Loaded, Moved, PurgeCount
from farhand.testing.store_laws.fixture import ANN, BOB, Laws, StoreFixture


class RetentionLaws(Laws):
    async def test_old_rows_are_purged_as_far_as_a_snapshot_covers_them(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1", b"[1]")
            await fixture.append("t1", b"[2]", snapshot=b"{}")
            await fixture.append("t1", b"[3]")
            await fixture.append("bare", b"[1]")
            limit = self._later(fixture)
            await fixture.append("young", b"[1]", snapshot=b"{}")
            await fixture.store.purge(before=limit)
            assert await self._versions(fixture, "t1") == [3]
            assert (await fixture.store.load(ANN, "t1")).snapshot == b"{}"
            assert await self._versions(fixture, "bare") == [1]
            assert await self._versions(fixture, "young") == [1]
            assert len(await fixture.store.threads(ANN, limit=9)) == 3
            await fixture.append("t1", b"[4]")
            assert await self._versions(fixture, "t1") == [3, 4]

    async def test_recent_rows_stay_even_if_a_snapshot_covers_them(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(body=b"[1]")
            limit = self._later(fixture)
            await fixture.append(body=b"[2]", snapshot=b"{}")
            await fixture.store.purge(before=limit)
            assert await self._versions(fixture, "t1") == [2]
            limit = self._later(fixture)
            await fixture.store.purge(before=limit)
            assert await self._versions(fixture, "t1") == []

    async def test_an_active_run_keeps_its_rows_and_its_settled_calls(self) -> None:
        async with self.opened() as fixture:
            of_before = fixture.settled(fixture.new_call("call_0", run_id="run_0"))
            of_run = fixture.settled(fixture.new_call("call_1"))
            await fixture.append(body=b"[1]", calls=(of_before,))
            row = fixture.parked(kept_from=1)
            await fixture.append(body=b"[2]", calls=(of_run,), runs=(fixture.new_run(),), thread=row)
            await fixture.append(body=b"[3]", thread=row, snapshot=b"{}")
            limit = self._later(fixture)
            assert await fixture.store.purge(before=limit, dry_run=True) == PurgeCount(calls=1)
            assert await fixture.store.purge(before=limit) == PurgeCount(calls=1)
            assert await self._versions(fixture, "t1") == [2, 3]
            assert await fixture.store.find_call(ANN, "call", "call_0") is None
            assert await fixture.store.find_call(ANN, "call", "call_1") is not None
            assert await fixture.store.find_run(ANN, "run_1") is not None
            ended = fixture.parked(run_state=RunState.DONE, is_parked=False)
            await fixture.append(body=b"[4]", thread=ended)
            await fixture.store.purge(before=limit)
            assert await self._versions(fixture, "t1") == [4]
            assert await fixture.store.find_call(ANN, "call", "call_1") is None

    async def test_settled_calls_and_ended_runs_are_purged_and_open_ones_stay(self) -> None:
        async with self.opened() as fixture:
            settled = fixture.settled(fixture.new_call("call_1", approval=None, run_id=None))
            still_open = fixture.new_call("call_2", run_id=None)
            ended = fixture.new_run("run_1", state=RunState.DONE, ended_at=fixture.clock.now())
            active = fixture.new_run("run_2", thread_id="t2")
            await fixture.append("t1", calls=(settled, still_open), runs=(ended,))
            await fixture.append("t2", runs=(active,), thread=fixture.running("run_2", kept_from=0))
            limit = self._later(fixture)
            young = fixture.settled(fixture.new_call("call_3"))
            await fixture.append("t1", calls=(young,))
            assert await fixture.store.purge(before=limit, dry_run=True) == PurgeCount(calls=1, runs=1)
            assert await fixture.store.purge(before=limit) == PurgeCount(calls=1, runs=1)
            assert await fixture.store.purge(before=limit, dry_run=True) == PurgeCount()
            assert await fixture.store.purge(before=limit) == PurgeCount()
            assert await fixture.store.find_call(ANN, "call", "call_1") is None
            assert await fixture.store.find_call(ANN, "call", "call_3") is not None
            assert await fixture.open_ids() == ["call_2"]
            assert [run.run_id for run in await fixture.store.runs(ANN, limit=9)] == ["run_2"]

    async def test_bytes_are_recounted_with_the_snapshot_that_replaces_purged_rows(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1", b"12345")
            await fixture.append("t1", b"678", snapshot=b"state")
            await fixture.append("t1", b"9")
            await fixture.append("t2", b"0", owner=BOB)
            limit = self._later(fixture)
            await fixture.store.purge(before=limit)
            assert await fixture.store.count("bytes", "acme", "ann") == len(b"state" + b"9")
            assert await fixture.store.count("bytes", "acme") == len(b"state" + b"9" + b"0")
            await fixture.delete("t1")
            assert await fixture.store.count("bytes", "acme", "ann") == 0

    async def test_threads_that_need_a_snapshot_before_a_purge_are_found(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("covered", snapshot=b"{}")
            await fixture.append("bare")
            await fixture.append("used", snapshot=b"{}")
            await fixture.append("used")
            await fixture.append("busy")
            await fixture.append("theirs", owner=BOB)
            limit = self._later(fixture)
            await fixture.append("busy")
            await fixture.append("young")
            found = await fixture.store.without_snapshot(before=limit, limit=9)
            assert sorted(found) == [(ANN, "bare"), (ANN, "used"), (BOB, "theirs")]
            assert len(await fixture.store.without_snapshot(before=limit, limit=1)) == 1
            for owner, thread_id in found:
                await fixture.cover(b"{}", fixture.version(thread_id, owner), thread_id, owner=owner)
            assert await fixture.store.without_snapshot(before=limit, limit=9) == []
            await fixture.store.purge(before=limit)
            assert await self._versions(fixture, "bare") == []
            assert await self._versions(fixture, "used") == []
            assert await self._versions(fixture, "busy") == [1, 2]

    async def test_a_request_id_is_free_again_once_its_call_is_purged(self) -> None:
        async with self.opened() as fixture:
            call = fixture.new_call(run_id=None, request=ProgramRequest("job-1"))
            await fixture.append("t1", calls=(fixture.settled(call),))
            await fixture.store.purge(before=self._later(fixture))
            assert await fixture.store.find_call(ANN, "call", "call_1") is None
            again = fixture.new_call("call_2", run_id=None, request=ProgramRequest("job-1"))
            await fixture.append("t2", calls=(again,))

    async def test_a_large_purge_is_complete(self) -> None:
        async with self.opened() as fixture:
            for no in range(40):
                calls = [
                    fixture.settled(fixture.new_call(f"call_{no}_{each}", run_id=None)) for each in range(30)
                ]
                run = fixture.new_run(f"run_{no}", state=RunState.DONE, ended_at=fixture.clock.now())
                append = fixture.new_append(f"t{no}", calls=tuple(calls), runs=(run,), feed=2, snapshot=b"{}")
                await fixture.append_all(append)
            limit = self._later(fixture)
            others = asyncio.gather(*(fixture.append(f"new{no}") for no in range(20)))
            assert await fixture.store.purge(before=limit) == PurgeCount(calls=1200, runs=40, feed_entries=80)
            await others
            assert await fixture.store.purge(before=limit, dry_run=True) == PurgeCount()
            for no in range(40):
                assert await self._versions(fixture, f"t{no}") == []

    def _later(self, fixture: StoreFixture) -> float:
        """A time after everything that has been written, and before everything that follows."""
        fixture.clock.advance(100)
        limit = fixture.clock.now()
        fixture.clock.advance(100)
        return limit

    async def _versions(self, fixture: StoreFixture, thread_id: str) -> list[int]:
        """The versions of the rows that are stored."""
        return [row.version for row in (await fixture.store.load(ANN, thread_id, after=0)).rows]


class RemovalLaws(Laws):
    async def test_a_deleted_thread_leaves_nothing(self) -> None:
        async with self.opened() as fixture:
            await self._fill(fixture, "t1")
            await fixture.delete()
            store = fixture.store
            assert await store.load(ANN, "t1") == Loaded(())
            assert await store.threads(ANN, limit=9) == []
            assert await store.find_call(ANN, "call", "call_t1") is None
            assert await store.find_call(ANN, "approval", "apr_t1") is None
            assert await store.find_run(ANN, "run_t1") is None
            assert await store.runs(ANN, limit=9) == []
            assert await fixture.open_ids() == []
            assert await fixture.open_ids(due_before=fixture.clock.now() + 10_000) == []
            assert await fixture.claimable_ids() == []
            assert await store.feed(ANN, after=0, limit=9) == []
            for what in ("threads", "running", "open_calls", "bytes"):
                assert await store.count(what, "acme") == 0

    async def test_a_thread_that_has_moved_on_is_not_deleted(self) -> None:
        async with self.opened() as fixture:
            await self._fill(fixture, "t1")
            assert not await fixture.store.delete(ANN, "t1", 0)
            assert not await fixture.store.delete(ANN, "t1", 2)
            assert not await fixture.store.delete(BOB, "t1", 1)
            assert not await fixture.store.delete(ANN, "t9", 0)
            assert len((await fixture.store.load(ANN, "t1", after=0)).rows) == 1
            assert await fixture.store.find_call(ANN, "call", "call_t1") is not None

    async def test_a_deletion_touches_no_other_thread(self) -> None:
        async with self.opened() as fixture:
            await self._fill(fixture, "t1")
            await self._fill(fixture, "t2")
            await fixture.append("t1", owner=BOB, feed=1)
            await fixture.delete("t1")
            assert [each.thread_id for each in await fixture.store.threads(ANN, limit=9)] == ["t2"]
            assert await fixture.store.find_call(ANN, "call", "call_t2") is not None
            assert await fixture.store.find_run(ANN, "run_t2") is not None
            assert (await fixture.store.load(ANN, "t2")).snapshot == b"{}"
            assert len(await fixture.store.feed(ANN, after=0, limit=9)) == 1
            assert len((await fixture.store.load(BOB, "t1")).rows) == 1

    async def test_the_name_of_a_deleted_thread_is_free_again(self) -> None:
        async with self.opened() as fixture:
            await self._fill(fixture, "t1")
            await fixture.delete()
            assert await fixture.try_append("t1", version=1) == Moved(0)
            await fixture.append("t1", b"[new]", version=0)
            loaded = await fixture.store.load(ANN, "t1")
            assert (loaded.snapshot, [row.body for row in loaded.rows]) == (None, [b"[new]"])

    async def test_deletions_and_appends_at_once_do_not_disturb_each_other(self) -> None:
        async with self.opened() as fixture:
            for no in range(10):
                await self._fill(fixture, f"t{no}")
            store = fixture.store
            deletions = [store.delete(ANN, f"t{no}", 1) for no in range(10)]
            appends = [store.append([fixture.new_append(f"new{no}", feed=1)]) for no in range(30)]
            deleted, _ = await asyncio.gather(asyncio.gather(*deletions), asyncio.gather(*appends))
            assert all(deleted)
            assert {each.thread_id for each in await store.threads(ANN, limit=99)} == {
                f"new{no}" for no in range(30)
            }
            assert len(await store.feed(ANN, after=0, limit=99)) == 30

    async def _fill(self, fixture: StoreFixture, thread_id: str) -> None:
        call = fixture.new_call(
            f"call_{thread_id}", thread_id=thread_id, approval=fixture.new_approval(f"apr_{thread_id}")
        )
        await fixture.append(
            thread_id,
            thread=fixture.running(f"run_{thread_id}"),
            calls=(call,),
            runs=(fixture.new_run(f"run_{thread_id}", thread_id=thread_id),),
            feed=1,
            snapshot=b"{}",
        )
