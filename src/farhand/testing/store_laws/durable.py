"""Durability: everything that was confirmed is still stored after the process has ended."""

from __future__ import annotations

import asyncio

from farhand.clock import Clock
from farhand.core.call import ProgramRequest
from farhand.core.file import Kept
from farhand.store.base import Lease, Moved, RequestTaken, Store
from farhand.testing.store_laws.clients import new_client
from farhand.testing.store_laws.fixture import ANN, LEASE_SEC, OPEN_URL, Laws, StoreFixture


class DurabilityLaws(Laws):
    async def reopen(self, store: Store, clock: Clock) -> Store:
        """The store as another process opens it. Ideally `store` is not closed first, as after a crash."""
        raise NotImplementedError

    async def test_everything_that_was_confirmed_is_there_after_reopening(self) -> None:
        async with self.opened() as fixture:
            call = fixture.new_call(approval=fixture.new_approval(), request=ProgramRequest("job-1"))
            run = fixture.new_run()
            await fixture.append(body=b"[1]", snapshot=b"{}")
            await fixture.append(
                body=b"[2]",
                thread=fixture.parked(),
                calls=(call,),
                runs=(run,),
                tools=(OPEN_URL,),
                feed=2,
                lease=Lease("", 0.0),
            )
            loaded, threads = await fixture.store.load(ANN, "t1"), await fixture.store.threads(ANN, limit=9)
            await self._reopen(fixture)
            store = fixture.store
            assert await store.load(ANN, "t1") == loaded
            assert await store.threads(ANN, limit=9) == threads
            found = await store.find_call(ANN, "approval", "apr_1")
            assert found is not None
            assert found.call == call
            assert await fixture.open_ids(owner=ANN) == ["call_1"]
            assert await store.find_run(ANN, "run_1") == run
            assert await store.find_tool(OPEN_URL.version) == OPEN_URL
            assert [row.no for row in await store.feed(ANN, after=0, limit=9)] == [2]
            assert [await store.count(what, "acme") for what in ("threads", "running", "bytes")] == [1, 0, 6]
            assert await store.count("open_calls", "acme", "ann") == 1

    async def test_versions_requests_and_feed_numbers_continue_after_reopening(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(calls=(fixture.new_call(request=ProgramRequest("job-1")),), feed=2)
            await self._reopen(fixture)
            assert await fixture.try_append(version=0) == Moved(1)
            again = fixture.new_call("call_2", request=ProgramRequest("job-1"))
            assert await fixture.try_append("t2", calls=(again,)) == RequestTaken()
            await fixture.append(feed=1)
            feed = await fixture.store.feed(ANN, after=0, limit=9)
            assert [(row.no, row.version) for row in feed] == [(2, 1), (3, 2)]

    async def test_feed_numbers_are_not_reused_even_if_the_newest_entries_are_gone(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1", feed=1)
            await fixture.append("t2", feed=3)
            await fixture.delete("t2")
            await self._reopen(fixture)
            await fixture.store.add_to_feed(ANN, b"x")
            assert [row.no for row in await fixture.store.feed(ANN, after=0, limit=9)] == [1, 5]
            fixture.clock.advance(100)
            await fixture.store.purge(before=fixture.clock.now() - 50)
            await self._reopen(fixture)
            assert await fixture.store.feed_span(ANN) == (6, 5)
            await fixture.store.add_to_feed(ANN, b"y")
            assert [row.no for row in await fixture.store.feed(ANN, after=0, limit=9)] == [6]

    async def test_registrations_are_there_after_reopening(self) -> None:
        async with self.opened() as fixture:
            client = new_client(fixture, "notes", "read")
            assert await fixture.store.clients.put(client, b"came") == "put"
            await self._reopen(fixture)
            assert await fixture.store.clients.all() == [client]
            assert await fixture.store.clients.put(client) == "moved"
            assert len(await fixture.store.feed(ANN, after=0, limit=9)) == 1

    async def test_a_complete_file_is_there_after_reopening_and_is_deleted_with_its_thread(self) -> None:
        async with self.opened() as fixture:
            file = await fixture.put_file(b"one", b"two")
            await fixture.append(files=(file.ref,))
            await self._reopen(fixture)
            assert await fixture.store.files.piece(ANN, file.ref, 1) == b"two"
            assert await fixture.store.files.kept(ANN.tenant) == Kept(1, 6)
            await fixture.delete()
            assert await fixture.store.files.get(ANN, file.ref) is None

    async def test_a_deleted_thread_stays_deleted(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(calls=(fixture.new_call(),), snapshot=b"{}", feed=1)
            await fixture.delete()
            await self._reopen(fixture)
            assert (await fixture.store.load(ANN, "t1")).snapshot is None
            assert await fixture.store.find_call(ANN, "call", "call_1") is None
            await fixture.append("t1", version=0)

    async def test_runs_of_a_process_that_is_gone_are_found_at_the_latest_when_its_leases_lapse(self) -> None:
        async with self.opened() as fixture:
            lease = Lease("w1", fixture.clock.now() + LEASE_SEC)
            await fixture.append("held", thread=fixture.running(), lease=lease)
            await fixture.append("parked", thread=fixture.parked(), lease=Lease("", 0.0))
            await self._reopen(fixture)
            fixture.clock.advance(LEASE_SEC)
            assert await fixture.claimable_ids() == ["held"]

    async def test_of_many_concurrent_appends_all_that_were_confirmed_are_stored(self) -> None:
        async with self.opened() as fixture:
            names = [f"t{no}" for no in range(100)]
            await asyncio.gather(*(fixture.append(name, feed=1) for name in names))
            await self._reopen(fixture)
            found = await fixture.store.threads(ANN, limit=200)
            assert {each.thread_id for each in found} == set(names)
            assert len(await fixture.store.feed(ANN, after=0, limit=200)) == 100

    async def _reopen(self, fixture: StoreFixture) -> None:
        fixture.store = await self.reopen(fixture.store, fixture.clock)
