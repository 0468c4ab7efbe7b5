"""The limit of open calls of a tenant: counted by the store, used up before it is counted again, reserved
while a call is stored."""

from __future__ import annotations

import asyncio

import pytest

from farhand.calls import limits as limits_module
from farhand.calls.limits import OpenCallLimit
from farhand.core.settings import Limits
from tests.unit.calls.desk_harness import ANN, Bench

TENANT = ANN.tenant


async def test_every_open_call_of_a_tenant_takes_room_until_it_is_settled(bench: Bench) -> None:
    room = OpenCallLimit(bench.log, Limits(open_calls_per_tenant=3))
    calls = [await bench.open(), await bench.open()]
    assert await room.left(TENANT) == 1
    assert await room.left("globex") == 3
    await bench.desk.cancel(calls, "stopped")
    assert await room.left(TENANT) == 3


async def test_what_fitted_by_the_last_count_is_used_up_before_the_store_counts_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = _counted(bench, monkeypatch)
    room = OpenCallLimit(bench.log, Limits(open_calls_per_tenant=100, open_calls_per_run=10))
    room.use(TENANT, 5)
    assert await room.left(TENANT) == 100, "what was opened before the first count is in it"
    room.use(TENANT, 90)
    assert await room.left(TENANT) == 10
    assert len(counts) == 1
    room.use(TENANT, 1)
    assert await room.left(TENANT) == 100, "a step may ask for more than nine"
    assert len(counts) == 2


async def test_counts_of_very_many_tenants_are_forgotten_and_counted_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "TENANTS_COUNTED", 3)
    room = OpenCallLimit(bench.log, Limits(open_calls_per_tenant=50))
    await bench.open()
    for no in range(10):
        assert await room.left(f"tenant {no}") == 50
        assert await room.left(TENANT) == 49
    assert len(room._left) <= 3


async def test_a_place_is_reserved_while_its_call_is_being_stored_and_counted_once(bench: Bench) -> None:
    room = OpenCallLimit(bench.log, Limits(open_calls_per_tenant=2))
    async with room.reserve(TENANT) as first:
        async with room.reserve(TENANT) as second:
            assert second == 1
        assert await room.left(TENANT) == 1
        await bench.open()
        async with room.reserve("globex") as elsewhere:
            assert (first, elsewhere) == (2, 2)
        assert await room.left(TENANT) == 0, "in doubt, a call that is being stored counts twice"
    assert await room.left(TENANT) == 1


async def test_who_finds_no_place_waits_for_those_that_are_being_stored(bench: Bench) -> None:
    room = OpenCallLimit(bench.log, Limits(open_calls_per_tenant=1))
    kept, leave = asyncio.Event(), asyncio.Event()

    async def never_stored() -> None:
        async with room.reserve(TENANT):
            kept.set()
            await leave.wait()

    async def stored() -> int:
        async with room.reserve(TENANT) as left:
            if left > 0:
                await bench.open()
            return left

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(never_stored())
        await kept.wait()
        others = [group.create_task(stored()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(each.done() for each in others)
        leave.set()
    assert [each.result() for each in others] == [1, 0, 0]
    assert len(await bench.log.open_calls(ANN)) == 1


def _counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    count = bench.log.count_open_of_tenant
    counts: list[str] = []

    async def counted(tenant: str) -> int:
        counts.append(tenant)
        return await count(tenant)

    monkeypatch.setattr(bench.log, "count_open_of_tenant", counted)
    return counts
