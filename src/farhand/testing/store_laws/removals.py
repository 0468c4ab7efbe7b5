"""A thread can be deleted with all that is in it, and nothing else goes with it."""

from __future__ import annotations

import asyncio

from farhand.store.base import Loaded, Moved
from farhand.testing.store_laws.fixture import ANN, BOB, Laws, StoreFixture


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
