"""The broker: hints inside one process."""

from __future__ import annotations

import asyncio

import pytest

from farhand.eventlog.pubsub import ANNOUNCED_SEC, Broker, RemoteReaders, unread_topic


async def test_a_watcher_hears_its_topic_and_no_other() -> None:
    broker = Broker()
    with broker.subscribe("a") as a, broker.subscribe("b") as b:
        broker.publish("a", 1)
        broker.publish("c", 2)
        assert (list(a.items), list(b.items)) == ([1], [])


async def test_every_watcher_of_a_topic_is_told() -> None:
    broker = Broker()
    with broker.subscribe("a") as one, broker.subscribe("a") as two:
        assert broker.count("a") == 2
        broker.publish("a", 1)
        assert list(one.items) == list(two.items) == [1]
    assert broker.count("a") == 0


async def test_it_is_told_when_the_last_reader_has_left() -> None:
    broker = Broker()
    with broker.subscribe(unread_topic("run_1")) as left:
        with broker.subscribe("run_1"):
            with broker.subscribe("run_1"):
                pass
            assert left.items == []
        assert left.items == [None]


async def test_it_is_told_when_the_readers_of_another_process_have_left() -> None:
    broker = Broker()
    readers = RemoteReaders(broker)
    with broker.subscribe(unread_topic("run_1")) as left:
        readers.on_message("rdr_1\0run_1")
        assert (broker.count("run_1"), left.items) == (1, [])
        readers.on_message("rdr_1\0-run_1")
        assert (broker.count("run_1"), left.items) == (0, [None])


async def test_processes_that_are_gone_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    readers, now = RemoteReaders(Broker()), 0.0
    monkeypatch.setattr("farhand.eventlog.pubsub._now", lambda: now)
    for number in range(5):
        # each started after the one before it had ended
        now = number * 2 * ANNOUNCED_SEC
        readers.on_message(f"rdr_{number}\0run_{number}")
        assert readers.has(f"run_{number}")
    assert list(readers._until) == ["rdr_4"]


async def test_a_watcher_that_cannot_keep_up_is_told_that_it_lost_something() -> None:
    broker = Broker()
    with broker.subscribe("a", limit=2) as subscription:
        for number in range(3):
            broker.publish("a", number)
        assert subscription.is_stale
        assert list(subscription.items) == [2]


async def test_a_sleeping_watcher_wakes_with_the_news() -> None:
    broker = Broker()
    with broker.subscribe("a") as subscription:
        asyncio.get_running_loop().call_soon(broker.publish, "a", 1)
        assert await subscription.wait(30)
        # what is there already needs no sleep
        assert await subscription.wait(30)


async def test_silence_ends_when_the_time_is_up() -> None:
    broker = Broker()
    with broker.subscribe("a") as subscription:
        assert not await subscription.wait(0.001)
        broker.publish("a", 1)
        assert await subscription.wait(0.001)


async def test_closing_wakes_every_watcher_to_go() -> None:
    broker = Broker()
    with broker.subscribe("a") as subscription:
        asyncio.get_running_loop().call_soon(broker.close)
        assert not await subscription.wait(30)
        assert broker.closed


async def test_a_cancelled_sleep_leaves_nothing_behind() -> None:
    broker = Broker()
    with broker.subscribe("a") as subscription:
        sleeper = asyncio.ensure_future(subscription.wait(30))
        await asyncio.sleep(0)
        sleeper.cancel()
        await asyncio.wait([sleeper])
        broker.publish("a", 1)
        assert await subscription.wait(30)


def test_a_hub_is_used_in_one_loop_after_the_other_also_if_the_first_is_not_closed() -> None:
    broker = Broker()

    async def hears() -> object:
        with broker.subscribe("run_1") as subscription:
            sleep = subscription.wait(60)
            broker.publish("run_1", "news")
            assert await sleep
            return broker.loop

    with asyncio.Runner() as first, asyncio.Runner() as second:
        assert first.run(hears()) is first.get_loop()
        assert second.run(hears()) is second.get_loop()
        assert first.run(hears()) is first.get_loop()
