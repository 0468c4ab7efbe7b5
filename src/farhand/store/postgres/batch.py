"""One statement that judges and writes a batch of appends: its parts, its values and what its rows mean.

It locks the threads in a fixed order, compares their versions, judges time limits by the database's clock
after each lock, writes what holds and notifies the other processes. The statement is a transaction of its
own, so a batch is one round trip, whatever is in it. It is assembled from the parts that the batch needs.
Must not know what an event means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

from farhand.core.call import Call
from farhand.core.decide.direct import needs_worker
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.store.base import (
    FEED_GREW,
    THREAD_MOVED,
    Append,
    Appended,
    AppendResult,
    Moved,
    OutOfTime,
    RequestTaken,
    owner_key,
    thread_key,
)
from farhand.store.guards import can_go_on, is_current, is_in_time, is_open, is_running, key_of
from farhand.store.postgres.connection import (
    NOW,
    Columns,
    DatabaseClock,
    Unstorable,
)
from farhand.store.postgres.notify import Hint, payloads
from farhand.store.postgres.pool import Pool
from farhand.store.records import encode

Key: TypeAlias = tuple[str, str, str]
Values: TypeAlias = tuple[object, ...]


class EncodedAppend:
    """Its rows for each table, without the number of its thread, which only the database knows."""

    __slots__ = ("append", "calls", "files", "key", "names", "row", "runs", "size", "tools")

    def __init__(self, append: Append) -> None:
        owner = append.owner
        self.append = append
        self.key = key_of_append(append)
        self.row = _append_values(append)
        self.calls = _by_id(call_values(owner, call, at=append.at) for call in append.calls)
        self.runs = _by_id(run_values(owner, run) for run in append.runs)
        self.tools = [(tool.version, encode(tool)) for tool in append.tools]
        self.files = [(*self.key[:2], ref) for ref in append.files]
        records = [row[-1] for rows in (self.calls, self.runs, self.tools) for row in rows]
        self.size = sum(len(each) for each in (*self.row, *records) if isinstance(each, bytes))
        """Bytes of its records."""
        self.names: set[Values] = {self.key}
        """A statement changes a row once: of two appends that share one of these, one has to wait."""
        self.names.update([("call", *row[:3]) for row in self.calls])
        self.names.update([("run", *row[:3]) for row in self.runs])
        self.names.update([("request", *row[:2], row[5]) for row in self.calls if row[5] is not None])

    def requests(self, *, everywhere: bool) -> Iterator[Values]:
        """Request ids, each with its owner, and their calls: those that it opens, or all."""
        for call in self.append.calls:
            request_id = key_of(call, "request")
            if request_id is not None and (everywhere or call.version == 1):
                yield *self.key[:2], request_id, call.call_id


def key_of_append(append: Append) -> Key:
    return append.owner.tenant, append.owner.subject, append.thread_id


def columns(rows: Sequence[Values], count: int) -> list[list[object]]:
    """Transposes rows into columns, since a statement takes arrays of any length."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(count)]


def _append_values(append: Append) -> Values:
    """In the order of `wanted` in `JUDGE`; None for what is unchanged."""
    row, lease = append.thread, append.lease
    return (
        append.owner.tenant,
        append.owner.subject,
        append.thread_id,
        append.version,
        append.last_at,
        append.not_after,
        append.not_before,
        append.at,
        append.body or None,
        append.snapshot,
        append.feed,
        None if row is None else row.updated_at,
        None if row is None else row.run_id,
        None if row is None else can_go_on(row),
        None if row is None else is_running(row),
        None if row is None else row.kept_from,
        None if row is None else encode(row),
        None if lease is None else lease.worker or None,
        None if lease is None else lease.until if lease.worker else 0.0,
    )


def _by_id(rows: Iterable[Values]) -> list[Values]:
    """The last of each owner and id."""
    return list({row[:3]: row for row in rows}.values())


def call_values(owner: Owner, call: Call, *, at: float) -> Values:
    return (
        owner.tenant,
        owner.subject,
        call.call_id,
        call.run_id,
        key_of(call, "approval"),
        key_of(call, "request"),
        call.client_id,
        call.deadline,
        call.opened_at,
        None if is_open(call) else call.settled_at or at,
        needs_worker(call),
        encode(call),
    )


def run_values(owner: Owner, run: Run) -> Values:
    return (
        owner.tenant,
        owner.subject,
        run.run_id,
        run.started_at,
        run.ended_at,
        encode(run),
    )


VERSIONS = f"""
    SELECT coalesce(threads.version, 0), written_at, {NOW.format("$4")}
    FROM unnest($1::text[], $2::text[], $3::text[])
            WITH ORDINALITY AS each (tenant, subject, thread_id, place)
        LEFT JOIN threads USING (tenant, subject, thread_id)
    ORDER BY place
"""

# a commit that has to reach the disk, and synchronous replicas, though no table changes
WRITE_NOTHING = "SELECT pg_logical_emit_message(true, 'farhand', '')"

# a thread that is being created is waited for at its insert, and then neither found nor made
JUDGE = f"""
    WITH wanted AS MATERIALIZED (
        SELECT * FROM unnest(
            $1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[], $6::float8[], $7::float8[],
            $8::float8[], $9::bytea[], $10::bytea[], $11::bigint[], $12::float8[], $13::text[], $14::bool[],
            $15::bool[], $16::bigint[], $17::bytea[], $18::text[], $19::float8[]
        ) WITH ORDINALITY AS each (
            tenant, subject, thread_id, expected, last_at, not_after, not_before,
            at, body, snapshot, feed, updated_at, run_id, can_go_on,
            is_running, kept_from, listed, worker, lease_until, place)
    ), asked AS MATERIALIZED (
        SELECT * FROM unnest($20::bigint[], $21::text[], $22::text[], $23::text[], $24::text[])
            AS each (place, tenant, subject, request_id, call_id)
    ), taken AS MATERIALIZED (
        SELECT place FROM asked JOIN calls USING (tenant, subject, request_id)
        WHERE calls.call_id <> asked.call_id
        UNION ALL
        SELECT place FROM asked GROUP BY place, request_id HAVING count(*) > 1
    ), locked AS MATERIALIZED (
        SELECT wanted.*, thread_no, version, written_at
        FROM wanted JOIN threads USING (tenant, subject, thread_id)
        WHERE wanted.body IS NOT NULL ORDER BY place FOR UPDATE OF threads
    ), found AS MATERIALIZED (
        SELECT locked.*, {NOW.format("$25")} AS now FROM locked
        UNION ALL
        SELECT wanted.*, thread_no, coalesce(version, 0), written_at, {NOW.format("$25")}
        FROM wanted LEFT JOIN threads USING (tenant, subject, thread_id) WHERE wanted.body IS NULL
        UNION ALL
        SELECT wanted.*, NULL, 0, NULL, {NOW.format("$25")} FROM wanted
        WHERE expected = 0 AND wanted.body IS NOT NULL AND place NOT IN (SELECT place FROM locked)
    ), current AS MATERIALIZED (
        SELECT * FROM found
        WHERE body IS NOT NULL AND version = expected AND (last_at IS NULL OR last_at = written_at)
            AND (not_after IS NULL OR now < not_after) AND (not_before IS NULL OR now >= not_before)
            AND place NOT IN (SELECT place FROM taken)
    ), made AS (
        INSERT INTO threads (
            tenant, subject, thread_id, version, written_at, written_hour, is_covered, bytes, snapshot_bytes,
            updated_at, run_id, can_go_on, is_running, kept_from, body, worker, lease_until)
        SELECT tenant, subject, thread_id, 1, at, floor(at / 3600), snapshot IS NOT NULL, octet_length(body),
            coalesce(octet_length(snapshot), 0), coalesce(updated_at, 0), run_id, coalesce(can_go_on, false),
            coalesce(is_running, false), kept_from, listed, worker, coalesce(lease_until, 0)
        FROM current WHERE thread_no IS NULL ORDER BY place
        ON CONFLICT DO NOTHING RETURNING tenant, subject, thread_id, thread_no
    ), held AS MATERIALIZED (
        SELECT place, thread_no, tenant, subject, thread_id, expected + 1 AS version, at, body, snapshot, feed
        FROM current WHERE thread_no IS NOT NULL
        UNION ALL
        SELECT place, made.thread_no, tenant, subject, thread_id, 1, at, body, snapshot, feed
        FROM made JOIN current USING (tenant, subject, thread_id)
    ), moved AS (
        UPDATE threads SET version = expected + 1, written_at = at, written_hour = floor(at / 3600),
            is_covered = snapshot IS NOT NULL,
            bytes = threads.bytes + octet_length(current.body),
            snapshot_bytes = coalesce(octet_length(snapshot), threads.snapshot_bytes),
            updated_at = coalesce(current.updated_at, threads.updated_at),
            run_id = CASE WHEN listed IS NULL THEN threads.run_id ELSE current.run_id END,
            can_go_on = coalesce(current.can_go_on, threads.can_go_on),
            is_running = coalesce(current.is_running, threads.is_running),
            kept_from = CASE WHEN listed IS NULL THEN threads.kept_from ELSE current.kept_from END,
            body = coalesce(listed, threads.body),
            worker = CASE WHEN current.lease_until IS NULL THEN threads.worker ELSE current.worker END,
            lease_until = coalesce(current.lease_until, threads.lease_until)
        FROM current WHERE threads.thread_no = current.thread_no
    ), logged AS (
        INSERT INTO log (thread_no, version, at, body) SELECT thread_no, version, at, body FROM held
    )"""
RESULTS = """
    SELECT place, version, written_at, now,
        place IN (SELECT place FROM held), place IN (SELECT place FROM taken),
        (SELECT count(pg_notify($1, note)) FROM unnest($2::text[]) AS note WHERE EXISTS (SELECT FROM held))
    FROM found
"""

# for look-up rows of a thread that is locked
HELD = "WITH held AS (SELECT 1::bigint AS place, $1::bigint AS thread_no)"

CALL_COLUMNS = """thread_no, tenant, subject, call_id, run_id, approval_id, request_id, client_id,
    deadline, opened_at, settled_at, needs_worker, body"""
RUN_COLUMNS = "thread_no, tenant, subject, run_id, started_at, ended_at, body"

# statements that may wait for another transaction come in the same order everywhere, and their rows too
_PARTS = {
    "snapshots": """
    covered AS (
        INSERT INTO snapshots (thread_no, version, body)
        SELECT thread_no, version, snapshot FROM held WHERE snapshot IS NOT NULL
        ON CONFLICT (thread_no) DO UPDATE SET version = excluded.version, body = excluded.body
    )""",
    "calls": f"""
    called AS (
        INSERT INTO calls ({CALL_COLUMNS})
        SELECT held.thread_no, new.tenant, new.subject, call_id, run_id, approval_id, request_id, client_id,
            deadline, opened_at, settled_at, needs_worker, new.body
        FROM unnest(
            $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
            $9::float8[], $10::float8[], $11::float8[], $12::bool[], $13::bytea[]
        ) AS new (
            place, tenant, subject, call_id, run_id, approval_id, request_id, client_id,
            deadline, opened_at, settled_at, needs_worker, body
        ) JOIN held USING (place) ORDER BY request_id, call_id
        ON CONFLICT (tenant, subject, call_id) DO UPDATE
            SET approval_id = excluded.approval_id, client_id = excluded.client_id,
                deadline = excluded.deadline, settled_at = excluded.settled_at,
                needs_worker = excluded.needs_worker, body = excluded.body
            WHERE calls.thread_no = excluded.thread_no
    )""",
    "runs": f"""
    ran AS (
        INSERT INTO runs ({RUN_COLUMNS})
        SELECT held.thread_no, new.tenant, new.subject, run_id, started_at, ended_at, new.body
        FROM unnest(
            $1::bigint[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::float8[], $7::bytea[]
        ) AS new (place, tenant, subject, run_id, started_at, ended_at, body)
            JOIN held USING (place) ORDER BY run_id
        ON CONFLICT (tenant, subject, run_id) DO UPDATE SET ended_at = excluded.ended_at, body = excluded.body
            WHERE runs.thread_no = excluded.thread_no
    )""",
    "tools": """
    declared AS (
        INSERT INTO tools (version, body)
        SELECT new.version, new.body
        FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS new (place, version, body)
            JOIN held USING (place) ORDER BY new.version
        ON CONFLICT DO NOTHING
    )""",
    "files": """
    wanted_files AS MATERIALIZED (
        SELECT held.thread_no, new.tenant, new.subject, ref
        FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) AS new (place, tenant, subject, ref)
            JOIN held USING (place)
    ), bound AS (
        UPDATE files SET bound = true
        WHERE arrived AND ref = ANY($4::text[])
            AND (tenant, subject, ref) IN (SELECT tenant, subject, ref FROM wanted_files)
        RETURNING file_no, tenant, subject, ref
    ), bound_to AS (
        INSERT INTO file_threads (thread_no, file_no)
        SELECT thread_no, file_no FROM wanted_files JOIN bound USING (tenant, subject, ref)
        ON CONFLICT DO NOTHING
    )""",
    "feed": """
    ends AS (
        INSERT INTO feeds (tenant, subject, last)
        SELECT tenant, subject, sum(feed) FROM held WHERE feed > 0
        GROUP BY tenant, subject ORDER BY tenant, subject
        ON CONFLICT (tenant, subject) DO UPDATE SET last = feeds.last + excluded.last
        RETURNING tenant, subject, last
    ), fed AS (
        INSERT INTO feed (tenant, subject, no, count, at, thread_id, thread_no, version)
        SELECT tenant, subject, last - behind, feed, at, thread_id, thread_no, version
        FROM (
            SELECT *, sum(feed) OVER (PARTITION BY tenant, subject ORDER BY place DESC) - feed AS behind
            FROM held WHERE feed > 0
        ) AS new JOIN ends USING (tenant, subject)
    )""",
}


class WriteStatement:
    """Starts with what finds `held`, the threads that are written to, and ends with what it returns."""

    def __init__(self, head: str, values: Sequence[object]) -> None:
        self._parts = [(head, 0)]
        """The text of a part, and how many values come before its own."""
        self._values = list(values)

    def add(self, name: str, rows: Sequence[Values]) -> None:
        if rows:
            self.add_part(name, columns(rows, len(rows[0])))

    def add_part(self, name: str, values: Sequence[object] = ()) -> None:
        self._add(_PARTS[name], values)

    def finish(self, end: str, values: Sequence[object] = ()) -> tuple[str, list[object]]:
        """Its text and its values."""
        self._add(end, values)
        return _compose(tuple(self._parts)), self._values

    def _add(self, sql: str, values: Sequence[object]) -> None:
        self._parts.append((sql, len(self._values)))
        self._values += values


@cache
def _compose(parts: tuple[tuple[str, int], ...]) -> str:
    *written, end = [_shift(sql, before) for sql, before in parts]
    return ",".join(written) + end


def _shift(sql: str, offset: int) -> str:
    return re.sub(r"\$(\d+)", lambda found: f"${int(found[1]) + offset}", sql)


class AppendBatch:
    """Appends that share no name, in the order in which their threads are locked."""

    def __init__(self, appends: Iterable[EncodedAppend]) -> None:
        self.appends = sorted(appends, key=lambda append: append.key)

    def statement(
        self, known_tools: Collection[str], *, notify: tuple[str, str], now: float | None, everywhere: bool
    ) -> tuple[str, list[object]]:
        """The statement and its values; `everywhere` looks for the request ids of all calls and not only of
        those that are opened. `notify` has the channel and the sender."""
        channel, sender = notify
        numbered = list(enumerate(self.appends, 1))
        asked = [(place, *each) for place, one in numbered for each in one.requests(everywhere=everywhere)]
        wanted = columns([each.row for each in self.appends], 19)
        statement = WriteStatement(JUDGE, [*wanted, *columns(asked, 5), now])
        if any(each.append.snapshot is not None for each in self.appends):
            statement.add_part("snapshots")
        statement.add("calls", [(place, *call) for place, each in numbered for call in each.calls])
        statement.add("runs", [(place, *run) for place, each in numbered for run in each.runs])
        tools = [(place, *tool) for place, each in numbered for tool in each.tools]
        statement.add("tools", [tool for tool in tools if tool[1] not in known_tools])
        statement.add("files", [(place, *file) for place, each in numbered for file in each.files])
        if any(each.append.feed for each in self.appends):
            statement.add_part("feed")
        written = [each for each in self.appends if each.append.body]
        return statement.finish(RESULTS, [channel, payloads(sender, hints_of(written))])

    def results(self, rows: Sequence[Columns]) -> dict[Key, AppendResult]:
        found = {row[0]: row for row in rows}
        return {
            each.key: _result(each.append, found[place]) if place in found else Moved(0)
            for place, each in enumerate(self.appends, 1)
        }


def _result(append: Append, row: Columns) -> AppendResult:
    _, version, last_at, now, is_held, is_taken, _ = row
    result = judge(append, version=version, last_at=last_at, now=now)
    if is_held or not append.body or not isinstance(result, Appended):
        return result
    # or another transaction has just created the thread: this statement cannot see it
    return RequestTaken() if is_taken else Moved(1)


async def compare_versions(pool: Pool, appends: Sequence[Append], clock: DatabaseClock) -> list[AppendResult]:
    """For appends without a body: one read, without a transaction or a lock."""
    keys = [key_of_append(each) for each in appends]
    asked_at = clock.monotonic()
    try:
        rows: list[Columns] = await pool.run(
            lambda connection: connection.fetch(VERSIONS, *columns(keys, 3), clock.override)
        )
    except Unstorable:
        if len(appends) == 1:
            return [judge(appends[0], version=0, last_at=None, now=clock.now())]
        return [(await compare_versions(pool, [each], clock))[0] for each in appends]
    clock.update(max(row[2] for row in rows), asked_at=asked_at)
    return [
        judge(each, version=version, last_at=last_at, now=now)
        for each, (version, last_at, now) in zip(appends, rows, strict=True)
    ]


def judge(append: Append, *, version: int, last_at: float | None, now: float) -> AppendResult:
    if not is_current(append, version, last_at):
        return Moved(version)
    return Appended() if is_in_time(append, now) else OutOfTime(now)


def hints_of(appends: Sequence[EncodedAppend]) -> list[Hint]:
    hints = [(THREAD_MOVED, thread_key(each.append.owner, each.append.thread_id)) for each in appends]
    return hints + [(FEED_GREW, owner_key(each.append.owner)) for each in appends if each.append.feed]
