"""What each owner is told: in order, numbered without gaps, of all runs, and of nobody else's."""

from __future__ import annotations

import asyncio

from farhand.core.event import (
    CallTaken,
    ClientRegistered,
    Event,
    Happening,
    News,
    RunFinished,
    RunParked,
    RunStarted,
    StepStarted,
    TextAdded,
)
from farhand.core.principal import Owner
from farhand.core.run import RunState
from farhand.store.base import DeleteThread, ParkRun, Store, Tell, WriteRun
from farhand.store.hub import feed_of
from farhand.testing.store_laws.given import ANN, BOB, Laws

TAKEN = CallTaken("call_1", "tab")
CAME = ClientRegistered("notes", ("client_notes_read",))


class FeedLaws(Laws):
    async def test_a_feed_tells_of_all_runs_in_the_order_it_happened(self) -> None:
        async with self.given() as given:
            one, two = await given.run("t1"), await given.run("t2")
            await given.write(WriteRun(run_id=two.run_id, events=(RunStarted("t2"),)))
            await given.write(WriteRun(run_id=one.run_id, events=(RunStarted("t1"), TAKEN)))
            now = given.clock.now()
            assert await given.store.feed(ANN) == [
                News(1, now, RunStarted("t2"), "t2", two.run_id),
                News(2, now, RunStarted("t1"), "t1", one.run_id),
                News(3, now, TAKEN, "t1", one.run_id),
            ]

    async def test_what_a_model_says_is_not_told(self) -> None:
        async with self.given() as given:
            run = await given.run()
            said: tuple[Event, ...] = (StepStarted(1), TextAdded(0, "hi"), TAKEN, TextAdded(0, "ho"))
            await given.write(WriteRun(run_id=run.run_id, events=said))
            assert [news.event for news in await given.store.feed(ANN)] == [TAKEN]
            assert await given.store.feed_span(ANN) == (1, 1)

    async def test_a_park_and_what_happens_outside_of_runs_is_told(self) -> None:
        async with self.given() as given:
            run = await given.run()
            await given.call(run)
            await given.write(ParkRun(run.run_id, 1, RunParked()))
            await given.write(Tell(ANN, (CAME,)))
            await given.write(Tell(ANN, (TAKEN,), "t7"))
            assert [
                (news.no, news.event, news.thread_id, news.run_id) for news in await given.store.feed(ANN)
            ] == [
                (1, RunParked(), "t1", run.run_id),
                (2, CAME, None, None),
                (3, TAKEN, "t7", None),
            ]

    async def test_a_feed_goes_on_after_a_number_page_by_page(self) -> None:
        async with self.given() as given:
            await asyncio.gather(*(given.write(Tell(ANN, (_taken(n), _taken(n)))) for n in range(100)))
            numbers: list[int] = []
            while page := await given.store.feed(ANN, after=numbers[-1] if numbers else 0, limit=70):
                numbers += [news.no for news in page]
            assert numbers == list(range(1, 201))
            assert await given.store.feed(ANN, after=200) == []

    async def test_nobody_hears_of_anothers_and_numbers_tell_nothing_of_them(self) -> None:
        async with self.given() as given:
            for owner in (ANN, BOB, Owner("other", "ann"), ANN):
                await given.write(Tell(owner, (TAKEN,)))
            assert [news.no for news in await given.store.feed(ANN)] == [1, 2]
            assert [news.no for news in await given.store.feed(BOB)] == [1]
            assert await given.store.feed(Owner("other", "bob")) == []
            assert await given.store.feed_span(Owner("other", "bob")) == (1, 0)

    async def test_a_refused_commit_is_not_told_and_leaves_no_gap(self) -> None:
        async with self.given() as given:
            run = await given.run()
            stale = WriteRun(run_id=run.run_id, fence=9)
            told = WriteRun(run_id=run.run_id, events=(TAKEN,))
            with given.store.hub.watch(feed_of(ANN)) as watch:
                await given.refuse(told, Tell(ANN, (CAME,)), stale)
                assert not watch.news
                await given.write(told)
                await given.refuse(told, stale)
                await given.write(Tell(ANN, (CAME,)))
                assert len(watch.news) == 2
            assert await _told(given.store, ANN) == [(1, TAKEN), (2, CAME)]

    async def test_watchers_of_a_feed_hear_of_their_own_alone(self) -> None:
        async with self.given() as given:
            run = await given.run()
            with given.store.hub.watch(feed_of(ANN)) as ann, given.store.hub.watch(feed_of(BOB)) as bob:
                await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
                assert not ann.news
                await given.write(WriteRun(run_id=run.run_id, events=(TAKEN,)))
                assert len(ann.news) == 1
                assert not bob.news

    async def test_with_a_thread_goes_all_that_was_told_of_it_and_numbers_go_on(self) -> None:
        async with self.given() as given:
            run, other = await given.run("t1"), await given.run("t2")
            await given.write(WriteRun(run_id=other.run_id, events=(TAKEN,)))
            end = RunFinished(RunState.DONE)
            await given.write(WriteRun(run_id=run.run_id, fence=1, state=RunState.DONE, events=(end,)))
            await given.write(Tell(ANN, (CAME,)))
            await given.write(Tell(ANN, (TAKEN,), "t1"))
            await given.refuse(DeleteThread(ANN, "t1"), WriteRun(run_id=other.run_id, fence=9))
            assert len(await given.store.feed(ANN)) == 4
            await given.write(DeleteThread(ANN, "t1"))
            assert await _told(given.store, ANN) == [(1, TAKEN), (3, CAME)]
            await given.write(Tell(ANN, (CAME,)))
            assert (await given.store.feed(ANN))[-1].no == 5

    async def test_what_was_told_long_ago_goes_and_numbers_go_on(self) -> None:
        async with self.given() as given:
            await given.write(Tell(ANN, (TAKEN, CAME)))
            await given.write(Tell(BOB, (TAKEN,)))
            given.clock.advance(10)
            limit = given.clock.now()
            await given.write(Tell(ANN, (CAME,)))
            await given.store.purge(settled_before=limit)
            assert [news.no for news in await given.store.feed(ANN)] == [3]
            assert await given.store.feed_span(ANN) == (3, 3)
            given.clock.advance(10)
            await given.store.purge(settled_before=given.clock.now())
            await given.write(Tell(ANN, (CAME,)))
            await given.write(Tell(BOB, (CAME,)))
            assert (await given.store.feed(ANN))[-1].no == 4
            assert (await given.store.feed(BOB))[-1].no == 2


def _taken(number: int) -> CallTaken:
    return CallTaken(f"call_{number}", "tab")


async def _told(store: Store, owner: Owner) -> list[tuple[int, Happening]]:
    return [(news.no, news.event) for news in await store.feed(owner)]
