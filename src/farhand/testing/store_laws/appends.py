"""Appends: each is written as a whole, at the version it was decided on, or not at all."""

from __future__ import annotations

import asyncio

from farhand.store.base import Appended, Lease, Loaded, Moved, OutOfTime, Row
from farhand.testing.store_laws.fixture import ANN, Laws


class AppendLaws(Laws):
    async def test_appends_are_read_again_in_their_order(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(body=b"[1]")
            fixture.clock.advance(5)
            await fixture.append(body=b"[2]")
            now = fixture.clock.now()
            rows = (Row(1, now - 5, b"[1]"), Row(2, now, b"[2]"))
            assert await fixture.store.load(ANN, "t1") == Loaded(rows)
            assert await fixture.store.load(ANN, "t1", after=0) == Loaded(rows)
            assert await fixture.store.load(ANN, "t1", after=1) == Loaded(rows[1:])
            assert await fixture.store.load(ANN, "t1", after=2) == Loaded(())
            assert await fixture.store.load(ANN, "t2") == Loaded(())

    async def test_bytes_and_names_come_back_as_they_were(self) -> None:
        async with self.opened() as fixture:
            name = "ü'\"%_\\ \n😀" + "x" * 200
            body = bytes(range(256)) * 4096
            await fixture.append(name, body, snapshot=body)
            await fixture.append(name, b"\x00")
            loaded = await fixture.store.load(ANN, name)
            assert (loaded.snapshot, loaded.snapshot_version) == (body, 1)
            assert [row.body for row in loaded.rows] == [b"\x00"]
            assert (await fixture.store.load(ANN, name, after=0)).rows[0].body == body

    async def test_a_long_thread_is_read_as_a_whole(self) -> None:
        async with self.opened() as fixture:
            for no in range(150):
                await fixture.append(body=b"[%d]" % no)
            loaded = await fixture.store.load(ANN, "t1")
            assert [row.version for row in loaded.rows] == list(range(1, 151))
            assert loaded.rows[-1].body == b"[149]"

    async def test_an_append_at_another_version_writes_nothing(self) -> None:
        async with self.opened() as fixture:
            await fixture.append()
            for version in (0, 2):
                moved = await fixture.try_append(
                    body=b"[x]",
                    version=version,
                    thread=fixture.running(),
                    calls=(fixture.new_call(),),
                    runs=(fixture.new_run(),),
                    feed=1,
                    snapshot=b"{}",
                )
                assert moved == Moved(1)
            store = fixture.store
            assert [row.body for row in (await store.load(ANN, "t1")).rows] == [b"[1]"]
            assert await store.find_call(ANN, "call", "call_1") is None
            assert await store.find_run(ANN, "run_1") is None
            assert await store.feed_span(ANN) == (1, 0)
            assert [found.row.run_id for found in await store.threads(ANN, limit=9)] == [None]

    async def test_an_append_without_events_only_asks_for_the_version(self) -> None:
        async with self.opened() as fixture:
            assert await fixture.try_append(body=b"") == Appended()
            assert await fixture.try_append(body=b"", version=1) == Moved(0)
            assert await fixture.store.load(ANN, "t1") == Loaded(())
            assert await fixture.store.threads(ANN, limit=9) == []
            await fixture.append()
            assert await fixture.try_append(body=b"") == Appended()
            assert await fixture.try_append(body=b"", not_after=fixture.clock.now() - 1) != Appended()

    async def test_versions_are_asked_for_in_a_batch_that_writes_too(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1")
            results = await fixture.append_all(
                fixture.new_append("t1", body=b"", version=1),
                fixture.new_append("t2"),
                fixture.new_append("missing", body=b"", version=0),
                fixture.new_append("gone", body=b"", version=3),
            )
            assert results == [Appended(), Appended(), Appended(), Moved(0)]
            assert await fixture.store.load(ANN, "missing") == Loaded(())

    async def test_time_limits_are_judged_by_the_clock_of_the_store(self) -> None:
        async with self.opened() as fixture:
            now = fixture.clock.now()
            for result in (
                await fixture.try_append(feed=1, not_after=now - 50),
                await fixture.try_append(feed=1, not_before=now + 100),
            ):
                assert isinstance(result, OutOfTime)
                # the store's own time, so that the next decision uses the same
                assert now - 50 <= result.now < now + 100
            assert await fixture.store.load(ANN, "t1") == Loaded(())
            await fixture.append(not_after=now + 100, not_before=now - 50)

    async def test_a_refused_append_of_a_batch_does_not_affect_the_others(self) -> None:
        async with self.opened() as fixture:
            results = await fixture.append_all(
                fixture.new_append("t1"),
                fixture.new_append("t2", version=7),
                fixture.new_append("t3", not_after=fixture.clock.now() - 50),
                fixture.new_append("t4"),
            )
            assert [type(result) for result in results] == [Appended, Moved, OutOfTime, Appended]
            lengths = [len((await fixture.store.load(ANN, f"t{no}")).rows) for no in (1, 2, 3, 4)]
            assert lengths == [1, 0, 0, 1]
            assert await fixture.store.append([]) == []

    async def test_of_many_appends_at_one_version_one_wins(self) -> None:
        async with self.opened() as fixture:
            rivals = [fixture.new_append(body=b"[%d]" % no) for no in range(20)]
            answers = await asyncio.gather(*(fixture.store.append([each]) for each in rivals))
            results = [result for [result] in answers]
            assert results.count(Appended()) == 1
            assert results.count(Moved(1)) == 19
            [row] = (await fixture.store.load(ANN, "t1")).rows
            assert row.body == b"[%d]" % results.index(Appended())

    async def test_concurrent_appends_to_many_threads_all_succeed(self) -> None:
        async with self.opened() as fixture:
            appends = [fixture.new_append(f"t{no % 50}", feed=1) for no in range(50)]
            answers = await asyncio.gather(*(fixture.store.append([each]) for each in appends))
            assert answers == [[Appended()]] * 50
            assert len(await fixture.store.threads(ANN, limit=99)) == 50
            feed = await fixture.store.feed(ANN, after=0, limit=99)
            assert [row.no for row in feed] == list(range(1, 51))

    async def test_an_append_without_a_thread_row_leaves_the_listing_unchanged(self) -> None:
        async with self.opened() as fixture:
            row = fixture.running(title="As it was")
            await fixture.append(thread=row, lease=Lease("w1", fixture.clock.now() + 60))
            await fixture.append(thread=None)
            [found] = await fixture.store.threads(ANN, limit=9)
            assert (found.version, found.row) == (2, row)
            assert await fixture.claimable_ids() == []

    async def test_a_snapshot_replaces_the_rows_before_it(self) -> None:
        async with self.opened() as fixture:
            await fixture.append()
            await fixture.append(snapshot=b"{}")
            await fixture.append()
            loaded = await fixture.store.load(ANN, "t1")
            assert (loaded.snapshot, loaded.snapshot_version) == (b"{}", 2)
            assert [row.version for row in loaded.rows] == [3]
            assert [row.version for row in (await fixture.store.load(ANN, "t1", after=0)).rows] == [1, 2, 3]

    async def test_a_later_snapshot_replaces_only_older_ones(self) -> None:
        async with self.opened() as fixture:
            for _ in range(3):
                await fixture.append()
            await fixture.cover(b"two", 2)
            await fixture.cover(b"one", 1)
            loaded = await fixture.store.load(ANN, "t1")
            assert (loaded.snapshot, loaded.snapshot_version, len(loaded.rows)) == (b"two", 2, 1)
            # for a version that never existed: the thread was deleted meanwhile and created again
            await fixture.store.put_snapshot(ANN, "t1", 9, b"nine", at=fixture.clock.now())
            await fixture.store.put_snapshot(ANN, "t9", 1, b"none", at=fixture.clock.now())
            assert await fixture.store.load(ANN, "t1") == loaded
            assert await fixture.store.load(ANN, "t9") == Loaded(())

    async def test_what_was_decided_on_a_deleted_thread_does_not_hold_for_the_next_one_of_its_name(
        self,
    ) -> None:
        async with self.opened() as fixture:
            deleted_at = fixture.clock.now()
            await fixture.append()
            await fixture.delete()
            fixture.clock.advance(1)
            created_at = fixture.clock.now()
            await fixture.append()
            await fixture.append()
            created = await fixture.store.load(ANN, "t1")
            for body in (b"[1]", b""):
                old = fixture.new_append(body=body, version=2, last_at=deleted_at)
                assert await fixture.append_all(old) == [Moved(2)], (
                    "it is at this version, but is another one"
                )
            await fixture.store.put_snapshot(ANN, "t1", 1, b"old", at=deleted_at)
            assert await fixture.store.load(ANN, "t1") == created
            await fixture.append(last_at=created_at)

    async def test_a_loaded_thread_has_the_time_of_its_last_append_even_if_only_its_snapshot_is_left(
        self,
    ) -> None:
        async with self.opened() as fixture:
            assert (await fixture.store.load(ANN, "t1")).last_at is None
            await fixture.append()
            fixture.clock.advance(1)
            last_at = fixture.clock.now()
            await fixture.append()
            assert (await fixture.store.load(ANN, "t1")).last_at == last_at
            await fixture.cover(b"{}", 2)
            fixture.clock.advance(1)
            await fixture.store.purge(before=fixture.clock.now())
            loaded = await fixture.store.load(ANN, "t1")
            assert (loaded.rows, loaded.last_at) == ((), last_at)

    async def test_the_store_answers_a_ping(self) -> None:
        async with self.opened() as fixture:
            await fixture.store.check()
            assert abs(fixture.store.now() - fixture.clock.now()) < 30
