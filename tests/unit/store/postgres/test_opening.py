"""Addresses, tables that several processes create at once, and one sentence for each problem of a
database."""

from __future__ import annotations

import asyncio
import gc

import pytest

from farhand.core.principal import Owner
from farhand.errors import BadSetting
from farhand.store.base import Append, Appended
from farhand.store.open import inspect_store, open_store
from farhand.store.postgres import PostgresStore, schema
from farhand.store.postgres.connection import Connection, DatabaseAddress, connect, parse_address
from farhand.store.postgres.schema import latest_version
from farhand.testing.store_laws.fixture import ANN, StoreFixture
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.unit.store.postgres.store_probe import comes_true, execute, query


async def test_many_processes_that_start_at_once_make_the_tables_once(address: str) -> None:
    stores = await asyncio.gather(*(PostgresStore.open(address) for _ in range(8)))
    assert await stores[0].threads(Owner("a", "b"), limit=10) == []
    for store in stores:
        await store.close()


async def test_a_store_that_is_closed_while_it_connects_leaves_no_error_behind(address: str) -> None:
    loop = asyncio.get_running_loop()
    said: list[str] = []
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, about: said.append(str(about.get("exception") or about["message"])))
    try:
        for turns in range(25):
            store = await PostgresStore.open(address)
            for _ in range(turns):
                # one step further on the way to its connections each time
                await asyncio.sleep(0)
            await store.close()
        gc.collect()
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(before)
    assert said == []


async def test_a_connection_that_nobody_waits_for_any_more_is_given_back(
    address: str, postgres: PostgresStore
) -> None:
    place = parse_address(address)
    for turns in range(25):
        # it is cancelled at the very next chance, wherever it is
        connecting = asyncio.ensure_future(connect(place, settings={"application_name": "in vain"}))
        for _ in range(turns):
            await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.wait([connecting])
        if not connecting.cancelled():
            connecting.result().abort()

    async def are_gone() -> bool:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'in vain'"
        return await query(postgres, count) == [(0,)]

    await comes_true(are_gone)


async def test_tables_of_another_program_are_never_touched(
    cluster: Cluster, postgres: PostgresStore, address: str
) -> None:
    theirs = cluster.address("theirs")
    await execute(postgres, "CREATE SCHEMA theirs; CREATE TABLE theirs.things ()")
    with pytest.raises(BadSetting, match="tables of another program"):
        await PostgresStore.open(theirs)


async def test_tables_of_a_newer_farhand_are_left_alone(postgres: PostgresStore, address: str) -> None:
    newer = latest_version() + 1
    await query(postgres, "UPDATE meta SET farhand_version = $1", newer)
    with pytest.raises(BadSetting, match="newer farhand"):
        await PostgresStore.open(address)


@requirement("calls:deadline")
async def test_without_a_clock_the_database_tells_the_time(address: str) -> None:
    store = await open_store(address)
    assert isinstance(store, PostgresStore)
    now = "SELECT extract(epoch FROM clock_timestamp())::float8"
    for _ in range(3):
        [[before]] = await query(store, now)
        assert await store.append([Append(owner=ANN, thread_id="t1", version=0, at=0.0)]) == [Appended()]
        known = store.now()
        [[after]] = await query(store, now)
        assert before <= known <= after, "never ahead of the database"
    await store.close()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://farhand:secret@127.0.0.1:1/postgres", "cannot be used"),
        ("postgresql://h:port/db", "address cannot be used"),
        ("postgresql://h/db?schema=Robert'); DROP", "schema must be a short name"),
    ],
)
async def test_a_database_that_cannot_be_used_is_one_sentence_without_the_password(
    address: str, words: str
) -> None:
    with pytest.raises(BadSetting, match=words) as caught:
        await open_store(address)
    assert "secret" not in str(caught.value)


async def test_a_database_that_is_not_there_is_reported_so(cluster: Cluster) -> None:
    with pytest.raises(BadSetting, match="does not exist"):
        await open_store(cluster.address("x").replace("/postgres?", "/nowhere?"))


async def test_a_right_that_is_missing_is_named(
    cluster: Cluster, postgres: PostgresStore, address: str
) -> None:
    await execute(postgres, "CREATE ROLE guest LOGIN; CREATE SCHEMA bare")
    schema = address.rpartition("=")[2]

    def as_guest(name: str) -> str:
        return cluster.address(name).replace("farhand@", "guest@")

    with pytest.raises(BadSetting, match="GRANT CREATE ON DATABASE"):
        await open_store(as_guest("new_one"))
    for name in ("bare", schema):
        with pytest.raises(BadSetting, match=f"GRANT USAGE, CREATE ON SCHEMA {name}"):
            await open_store(as_guest(name))
    await execute(postgres, f"GRANT USAGE ON SCHEMA {schema} TO guest")
    with pytest.raises(BadSetting, match=f"GRANT ALL ON ALL TABLES IN SCHEMA {schema}"):
        await open_store(as_guest(schema))


def test_an_address_names_a_schema_or_ours_is_used() -> None:
    place = parse_address("postgres://me@db.example:5433/shop?sslmode=require")
    assert (place.schema, place.channel) == ("farhand", "farhand_farhand")
    assert place.dsn == "postgresql://me@db.example:5433/shop?sslmode=require"
    assert place.name == "db.example:5433/shop (schema farhand)"
    assert parse_address("postgresql:///shop?schema=two&host=/run").dsn == "postgresql:///shop?host=%2Frun"


async def test_two_schemas_of_one_database_are_two_stores(cluster: Cluster, fixture: StoreFixture) -> None:
    await fixture.append("t1")
    second = await PostgresStore.open(cluster.address())
    assert await second.threads(ANN, limit=10) == []
    assert await second.append([fixture.new_append("t2")]) == [Appended()]
    assert len(await fixture.store.threads(ANN, limit=10)) == 1
    await second.close()


async def test_tables_of_a_farhand_from_before_its_first_release_are_refused_and_left_alone(
    cluster: Cluster, postgres: PostgresStore
) -> None:
    tables = "".join(f"CREATE TABLE of_old.{name} ();" for name in sorted(schema.OLD_LAYOUT))
    await execute(postgres, f"CREATE SCHEMA of_old; {tables}")
    address = cluster.address("of_old")
    with pytest.raises(BadSetting, match="of a farhand from before its first release") as caught:
        await PostgresStore.open(address)
    assert "DROP SCHEMA of_old CASCADE" in caught.value.hint
    facts = await inspect_store(address)
    assert facts.problem is not None
    assert "before its first release" in facts.problem
    assert facts.hint == caught.value.hint
    with pytest.raises(BadSetting):
        await PostgresStore.open(address, as_is=True)


async def test_steps_of_a_migration_are_run_once_in_their_order_however_many_processes_start(
    address: str, fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fixture.append("t1")
    first = schema.STEPS
    added = (
        "ALTER TABLE threads ADD COLUMN color text DEFAULT 'blue'",
        "UPDATE threads SET color = color || ' and red'",
    )
    monkeypatch.setattr(schema, "STEPS", (*first, *added))
    stores = await asyncio.gather(*(PostgresStore.open(address) for _ in range(5)))
    assert await query(stores[0], "SELECT color FROM threads") == [("blue and red",)]
    assert await query(stores[0], "SELECT farhand_version FROM meta") == [(len(first) + 2,)]
    assert len((await stores[1].load(ANN, "t1")).rows) == 1
    for store in stores:
        await store.close()


async def test_the_time_of_a_database_is_that_after_its_tables_were_made(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate, made_at = schema._migrate, 0.0

    async def migrate_and_note(connection: Connection, place: DatabaseAddress) -> None:
        nonlocal made_at
        await migrate(connection, place)
        [[made_at]] = await connection.fetch("SELECT extract(epoch FROM clock_timestamp())::float8")

    monkeypatch.setattr(schema, "_migrate", migrate_and_note)
    assert await schema.prepare(parse_address(address)) >= made_at > 0.0


async def test_a_migration_that_breaks_leaves_the_version_before_it(
    address: str, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = schema.STEPS
    broken = "ALTER TABLE threads ADD COLUMN color text; SELECT 1 / 0"
    monkeypatch.setattr(schema, "STEPS", (*first, broken))
    with pytest.raises(BadSetting, match="division by zero"):
        await PostgresStore.open(address)
    assert await query(postgres, "SELECT farhand_version FROM meta") == [(len(first),)]
    columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'threads'::regclass AND attname = 'color'"
    assert await query(postgres, columns) == [(0,)]


async def test_a_store_that_is_opened_as_it_is_is_neither_made_nor_brought_up_to_date(
    cluster: Cluster, address: str, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadSetting, match="no farhand tables"):
        await PostgresStore.open(cluster.address(), as_is=True)
    as_is = await PostgresStore.open(address, as_is=True)
    await as_is.close()
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, "SELECT 1"))
    with pytest.raises(BadSetting, match="has tables of version"):
        await PostgresStore.open(address, as_is=True)
