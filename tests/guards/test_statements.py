"""What a round trip asks of PostgreSQL, counted: each statement is a round trip to the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest
from starlette.types import Message

from farhand.server.app import App
from farhand.store.postgres import PostgresStore
from tests.guards.trip import Trip, make_app
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.statements import counted_statements
from tests.unit.agent.stage import comes_true

WRITTEN = {"BEGIN": 4, "gather": 4, "write": 4, "COMMIT": 4}
READ = {"count open": 1, "call": 1}


@pytest.fixture
async def workers(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[App]]:
    # a look at the record that comes of a slow machine is not the price of a trip
    monkeypatch.setattr("farhand.calls.wait.JUST_STORED_SEC", 600.0)
    monkeypatch.setattr("farhand.agent.reader.SPOKEN_SOON_SEC", 600.0)
    address = cluster.address()
    stores = [await PostgresStore.open(address) for _ in range(2)]
    one, other = map(make_app, stores)
    async with one.lifespan(), other.lifespan():

        async def are_hearing() -> bool:
            return all(store._bell.is_hearing for store in stores)

        await comes_true(are_hearing)
        yield [one, other]


@requirement("speed:statements")
async def test_a_trip_whose_answer_lands_on_the_other_worker_is_19_statements(workers: list[App]) -> None:
    one, other = workers
    least = await _least(one, other)
    # what was written elsewhere is read by one statement, and told whole
    assert least == {**WRITTEN, **READ, "news": 1}
    assert least.total() == 19


@requirement("speed:statements")
async def test_a_trip_at_one_worker_reads_nothing_of_what_it_was_told_itself(workers: list[App]) -> None:
    one, _ = workers
    assert await _least(one, one) == {**WRITTEN, **READ}


@requirement("speed:statements")
async def test_a_wake_at_the_other_worker_is_six_round_trips_one_behind_the_other(workers: list[App]) -> None:
    one, other = workers
    wakes: list[Counter[str]] = []
    for number in range(5):
        with counted_statements() as asked:
            trip = _Answered(one, f"w{number}", other, asked)
            assert b"hello" in await trip.run()
        wakes.append(trip.until_told)
    least = min(wakes, key=Counter.total)
    assert least == {"call": 1, "BEGIN": 1, "gather": 1, "write": 1, "COMMIT": 1, "news": 1}


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


async def _least(one: App, other: App) -> Counter[str]:
    """Of some trips: a lease that is renewed meanwhile is not the price of one."""
    counts: list[Counter[str]] = []
    for number in range(5):
        with counted_statements() as asked:
            assert b"hello" in await Trip(one, f"t{number}", answered_at=other).run()
        counts.append(asked)
    return min(counts, key=Counter.total)
