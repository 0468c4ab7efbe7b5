"""Makes our schema and brings its tables up to date, whoever comes first: the others wait for a lock.

Whatever is wrong with a database is one clear sentence at start. Must not know what is kept in the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from farhand.errors import BadSetting
from farhand.store.draft.records import Columns
from farhand.store.postgres.line import Declined, Line, Lost, connect, is_writable
from farhand.store.postgres.place import Place
from farhand.store.postgres.pooler import HINT, pooler_fault

OLDEST = 130_000
"""PostgreSQL 13: older ones cannot say what became of a transaction by its id."""
MIGRATE_SEC = 60.0
"""How long a change of the tables may take, and how long others wait for it."""


async def prepare(place: Place, *, as_is: bool = False) -> float:
    """The tables are there, in the newest version; and what time the database says it is. `as_is` makes and
    changes nothing."""
    try:
        line = await connect(place)
    except (Lost, ValueError) as error:
        raise _unusable(place, error) from error
    try:
        if not as_is:
            # first: without a session's settings, tables would be made where they do not belong
            await check_for_pooler(place)
        return await _prepare(line, place, as_is=as_is)
    except (Lost, Declined, ValueError) as error:
        raise _unusable(place, error) from error
    finally:
        await line.close()


def latest_version() -> int:
    return max(number for number, _ in _migrations())


async def check_for_pooler(place: Place) -> None:
    """`BadSetting` if LISTEN, or a session's settings, do not get through to the database."""
    try:
        fault = await pooler_fault(place)
    except (Lost, Declined, ValueError) as error:
        raise _unusable(place, error) from error
    if fault is not None:
        raise BadSetting(f"The store {place.name} cannot be used: {fault}.", hint=HINT)


async def _prepare(line: Line, place: Place, *, as_is: bool) -> float:
    found: Sequence[Columns] = await line.fetch(
        "SELECT current_setting('server_version_num')::int, extract(epoch FROM clock_timestamp())::float8"
    )
    version, now = found[0]
    if version < OLDEST:
        raise BadSetting(
            f"The store {place.name} is PostgreSQL {version // 10_000}; farhand needs 13 or newer."
        )
    stored = await stored_version(line, place)
    if as_is:
        check_version(place.name, stored)
        return float(now)
    if not await is_writable(line):
        raise BadSetting(
            f"The store {place.name} takes no writes: it is a replica, or was made read-only.",
            hint="Name the primary in the address.",
        )
    if stored != latest_version():
        await _migrate(line, place)
    return float(now)


def check_version(name: str, stored: int | None) -> None:
    latest = latest_version()
    if stored is None:
        raise BadSetting(
            f"There is no store {name}: it has no tables of farhand.", hint="Check the name of the schema."
        )
    if stored != latest:
        raise BadSetting(
            f"The store {name} has tables of version {stored}, and this farhand works with {latest}.",
            hint="Use the farhand that serves it, or start a server of the newer one first.",
        )


async def _migrate(line: Line, place: Place) -> None:
    """One transaction: a crash in the middle leaves the version before it."""
    await _wait_for_others(line, place)
    stored = await stored_version(line, place)
    latest = latest_version()
    if stored is not None and stored > latest:
        raise BadSetting(
            f"The store {place.name} was written by a newer farhand ({stored}; this one knows {latest}).",
            hint="Use that farhand, or another schema.",
        )
    if stored is None:
        await _make_ours(line, place)
    for number, sql in _migrations():
        if number > (stored or 0):
            await line.run(sql, seconds=MIGRATE_SEC)
            await line.fetch("UPDATE farhand_version SET number = $1", number)
    await line.run("COMMIT", seconds=MIGRATE_SEC)


async def _wait_for_others(line: Line, place: Place) -> None:
    """Begins the transaction. The database's patience is a little shorter than ours, so that it says why."""
    limit = int(MIGRATE_SEC * 1000)
    await line.run(f"SET statement_timeout = {limit}; SET lock_timeout = {limit * 9 // 10}; BEGIN")
    lock = "SELECT pg_advisory_xact_lock(hashtextextended('farhand tables of ' || $1::text, 0))"
    try:
        await line.fetch(lock, place.schema, seconds=MIGRATE_SEC)
    except Declined as error:
        raise Declined("another process is changing the tables, and is not done yet") from error


async def _make_ours(line: Line, place: Place) -> None:
    """A schema with tables of somebody else is never touched."""
    [row] = await line.fetch("SELECT count(*) FROM pg_tables WHERE schemaname = $1", place.schema)
    if row[0]:
        raise BadSetting(
            f"The store {place.name} has tables of another program.", hint="Name another schema."
        )
    [row] = await line.fetch("SELECT count(*) FROM pg_namespace WHERE nspname = $1", place.schema)
    if not row[0]:
        # checked when the address was read: small letters, digits and _
        await line.run(f'CREATE SCHEMA "{place.schema}"')
    await line.run(
        "CREATE TABLE farhand_version (number int NOT NULL); INSERT INTO farhand_version VALUES (0)"
    )


async def stored_version(line: Line, place: Place) -> int | None:
    # by a plain read: to_regclass may still remember that there was none before we waited for the lock
    [row] = await line.fetch(
        "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = 'farhand_version'", place.schema
    )
    if not row[0]:
        return None
    found: Sequence[Columns] = await line.fetch("SELECT number FROM farhand_version")
    return int(found[0][0])


def _migrations() -> list[tuple[int, str]]:
    folder = files("farhand.store") / "migrations" / "postgres"
    scripts = [script for script in folder.iterdir() if script.name.endswith(".sql")]
    return sorted((int(script.name[:4]), script.read_text()) for script in scripts)


def _unusable(place: Place, error: Exception) -> BadSetting:
    return BadSetting(
        f"The store {place.name} cannot be used: {str(error).removesuffix('.')}.",
        hint=missing_right(str(error), place.schema)
        or _to_wait(str(error))
        or behind_pooler(str(error))
        or "Check the address, and that the database is running and lets this user in.",
    )


def behind_pooler(said: str) -> str:
    """The next step, if it was a pooler that said this."""
    # the words of PgBouncer for a setting that it does not pass on
    return f"A pooler said this. {HINT}" if "unsupported startup parameter" in said else ""


def _to_wait(said: str) -> str:
    return "Try again when it is done." if "is changing the tables" in said else ""


def missing_right(said: str, schema: str) -> str:
    """What to grant, by what the database said; nothing if that was something else."""
    rights = {
        "permission denied for database": "CREATE ON DATABASE, or make the schema for this user",
        "permission denied for schema": f"USAGE, CREATE ON SCHEMA {schema}",
        # a schema that one may not look into is as good as not there
        'relation "farhand_version" does not exist': f"USAGE, CREATE ON SCHEMA {schema}",
        "no schema has been selected to create in": f"USAGE, CREATE ON SCHEMA {schema}",
        "permission denied for table": f"ALL ON ALL TABLES IN SCHEMA {schema}",
        "permission denied for sequence": f"ALL ON ALL SEQUENCES IN SCHEMA {schema}",
        "must be owner of": "the role that owns the tables",
    }
    grant = next((right for words, right in rights.items() if words in said), "")
    return f"This user lacks a right. GRANT {grant}." if grant else ""
