"""The hub: hints inside one process."""

from __future__ import annotations

import asyncio

from farhand.store.hub import Hub


async def test_a_watcher_hears_its_topic_and_no_other() -> None:
    hub = Hub()
    with hub.watch("a") as a, hub.watch("b") as b:
        hub.tell("a", 1)
        hub.tell("c", 2)
        assert (list(a.news), list(b.news)) == ([1], [])


async def test_every_watcher_of_a_topic_is_told() -> None:
    hub = Hub()
    with hub.watch("a") as one, hub.watch("a") as two:
        assert hub.watched("a") == 2
        hub.tell("a", 1)
        assert list(one.news) == list(two.news) == [1]
    assert hub.watched("a") == 0


async def test_a_watcher_that_cannot_keep_up_is_told_that_it_lost_something() -> None:
    hub = Hub()
    with hub.watch("a", limit=2) as watch:
        for number in range(3):
            hub.tell("a", number)
        assert watch.lost
        assert list(watch.news) == [2]


async def test_a_sleeping_watcher_wakes_with_the_news() -> None:
    hub = Hub()
    with hub.watch("a") as watch:
        asyncio.get_running_loop().call_soon(hub.tell, "a", 1)
        assert await watch.wait(30)
        # what is there already needs no sleep
        assert await watch.wait(30)


async def test_silence_ends_when_the_time_is_up() -> None:
    hub = Hub()
    with hub.watch("a") as watch:
        assert not await watch.wait(0.001)
        hub.tell("a", 1)
        assert await watch.wait(0.001)


async def test_closing_wakes_every_watcher_to_go() -> None:
    hub = Hub()
    with hub.watch("a") as watch:
        asyncio.get_running_loop().call_soon(hub.close)
        assert not await watch.wait(30)
        assert hub.closed


async def test_a_cancelled_sleep_leaves_nothing_behind() -> None:
    hub = Hub()
    with hub.watch("a") as watch:
        sleeper = asyncio.ensure_future(watch.wait(30))
        await asyncio.sleep(0)
        sleeper.cancel()
        await asyncio.wait([sleeper])
        hub.tell("a", 1)
        assert await watch.wait(30)


def test_a_hub_is_used_in_one_loop_after_the_other_also_if_the_first_is_not_closed() -> None:
    hub = Hub()

    async def hears() -> object:
        with hub.watch("run_1") as watch:
            sleep = watch.wait(60)
            hub.tell("run_1", "news")
            assert await sleep
            return hub.loop

    with asyncio.Runner() as first, asyncio.Runner() as second:
        assert first.run(hears()) is first.get_loop()
        assert second.run(hears()) is second.get_loop()
        assert first.run(hears()) is first.get_loop()
