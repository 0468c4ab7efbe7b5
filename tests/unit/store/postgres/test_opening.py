"""Addresses, tables that many processes make at once, and what is wrong with a database in one sentence."""

from __future__ import annotations

import asyncio
import gc

import pytest

from farhand.core.principal import Owner
from farhand.errors import BadSetting
from farhand.store.address import open_store
from farhand.store.base import Committed, InsertThread
from farhand.store.draft.records import number_of
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.line import connect
from farhand.store.postgres.migrate import latest_version
from farhand.store.postgres.place import place_of
from farhand.testing.store_laws.given import Given
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.unit.agent.stage import comes_true


@requirement("postgres:tables")
async def test_many_processes_that_start_at_once_make_the_tables_once(address: str) -> None:
    stores = await asyncio.gather(*(PostgresStore.open(address) for _ in range(8)))
    assert await stores[0].threads(Owner("a", "b"), limit=10) == []
    for store in stores:
        await store.close()


@requirement("postgres:closes")
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


@requirement("postgres:closes")
async def test_a_connection_that_nobody_waits_for_any_more_is_given_back(
    address: str, postgres: PostgresStore
) -> None:
    place = place_of(address)
    for turns in range(25):
        # it is cancelled at the very next chance, wherever it is
        connecting = asyncio.ensure_future(connect(place, settings={"application_name": "in vain"}))
        for _ in range(turns):
            await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.wait([connecting])
        if not connecting.cancelled():
            connecting.result().cut()

    async def are_gone() -> bool:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'in vain'"
        return await postgres._lines.many(count, (), number_of) == [0]

    await comes_true(are_gone)


@requirement("postgres:tables")
async def test_tables_of_another_program_are_never_touched(
    cluster: Cluster, postgres: PostgresStore, address: str
) -> None:
    theirs = cluster.address("theirs")
    await postgres._lines.do(lambda line: line.run("CREATE SCHEMA theirs; CREATE TABLE theirs.things ()"))
    with pytest.raises(BadSetting, match="tables of another program"):
        await PostgresStore.open(theirs)


@requirement("postgres:tables")
async def test_tables_of_a_newer_farhand_are_left_alone(postgres: PostgresStore, address: str) -> None:
    newer = latest_version() + 1
    await postgres._lines.do(lambda line: line.fetch("UPDATE farhand_version SET number = $1", newer))
    with pytest.raises(BadSetting, match="newer farhand"):
        await PostgresStore.open(address)


@requirement("postgres:database-clock")
async def test_without_a_clock_the_database_tells_the_time(address: str) -> None:
    store = await open_store(address)
    assert isinstance(store, PostgresStore)
    commit = await store.commit()
    assert isinstance(commit, Committed)
    found = await store._lines.many(
        "SELECT extract(epoch FROM clock_timestamp())::float8", (), lambda row: row[0]
    )
    assert commit.at <= store.now() <= found[0] + 1.0
    await store.close()


@requirement("postgres:tables")
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


@requirement("postgres:tables")
async def test_a_database_that_is_not_there_is_said_so(cluster: Cluster) -> None:
    with pytest.raises(BadSetting, match="does not exist"):
        await open_store(cluster.address("x").replace("/postgres?", "/nowhere?"))


@requirement("postgres:rights")
async def test_a_right_that_is_missing_is_named(
    cluster: Cluster, postgres: PostgresStore, address: str
) -> None:
    await postgres._lines.do(lambda line: line.run("CREATE ROLE guest LOGIN; CREATE SCHEMA bare"))
    schema = address.rpartition("=")[2]

    def as_guest(name: str) -> str:
        return cluster.address(name).replace("farhand@", "guest@")

    with pytest.raises(BadSetting, match="GRANT CREATE ON DATABASE"):
        await open_store(as_guest("new_one"))
    for name in ("bare", schema):
        with pytest.raises(BadSetting, match=f"GRANT USAGE, CREATE ON SCHEMA {name}"):
            await open_store(as_guest(name))
    await postgres._lines.do(lambda line: line.run(f"GRANT USAGE ON SCHEMA {schema} TO guest"))
    with pytest.raises(BadSetting, match=f"GRANT ALL ON ALL TABLES IN SCHEMA {schema}"):
        await open_store(as_guest(schema))


def test_an_address_names_a_schema_or_ours_is_used() -> None:
    place = place_of("postgres://me@db.example:5433/shop?sslmode=require")
    assert (place.schema, place.channel) == ("farhand", "farhand_farhand")
    assert place.dsn == "postgresql://me@db.example:5433/shop?sslmode=require"
    assert place.name == "db.example:5433/shop (schema farhand)"
    assert place_of("postgresql:///shop?schema=two&host=/run").dsn == "postgresql:///shop?host=%2Frun"


async def test_two_schemas_of_one_database_are_two_stores(cluster: Cluster, given: Given) -> None:
    await given.thread("t1")
    second = await PostgresStore.open(cluster.address())
    assert await second.threads(Owner("acme", "ann"), limit=10) == []
    await second.commit(InsertThread(given.new_thread("t2")))
    assert len(await given.store.threads(Owner("acme", "ann"), limit=10)) == 1
    await second.close()
