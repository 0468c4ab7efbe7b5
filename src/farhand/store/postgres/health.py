"""Looks at a PostgreSQL store from outside: which version, which tables, what time it is there, how busy.

Changes nothing; whatever a server would refuse at its start is a problem here.
"""

from __future__ import annotations

from msgspec import Struct

from farhand.clock import Clock
from farhand.store.health import ServerLoad, StoreHealth
from farhand.store.postgres.connection import (
    Connection,
    ConnectionLost,
    Place,
    StatementFailed,
    connect,
    place_of,
)
from farhand.store.postgres.schema import (
    HAS_META,
    HINT,
    OLDEST,
    foreign_tables,
    hint_for,
    latest_version,
    missing_right,
    pooler_fault,
    stored_version,
)
from farhand.store.records import unreadable_in

RECORDS = """
    SELECT 'thread', thread_id, body FROM threads WHERE body IS NOT NULL
    UNION ALL SELECT 'call', call_id, body FROM calls
    UNION ALL SELECT 'run', run_id, body FROM runs
    UNION ALL SELECT 'client', client_id, body FROM clients
"""


async def inspect_database(address: str, clock: Clock) -> StoreHealth:
    place = place_of(address)
    try:
        connection = await connect(place)
        try:
            return await _inspect(connection, place, clock)
        finally:
            await connection.close()
    except (ConnectionLost, StatementFailed, ValueError) as error:
        return _unusable(place, error)


async def _inspect(connection: Connection, place: Place, clock: Clock) -> StoreHealth:
    asked = clock.now()
    found = await connection.fetch(
        "SELECT current_setting('server_version'), current_setting('server_version_num')::int,"
        " extract(epoch FROM clock_timestamp())::float8"
    )
    name, number, there = found[0]
    # the answer was under way for as long as the question
    behind = (asked + clock.now()) / 2 - there
    what = f"PostgreSQL {name}, {place.name}"
    if number < OLDEST:
        return StoreHealth(what, latest=latest_version(), problem="farhand needs PostgreSQL 13 or newer")
    pooled = await pooler_fault(place)
    if pooled is not None:
        return StoreHealth(what, latest=latest_version(), problem=pooled, hint=HINT)
    found_problem = await find_problem(connection, place)
    if found_problem is not None:
        return StoreHealth(what, latest=latest_version(), problem=found_problem.what, hint=found_problem.hint)
    version = await stored_version(connection, place)
    unreadable = unreadable_in(await connection.fetch(RECORDS)) if version == latest_version() else ()
    busy = await _busy(connection)
    return StoreHealth(what, version, latest_version(), behind, busy=busy, unreadable=unreadable)


async def _busy(connection: Connection) -> ServerLoad:
    """Of all programs on that server, whoever they are: they share its connections and its one queue."""
    found = await connection.fetch(
        "SELECT current_setting('max_connections')::int"
        " - current_setting('superuser_reserved_connections')::int,"
        # our own, which is gone in a moment, does not count
        " (SELECT sum(numbackends)::int FROM pg_stat_database) - 1, pg_notification_queue_usage()"
    )
    at_most, connections, queue = found[0]
    return ServerLoad(at_most, connections, queue)


def _unusable(place: Place, error: Exception) -> StoreHealth:
    said = str(error).removesuffix(".")
    hint = hint_for(said, place.schema)
    return StoreHealth(f"PostgreSQL, {place.name}", latest=latest_version(), problem=said, hint=hint)


class Problem(Struct, frozen=True):
    what: str
    hint: str


async def find_problem(connection: Connection, place: Place) -> Problem | None:
    """The first thing that would keep a server from this store; None if nothing would."""
    for check in (_check_writable, _check_schema, _check_tables):
        problem = await check(connection, place)
        if problem is not None:
            return problem
    return None


async def _check_writable(connection: Connection, place: Place) -> Problem | None:
    [row] = await connection.fetch(
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
    )
    if row[0]:
        return Problem("it is a standby, which takes no writes", "Name the primary.")
    if row[1]:
        return Problem(
            "this user may only read: default_transaction_read_only is on",
            "Switch it off for this user, or name another one.",
        )
    return None


async def _check_schema(connection: Connection, place: Place) -> Problem | None:
    """No schema, or none that this user may look into and make tables in."""
    [row] = await connection.fetch(SCHEMA, place.schema)
    may_make_schemas, is_there, may_use, may_make_tables = row
    if not is_there:
        return None if may_make_schemas else _denied("database", place, place.name.split(" ")[0])
    [found] = await connection.fetch(HAS_META, place.schema)
    foreign = None if found[0] else await foreign_tables(connection, place)
    if foreign is not None:
        return Problem(*foreign)
    # tables that are there and up to date need no right to make others
    if not may_use or not (may_make_tables or found[0]):
        return _denied("schema", place, place.schema)
    return None


async def _check_tables(connection: Connection, place: Place) -> Problem | None:
    """Tables of ours that this user may not work with, or may not bring up to date."""
    rows = await connection.fetch(CLOSED, place.schema)
    closed: dict[str, str] = {row[0]: row[1] for row in rows}
    for kind in ("table", "sequence"):
        if kind in closed:
            return _denied(kind, place, closed[kind])
    version = await stored_version(connection, place)
    if version is None or version >= latest_version():
        return None
    [row] = await connection.fetch(FOREIGN, place.schema)
    if row[0] is not None:
        what = f"its tables must be brought up to date: must be owner of table {row[0]}"
        return Problem(what, missing_right(what, place.schema))
    [row] = await connection.fetch("SELECT has_schema_privilege($1, 'CREATE')", place.schema)
    return None if row[0] else _denied("schema", place, place.schema)


def _denied(kind: str, place: Place, name: str) -> Problem:
    """In the database's own words, so that both ways of finding out say the same."""
    what = f"permission denied for {kind} {name}"
    return Problem(what, missing_right(what, place.schema))


SCHEMA = """
    SELECT has_database_privilege(current_database(), 'CREATE'), ours.oid IS NOT NULL,
        has_schema_privilege(ours.oid, 'USAGE'), has_schema_privilege(ours.oid, 'CREATE')
    FROM (SELECT) AS once LEFT JOIN pg_namespace AS ours ON nspname = $1
"""

CLOSED = """
    SELECT CASE relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, min(relname)
    FROM pg_class JOIN pg_namespace AS ours ON ours.oid = relnamespace
    WHERE nspname = $1 AND CASE relkind
        WHEN 'S' THEN NOT has_sequence_privilege(pg_class.oid, 'USAGE')
        WHEN 'r' THEN NOT (
            has_table_privilege(pg_class.oid, 'SELECT')
            -- which version it is, a server that finds the newest only reads
            AND (relname = 'meta' OR (
                has_table_privilege(pg_class.oid, 'INSERT') AND has_table_privilege(pg_class.oid, 'UPDATE')
                AND has_table_privilege(pg_class.oid, 'DELETE'))))
        ELSE false END
    GROUP BY 1
"""

FOREIGN = """
    SELECT min(tablename) FROM pg_tables WHERE schemaname = $1 AND NOT pg_has_role(tableowner, 'USAGE')
"""
