"""The watch over deadlines: it expires what is due, and finds what it never heard of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from farhand.calls import deadlines
from farhand.calls.deadlines import Deadlines
from farhand.calls.desk import Desk
from farhand.calls.wait import settled
from farhand.clock import SystemClock
from farhand.core.call import Call, Phase
from farhand.core.outcome import Success, TimedOut
from farhand.core.principal import Owner
from farhand.core.settings import Patience
from farhand.errors import StoreDown
from farhand.store.base import Due
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.calls.bench import ANN, ANY_OUTPUT, Bench


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
    assert await Deadlines(bench.store).sweep(bench.desk) == 1
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


async def test_a_deadline_that_is_told_twice_is_looked_at_once(bench: Bench) -> None:
    watch = _watched(bench)
    call = await _open(bench, 5)
    watch.expect(_due(call))
    bench.clock.advance(5)
    assert await watch.sweep(bench.desk) == 1
    assert await watch.sweep(bench.desk) == 0


@requirement("calls:deadline")
async def test_more_than_a_page_of_overdue_calls_expires_in_one_sweep(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "PAGE", 10)
    monkeypatch.setattr(deadlines, "SLICE", 4)
    for _ in range(35):
        await _open(bench, 5)
    bench.clock.advance(60)
    assert await Deadlines(bench.store).sweep(bench.desk) == 35
    assert await bench.store.open_calls(ANN) == []


async def test_a_full_page_is_followed_by_the_next_one_before_its_last_deadline_passes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "PAGE", 2)
    for seconds in (1, 2, 3, 4):
        await _open(bench, seconds)
    watch = Deadlines(bench.store)
    expired = []
    for _ in range(5):
        expired.append(await watch.sweep(bench.desk))
        bench.clock.advance(1)
    assert expired == [0, 1, 1, 1, 1]


@requirement("calls:deadline")
async def test_a_deadline_passes_while_the_watch_runs() -> None:
    async with running() as (desk, store, _):
        call = await _put(desk, store, 0.05)
        await _expired(store, call)


@requirement("calls:deadline")
async def test_a_deadline_earlier_than_the_one_slept_for_is_not_missed() -> None:
    async with running() as (desk, store, _):
        await _put(desk, store, 20.0)
        call = await _put(desk, store, 0.05)
        await _expired(store, call)


@requirement("calls:deadline")
async def test_the_watch_outlives_a_store_that_is_away() -> None:
    async with running() as (desk, store, _):
        store.away = True
        await _put(desk, store, 0.01)
        await store.asked_in_vain()
        store.away = False
        call = await _put(desk, store, 0.02)
        await _expired(store, call)


@requirement("calls:deadline-odd")
@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
async def test_a_deadline_that_is_no_number_stops_no_other(odd: float) -> None:
    async with running() as (desk, store, watch):
        watch.expect(Due(odd, ANN, "call_odd"))
        call = await _put(desk, store, 0.05)
        await _expired(store, call)


@requirement("calls:deadline-odd")
async def test_scans_go_on_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "REFILL_SEC", 0.02)
    clock = FakeClock()
    store = ScannedStore(clock)
    desk = Desk(store, Patience())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(Deadlines(store).run(desk))
        await store.scanned()
        store.set_back_by = 24 * 3600.0
        call = await _put(desk, store, 60.0)
        clock.advance(60.0)
        await _expired(store, call)
        task.cancel()


class ScannedStore(MemoryStore):
    """Tells when it was asked what is due; somebody may set its clock back."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.set_back_by = 0.0
        self._asked = asyncio.Event()

    def now(self) -> float:
        return super().now() - self.set_back_by

    async def due(self, *, before: float, limit: int) -> list[Due]:
        self._asked.set()
        return await super().due(before=before, limit=limit)

    async def scanned(self) -> None:
        async with asyncio.timeout(10):
            await self._asked.wait()


class MoodyStore(MemoryStore):
    """Its record of calls cannot be read while it is away."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.away = False
        self._asked = asyncio.Event()

    async def get_call(self, owner: Owner, call_id: str) -> Call | None:
        if self.away:
            self._asked.set()
            raise StoreDown("The store is away.")
        return await super().get_call(owner, call_id)

    async def asked_in_vain(self) -> None:
        async with asyncio.timeout(10):
            await self._asked.wait()


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Desk, MoodyStore, Deadlines]]:
    """A watch at work, by the real clock."""
    store = MoodyStore()
    watch = Deadlines(store)
    desk = Desk(store, Patience(), expect=watch.expect)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch.run(desk))
        yield desk, store, watch
        task.cancel()


def _watched(bench: Bench) -> Deadlines:
    """A watch that hears of what the bench's desk opens."""
    watch = Deadlines(bench.store)
    bench.desk = Desk(bench.store, bench.patience, expect=watch.expect)
    return watch


async def _open(bench: Bench, seconds: float) -> Call:
    return await bench.open(replace(ANY_OUTPUT, timeout_sec=float(seconds)))


async def _put(desk: Desk, store: MemoryStore, seconds: float) -> Call:
    opening = Bench(store, FakeClock(seed=str(seconds))).opening(replace(ANY_OUTPUT, timeout_sec=seconds))
    call = desk.prepare(opening)
    await desk.open([(call, opening.tool)])
    return call


async def _expired(store: MemoryStore, call: Call) -> None:
    async with asyncio.timeout(10):
        found = await settled(store, ANN, call.call_id)
    assert found is not None
    assert isinstance(found.outcome, TimedOut)


def _due(call: Call) -> Due:
    return Due(call.deadline or 0.0, call.owner, call.call_id)
