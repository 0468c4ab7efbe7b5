"""What a round trip does, counted. A figure that grows is a cost that every user pays."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.reads import read_by_turns
from farhand.core.principal import Owner
from farhand.server.app import App
from tests.guards.counted_round_trip import CountedStore, Trip, make_app
from tests.requirement import requirement

ANN = Owner("tenant", "ann")


@pytest.fixture
def store() -> CountedStore:
    return CountedStore()


@pytest.fixture
async def app(store: CountedStore) -> AsyncIterator[App]:
    app = make_app(store)
    async with app.lifespan():
        yield app


@requirement("speed:transactions")
async def test_a_held_round_trip_is_three_appends_and_one_read(store: CountedStore, app: App) -> None:
    # how many calls a tenant has open is counted in the worker, from the first one on
    await Trip(app, "t0").run()
    store.asked.clear()
    said = await Trip(app, "t1").run()
    assert b"hello" in said
    assert b"[DONE]" in said
    assert store.asked == {"append": 3, "load": 1}


@requirement("speed:transactions")
async def test_a_held_round_trip_in_a_thread_that_is_cached_is_three_appends_and_no_read(
    store: CountedStore, app: App
) -> None:
    await Trip(app, "t1").run()
    store.asked.clear()
    await Trip(app, "t1", message_id="m2").run()
    # the message with the first step, the result before the model is asked with it, and the answer
    assert store.asked == {"append": 3}


@requirement("speed:transactions")
async def test_a_parked_round_trip_is_three_appends_too(store: CountedStore, app: App) -> None:
    await Trip(app, "t1").run()
    store.asked.clear()
    await Trip(app, "t1", message_id="m2").run(wait="turn")
    eventlog = app.service.log
    async with asyncio.timeout(20):
        # nobody reads the run that the result has resumed
        while (run := await eventlog.last_run(ANN, "t1")) is None or run.active:  # noqa: ASYNC110
            await asyncio.sleep(0)
    # the message with the first step and the park, the result with the claim, and the answer
    assert store.asked == {"append": 3}


@requirement("speed:transactions")
async def test_an_ai_sdk_answer_reads_nothing_that_is_cached_and_little_else(tmp_path: Path) -> None:
    reads = await read_by_turns(f"sqlite:///{tmp_path}/reads.db")
    assert reads.cached == Counter()
    # the thread with the rows of its run, and the schema that the call was opened with
    assert reads.afresh == Counter({"load": 1, "find_tool": 1})


@requirement("speed:transactions")
async def test_whatever_a_store_can_be_asked_is_counted(store: CountedStore) -> None:
    await store.clients.all(ANN)
    await store.find_call(ANN, "approval", "approval_0")
    await store.files.get(ANN, "file_0")
    assert store.asked == {"clients.all": 1, "find_call": 1, "files.get": 1}


async def test_words_of_one_moment_leave_in_one_write(app: App) -> None:
    trip = Trip(app, "t1")
    said = await trip.run("many words")
    assert said.count(b"word ") == 500
    # the words with all that surrounds them, and the end of the body with the last of them
    assert len(trip.bodies) <= 2


async def test_a_held_round_trip_writes_to_its_stream_three_times(app: App) -> None:
    trip = Trip(app, "t1")
    await trip.run()
    # all until the call, its outcome, and the answer
    assert len(trip.bodies) == 3


async def test_a_held_call_has_no_task_and_its_stream_two(app: App) -> None:
    before = len(asyncio.all_tasks())
    held = [_Silent(app, f"held-{number}") for number in range(5)]
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        streams = [group.create_task(each.run()) for each in held]
        # nobody tells when the last of them waits, and with nothing else in progress
        while not all(map(_Silent.waits, held)) or len(asyncio.all_tasks()) > before + 2 * len(held):  # noqa: ASYNC110
            await asyncio.sleep(0)
        for stream in streams:
            stream.cancel()


async def test_a_parked_call_has_no_task(app: App) -> None:
    before = len(asyncio.all_tasks())
    for number in range(20):
        parked = _Silent(app, f"parked-{number}")
        assert b"tool-input-available" in await parked.run(wait="turn")
    async with asyncio.timeout(20):
        # a run's task ends right after its response
        # nobody tells when the last of them has ended
        while len(asyncio.all_tasks()) > before:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert len(await app.service.log.open_calls(ANN)) == 20


class _Silent(Trip):
    """Somebody who does not answer."""

    def waits(self) -> bool:
        return b"tool-input-available" in b"".join(self.bodies)

    async def _settle(self, call_id: str) -> None:
        return
