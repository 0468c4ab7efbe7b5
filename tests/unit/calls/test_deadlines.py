"""Deadlines: what is due expires, including calls that this process has not seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from farhand.calls import deadlines
from farhand.calls.deadlines import Deadlines
from farhand.calls.desk import Desk
from farhand.calls.wait import wait_until_settled
from farhand.clock import SystemClock
from farhand.core.call import Call, Phase
from farhand.core.outcome import Success, TimedOut
from farhand.core.settings import Timeouts
from farhand.errors import StoreDown
from farhand.eventlog.log import EventLog
from farhand.store.base import Append, AppendResult
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.calls.desk_harness import ANN, ANY_OUTPUT, Bench
from tests.unit.eventlog.shared_store import SharedStore, open_call, rename


@requirement("calls:deadline")
async def test_a_sweep_expires_exactly_what_is_overdue(bench: Bench) -> None:
    watch = _watched(bench)
    short = await _open(bench, 5)
    longer = await _open(bench, 6)
    answered = await _open(bench, 5)
    await bench.settle(answered, Success(1))
    bench.clock.advance(5)
    assert await watch.sweep(bench.desk) == 1
    assert (await bench.stored(short)).outcome == TimedOut(5.0)
    assert (await bench.stored(longer)).phase is Phase.READY
    assert (await bench.stored(answered)).outcome == Success(1)


@requirement("calls:deadline")
async def test_what_was_never_heard_of_is_found_in_the_store(bench: Bench) -> None:
    call = await _open(bench, 5)
    bench.clock.advance(3_600)
    assert await Deadlines(bench.log).sweep(bench.desk) == 1
    assert (await bench.stored(call)).outcome == TimedOut(5.0)


@requirement("calls:deadline")
async def test_a_deadline_far_ahead_is_left_to_the_scan_that_comes_before_it(bench: Bench) -> None:
    watch = _watched(bench)
    assert await watch.sweep(bench.desk) == 0
    call = await _open(bench, 35)
    for _ in range(3):
        bench.clock.advance(10)
        assert await watch.sweep(bench.desk) == 0
    bench.clock.advance(5)
    assert await watch.sweep(bench.desk) == 1
    assert (await bench.stored(call)).outcome == TimedOut(35.0)


@requirement("calls:deadline")
async def test_an_expiry_is_not_put_off_by_commands_that_wait_since_before_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SharedStore, "is_shared", False)
    clock = FakeClock()
    store = SharedStore(clock)
    eventlog = EventLog(store)
    desk = Desk(eventlog, Timeouts())
    await eventlog.decide(ANN, "t1", open_call())
    call = await eventlog.get_call(ANN, "call_1")
    assert call is not None
    assert call.deadline is not None
    store.free.clear()
    store.appending.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(eventlog.decide(ANN, "t1", rename("being stored")))
        await store.appending.wait()
        group.create_task(eventlog.decide(ANN, "t1", rename("waiting")))
        await asyncio.sleep(0)
        clock.advance(call.deadline - clock.now())
        expiring = group.create_task(desk.expire(call))
        await asyncio.sleep(0)
        store.free.set()
    assert expiring.result()


class FastClockStore(SharedStore):
    """What a process takes for the store's time is ahead of it, until the store says what time it is."""

    ahead_sec = 0.0

    def now_or_later(self) -> float:
        return self.clock.now() + self.ahead_sec

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.clock = clock
        self.now = self.now_or_later

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        self.ahead_sec = 0.0
        return await super().append(appends)


@requirement("calls:deadline")
async def test_where_the_clock_of_the_store_was_set_back_a_call_is_not_expired_again_and_again() -> None:
    clock = FakeClock()
    store = FastClockStore(clock)
    eventlog = EventLog(store)
    desk = Desk(eventlog, Timeouts())
    await eventlog.decide(ANN, "t1", open_call())
    call = await eventlog.get_call(ANN, "call_1")
    assert call is not None
    assert call.deadline is not None
    asked = len(store.appended)
    store.ahead_sec = call.deadline - clock.now()
    async with asyncio.timeout(5):
        assert not await desk.expire(call)
    assert len(store.appended) == asked + 2, "refused once, and decided again"
    clock.advance(call.deadline - clock.now())
    assert await desk.expire(call)


async def test_a_deadline_that_is_told_twice_is_looked_at_once(bench: Bench) -> None:
    watch = _watched(bench)
    call = await _open(bench, 5)
    watch.expect(call)
    bench.clock.advance(5)
    assert await watch.sweep(bench.desk) == 1
    assert await watch.sweep(bench.desk) == 0


@requirement("calls:deadline")
async def test_more_than_a_page_of_overdue_calls_expires_in_one_sweep(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "CALLS_PER_SCAN", 10)
    monkeypatch.setattr(deadlines, "CALLS_PER_BATCH", 4)
    for _ in range(35):
        await _open(bench, 5)
    bench.clock.advance(60)
    assert await Deadlines(bench.log).sweep(bench.desk) == 35
    assert await bench.log.open_calls(ANN) == []


async def test_a_full_page_is_followed_by_the_next_one_before_its_last_deadline_passes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "CALLS_PER_SCAN", 2)
    for seconds in (1, 2, 3, 4):
        await _open(bench, seconds)
    watch = Deadlines(bench.log)
    expired = []
    for _ in range(5):
        expired.append(await watch.sweep(bench.desk))
        bench.clock.advance(1)
    assert expired == [0, 1, 1, 1, 1]


@requirement("calls:deadline")
async def test_a_deadline_passes_while_the_watch_runs() -> None:
    async with running() as (bench, _, _):
        await _expired(bench, await _open(bench, 0.05))


@requirement("calls:deadline")
async def test_a_deadline_earlier_than_the_one_slept_for_is_not_missed() -> None:
    async with running() as (bench, _, _):
        await _open(bench, 20.0)
        await _expired(bench, await _open(bench, 0.05))


@pytest.mark.slow
@requirement("calls:deadline")
async def test_the_watch_outlives_a_store_that_is_away() -> None:
    async with running() as (bench, store, _):
        first = await _open(bench, 0.3)
        store.is_away = True
        await store.asked_in_vain()
        store.is_away = False
        second = await _open(bench, 0.02)
        await _expired(bench, second)
        await _expired(bench, first)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf"), None])
async def test_a_deadline_that_is_no_number_stops_no_other(odd: float | None) -> None:
    async with running() as (bench, _, watch):
        watch.expect(replace(await _open(bench, 3_600.0), deadline=odd))
        await _expired(bench, await _open(bench, 0.05))


@requirement("calls:deadline")
async def test_a_call_that_cannot_be_expired_is_left_alone_and_keeps_no_other_from_its_end(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    broken = await _open(bench, 5)
    fine = await bench.put(bench.opening(replace(ANY_OUTPUT, timeout_sec=5.0)), thread="t2")
    desk = BrokenDesk(bench, broken)
    watch = Deadlines(bench.log)
    bench.clock.advance(5)
    assert await watch.sweep(desk) == 1
    assert (await bench.stored(fine)).outcome == TimedOut(5.0)
    assert await watch.sweep(desk) == 0
    assert desk.tries == 1
    assert f"could not expire call {broken.call_id}" in caplog.text


@requirement("calls:deadline")
@pytest.mark.slow
async def test_100_000_deadlines_in_one_second_do_not_hold_up_the_loop() -> None:
    """By turns of the loop, not by time: the machine may be busy."""
    desk, count = CountingDesk(), 100_000
    bench = Bench(MemoryStore(FakeClock()), FakeClock())
    watch = Deadlines(bench.log)
    call = await _open(bench, 5)
    for number in range(count):
        watch.expect(replace(call, call_id=f"call_{number}", deadline=bench.clock.now() - number / count))
    async with asyncio.TaskGroup() as group:
        turns = group.create_task(_count_turns(desk, count))
        assert await watch.sweep(desk) == count
    assert desk.most_at_once <= deadlines.CALLS_PER_BATCH
    assert turns.result() >= count / deadlines.CALLS_PER_BATCH


async def test_scans_continue_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "REFILL_SEC", 0.02)
    clock, scanned = FakeClock(), asyncio.Event()
    store = MemoryStore(clock)
    bench = Bench(store, clock)
    due = bench.log.due

    async def noted(*, before: float, limit: int) -> list[Call]:
        scanned.set()
        return await due(before=before, limit=limit)

    monkeypatch.setattr(bench.log, "due", noted)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(Deadlines(bench.log).run(bench.desk))
        await scanned.wait()
        store.now = lambda: clock.now() - 24 * 3600.0
        call = await _open(bench, 60.0)
        clock.advance(60.0)
        await _expired(bench, call)
        task.cancel()


class BrokenDesk(Desk):
    """Cannot expire one call."""

    def __init__(self, bench: Bench, broken: Call) -> None:
        super().__init__(bench.log, bench.timeouts)
        self.tries = 0
        self._broken = broken

    async def expire(self, call: Call) -> bool:
        if call.call_id == self._broken.call_id:
            self.tries += 1
            raise RuntimeError("a rule is broken")
        return await super().expire(call)


class CountingDesk(Desk):
    """Expires whatever it is told to; counts how many wait at once."""

    def __init__(self) -> None:
        super().__init__(EventLog(MemoryStore(FakeClock())), Timeouts())
        self.expired = self.most_at_once = self._at_once = 0

    async def expire(self, call: Call) -> bool:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await asyncio.sleep(0)
        self._at_once -= 1
        self.expired += 1
        return True


class MoodyStore(MemoryStore):
    """Cannot be written while it is away."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.is_away = False
        self._asked = asyncio.Event()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        if self.is_away:
            self._asked.set()
            raise StoreDown("The store is away.")
        return await super().append(appends)

    async def asked_in_vain(self) -> None:
        async with asyncio.timeout(10):
            await self._asked.wait()


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Bench, MoodyStore, Deadlines]]:
    """A watch at work, by the real clock."""
    store = MoodyStore()
    bench = Bench(store, FakeClock())
    watch = _watched(bench)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch.run(bench.desk))
        yield bench, store, watch
        task.cancel()


def _watched(bench: Bench) -> Deadlines:
    """A watch that hears of what is opened here."""
    watch = Deadlines(bench.log)
    bench.log.expect = watch.expect
    return watch


async def _open(bench: Bench, seconds: float) -> Call:
    return await bench.open(replace(ANY_OUTPUT, timeout_sec=float(seconds)))


async def _expired(bench: Bench, call: Call) -> None:
    async with asyncio.timeout(10):
        found = await wait_until_settled(bench.log, call)
    assert found is not None
    assert isinstance(found.outcome, TimedOut)


async def _count_turns(desk: CountingDesk, count: int) -> int:
    turns = 0
    while desk.expired < count:
        turns += 1
        await asyncio.sleep(0)
    return turns
