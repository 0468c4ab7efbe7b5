"""A place is kept while its call is being stored, and counted once."""

from __future__ import annotations

import asyncio

from farhand.calls.room import Room
from farhand.core.settings import Limits
from farhand.errors import TooMany
from farhand.store.base import Store
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN, Given
from tests.requirement import requirement


@requirement("calls:room")
async def test_who_finds_no_place_waits_for_those_that_are_being_stored(
    store: Store, clock: FakeClock
) -> None:
    given, room = Given(store, clock), Room(store, Limits(open_calls_per_thread=1))
    kept, leave = asyncio.Event(), asyncio.Event()

    async def never_stored() -> None:
        async with room.place(ANN, "t1"):
            kept.set()
            await leave.wait()

    async def stored() -> None:
        async with room.place(ANN, "t1"):
            await given.call()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(never_stored())
        await kept.wait()
        second = group.create_task(stored())
        third = group.create_task(_is_refused(room))
        await asyncio.sleep(0)
        assert not second.done()
        leave.set()
    assert third.result()
    assert await _is_refused(room)
    assert len(await store.open_calls(ANN)) == 1


@requirement("calls:room")
async def test_places_of_one_thread_are_kept_until_the_last_of_them_is_given_back(
    store: Store, clock: FakeClock
) -> None:
    room = Room(store, Limits(open_calls_per_thread=2))
    async with room.place(ANN, "t1"):
        async with room.place(ANN, "t1"):
            assert (await room.fit(ANN, "t1", 2)).count == 0
        assert (await room.fit(ANN, "t1", 2)).count == 1
    assert (await room.fit(ANN, "t1", 2)).count == 2


async def _is_refused(room: Room) -> bool:
    try:
        async with room.place(ANN, "t1"):
            return False
    except TooMany as error:
        return error.message == "A thread may have 1 open calls at most."
