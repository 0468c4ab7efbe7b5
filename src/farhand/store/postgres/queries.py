"""Statements on threads, calls, runs, feeds, files and clients, and the values made of their rows. In
statements that name an owner, it comes first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.store.base import CallFilter, CallKey, Counted, FeedRow, FoundCall, FoundThread, Loaded, Row
from farhand.store.guards import open_calls_condition
from farhand.store.postgres.connection import NOW, Columns
from farhand.store.records import decode_call, decode_or_raise, decode_or_skip, decode_run, decode_thread

P = TypeVar("P")
R = TypeVar("R")

_THREAD = "(SELECT thread_no FROM threads WHERE tenant = $1 AND subject = $2 AND thread_id = $3)"

# one statement: the snapshot and the rows after it are from the same moment. The row of a snapshot has the
# time of the thread's last append
LOAD = """
    SELECT place::int, part.version, part.at, part.body, part.is_snapshot
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
            WITH ORDINALITY AS each (tenant, subject, thread_id, after, place)
        JOIN threads USING (tenant, subject, thread_id)
        CROSS JOIN LATERAL (
            SELECT snapshots.version, written_at AS at, snapshots.body, true AS is_snapshot
            FROM snapshots WHERE snapshots.thread_no = threads.thread_no AND after IS NULL
            UNION ALL
            SELECT log.version, log.at, log.body, false FROM log
            WHERE log.thread_no = threads.thread_no AND log.version > coalesce(
                after, (SELECT version FROM snapshots WHERE snapshots.thread_no = threads.thread_no), 0)
        ) AS part
    ORDER BY place, version
"""

_CALLS = """
    SELECT calls.tenant, calls.subject, thread_id, call_id, calls.body
    FROM calls JOIN threads USING (thread_no)
"""

_BY_KEY = """
    SELECT place::int, calls.tenant, calls.subject, threads.thread_id, calls.call_id, calls.body
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS each (tenant, subject, {0}, place)
        JOIN calls USING (tenant, subject, {0}) JOIN threads USING (thread_no)
"""

FIND_CALL: dict[CallKey, str] = {
    "call": _BY_KEY.format("call_id"),
    "approval": _BY_KEY.format("approval_id"),
    "request": _BY_KEY.format("request_id"),
}

_THREAD_COLUMNS = "tenant, subject, thread_id, version, body, updated_at, thread_no, lease_until"

_THREADS = f"SELECT {_THREAD_COLUMNS} FROM threads"

_LAST_USED = " ORDER BY updated_at DESC, thread_id DESC LIMIT $3"

THREADS = f"{_THREADS} WHERE tenant = $1 AND subject = $2 AND body IS NOT NULL {_LAST_USED}"

THREADS_AFTER = f"""
    {_THREADS} WHERE tenant = $1 AND subject = $2 AND body IS NOT NULL AND (updated_at, thread_id) < ($4, $5)
    {_LAST_USED}
"""

FIND_RUN = "SELECT body FROM runs WHERE tenant = $1 AND subject = $2 AND run_id = $3"

RUNS = """
    SELECT run_id, body FROM runs
    WHERE tenant = $1 AND subject = $2 AND (started_at, run_id) < (
        coalesce(
            (SELECT started_at FROM runs WHERE tenant = $1 AND subject = $2 AND run_id = $3),
            'infinity'::float8),
        coalesce($3, ''))
    ORDER BY started_at DESC, run_id DESC LIMIT $4
"""

FIND_TOOL = "SELECT body FROM tools WHERE version = $1"

_OF_OWNER = "tenant = $1 AND ($2::text IS NULL OR subject = $2)"

# without those that only remain to be reported: a call with a request id has a deadline until it is settled
_NOT_SETTLED = "settled_at IS NULL AND (request_id IS NULL OR deadline IS NOT NULL)"

COUNT: dict[Counted, str] = {
    "threads": f"SELECT count(*) FROM threads WHERE version > 0 AND {_OF_OWNER}",
    "running": f"SELECT count(*) FROM threads WHERE is_running AND {_OF_OWNER}",
    "open_calls": f"SELECT count(*) FROM calls WHERE {_NOT_SETTLED} AND {_OF_OWNER}",
    "bytes": f"""
        SELECT coalesce(sum(bytes + CASE WHEN is_purged THEN snapshot_bytes ELSE 0 END), 0)::bigint
        FROM threads WHERE {_OF_OWNER}
    """,
}

_IS_FREE = f"lease_until <= {NOW.format('$1')}"

# in a plan for any values, each run would be compared with the whole array of `<> ALL`
_IS_CLAIMABLE = """
    can_go_on AND body IS NOT NULL AND {0} AND run_id NOT IN (SELECT unnest($2::text[]))
    AND thread_no <> ALL($3::bigint[])
"""

_IS_FREE_OR_OWN = f"CASE $5::text WHEN '' THEN {_IS_FREE} ELSE worker = $5::text END"

CLAIMABLE = f"{_THREADS} WHERE {_IS_CLAIMABLE.format(_IS_FREE_OR_OWN)} ORDER BY thread_no LIMIT $4"

# skips what another worker is claiming at this moment
RESERVE_CLAIMABLE = f"""
    WITH found AS MATERIALIZED (
        SELECT thread_no FROM threads WHERE {_IS_CLAIMABLE.format(_IS_FREE)}
        ORDER BY thread_no LIMIT $4 FOR UPDATE SKIP LOCKED
    ), reserved AS (
        UPDATE threads SET worker = NULL, lease_until = {NOW.format("$1")} + $5::float8
        WHERE thread_no IN (SELECT thread_no FROM found)
        RETURNING {_THREAD_COLUMNS}
    )
    SELECT * FROM reserved ORDER BY thread_no
"""

# in the order in which appends lock threads, so that the two never deadlock
RENEW = f"""
    WITH leased AS MATERIALIZED (
        SELECT thread_no FROM threads WHERE worker = $1 ORDER BY tenant, subject, thread_id FOR UPDATE
    )
    UPDATE threads SET lease_until = {NOW.format("$3")} + $2::float8
    WHERE thread_no IN (SELECT thread_no FROM leased)
"""

FEED = """
    SELECT no, count, feed.at, coalesce(log.body, feed.body), thread_id, version
    FROM feed LEFT JOIN log USING (thread_no, version)
    WHERE tenant = $1 AND subject = $2 AND no > $3 AND coalesce(log.body, feed.body) IS NOT NULL
    ORDER BY no LIMIT $4
"""

FEED_SPAN = "SELECT purged + 1, last FROM feeds WHERE tenant = $1 AND subject = $2"

WITHOUT_SNAPSHOT = """
    SELECT tenant, subject, thread_id FROM threads
    WHERE NOT is_covered AND written_hour <= floor($1::float8 / 3600) AND written_at < $1
    ORDER BY written_hour LIMIT $2
"""

THREAD_KEYS = """
    SELECT tenant, subject, thread_id FROM threads WHERE (tenant, subject, thread_id) > ($1, $2, $3)
    ORDER BY tenant, subject, thread_id LIMIT $4
"""

PUT_SNAPSHOT = """
    WITH thread AS MATERIALIZED (
        SELECT thread_no, version FROM threads
        WHERE tenant = $1 AND subject = $2 AND thread_id = $3 AND EXISTS (
            SELECT FROM log WHERE log.thread_no = threads.thread_no AND log.version = $4 AND log.at = $6
        ) FOR UPDATE
    ), put AS (
        INSERT INTO snapshots (thread_no, version, body) SELECT thread_no, $4, $5 FROM thread
        ON CONFLICT (thread_no) DO UPDATE SET version = excluded.version, body = excluded.body
            WHERE snapshots.version < excluded.version
        RETURNING thread_no
    )
    UPDATE threads SET snapshot_bytes = octet_length($5), is_covered = threads.version = $4
    FROM put WHERE threads.thread_no = put.thread_no
"""

FIND_FILE = "SELECT body, size FROM files WHERE tenant = $1 AND subject = $2 AND ref = $3 AND arrived"

FIND_PIECE = """
    SELECT piece FROM pieces JOIN files USING (file_no)
    WHERE tenant = $1 AND subject = $2 AND ref = $3 AND arrived AND piece_no = $4
"""

KEPT_FILES = """
    SELECT count(*), coalesce(sum(size), 0)::bigint FROM files
    WHERE tenant = $1 AND ($2::text IS NULL OR subject = $2)
"""

_ADD_PIECES = """
    added AS (
        INSERT INTO pieces (file_no, piece_no, piece)
        SELECT file_no, $4 + place - 1, piece
        FROM file, unnest($5::bytea[]) WITH ORDINALITY AS each (piece, place)
    )
    SELECT file_no FROM file
"""

BEGIN_FILE = f"""
    WITH file AS (
        INSERT INTO files (tenant, subject, ref, size, pieces, arrived, written_at, body)
        SELECT $1, $2, $3, $6, cardinality($5::bytea[]), $7, {NOW.format("$8")}, $9
        WHERE $4::bigint = 0
        ON CONFLICT DO NOTHING RETURNING file_no
    ), {_ADD_PIECES}
"""

CONTINUE_FILE = f"""
    WITH file AS (
        UPDATE files SET size = size + $6, pieces = pieces + cardinality($5::bytea[]), arrived = $7,
            written_at = {NOW.format("$8")}
        WHERE tenant = $1 AND subject = $2 AND ref = $3 AND NOT arrived AND pieces = $4::bigint
        RETURNING file_no
    ), {_ADD_PIECES}
"""

LOCK_FILE = "SELECT file_no FROM files WHERE tenant = $1 AND subject = $2 AND ref = $3 FOR UPDATE"

LOCK_CLIENTS = """
    SELECT pg_advisory_xact_lock(
        hashtextextended(format('clients of %s %s %s', current_schema(), $1::text, $2::text), 0))
"""

CLIENTS = """
    SELECT client_id, version, body FROM clients WHERE $1::text IS NULL OR (tenant = $1 AND subject = $2)
    ORDER BY tenant, subject, client_id
"""

PUT_CLIENT = """
    INSERT INTO clients (tenant, subject, client_id, version, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET version = excluded.version, body = excluded.body
"""

LOCK_STREAM = f"""
    SELECT 1 FROM streams
    WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND here_until > {NOW.format("$4")} FOR UPDATE
"""

DROP_CLIENT = "DELETE FROM clients WHERE tenant = $1 AND subject = $2 AND client_id = $3"

STREAM_ARRIVES = f"""
    INSERT INTO streams (tenant, subject, client_id, stream_no, here_until)
    VALUES ($1, $2, $3, 1, {NOW.format("$4")} + $5::float8)
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET stream_no = streams.stream_no + 1, here_until = excluded.here_until
    RETURNING stream_no
"""

RENEW_SEATS = f"""
    UPDATE streams SET here_until = {NOW.format("$5")} + $6::float8
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
        AS seat (tenant, subject, client_id, stream_no)
    WHERE streams.tenant = seat.tenant AND streams.subject = seat.subject
        AND streams.client_id = seat.client_id AND streams.stream_no = seat.stream_no
    RETURNING streams.tenant, streams.subject, streams.client_id, streams.stream_no
"""

STREAM_LEAVES = f"""
    UPDATE streams SET here_until = {NOW.format("$5")}
    WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND stream_no = $4
"""

STREAM_IS_RETIRED = """
    SELECT 1 FROM streams WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND here_until = $4::float8
"""

EXPECT_STREAM = f"""
    INSERT INTO streams (tenant, subject, client_id, stream_no, here_until)
    VALUES ($1, $2, $3, 0, {NOW.format("$4")})
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET here_until = greatest(streams.here_until, excluded.here_until)
"""

STREAM_IS_HERE = f"""
    SELECT 1 FROM streams
    WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND here_until > {NOW.format("$4")}
"""

# a client that was never expected has been away for longer than any grace period
ABSENT_CLIENTS = f"""
    SELECT tenant, subject, client_id, coalesce(moment - here_until, 1e9)::float8
    FROM clients
        LEFT JOIN streams USING (tenant, subject, client_id)
        CROSS JOIN (SELECT {NOW.format("$1")} AS moment) AS now
    WHERE here_until IS NULL OR here_until <= moment
"""


def open_calls_query(which: CallFilter) -> tuple[str, list[object]]:
    """The statement and its values; the limit comes last."""
    condition, values = open_calls_condition(which, lambda number: f"${number}")
    return f"{_CALLS} {condition} LIMIT ${len(values) + 1}", values


def loaded_of(rows: Sequence[Columns]) -> Loaded:
    """From the rows of `LOAD` for one thread."""
    log = [Row(version, at, body) for _, version, at, body, is_snapshot in rows if not is_snapshot]
    if len(log) == len(rows):
        return Loaded(tuple(log))
    _, version, written_at, body, _ = rows[0]
    return Loaded(tuple(log), body, version, written_at)


def call_of(row: Columns) -> FoundCall:
    """From a row of `FIND_CALL`: raises `Unreadable` if it cannot be decoded."""
    _, tenant, subject, thread_id, _, body = row
    return FoundCall(Owner(tenant, subject), thread_id, decode_or_raise(decode_call, body))


def calls_of(rows: Sequence[Columns]) -> list[FoundCall]:
    """In a list: unreadable ones are left out."""
    found: list[FoundCall] = []
    for row in rows:
        call = decode_or_skip(decode_call, row[4], kind="call", name=row[3])
        if call is not None:
            found.append(FoundCall(Owner(row[0], row[1]), row[2], call))
    return found


def thread_of_row(row: Columns) -> FoundThread | None:
    record = decode_or_skip(decode_thread, row[4], kind="thread", name=row[2])
    if record is None:
        return None
    return FoundThread(Owner(row[0], row[1]), row[2], row[3], record, row["lease_until"])


def run_of_row(row: Columns) -> Run | None:
    return decode_or_skip(decode_run, row[1], kind="run", name=row[0])


def feed_row_of(row: Columns) -> FeedRow:
    return FeedRow(row[0], row[1], row[2], row[3], row[4], row[5])


async def full_page(
    limit: int,
    after: P,
    *,
    read: Callable[[P, int], Awaitable[list[Columns]]],
    cursor_of: Callable[[Columns], P],
    decode: Callable[[Columns], R | None],
) -> list[R]:
    """As many as can be read, or all there are: a short page counts as the last one."""
    page: list[R] = []
    while len(page) < limit:
        wanted = limit - len(page)
        rows = await read(after, wanted)
        page += [each for each in map(decode, rows) if each is not None]
        if len(rows) < wanted:
            break
        after = cursor_of(rows[-1])
    return page
