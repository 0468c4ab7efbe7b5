"""The hub: hints inside one process."""

from __future__ import annotations

import asyncio

import pytest

from farhand.store.hub import Hub
from tests.requirement import requirement


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


class Ears:
    """Hears in place of whoever sleeps."""

    def __init__(self) -> None:
        self.heard: list[list[object]] = []
        self.sleeps_on = True
        self.fault: Exception | None = None

    def __call__(self, news: list[object]) -> bool:
        self.heard.append(news)
        if self.fault is not None:
            raise self.fault
        return self.sleeps_on


@requirement("stream:shown-at-once")
async def test_what_is_said_is_heard_at_once_and_what_is_told_with_what_comes_of_it() -> None:
    hub, ears = Hub(), Ears()
    with hub.watch("a") as watch:
        sleep = watch.wait(30, ears)
        hub.say("a", 1)
        assert ears.heard == [[1]]
        hub.tell("a", 2)
        hub.say("a", 3)
        hub.tell("a", 4)
        assert ears.heard == [[1]]
        await asyncio.sleep(0)
        assert ears.heard == [[1], [2, 3, 4]]
        await asyncio.sleep(0)
        assert not sleep.done()


@requirement("stream:shown-at-once")
async def test_whoever_is_needed_gets_up_and_finds_what_came_since() -> None:
    hub, ears = Hub(), Ears()
    ears.sleeps_on = False
    with hub.watch("a") as watch:
        sleep = watch.wait(30, ears)
        hub.say("a", 1)
        hub.say("a", 2)
        hub.tell("a", 3)
        assert await sleep
        assert (ears.heard, watch.news) == ([[1]], [2, 3])


@requirement("stream:shown-at-once")
async def test_an_error_in_hearing_reaches_whoever_sleeps_and_nobody_else() -> None:
    hub, deaf, well = Hub(), Ears(), Ears()
    deaf.fault = ValueError("cannot be shown")
    with hub.watch("a") as one, hub.watch("a") as other:
        first, second = one.wait(30, deaf), other.wait(30, well)
        hub.say("a", 1)
        with pytest.raises(ValueError, match="cannot be shown"):
            await first
        assert well.heard == [[1]]
        assert not second.done()


async def test_nobody_hears_for_a_sleeper_that_is_gone() -> None:
    hub, ears = Hub(), Ears()
    with hub.watch("a") as watch:
        hub.tell("a", 0)
        assert await watch.wait(30, ears)
        watch.news.clear()
        sleep = watch.wait(30, ears)
        hub.tell("a", 1)
        sleep.cancel()
        await asyncio.sleep(0)
        hub.say("a", 2)
        assert (ears.heard, watch.news) == ([], [1, 2])


async def test_news_that_a_sleeper_without_ears_is_called_for_wake_it() -> None:
    hub, ears = Hub(), Ears()
    with hub.watch("a") as watch:
        first = watch.wait(30, ears)
        hub.tell("a", 1)
        watch.wake()
        assert await first
        watch.news.clear()
        sleep = watch.wait(30)
        hub.tell("a", 2)
        assert await sleep
        assert ears.heard == []


async def test_silence_is_counted_from_what_was_heard_last(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, ears = Hub(), Ears()
    loop = asyncio.get_running_loop()
    with hub.watch("a") as watch:
        sleep = watch.wait(10, ears)
        now = loop.time()
        monkeypatch.setattr(loop, "time", lambda: now + 9)
        hub.say("a", 1)
        monkeypatch.undo()
        watch.ring(now + 15)
        assert not sleep.done()
        watch.ring(now + 20)
        assert not await sleep


class Bare:
    """A listener of another kind."""

    lost = False

    def __init__(self) -> None:
        self.told: list[object] = []

    def tell(self, item: object) -> None:
        self.told.append(item)

    def wake(self) -> None:
        raise AssertionError("nobody wakes it")


async def test_what_is_said_is_told_to_listeners_of_any_kind() -> None:
    hub, bare = Hub(), Bare()
    hub.add("a", bare)
    hub.say("a", 1)
    assert bare.told == [1]


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
