"""After a commit the hub is told, in the order of the commits; of a refused one it hears nothing."""

from __future__ import annotations

import asyncio

from farhand.core.event import Entry, RunParked, TextAdded
from farhand.core.run import Run, RunState
from farhand.store.base import InsertCall, ParkRun, SwapCall, WriteRun
from farhand.store.hub import WAKE, Watch, freed
from farhand.testing.store_laws.given import WITHIN_SEC, Given, Laws


class NewsLaws(Laws):
    async def test_watchers_of_a_run_hear_its_events_in_order(self) -> None:
        async with self.given() as given:
            run = await given.run()
            with given.store.hub.watch(run.run_id, limit=1000) as watch:
                writes = [WriteRun(run_id=run.run_id, events=(TextAdded(0, str(n)),)) for n in range(100)]
                await asyncio.gather(*(given.write(write) for write in writes))
                heard = [entry for entries in watch.news for entry in _entries(entries)]
                assert heard == await given.store.events(run.owner, run.run_id)
                assert len(heard) == 100

    async def test_who_is_told_finds_it_in_the_record(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            with given.store.hub.watch(call.call_id) as watch:
                async with asyncio.TaskGroup() as group:
                    group.create_task(given.write(SwapCall(call, given.settled(call))))
                    assert await watch.wait(WITHIN_SEC)
                    assert (await given.stored_call(call)).outcome is not None

    async def test_a_parked_run_wakes_with_its_last_result_and_not_before(self) -> None:
        async with self.given() as given:
            run = await given.run()
            first, last = await given.call(run), await given.call(run)
            await given.write(ParkRun(run.run_id, 1, RunParked()))
            with given.store.hub.watch(WAKE) as watch:
                await given.settle(first)
                assert not watch.news
                await given.settle(last)
                assert list(watch.news) == [await given.stored_run(run)]

    async def test_the_holder_of_a_run_is_freed_by_the_last_result_and_not_before(self) -> None:
        async with self.given() as given:
            run = await given.run()
            first, last = await given.call(run), await given.call(run)
            with given.store.hub.watch(freed(run.run_id)) as watch, given.store.hub.watch(WAKE) as wake:
                await given.settle(first)
                assert not watch.news
                await given.settle(last)
                assert isinstance(watch.news[-1], Run)
                assert not wake.news

    async def test_nothing_is_told_of_a_refused_commit(self) -> None:
        async with self.given() as given:
            run = await given.run()
            call = await given.call(run)
            topics = (run.run_id, call.call_id, WAKE, freed(run.run_id))
            watches = [given.store.hub.watch(topic) for topic in topics]
            for watch in watches:
                watch.__enter__()
            told = WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),))
            await given.refuse(
                SwapCall(call, given.settled(call)), told, WriteRun(run_id=run.run_id, fence=9)
            )
            assert [list(watch.news) for watch in watches] == [[], [], [], []]
            for watch in watches:
                watch.__exit__(None, None, None)

    async def test_commits_of_one_caller_are_told_in_the_order_made(self) -> None:
        async with self.given() as given:
            runs = [await given.run(f"t{number}") for number in range(5)]
            heard: list[str] = []
            watches = [_Listening(given, run, heard) for run in runs]
            order = [run for _ in range(4) for run in runs]
            for watch in watches:
                watch.__enter__()
            for run in order:
                await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
            for watch in watches:
                watch.__exit__(None, None, None)
            assert heard == [run.run_id for run in order]

    async def test_a_caller_that_gives_up_waiting_takes_nothing_from_the_others(self) -> None:
        async with self.given() as given:
            run = await given.run()
            calls = [given.new_call(run) for _ in range(30)]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(given.write(InsertCall(call))) for call in calls]
                await asyncio.sleep(0)
                for task in tasks[::3]:
                    task.cancel()
            for call in (call for number, call in enumerate(calls) if number % 3):
                assert await given.stored_call(call) == call
            # whether a cancelled one was written is open, but it is whole
            opened = await given.store.open_calls(run.owner)
            assert (await given.stored_run(run)).blockers == len(opened) >= 20

    async def test_an_ended_run_is_told_like_any_other(self) -> None:
        async with self.given() as given:
            run = await given.run()
            with given.store.hub.watch(run.run_id) as watch:
                await given.write(
                    WriteRun(run_id=run.run_id, fence=1, state=RunState.DONE, events=(TextAdded(0, "bye"),))
                )
                assert [entry.event for entry in _entries(watch.news[0])] == [TextAdded(0, "bye")]


class _Listening(Watch):
    """Notes whose news came, across topics."""

    def __init__(self, given: Given, run: Run, heard: list[str]) -> None:
        super().__init__(given.store.hub, (run.run_id,), 100)
        self._run_id = run.run_id
        self._heard = heard

    def tell(self, item: object) -> None:
        self._heard.append(self._run_id)


def _entries(news: object) -> list[Entry]:
    assert isinstance(news, list)
    return news
