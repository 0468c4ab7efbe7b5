"""One timer for everything that sleeps."""

from __future__ import annotations

import asyncio

from farhand.eventlog.pubsub import Broker
from farhand.eventlog.timer_wheel import SLOT_SEC, TimerWheel


class Sleeper:
    def __init__(self) -> None:
        self.rung = asyncio.Event()
        self.at = 0.0

    def fire(self, now: float) -> None:
        self.at = now
        self.rung.set()


async def test_everybody_is_woken_once_their_time_has_come_and_nobody_before() -> None:
    timers, now = TimerWheel(), asyncio.get_running_loop().time()
    late, soon, sooner = Sleeper(), Sleeper(), Sleeper()
    for sleeper, seconds in ((late, 0.3), (soon, 0.01), (sooner, 0.01)):
        timers.set(sleeper, now + seconds)
    async with asyncio.timeout(20):
        await soon.rung.wait()
        assert sooner.rung.is_set()
        assert soon.at >= now + 0.01
        await late.rung.wait()
    assert late.at >= now + 0.3


async def test_who_no_longer_sleeps_is_not_woken_and_leaves_no_timer() -> None:
    timers, now = TimerWheel(), asyncio.get_running_loop().time()
    one, other = Sleeper(), Sleeper()
    slot = timers.set(one, now + 0.01)
    timers.drop(one, slot)
    timers.drop(one, slot)
    timers.set(other, now + 2 * SLOT_SEC)
    async with asyncio.timeout(20):
        await other.rung.wait()
    assert not one.rung.is_set()


async def test_an_alarm_for_an_earlier_sleep_does_not_end_a_later_one() -> None:
    broker = Broker()
    loop = asyncio.get_running_loop()
    with broker.subscribe("a") as subscription:
        loop.call_soon(broker.publish, "a", 1)
        assert await subscription.wait(0.01)
        subscription.items.clear()
        begun = loop.time()
        assert not await subscription.wait(0.2)
        assert loop.time() >= begun + 0.2
