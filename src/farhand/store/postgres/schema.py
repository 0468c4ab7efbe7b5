"""The tables of a PostgreSQL store, and the numbered steps that bring a schema up to date.

The first process makes them, the others wait for a lock. From version 1 on, every version of farhand opens
what an older one wrote. A step is added behind the others and never changed again; `meta` has the number of
the last one that was run. Whatever is wrong with a database is one clear sentence at start.

A record is JSON in `body`, kept byte for byte; the columns beside it are what a statement compares or sorts
by. Rows are numbered, because our ids are random: rows written together lie together. There are no foreign
keys: a transaction that removes a thread holds its row and removes the rest with it. Ids are compared by
their bytes (COLLATE "C"). Indexes of open things alone do not grow with the history.
"""

from __future__ import annotations

import asyncio
import os

from farhand.errors import BadSetting
from farhand.store.postgres.connection import (
    BY_INDEX,
    Connection,
    ConnectionLost,
    Place,
    StatementFailed,
    connect,
    is_writable,
)

TABLES = """
-- One row per thread; its lock is what an append holds. Most appends change no column that an index has, so
-- that PostgreSQL can update the row in place: hence `written_hour`, since `written_at` always changes.
-- `bytes` is the size of its rows in the log; a snapshot counts once `is_purged`, since it stands for them.
CREATE TABLE threads (
    thread_no      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant         text COLLATE "C" NOT NULL,
    subject        text COLLATE "C" NOT NULL,
    thread_id      text COLLATE "C" NOT NULL,
    version        bigint NOT NULL DEFAULT 0,
    updated_at     double precision NOT NULL DEFAULT 0,
    run_id         text COLLATE "C",
    can_go_on      boolean NOT NULL DEFAULT false,
    is_running     boolean NOT NULL DEFAULT false,
    kept_from      bigint,
    worker         text COLLATE "C",
    lease_until    double precision NOT NULL DEFAULT 0,
    written_at     double precision NOT NULL DEFAULT 0,
    written_hour   bigint NOT NULL DEFAULT 0,
    is_covered     boolean NOT NULL DEFAULT true,
    is_purged      boolean NOT NULL DEFAULT false,
    bytes          bigint NOT NULL DEFAULT 0,
    snapshot_bytes bigint NOT NULL DEFAULT 0,
    body           bytea,
    UNIQUE (tenant, subject, thread_id)
) WITH (fillfactor = 70);

CREATE INDEX threads_by_use ON threads (tenant, subject, updated_at, thread_id);
CREATE INDEX threads_to_advance ON threads (thread_no) WHERE can_go_on;
CREATE INDEX threads_running ON threads (tenant, subject) WHERE is_running;
CREATE INDEX threads_of_worker ON threads (worker) WHERE worker IS NOT NULL;
CREATE INDEX threads_uncovered ON threads (written_hour) WHERE NOT is_covered;

CREATE TABLE log (
    thread_no bigint NOT NULL,
    version   bigint NOT NULL,
    at        double precision NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (thread_no, version)
);

CREATE INDEX log_by_age ON log (at);

CREATE TABLE snapshots (
    thread_no bigint PRIMARY KEY,
    version   bigint NOT NULL,
    body      bytea NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE calls (
    call_no     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    call_id     text COLLATE "C" NOT NULL,
    thread_no   bigint NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    subject     text COLLATE "C" NOT NULL,
    run_id      text COLLATE "C",
    approval_id text COLLATE "C",
    request_id  text COLLATE "C",
    client_id   text COLLATE "C",
    deadline    double precision,
    opened_at   double precision NOT NULL,
    settled_at  double precision,
    body        bytea NOT NULL,
    UNIQUE (tenant, subject, call_id)
) WITH (fillfactor = 80);

CREATE INDEX calls_of_thread ON calls (thread_no);
CREATE INDEX calls_by_approval ON calls (tenant, subject, approval_id) WHERE approval_id IS NOT NULL;
CREATE UNIQUE INDEX calls_by_request ON calls (tenant, subject, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX calls_open ON calls (tenant, subject, opened_at, call_id) WHERE settled_at IS NULL;
CREATE INDEX calls_of_client ON calls (client_id) WHERE settled_at IS NULL AND client_id IS NOT NULL;
CREATE INDEX calls_direct ON calls (opened_at, call_id) WHERE settled_at IS NULL AND run_id IS NULL;
CREATE INDEX calls_due ON calls (deadline) WHERE settled_at IS NULL AND deadline IS NOT NULL;
CREATE INDEX calls_settled ON calls (settled_at) WHERE settled_at IS NOT NULL;

CREATE TABLE runs (
    tenant     text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    thread_no  bigint NOT NULL,
    started_at double precision NOT NULL,
    ended_at   double precision,
    body       bytea NOT NULL,
    PRIMARY KEY (tenant, subject, run_id)
) WITH (fillfactor = 80);

CREATE INDEX runs_of_thread ON runs (thread_no);
CREATE INDEX runs_of_owner ON runs (tenant, subject, started_at, run_id);
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE tools (
    version text COLLATE "C" PRIMARY KEY,
    body    bytea NOT NULL
);

-- The last number that was given out, and the last one that a purge removed. A transaction that adds to a
-- feed holds its row until it ends, so that numbers appear in their order.
CREATE TABLE feeds (
    tenant  text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    last    bigint NOT NULL,
    purged  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, subject)
) WITH (fillfactor = 50);

-- The entries `no - count + 1` to `no`, stored together. What an append tells stands in its thread's log and
-- is only pointed at; the rest has a body of its own.
CREATE TABLE feed (
    tenant    text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    no        bigint NOT NULL,
    count     bigint NOT NULL,
    at        double precision NOT NULL,
    thread_id text COLLATE "C",
    thread_no bigint,
    version   bigint,
    body      bytea,
    PRIMARY KEY (tenant, subject, no)
);

CREATE INDEX feed_by_age ON feed (at);

-- `size` and `pieces` count what is here; `arrived` is true from the last piece on. `bound` is true once a
-- thread refers to the file: from then on it goes with its last thread and not by its age.
CREATE TABLE files (
    file_no    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ref        text COLLATE "C" NOT NULL UNIQUE,
    tenant     text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    size       bigint NOT NULL,
    pieces     bigint NOT NULL,
    arrived    boolean NOT NULL,
    bound      boolean NOT NULL DEFAULT false,
    written_at double precision NOT NULL,
    body       bytea NOT NULL
);

CREATE INDEX files_of_owner ON files (tenant, subject, size);
CREATE INDEX files_unbound ON files (written_at) WHERE NOT bound;

CREATE TABLE pieces (
    file_no  bigint NOT NULL,
    piece_no bigint NOT NULL,
    piece    bytea NOT NULL,
    PRIMARY KEY (file_no, piece_no)
);

CREATE TABLE file_threads (
    thread_no bigint NOT NULL,
    file_no   bigint NOT NULL,
    PRIMARY KEY (thread_no, file_no)
);

CREATE INDEX file_threads_of_file ON file_threads (file_no);

CREATE TABLE clients (
    tenant    text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    client_id text COLLATE "C" NOT NULL,
    version   bigint NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (tenant, subject, client_id)
);

-- Which stream of a client is its newest, on whichever process, and until when that one is known to be there.
CREATE TABLE streams (
    tenant     text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    client_id  text COLLATE "C" NOT NULL,
    stream_no  bigint NOT NULL,
    here_until double precision NOT NULL,
    PRIMARY KEY (tenant, subject, client_id)
) WITH (fillfactor = 70);
"""


STEPS: tuple[str, ...] = (TABLES,)
"""The step at place n makes version n + 1."""
OLDEST = 130_000
"""PostgreSQL 13. Older ones are not tried."""
MIGRATE_SEC = 60.0
"""How long a change of the tables may take, and how long others wait for it."""
OLD_LAYOUT = {"farhand_version", "messages", "events"}
"""Tables of farhand before each thread had one log."""

HAS_META = """
    SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = $1 AND relname = 'meta' AND attname = 'farhand_version'
"""


async def prepare(place: Place, *, as_is: bool = False) -> float:
    """The tables are there, in the newest version; and what time the database says it is. `as_is` makes and
    changes nothing."""
    try:
        connection = await connect(place)
    except (ConnectionLost, ValueError) as error:
        raise _unusable(place, error) from error
    try:
        if not as_is:
            # first: without a session's settings, tables would be made where they do not belong
            fault = await pooler_fault(place)
            if fault is not None:
                raise BadSetting(f"The store {place.name} cannot be used: {fault}.", hint=HINT)
        return await _prepare(connection, place, as_is=as_is)
    except (ConnectionLost, StatementFailed, ValueError) as error:
        raise _unusable(place, error) from error
    finally:
        await connection.close()


def latest_version() -> int:
    return len(STEPS)


async def _prepare(connection: Connection, place: Place, *, as_is: bool) -> float:
    found = await connection.fetch(
        "SELECT current_setting('server_version_num')::int, extract(epoch FROM clock_timestamp())::float8"
    )
    version, now = found[0]
    if version < OLDEST:
        raise BadSetting(
            f"The store {place.name} is PostgreSQL {version // 10_000}; farhand needs 13 or newer."
        )
    stored = await stored_version(connection, place)
    if as_is:
        check_version(place.name, stored)
        return float(now)
    if not await is_writable(connection):
        raise BadSetting(
            f"The store {place.name} takes no writes: it is a replica, or was made read-only.",
            hint="Name the primary in the address.",
        )
    if stored != latest_version():
        await _migrate(connection, place)
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


async def _migrate(connection: Connection, place: Place) -> None:
    """One transaction: a crash in the middle leaves the version before it."""
    await _wait_for_others(connection, place)
    stored = await stored_version(connection, place)
    latest = latest_version()
    if stored is not None and stored > latest:
        raise BadSetting(
            f"The store {place.name} was written by a newer farhand ({stored}; this one knows {latest}).",
            hint="Use that farhand, or another schema.",
        )
    if stored is None:
        await _make_ours(connection, place)
    for number, sql in enumerate(STEPS[stored or 0 :], (stored or 0) + 1):
        await connection.execute(sql, seconds=MIGRATE_SEC)
        await connection.fetch("UPDATE meta SET farhand_version = $1", number)
    await connection.execute("COMMIT", seconds=MIGRATE_SEC)


async def _wait_for_others(connection: Connection, place: Place) -> None:
    """Begins the transaction. The database's patience is a little shorter than ours, so that it says why."""
    limit = int(MIGRATE_SEC * 1000)
    await connection.execute(f"SET statement_timeout = {limit}; SET lock_timeout = {limit * 9 // 10}; BEGIN")
    lock = "SELECT pg_advisory_xact_lock(hashtextextended('farhand tables of ' || $1::text, 0))"
    try:
        await connection.fetch(lock, place.schema, seconds=MIGRATE_SEC)
    except StatementFailed as error:
        raise StatementFailed("another process is changing the tables, and is not done yet") from error


async def _make_ours(connection: Connection, place: Place) -> None:
    """A schema with tables of another program is never touched."""
    foreign = await foreign_tables(connection, place)
    if foreign is not None:
        problem, hint = foreign
        raise BadSetting(f"The store {place.name} cannot be used: {problem}.", hint=hint)
    [row] = await connection.fetch("SELECT count(*) FROM pg_namespace WHERE nspname = $1", place.schema)
    if not row[0]:
        # checked when the address was read: small letters, digits and _
        await connection.execute(f'CREATE SCHEMA "{place.schema}"')
    await connection.execute("CREATE TABLE meta (farhand_version int NOT NULL); INSERT INTO meta VALUES (0)")


async def foreign_tables(connection: Connection, place: Place) -> tuple[str, str] | None:
    """What is wrong with the tables of a schema that has none of ours, and what to do; None if there are
    none."""
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", place.schema)
    names = {row[0] for row in rows}
    if names >= OLD_LAYOUT:
        hint = f"Name another schema, or remove this one: DROP SCHEMA {place.schema} CASCADE."
        return "its tables are of a farhand from before its first release", hint
    return ("it has tables of another program", "Name another schema.") if names else None


async def stored_version(connection: Connection, place: Place) -> int | None:
    # by a plain read: to_regclass may still remember that there was none before we waited for the lock
    [row] = await connection.fetch(HAS_META, place.schema)
    if not row[0]:
        return None
    [row] = await connection.fetch("SELECT farhand_version FROM meta")
    return int(row[0])


def _unusable(place: Place, error: Exception) -> BadSetting:
    said = str(error).removesuffix(".")
    return BadSetting(f"The store {place.name} cannot be used: {said}.", hint=hint_for(said, place.schema))


def hint_for(said: str, schema: str) -> str:
    """The next step, by what the database, or a pooler before it, said."""
    # the words of PgBouncer for a setting that it does not pass on
    if "unsupported startup parameter" in said:
        return f"A pooler said this. {HINT}"
    if "is changing the tables" in said:
        return "Try again when it is done."
    return (
        missing_right(said, schema)
        or "Check the address, and that the database is running and lets this user in."
    )


def missing_right(said: str, schema: str) -> str:
    """What to grant, by what the database said; nothing if that was something else."""
    rights = {
        "permission denied for database": "CREATE ON DATABASE, or make the schema for this user",
        "permission denied for schema": f"USAGE, CREATE ON SCHEMA {schema}",
        # a schema that one may not look into is as good as not there
        'relation "meta" does not exist': f"USAGE, CREATE ON SCHEMA {schema}",
        "no schema has been selected to create in": f"USAGE, CREATE ON SCHEMA {schema}",
        "permission denied for table": f"ALL ON ALL TABLES IN SCHEMA {schema}",
        "permission denied for sequence": f"ALL ON ALL SEQUENCES IN SCHEMA {schema}",
        "must be owner of": "the role that owns the tables",
    }
    grant = next((right for words, right in rights.items() if words in said), "")
    return f"This user lacks a right. GRANT {grant}." if grant else ""


HEARD_SEC = 5.0
HINT = (
    "LISTEN does not work through a transaction pooler (PgBouncer with pool_mode = transaction): "
    "name the database itself in the address."
)


async def pooler_fault(place: Place) -> str | None:
    """What is lost between here and the database; None if nothing is."""
    listener = await connect(place, settings=BY_INDEX)
    try:
        speaker = await connect(place, settings=BY_INDEX)
        try:
            return await _fault(listener, speaker, place)
        finally:
            await speaker.close()
    finally:
        await listener.close()


async def _fault(listener: Connection, speaker: Connection, place: Place) -> str | None:
    [row] = await listener.fetch("SELECT current_setting('search_path')")
    if row[0] != place.schema:
        return "the settings of a session (search_path) are lost on the way"
    heard = asyncio.Event()
    # a channel of this look alone: what others say is not ours
    channel = f"farhand_look_{os.urandom(8).hex()}"
    await listener.listen(channel, lambda _text: heard.set())
    await speaker.fetch("SELECT pg_notify($1, '')", channel)
    try:
        async with asyncio.timeout(HEARD_SEC):
            await heard.wait()
    except TimeoutError:
        return "our own NOTIFY did not arrive"
    return None
