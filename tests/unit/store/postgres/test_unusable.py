"""A database that hangs, accepts no writes, or whose tables are being changed: one clear error, soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from farhand.errors import BadSetting, StoreDown
from farhand.store.postgres import PostgresStore, append, connection, notify, pool
from farhand.store.postgres.connection import Connection, connect, parse_address
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN
from tests.chaos.fault_proxy import FaultProxy
from tests.postgres import Cluster, running_cluster
from tests.unit.store.postgres.store_probe import comes_true, listens

LOCK = "SELECT pg_advisory_lock(hashtextextended('farhand tables of ' || $1::text, 0))"
WAITS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE wait_event = 'advisory' AND clock_timestamp() - query_start > $1::float8 * interval '1 second'
"""


@pytest.fixture
async def beside(cluster: Cluster) -> AsyncIterator[Connection]:
    """A connection of somebody else's."""
    connected = await connect(parse_address(cluster.address("x")))
    yield connected
    await connected.close()


async def test_who_starts_while_others_change_the_tables_waits_longer_than_for_any_other_command(
    address: str, beside: Connection, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.connection.COMMAND_SEC", 1.0)
    await beside.fetch(LOCK, parse_address(address).schema)
    opening = asyncio.gather(PostgresStore.open(address, clock))

    async def has_waited() -> bool:
        return bool((await beside.fetch(WAITS, 1.5))[0][0]) or opening.done()

    await comes_true(has_waited)
    await beside.execute("SELECT pg_advisory_unlock_all()")
    [store] = await opening
    await listens(store)
    await store.close()


async def test_tables_that_others_are_still_changing_are_said_to_be_that(
    address: str, beside: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.schema.MIGRATE_SEC", 1.0)
    await beside.fetch(LOCK, parse_address(address).schema)
    with pytest.raises(BadSetting, match="another process is still changing the tables"):
        await PostgresStore.open(address)
    await beside.execute("SELECT pg_advisory_unlock_all()")


async def test_a_database_that_takes_no_writes_is_refused_at_start(address: str) -> None:
    with pytest.raises(BadSetting, match="accepts no writes"):
        await PostgresStore.open(f"{address}&default_transaction_read_only=on")


async def test_a_store_that_takes_no_writes_any_more_is_not_ready_and_that_is_reported_once(
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
            assert not (await store.load(ANN, "t1")).rows, "it still can be read"
            assert not await _is_ready(store)
        assert caplog.text.count("accepts no writes") == 1
        await _make_read_only(cluster, "off")

        async def is_ready() -> bool:
            return await _is_ready(store)

        await comes_true(is_ready)
        await store.close()


async def test_when_the_database_falls_silent_a_read_gives_up_once_and_the_next_ones_know(
    cluster: Cluster, address: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.pool.READ_SEC", 1.0)
    monkeypatch.setattr("farhand.store.postgres.pool.RETRY_SEC", 60.0)
    async with FaultProxy(("127.0.0.1", cluster.port)) as between:
        store = await PostgresStore.open(
            cluster.address(parse_address(address).schema, port=between.port), clock
        )
        await store.load(ANN, "t1")
        between.hang()
        # far below what one command and one connection may take together
        async with asyncio.timeout(connection.COMMAND_SEC):
            with pytest.raises(StoreDown):
                await store.load(ANN, "t1")
        tried = between.connections
        for _ in range(20):
            with pytest.raises(StoreDown, match="not responding"):
                await store.load(ANN, "t1")
        assert between.connections <= tried + 1, "the one that listens may try on"
        between.flow()
        await store.close()


def test_a_read_gives_up_before_a_single_command_would() -> None:
    """The figures as they are shipped: the tests above have their own."""
    assert pool.READ_SEC == 5.0
    assert pool.READ_SEC < connection.COMMAND_SEC
    # the database says which statement was slow before the connection is given up
    settings = connection._SETTINGS
    assert float(settings["lock_timeout"]) < float(settings["statement_timeout"])
    assert float(settings["statement_timeout"]) < connection.COMMAND_SEC * 1000
    # whoever looks while nothing can be heard, and whoever tries again, is in time for a wake
    assert max(notify.RECHECK_SEC + notify.RETRY_SEC, pool.RETRY_SEC, append.RETRY_SEC) < 2.0


async def test_where_there_is_no_room_for_more_connections_readers_share_those_that_there_are(
    cluster: Cluster, beside: Connection, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    address = await _limited(cluster, beside, connections=4)
    store = await PostgresStore.open(address, clock)
    for _ in range(5):
        found = await asyncio.gather(*(store.find_run(ANN, f"run_{number}") for number in range(40)))
        assert found == [None] * 40
    assert caplog.text.count("accepts no more connections") == 1
    await store.close()


async def test_without_any_connection_of_ones_own_the_store_is_reported_to_be_away(
    cluster: Cluster, beside: Connection
) -> None:
    place = parse_address(await _limited(cluster, beside, connections=1))
    other = await connect(place)
    readers = pool.Pool(place)
    for _ in range(2):
        found = await asyncio.gather(*map(_is_readable, [readers] * 4))
        assert found == [False] * 4
    await other.close()

    async def is_readable() -> bool:
        return await _is_readable(readers)

    await comes_true(is_readable)
    assert all(await asyncio.gather(*map(_is_readable, [readers] * 4)))
    await readers.close()


async def test_readers_who_found_no_room_get_the_place_that_is_free_a_moment_later(
    cluster: Cluster, beside: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "FULL_SEC", pool.READ_SEC)
    place = parse_address(await _limited(cluster, beside, connections=1))
    other = await connect(place)
    readers = pool.Pool(place)
    reading = asyncio.gather(*map(_is_readable, [readers] * 4))

    async def was_full() -> bool:
        return "accepts no more connections" in caplog.text

    await comes_true(was_full)
    await other.close()
    assert all(await reading)
    await readers.close()


async def _limited(cluster: Cluster, beside: Connection, *, connections: int) -> str:
    """The address of an empty store for a user who may have so many connections."""
    address = cluster.address()
    user = f"limited_{parse_address(address).schema}"
    await beside.execute(f"CREATE ROLE {user} LOGIN CONNECTION LIMIT {connections}")
    await beside.execute(f"GRANT CREATE ON DATABASE postgres TO {user}")
    return address.replace("farhand@", f"{user}@")


async def _is_readable(readers: pool.Pool) -> bool:
    try:
        await readers.run(lambda each: each.fetch("SELECT pg_sleep(0.01)"))
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
    connected = await connect(parse_address(cluster.address("turned")), settings=settings)
    await connected.execute(f"ALTER SYSTEM SET default_transaction_read_only = '{value}'")
    await connected.execute("SELECT pg_reload_conf()")
    await connected.close()
