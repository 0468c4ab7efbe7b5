"""How the tables of a PostgreSQL store (`tables.sql`) are created and upgraded, and what is wrong with a
database, for `farhand doctor`.

The first process creates them, the others wait for a lock. From version 1 on, every version of farhand opens
what an older one wrote. A step is added after the others and never changed again; `meta` has the number of
the last one that was run. Any problem with a database is one clear sentence at start; an inspection from
outside changes nothing and finds the same.

A record is JSON in `body`, stored byte for byte; the other columns are what a statement compares or sorts by.
Rows are numbered, because our ids are random: rows written together are stored together. There are no foreign
keys: a transaction that removes a thread holds its row and removes the rest with it. Ids are compared by
their bytes (COLLATE "C"). Indexes of open things only do not grow with the history.
"""

from __future__ import annotations

import asyncio
import os
from importlib.resources import files

from msgspec import Struct

from farhand.clock import Clock
from farhand.errors import BadSetting
from farhand.store.health import ServerLoad, StoreHealth
from farhand.store.postgres.connection import (
    BY_INDEX,
    COMMAND_SEC,
    Connection,
    ConnectionLost,
    DatabaseAddress,
    StatementFailed,
    connect,
    is_writable,
    parse_address,
)
from farhand.store.records import unreadable_in

TABLES = files("farhand.store.postgres").joinpath("tables.sql").read_text("utf-8")
# until it changes, a call from before this step is one that needs a worker
NEEDS_WORKER = """
    ALTER TABLE calls ADD COLUMN needs_worker boolean NOT NULL DEFAULT true;
    DROP INDEX calls_direct;
    CREATE INDEX calls_for_worker ON calls (opened_at, call_id)
        WHERE settled_at IS NULL AND run_id IS NULL AND needs_worker;
"""
STEPS: tuple[str, ...] = (TABLES, NEEDS_WORKER)
"""The step at index n makes version n + 1."""
OLDEST = 130_000
"""PostgreSQL 13. Older versions are not tested."""
MIGRATE_SEC = 60.0
"""How long a change of the tables may take, and how long others wait for it."""
OLD_LAYOUT = {"farhand_version", "messages", "events"}
"""Tables of farhand before each thread had one log."""

HAS_META = """
    SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = $1 AND relname = 'meta' AND attname = 'farhand_version'
"""


async def prepare(database: DatabaseAddress, *, as_is: bool = False) -> float:
    """Ensures that the tables exist in the newest version; returns the database's time. `as_is` creates and
    changes nothing."""
    try:
        connection = await connect(database)
    except (ConnectionLost, ValueError) as error:
        raise _unusable(database, error) from error
    try:
        if not as_is:
            # first: without a session's settings, tables would be created in the wrong place
            fault = await pooler_fault(database)
            if fault is not None:
                raise BadSetting(f"The store {database.name} cannot be used: {fault}.", hint=HINT)
        return await _prepare(connection, database, as_is=as_is)
    except (ConnectionLost, StatementFailed, ValueError) as error:
        raise _unusable(database, error) from error
    finally:
        await connection.close()


def latest_version() -> int:
    return len(STEPS)


async def _prepare(connection: Connection, database: DatabaseAddress, *, as_is: bool) -> float:
    [row] = await connection.fetch("SELECT current_setting('server_version_num')::int")
    version = row[0]
    if version < OLDEST:
        raise BadSetting(
            f"The store {database.name} is PostgreSQL {version // 10_000}; farhand needs 13 or newer."
        )
    stored = await stored_version(connection, database)
    if as_is:
        check_version(database.name, stored)
        return await _time_of(connection)
    if not await is_writable(connection):
        raise BadSetting(
            f"The store {database.name} accepts no writes: it is a replica, or was made read-only.",
            hint="Use the address of the primary.",
        )
    if stored != latest_version():
        await _migrate(connection, database)
    # last: a change of the tables may take a minute
    return await _time_of(connection)


async def _time_of(connection: Connection) -> float:
    [row] = await connection.fetch("SELECT extract(epoch FROM clock_timestamp())::float8")
    return float(row[0])


def check_version(name: str, stored: int | None) -> None:
    latest = latest_version()
    if stored is None:
        raise BadSetting(
            f"There is no store {name}: it has no farhand tables.", hint="Check the name of the schema."
        )
    if stored != latest:
        raise BadSetting(
            f"The store {name} has tables of version {stored}; this farhand uses version {latest}.",
            hint="Use the version of its servers, or start a server of the newer version first.",
        )


async def _migrate(connection: Connection, database: DatabaseAddress) -> None:
    """One transaction: a crash in the middle leaves the previous version."""
    await _wait_for_others(connection, database)
    stored = await stored_version(connection, database)
    latest = latest_version()
    if stored is not None and stored > latest:
        raise BadSetting(
            f"The store {database.name} was written by a newer farhand ({stored}; this one knows {latest}).",
            hint="Use that version of farhand, or another schema.",
        )
    if stored is None:
        await _make_ours(connection, database)
    for number, sql in enumerate(STEPS[stored or 0 :], (stored or 0) + 1):
        await connection.execute(sql, seconds=MIGRATE_SEC)
        await connection.fetch("UPDATE meta SET farhand_version = $1", number)
    await connection.execute("COMMIT", seconds=MIGRATE_SEC)


async def _wait_for_others(connection: Connection, database: DatabaseAddress) -> None:
    """Begins the transaction. The database's timeout is shorter than ours, so that it says why."""
    limit = int(MIGRATE_SEC * 1000)
    await connection.execute(f"SET statement_timeout = {limit}; SET lock_timeout = {limit * 9 // 10}; BEGIN")
    lock = "SELECT pg_advisory_xact_lock(hashtextextended('farhand tables of ' || $1::text, 0))"
    try:
        await connection.fetch(lock, database.schema, seconds=MIGRATE_SEC + COMMAND_SEC)
    except StatementFailed as error:
        raise StatementFailed("another process is still changing the tables") from error


async def _make_ours(connection: Connection, database: DatabaseAddress) -> None:
    """A schema with tables of another program is never touched."""
    foreign = await foreign_tables(connection, database)
    if foreign is not None:
        problem, hint = foreign
        raise BadSetting(f"The store {database.name} cannot be used: {problem}.", hint=hint)
    [row] = await connection.fetch("SELECT count(*) FROM pg_namespace WHERE nspname = $1", database.schema)
    if not row[0]:
        # validated when the address was parsed: lower-case letters, digits and _
        await connection.execute(f'CREATE SCHEMA "{database.schema}"')
    await connection.execute("CREATE TABLE meta (farhand_version int NOT NULL); INSERT INTO meta VALUES (0)")


async def foreign_tables(connection: Connection, database: DatabaseAddress) -> tuple[str, str] | None:
    """What is wrong with the tables of a schema that has none of ours, and what to do; None if there are
    none."""
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", database.schema)
    names = {row[0] for row in rows}
    if names >= OLD_LAYOUT:
        hint = f"Name another schema, or remove this one: DROP SCHEMA {database.schema} CASCADE."
        return "its tables are of a farhand from before its first release", hint
    return ("it has tables of another program", "Name another schema.") if names else None


async def stored_version(connection: Connection, database: DatabaseAddress) -> int | None:
    # by a plain read: to_regclass may have cached that it did not exist before we waited for the lock
    [row] = await connection.fetch(HAS_META, database.schema)
    if not row[0]:
        return None
    [row] = await connection.fetch("SELECT farhand_version FROM meta")
    return int(row[0])


def _unusable(database: DatabaseAddress, error: Exception) -> BadSetting:
    said = str(error).removesuffix(".")
    return BadSetting(
        f"The store {database.name} cannot be used: {said}.", hint=hint_for(said, database.schema)
    )


def hint_for(said: str, schema: str) -> str:
    """The next step, from the error message of the database or of a pooler before it."""
    # PgBouncer's message for a setting that it does not pass on
    if "unsupported startup parameter" in said:
        return f"This error comes from a connection pooler. {HINT}"
    if "is changing the tables" in said:
        return "Try again when it is done."
    return (
        missing_right(said, schema)
        or "Check the address, and that the database is running and lets this user in."
    )


def missing_right(said: str, schema: str) -> str:
    """What to grant, from the database's error message; empty if that was something else."""
    rights = {
        "permission denied for database": "CREATE ON DATABASE, or make the schema for this user",
        "permission denied for schema": f"USAGE, CREATE ON SCHEMA {schema}",
        # a schema without USAGE looks as if it did not exist
        'relation "meta" does not exist': f"USAGE, CREATE ON SCHEMA {schema}",
        "no schema has been selected to create in": f"USAGE, CREATE ON SCHEMA {schema}",
        "permission denied for table": f"ALL ON ALL TABLES IN SCHEMA {schema}",
        "permission denied for sequence": f"ALL ON ALL SEQUENCES IN SCHEMA {schema}",
        "must be owner of": "the role that owns the tables",
    }
    grant = next((right for words, right in rights.items() if words in said), "")
    return f"This user lacks a right. GRANT {grant}." if grant else ""


PROBE_SEC = 5.0
HINT = (
    "LISTEN does not work through a transaction pooler (PgBouncer with pool_mode = transaction): "
    "name the database itself in the address."
)


async def pooler_fault(database: DatabaseAddress) -> str | None:
    """What is lost between here and the database; None if nothing is."""
    listener = await connect(database, settings=BY_INDEX)
    try:
        speaker = await connect(database, settings=BY_INDEX)
        try:
            return await _fault(listener, speaker, database)
        finally:
            await speaker.close()
    finally:
        await listener.close()


async def _fault(listener: Connection, speaker: Connection, database: DatabaseAddress) -> str | None:
    [row] = await listener.fetch("SELECT current_setting('search_path')")
    if row[0] != database.schema:
        return "the settings of a session (search_path) are lost on the way"
    echo = asyncio.Event()
    # a channel for this check only: other notifications are not ours
    channel = f"farhand_look_{os.urandom(8).hex()}"
    await listener.listen(channel, lambda _text: echo.set())
    await speaker.fetch("SELECT pg_notify($1, '')", channel)
    try:
        async with asyncio.timeout(PROBE_SEC):
            await echo.wait()
    except TimeoutError:
        return "our own NOTIFY did not arrive"
    return None


RECORDS = """
    SELECT 'thread', thread_id, body FROM threads WHERE body IS NOT NULL
    UNION ALL SELECT 'call', call_id, body FROM calls
    UNION ALL SELECT 'run', run_id, body FROM runs
    UNION ALL SELECT 'client', client_id, body FROM clients
"""


async def inspect_database(address: str, clock: Clock) -> StoreHealth:
    """Which version, which tables, what time it is there, how busy. Changes nothing."""
    database = parse_address(address)
    try:
        connection = await connect(database)
        try:
            return await _inspect(connection, database, clock)
        finally:
            await connection.close()
    except (ConnectionLost, StatementFailed, ValueError) as error:
        return _unhealthy(database, error)


async def _inspect(connection: Connection, database: DatabaseAddress, clock: Clock) -> StoreHealth:
    asked = clock.now()
    found = await connection.fetch(
        "SELECT current_setting('server_version'), current_setting('server_version_num')::int,"
        " extract(epoch FROM clock_timestamp())::float8"
    )
    name, number, there = found[0]
    # the answer took as long as the question
    behind = (asked + clock.now()) / 2 - there
    what = f"PostgreSQL {name}, {database.name}"
    if number < OLDEST:
        return StoreHealth(what, latest=latest_version(), problem="farhand needs PostgreSQL 13 or newer")
    pooled = await pooler_fault(database)
    if pooled is not None:
        return StoreHealth(what, latest=latest_version(), problem=pooled, hint=HINT)
    found_problem = await find_problem(connection, database)
    if found_problem is not None:
        return StoreHealth(what, latest=latest_version(), problem=found_problem.what, hint=found_problem.hint)
    version = await stored_version(connection, database)
    unreadable = unreadable_in(await connection.fetch(RECORDS)) if version == latest_version() else ()
    busy = await _busy(connection)
    return StoreHealth(what, version, latest_version(), behind, busy=busy, unreadable=unreadable)


async def _busy(connection: Connection) -> ServerLoad:
    """Of all programs on that server: they share its connections and its one queue."""
    found = await connection.fetch(
        "SELECT current_setting('max_connections')::int"
        " - current_setting('superuser_reserved_connections')::int,"
        # our own connection, which is gone in a moment, does not count
        " (SELECT sum(numbackends)::int FROM pg_stat_database) - 1, pg_notification_queue_usage()"
    )
    at_most, connections, queue = found[0]
    return ServerLoad(at_most, connections, queue)


def _unhealthy(database: DatabaseAddress, error: Exception) -> StoreHealth:
    said = str(error).removesuffix(".")
    hint = hint_for(said, database.schema)
    return StoreHealth(f"PostgreSQL, {database.name}", latest=latest_version(), problem=said, hint=hint)


class Problem(Struct, frozen=True):
    what: str
    hint: str


async def find_problem(connection: Connection, database: DatabaseAddress) -> Problem | None:
    """The first problem that would keep a server from using this store; None if there is none."""
    for check in (_check_writable, _check_schema, _check_tables):
        problem = await check(connection, database)
        if problem is not None:
            return problem
    return None


async def _check_writable(connection: Connection, database: DatabaseAddress) -> Problem | None:
    [row] = await connection.fetch(
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
    )
    if row[0]:
        return Problem("it is a standby, which accepts no writes", "Use the address of the primary.")
    if row[1]:
        return Problem(
            "this user may only read: default_transaction_read_only is on",
            "Switch it off for this user, or name another one.",
        )
    return None


async def _check_schema(connection: Connection, database: DatabaseAddress) -> Problem | None:
    """No schema, or none that this user may use and create tables in."""
    [row] = await connection.fetch(SCHEMA, database.schema)
    may_make_schemas, is_there, may_use, may_make_tables = row
    if not is_there:
        return None if may_make_schemas else _denied("database", database, database.name.split(" ")[0])
    [found] = await connection.fetch(HAS_META, database.schema)
    foreign = None if found[0] else await foreign_tables(connection, database)
    if foreign is not None:
        return Problem(*foreign)
    # existing, up-to-date tables need no right to create others
    if not may_use or not (may_make_tables or found[0]):
        return _denied("schema", database, database.schema)
    return None


async def _check_tables(connection: Connection, database: DatabaseAddress) -> Problem | None:
    """Tables of ours that this user may not use, or may not upgrade."""
    rows = await connection.fetch(CLOSED, database.schema)
    closed: dict[str, str] = {row[0]: row[1] for row in rows}
    for kind in ("table", "sequence"):
        if kind in closed:
            return _denied(kind, database, closed[kind])
    version = await stored_version(connection, database)
    if version is None or version >= latest_version():
        return None
    [row] = await connection.fetch(FOREIGN, database.schema)
    if row[0] is not None:
        what = f"its tables must be brought up to date: must be owner of table {row[0]}"
        return Problem(what, missing_right(what, database.schema))
    [row] = await connection.fetch("SELECT has_schema_privilege($1, 'CREATE')", database.schema)
    return None if row[0] else _denied("schema", database, database.schema)


def _denied(kind: str, database: DatabaseAddress, name: str) -> Problem:
    """In the database's own terms, so that both checks report the same."""
    what = f"permission denied for {kind} {name}"
    return Problem(what, missing_right(what, database.schema))


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
