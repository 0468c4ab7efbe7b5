"""Diagnosis from outside finds everything that a server would refuse at start, with the same advice."""

from __future__ import annotations

import pytest

from farhand.cli import doctor
from farhand.errors import BadSetting, FarhandError
from farhand.store.health import ServerLoad
from farhand.store.open import inspect_store, open_store
from farhand.store.postgres import PostgresStore
from tests.postgres import Cluster
from tests.unit.store.postgres.store_probe import execute

HOUSES = """
    CREATE SCHEMA {0}_closed; CREATE SCHEMA {0}_usage; CREATE SCHEMA {0}_theirs; CREATE SCHEMA {0}_open;
    CREATE TABLE {0}_theirs.things ();
    CREATE ROLE {0} LOGIN; CREATE ROLE {0}_reader LOGIN; CREATE ROLE {0}_still LOGIN;
    ALTER ROLE {0}_still SET default_transaction_read_only = on;
    GRANT USAGE ON SCHEMA {0}_usage TO {0};
    GRANT USAGE, CREATE ON SCHEMA {0}_theirs, {0}_open TO {0}, {0}_still;
"""


class Houses:
    """Schemas and users of one test, by a name of their own: users belong to the whole cluster."""

    def __init__(self, cluster: Cluster, postgres: PostgresStore, name: str) -> None:
        self.cluster, self.name, self._postgres = cluster, name, postgres

    async def run(self, sql: str) -> None:
        await execute(self._postgres, sql.format(self.name))

    def address(self, schema: str, user: str = "") -> str:
        return self.cluster.address(f"{self.name}_{schema}").replace("farhand@", f"{self.name}{user}@")


@pytest.fixture
async def houses(cluster: Cluster, postgres: PostgresStore, address: str) -> Houses:
    made = Houses(cluster, postgres, "g" + address.rpartition("=")[2])
    await made.run(HOUSES)
    return made


async def refused(address: str) -> tuple[str, str]:
    """What a server says, and what a look does."""
    with pytest.raises(BadSetting) as caught:
        await open_store(address)
    facts = await inspect_store(address)
    assert facts.problem is not None, caught.value.message
    return caught.value.hint, facts.hint


@pytest.mark.parametrize("schema", ["not_there", "closed", "usage", "theirs"])
async def test_a_schema_that_a_server_refuses_is_found_with_the_same_advice(
    houses: Houses, schema: str
) -> None:
    said, found = await refused(houses.address(schema))
    assert said == found != ""


@pytest.mark.parametrize("schema", ["open", "not_there"])
async def test_a_user_who_only_reads_is_found(houses: Houses, schema: str) -> None:
    _, found = await refused(houses.address(schema, "_still"))
    assert found == "Switch it off for this user, or name another one."


async def test_a_schema_that_a_server_can_use_has_no_problem(houses: Houses) -> None:
    store = houses.address("open")
    assert (await inspect_store(store)).problem is None, "before there are tables"
    await (await open_store(store)).close()
    facts = await inspect_store(store)
    assert (facts.problem, facts.version) == (None, facts.latest)
    assert facts.busy is not None
    assert 0 < facts.busy.connections < facts.busy.at_most


async def test_tables_that_a_user_may_only_read_are_found_and_those_granted_are_not(houses: Houses) -> None:
    await (await open_store(houses.address("open"))).close()
    as_reader = houses.address("open", "_reader")
    await houses.run(
        "GRANT USAGE ON SCHEMA {0}_open TO {0}_reader;"
        "GRANT SELECT ON ALL TABLES IN SCHEMA {0}_open TO {0}_reader"
    )
    assert "GRANT ALL ON ALL TABLES" in (await inspect_store(as_reader)).hint
    await houses.run("GRANT ALL ON ALL TABLES IN SCHEMA {0}_open TO {0}_reader")
    assert "GRANT ALL ON ALL SEQUENCES" in (await inspect_store(as_reader)).hint
    await houses.run("GRANT ALL ON ALL SEQUENCES IN SCHEMA {0}_open TO {0}_reader")
    assert (await inspect_store(as_reader)).problem is None, "all that work on up-to-date tables takes"


async def test_old_tables_of_another_user_are_found(houses: Houses) -> None:
    await (await open_store(houses.address("open"))).close()
    await houses.run(
        "UPDATE {0}_open.meta SET farhand_version = farhand_version - 1;"
        "GRANT USAGE, CREATE ON SCHEMA {0}_open TO {0}_reader;"
        "GRANT ALL ON ALL TABLES IN SCHEMA {0}_open TO {0}_reader;"
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA {0}_open TO {0}_reader"
    )
    facts = await inspect_store(houses.address("open", "_reader"))
    assert facts.problem is not None
    assert "must be owner of" in facts.problem
    assert (await inspect_store(houses.address("open"))).problem is None, "its owner may"


async def test_a_user_or_database_that_is_not_there_is_reported_in_the_database_s_words(
    cluster: Cluster,
) -> None:
    nobody = cluster.address("x").replace("farhand@", "nobody_of_that_name:secret@")
    nowhere = cluster.address("x").replace("/postgres?", "/nowhere?")
    for address in (nobody, nowhere):
        with pytest.raises(FarhandError) as caught:
            await open_store(address)
        facts = await inspect_store(address)
        assert facts.problem is not None
        assert "does not exist" in facts.problem
        assert "secret" not in facts.problem
        assert facts.hint == caught.value.hint


@pytest.mark.parametrize(
    ("busy", "connections", "queue"),
    [
        (ServerLoad(97, 0, 0.0), "ok", "ok"),
        (ServerLoad(97, 88, 0.1), "note", "ok"),
        (ServerLoad(97, 120, 0.0), "note", "ok"),
        (ServerLoad(97, 87, 0.11), "ok", "note"),
    ],
)
def test_few_connections_and_a_queue_that_fills_are_said_before_they_hurt(
    busy: ServerLoad, connections: str, queue: str
) -> None:
    assert doctor._check_connections(busy).verdict == connections
    assert doctor._check_queue(busy).verdict == queue
