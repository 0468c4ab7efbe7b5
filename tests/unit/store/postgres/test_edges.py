"""A database that hangs, takes no writes, or whose tables others are changing: one clear answer, soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from farhand.errors import BadSetting, StoreDown
from farhand.store import soon
from farhand.store.postgres import PostgresStore, bell, line, lines, writer
from farhand.store.postgres.line import Line, connect
from farhand.store.postgres.place import place_of
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN
from tests.chaos.fault_proxy import FaultProxy
from tests.postgres import Cluster, running_cluster
from tests.requirement import requirement
from tests.unit.agent.stage import comes_true

LOCK = "SELECT pg_advisory_lock(hashtextextended('farhand tables of ' || $1::text, 0))"
WAITS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE wait_event = 'advisory' AND clock_timestamp() - query_start > $1::float8 * interval '1 second'
"""


@pytest.fixture
async def beside(cluster: Cluster) -> AsyncIterator[Line]:
    """A connection of somebody else's."""
    connected = await connect(place_of(cluster.address("x")))
    yield connected
    await connected.close()


@requirement("postgres:tables-patience")
async def test_who_starts_while_others_change_the_tables_waits_longer_than_for_any_other_command(
    address: str, beside: Line, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.line.COMMAND_SEC", 1.0)
    await beside.fetch(LOCK, place_of(address).schema)
    opening = asyncio.gather(PostgresStore.open(address, clock))

    async def has_waited() -> bool:
        return bool((await beside.fetch(WAITS, 1.5))[0][0]) or opening.done()

    await comes_true(has_waited)
    await beside.run("SELECT pg_advisory_unlock_all()")
    [store] = await opening

    async def is_hearing() -> bool:
        return store._bell.is_hearing

    await comes_true(is_hearing)
    await store.close()


@requirement("postgres:tables-patience")
async def test_tables_that_others_are_still_changing_are_said_to_be_that(
    address: str, beside: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.migrate.MIGRATE_SEC", 1.0)
    await beside.fetch(LOCK, place_of(address).schema)
    with pytest.raises(BadSetting, match="another process is changing the tables"):
        await PostgresStore.open(address)
    await beside.run("SELECT pg_advisory_unlock_all()")


@requirement("postgres:read-only")
async def test_a_database_that_takes_no_writes_is_refused_at_start(address: str) -> None:
    with pytest.raises(BadSetting, match="takes no writes"):
        await PostgresStore.open(f"{address}&default_transaction_read_only=on")


@requirement("postgres:read-only")
async def test_a_store_that_takes_no_writes_any_more_is_not_ready_and_that_is_said_once(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    with running_cluster() as cluster:
        store = await PostgresStore.open(cluster.address("turned"), clock)
        await store.check()
        await _make_read_only(cluster, "on")

        async def is_refused() -> bool:
            return not await _is_ready(store)

        await comes_true(is_refused)
        for _ in range(3):
            assert await store.get_thread(ANN, "t1") is None, "it still can be read"
            assert not await _is_ready(store)
        assert caplog.text.count("takes no writes") == 1
        await _make_read_only(cluster, "off")

        async def is_ready() -> bool:
            return await _is_ready(store)

        await comes_true(is_ready)
        await store.close()


@requirement("postgres:silence")
async def test_when_the_database_falls_silent_a_read_gives_up_once_and_the_next_ones_know(
    cluster: Cluster, address: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.lines.READ_SEC", 1.0)
    monkeypatch.setattr("farhand.store.postgres.lines.AGAIN_SEC", 60.0)
    async with FaultProxy(("127.0.0.1", cluster.port)) as between:
        store = await PostgresStore.open(cluster.address(place_of(address).schema, port=between.port), clock)
        await store.get_thread(ANN, "t1")
        between.hang()
        # far below what one command and one connection may take together
        async with asyncio.timeout(4.0):
            with pytest.raises(StoreDown):
                await store.get_thread(ANN, "t1")
        tried = between.connections
        for _ in range(20):
            with pytest.raises(StoreDown, match="does not answer"):
                await store.get_thread(ANN, "t1")
        assert between.connections <= tried + 1, "the one that listens may try on"
        between.flow()
        await store.close()


@requirement("postgres:silence")
def test_a_read_gives_up_before_a_single_command_would_and_before_whoever_asked_does() -> None:
    """The figures as they are shipped: the tests above have their own."""
    assert lines.READ_SEC == 5.0
    assert lines.READ_SEC < line.COMMAND_SEC <= soon.SOON_SEC
    # the database says which statement was slow before the connection is given up
    assert float(line._SETTINGS["lock_timeout"]) < float(line._SETTINGS["statement_timeout"])
    assert float(line._SETTINGS["statement_timeout"]) < line.COMMAND_SEC * 1000
    # whoever looks while nothing can be heard, and whoever tries again, is in time for a wake
    assert max(bell.LOOK_SEC + bell.AGAIN_SEC, lines.AGAIN_SEC, writer.AGAIN_SEC) < 2.0


@requirement("postgres:full")
async def test_where_there_is_no_room_for_more_connections_readers_share_those_that_there_are(
    cluster: Cluster, beside: Line, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    address = await _limited(cluster, beside, connections=4)
    store = await PostgresStore.open(address, clock)
    for _ in range(5):
        # of another kind than those that are read in one statement
        found = await asyncio.gather(*(store.get_thread(ANN, f"t{number}") for number in range(40)))
        assert found == [None] * 40
    assert caplog.text.count("no room for more connections") == 1
    await store.close()


@requirement("postgres:full")
async def test_without_any_connection_of_ones_own_the_store_is_said_to_be_away(
    cluster: Cluster, beside: Line
) -> None:
    place = place_of(await _limited(cluster, beside, connections=1))
    other = await connect(place)
    readers = lines.Lines(place)
    for _ in range(2):
        found = await asyncio.gather(*map(_is_readable, [readers] * 4))
        assert found == [False] * 4
    await other.close()

    async def is_readable() -> bool:
        return await _is_readable(readers)

    await comes_true(is_readable)
    assert all(await asyncio.gather(*map(_is_readable, [readers] * 4)))
    await readers.close()


@requirement("postgres:full")
async def test_readers_who_found_no_room_get_the_place_that_is_free_a_moment_later(
    cluster: Cluster, beside: Line, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "FULL_SEC", lines.READ_SEC)
    place = place_of(await _limited(cluster, beside, connections=1))
    other = await connect(place)
    readers = lines.Lines(place)
    reading = asyncio.gather(*map(_is_readable, [readers] * 4))

    async def was_full() -> bool:
        return "no room for more connections" in caplog.text

    await comes_true(was_full)
    await other.close()
    assert all(await reading)
    await readers.close()


async def _limited(cluster: Cluster, beside: Line, *, connections: int) -> str:
    """The address of an empty store for a user who may have so many connections."""
    address = cluster.address()
    user = f"limited_{place_of(address).schema}"
    await beside.run(f"CREATE ROLE {user} LOGIN CONNECTION LIMIT {connections}")
    await beside.run(f"GRANT CREATE ON DATABASE postgres TO {user}")
    return address.replace("farhand@", f"{user}@")


async def _is_readable(readers: lines.Lines) -> bool:
    try:
        await readers.do(lambda line: line.fetch("SELECT pg_sleep(0.01)"))
    except StoreDown:
        return False
    return True


async def _is_ready(store: PostgresStore) -> bool:
    try:
        await store.check()
    except StoreDown:
        return False
    return True


async def _make_read_only(cluster: Cluster, value: str) -> None:
    settings = {"default_transaction_read_only": "off"}
    connected = await connect(place_of(cluster.address("turned")), settings=settings)
    await connected.run(f"ALTER SYSTEM SET default_transaction_read_only = '{value}'")
    await connected.run("SELECT pg_reload_conf()")
    await connected.close()
