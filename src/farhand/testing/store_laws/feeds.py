"""Feeds: each has the entries of one owner's threads in order, numbered without gaps."""

from __future__ import annotations

import asyncio

from farhand.core.principal import Owner
from farhand.store.base import FeedRow
from farhand.testing.store_laws.fixture import ANN, BOB, EVE, Laws, StoreFixture


class FeedLaws(Laws):
    async def test_a_feed_has_the_appends_of_all_threads_and_other_entries_in_order(self) -> None:
        async with self.opened() as fixture:
            now = fixture.clock.now()
            await fixture.append("t1", b"[1]", feed=1)
            await fixture.append("t1", b"[2]")
            await fixture.store.add_to_feed(ANN, b"registered")
            await fixture.append("t2", b"[3]", feed=3)
            await fixture.store.add_to_feed(ANN, b"of a thread", "t1")
            feed = await fixture.store.feed(ANN, after=0, limit=9)
            assert [(row.no, row.count, row.body, row.thread_id, row.version) for row in feed] == [
                (1, 1, b"[1]", "t1", 1),
                (2, 1, b"registered", None, None),
                (5, 3, b"[3]", "t2", 1),
                (6, 1, b"of a thread", "t1", None),
            ]
            assert all(abs(row.at - now) < 30 for row in feed)
            assert feed[0] == FeedRow(1, 1, now, b"[1]", "t1", 1)
            assert await fixture.store.feed_span(ANN) == (1, 6)

    async def test_a_feed_is_read_from_any_number_even_in_the_middle_of_a_row(self) -> None:
        async with self.opened() as fixture:
            for _ in range(3):
                await fixture.append(feed=3)
            assert await self._numbers(fixture, after=0) == [3, 6, 9]
            assert await self._numbers(fixture, after=2) == [3, 6, 9]
            assert await self._numbers(fixture, after=3) == [6, 9]
            assert await self._numbers(fixture, after=4) == [6, 9]
            assert await self._numbers(fixture, after=9) == []
            page = await fixture.store.feed(ANN, after=0, limit=2)
            assert [row.no for row in page] == [3, 6]

    async def test_concurrent_entries_are_numbered_without_gaps(self) -> None:
        async with self.opened() as fixture:
            entries = [fixture.store.add_to_feed(ANN, b"%d" % no) for no in range(100)]
            appends = [fixture.store.append([fixture.new_append(f"t{no}", feed=2)]) for no in range(50)]
            await asyncio.gather(*entries, *appends)
            numbers: list[int] = []
            while page := await fixture.store.feed(ANN, after=numbers[-1] if numbers else 0, limit=70):
                for row in page:
                    numbers += range(row.no - row.count + 1, row.no + 1)
            assert numbers == list(range(1, 201))

    async def test_a_feed_has_no_entries_of_other_owners_and_its_numbers_reveal_none(self) -> None:
        async with self.opened() as fixture:
            for owner in (ANN, BOB, EVE, ANN):
                await fixture.store.add_to_feed(owner, b"x")
            await fixture.append(owner=BOB, feed=1)
            assert await self._numbers(fixture) == [1, 2]
            assert await self._numbers(fixture, owner=BOB) == [1, 2]
            assert await self._numbers(fixture, owner=EVE) == [1]
            nobody = Owner("acme", "nobody")
            assert await fixture.store.feed(nobody, after=0, limit=9) == []
            assert await fixture.store.feed_span(nobody) == (1, 0)

    async def test_an_append_that_is_refused_leaves_no_gap(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(feed=1)
            await fixture.try_append(feed=5, version=7)
            await fixture.try_append(feed=5, not_after=fixture.clock.now() - 50)
            await fixture.append(feed=1)
            assert await self._numbers(fixture) == [1, 2]

    async def test_entries_are_deleted_with_their_thread_and_numbers_continue(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t2", feed=1)
            await fixture.append("t1", feed=1)
            await fixture.store.add_to_feed(ANN, b"registered")
            await fixture.store.add_to_feed(ANN, b"of a thread", "t1")
            await fixture.append("t1", feed=2)
            await fixture.delete("t1")
            assert await self._numbers(fixture) == [1, 3]
            assert await fixture.store.feed_span(ANN) == (1, 6)
            # also for a new thread with the same name
            await fixture.append("t1", b"[new]", feed=1)
            assert await self._numbers(fixture) == [1, 3, 7]

    async def test_numbers_are_not_reused_when_all_entries_are_gone(self) -> None:
        async with self.opened() as fixture:
            await fixture.append(feed=4)
            await fixture.delete()
            await fixture.store.add_to_feed(ANN, b"x")
            assert await self._numbers(fixture) == [5]
            await self._purge_all(fixture)
            assert await self._numbers(fixture) == []
            assert await fixture.store.feed_span(ANN) == (6, 5)
            await fixture.append("t2", feed=1)
            assert await self._numbers(fixture) == [6]
            assert await fixture.store.feed_span(ANN) == (6, 6)

    async def test_old_entries_are_purged_and_numbers_continue(self) -> None:
        async with self.opened() as fixture:
            await fixture.append("t1", feed=2)
            await fixture.store.add_to_feed(ANN, b"old")
            await fixture.store.add_to_feed(BOB, b"old")
            fixture.clock.advance(100)
            limit = fixture.clock.now()
            fixture.clock.advance(100)
            await fixture.store.add_to_feed(ANN, b"young")
            assert (await fixture.store.purge(before=limit)).feed_entries == 4
            assert await self._numbers(fixture) == [4]
            assert await fixture.store.feed_span(ANN) == (4, 4)
            assert await fixture.store.feed_span(BOB) == (2, 1)
            assert (await fixture.store.purge(before=limit, dry_run=True)).feed_entries == 0
            await fixture.store.add_to_feed(BOB, b"again")
            assert await self._numbers(fixture, owner=BOB) == [2]

    async def _numbers(self, fixture: StoreFixture, *, after: int = 0, owner: Owner = ANN) -> list[int]:
        return [row.no for row in await fixture.store.feed(owner, after=after, limit=99)]

    async def _purge_all(self, fixture: StoreFixture) -> None:
        fixture.clock.advance(100)
        await fixture.store.purge(before=fixture.clock.now() - 50)
