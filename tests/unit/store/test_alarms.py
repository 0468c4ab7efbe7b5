"""One timer for all who sleep."""

from __future__ import annotations

import asyncio

from farhand.store.alarms import SLOT_SEC, Alarms
from farhand.store.hub import Hub
from tests.requirement import requirement


class Sleeper:
    def __init__(self) -> None:
        self.rung = asyncio.Event()
        self.at = 0.0

    def ring(self, now: float) -> None:
        self.at = now
        self.rung.set()


@requirement("speed:one-timer")
async def test_everybody_is_woken_once_their_time_has_come_and_nobody_before() -> None:
    alarms, now = Alarms(), asyncio.get_running_loop().time()
    late, soon, sooner = Sleeper(), Sleeper(), Sleeper()
    for sleeper, seconds in ((late, 0.3), (soon, 0.01), (sooner, 0.01)):
        alarms.set(sleeper, now + seconds)
    async with asyncio.timeout(20):
        await soon.rung.wait()
        assert sooner.rung.is_set()
        assert soon.at >= now + 0.01
        await late.rung.wait()
    assert late.at >= now + 0.3


@requirement("speed:one-timer")
async def test_who_no_longer_sleeps_is_not_woken_and_leaves_no_timer() -> None:
    alarms, now = Alarms(), asyncio.get_running_loop().time()
    one, other = Sleeper(), Sleeper()
    slot = alarms.set(one, now + 0.01)
    alarms.drop(one, slot)
    alarms.drop(one, slot)
    alarms.set(other, now + 2 * SLOT_SEC)
    async with asyncio.timeout(20):
        await other.rung.wait()
    assert not one.rung.is_set()


@requirement("speed:one-timer")
async def test_an_alarm_for_an_earlier_sleep_does_not_end_a_later_one() -> None:
    hub = Hub()
    loop = asyncio.get_running_loop()
    with hub.watch("a") as watch:
        loop.call_soon(hub.tell, "a", 1)
        assert await watch.wait(0.01)
        watch.news.clear()
        begun = loop.time()
        assert not await watch.wait(0.2)
        assert loop.time() >= begun + 0.2
