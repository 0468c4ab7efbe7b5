"""What a round trip asks of PostgreSQL, counted: each statement is a round trip to the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from farhand.server.app import App
from farhand.store.postgres import PostgresStore
from tests.guards.trip import Trip, make_app
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.statements import counted_statements
from tests.unit.agent.stage import comes_true

WRITTEN = {"BEGIN": 4, "gather": 4, "add": 3, "move": 4, "COMMIT": 4}
READ = {"messages": 1, "count open": 1, "call": 1}


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
async def test_a_trip_whose_answer_lands_on_the_other_worker_is_23_statements(workers: list[App]) -> None:
    one, other = workers
    least = await _least(one, other)
    # what was written elsewhere is read by one statement, and told whole
    assert least == {**WRITTEN, **READ, "news": 1}
    assert least.total() == 23


@requirement("speed:statements")
async def test_a_trip_at_one_worker_reads_nothing_of_what_it_was_told_itself(workers: list[App]) -> None:
    one, _ = workers
    assert await _least(one, one) == {**WRITTEN, **READ}


async def _least(one: App, other: App) -> Counter[str]:
    """Of some trips: a lease that is renewed meanwhile is not the price of one."""
    counts: list[Counter[str]] = []
    for number in range(5):
        with counted_statements() as asked:
            assert b"hello" in await Trip(one, f"t{number}", answered_at=other).run()
        counts.append(asked)
    return min(counts, key=Counter.total)
