"""What a round trip asks of PostgreSQL, counted: each statement is a round trip to the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest
from starlette.types import Message

from farhand.server.app import App
from farhand.store.postgres import PostgresStore
from tests.guards.counted_round_trip import Trip, make_app
from tests.postgres import Cluster
from tests.statements import counted_statements
from tests.unit.agent.stage import comes_true

WRITTEN = Counter({"write": 4})


@pytest.fixture
async def workers(cluster: Cluster) -> AsyncIterator[list[App]]:
    address = cluster.address()
    stores = [await PostgresStore.open(address) for _ in range(2)]
    one, other = map(make_app, stores)
    async with one.lifespan(), other.lifespan():

        async def are_hearing() -> bool:
            return all(store._notifier.is_listening for store in stores)

        await comes_true(are_hearing)
        yield [one, other]


async def test_a_trip_whose_answer_lands_on_the_other_worker_is_nine_statements_at_most(
    workers: list[App],
) -> None:
    one, other = workers
    # each worker reads the thread once, and the one with the stream what the other has appended
    read = Counter({"find call": 1, "load": 3, "versions": 1})
    trips = await _trips(one, other)
    assert any(trip <= WRITTEN + read for trip in trips), trips


async def test_a_trip_at_one_worker_reads_its_thread_once(workers: list[App]) -> None:
    one, _ = workers
    trips = await _trips(one, one)
    read = Counter({"load": 1, "versions": 1})
    assert any(trip <= WRITTEN + read for trip in trips), trips


async def test_a_wake_at_the_other_worker_is_four_round_trips_at_most(workers: list[App]) -> None:
    one, other = workers
    wakes: list[Counter[str]] = []
    for number in range(5):
        with counted_statements() as asked:
            trip = _Answered(one, f"w{number}", other, asked)
            assert b"hello" in await trip.run()
        wakes.append(trip.until_told)
    read = Counter({"find call": 1, "load": 2})
    wanted = Counter({"write": 1}) + read
    assert any(wake <= wanted for wake in wakes), wakes


class _Answered(Trip):
    """Notes what is asked from its answer on, until that is read at the worker with the stream."""

    def __init__(self, app: App, thread: str, other: App, asked: Counter[str]) -> None:
        super().__init__(app, thread, answered_at=other)
        self._asked = asked
        self._before: Counter[str] = Counter()
        self.until_told: Counter[str] = Counter()

    async def _settle(self, call_id: str) -> None:
        self._before = self._asked.copy()
        await super()._settle(call_id)

    async def _hear(self, message: Message) -> None:
        if b"hello" in message.get("body", b"") and not self.until_told:
            self.until_told = self._asked - self._before
        await super()._hear(message)


async def _trips(one: App, other: App) -> list[Counter[str]]:
    """Some: on a busy machine a sweep falls into one or the other, and is not the price of a trip."""
    counts: list[Counter[str]] = []
    for number in range(5):
        with counted_statements() as asked:
            assert b"hello" in await Trip(one, f"t{number}", answered_at=other).run()
        counts.append(asked)
    return counts
