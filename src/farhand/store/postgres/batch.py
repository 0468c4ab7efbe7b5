"""One transaction of appends, between BEGIN and COMMIT: rows, statements, and the order in which they run.

It locks its threads in a fixed order, compares their versions, judges time limits by the database's clock,
and writes what holds with one statement, assembled from the parts that the batch needs, which also notifies
the other processes. So a transaction takes the same few round trips whatever is in it. Must not know what an
event means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, TypeAlias

from farhand.core.call import Call
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
    Connection,
    DatabaseClock,
    TransactionConflict,
    Unstorable,
)
from farhand.store.postgres.notify import Hint, payloads
from farhand.store.postgres.pool import Pool
from farhand.store.records import encode

Key: TypeAlias = tuple[str, str, str]
Values: TypeAlias = tuple[object, ...]

HOUR_SEC = 3600


class EncodedAppend:
    """The rows lack the number of their thread, which is known only once it is locked."""

    __slots__ = ("append", "calls", "key", "mode", "row", "runs", "tools")

    def __init__(self, append: Append) -> None:
        self.append = append
        self.key = key_of_append(append)
        self.mode: Literal["new", "write", "read"] = "write"
        if not append.body:
            self.mode = "read"
        elif append.version == 0:
            self.mode = "new"
        self.row = _thread_values(append)
        self.calls = [call_values(append.owner, call, at=append.at) for call in append.calls]
        self.runs = [run_values(append.owner, run) for run in append.runs]
        self.tools = [(tool.version, encode(tool)) for tool in append.tools]

    def requests(self, *, everywhere: bool) -> Iterator[tuple[Key, str]]:
        """Request ids, each with its owner, and their calls: those that it opens, or all."""
        for call in self.append.calls:
            request_id = key_of(call, "request")
            if request_id is not None and (everywhere or call.version == 1):
                yield (*self.key[:2], request_id), call.call_id


def key_of_append(append: Append) -> Key:
    return append.owner.tenant, append.owner.subject, append.thread_id


def columns(rows: Sequence[Values], count: int) -> list[list[object]]:
    """Transposes rows into columns, since a statement takes arrays of any length."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(count)]


def _thread_values(append: Append) -> Values:
    """In the order of `moved` in `append_sql`; None for what is unchanged."""
    row, lease, snapshot = append.thread, append.lease, append.snapshot
    return (
        append.version + 1,
        append.at,
        int(append.at // HOUR_SEC),
        len(append.body),
        None if snapshot is None else len(snapshot),
        None if row is None else row.updated_at,
        None if row is None else row.run_id,
        None if row is None else can_go_on(row),
        None if row is None else is_running(row),
        None if row is None else row.kept_from,
        None if row is None else encode(row),
        None if lease is None else lease.worker or None,
        None if lease is None else lease.until if lease.worker else 0.0,
    )


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

# waits for a thread that another transaction is creating, and then finds it neither way
LOCK = f"""
    WITH wanted AS MATERIALIZED (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
            WITH ORDINALITY AS each (tenant, subject, thread_id, mode, place)
    ), locked AS MATERIALIZED (
        SELECT place, thread_no, version, written_at
        FROM wanted JOIN threads USING (tenant, subject, thread_id)
        WHERE mode <> 'read' ORDER BY place FOR UPDATE OF threads
    ), made AS (
        INSERT INTO threads (tenant, subject, thread_id)
        SELECT tenant, subject, thread_id FROM wanted WHERE mode = 'new' ORDER BY place
        ON CONFLICT DO NOTHING RETURNING tenant, subject, thread_id, thread_no
    )
    SELECT place, thread_no, version, written_at, {NOW.format("$5")} FROM locked
    UNION ALL
    SELECT place, thread_no, 0, NULL, {NOW.format("$5")}
    FROM made JOIN wanted USING (tenant, subject, thread_id)
    UNION ALL
    SELECT place, thread_no, version, written_at, {NOW.format("$5")}
    FROM wanted JOIN threads USING (tenant, subject, thread_id) WHERE mode = 'read'
"""

REQUESTS = """
    SELECT tenant, subject, request_id, call_id
    FROM unnest($1::text[], $2::text[], $3::text[]) AS each (tenant, subject, request_id)
        JOIN calls USING (tenant, subject, request_id)
"""

# a commit that has to reach the disk, and synchronous replicas, though no table changes
WRITE_NOTHING = "SELECT pg_logical_emit_message(true, 'farhand', '')"

DROP_EMPTY = "DELETE FROM threads WHERE thread_no = ANY($1::bigint[]) AND version = 0"

CALL_COLUMNS = """thread_no, tenant, subject, call_id, run_id, approval_id, request_id, client_id,
    deadline, opened_at, settled_at, body"""
RUN_COLUMNS = "thread_no, tenant, subject, run_id, started_at, ended_at, body"

# statements that may wait for another transaction come in the same order everywhere
_PARTS = {
    "log": """
    logged AS (
        INSERT INTO log (thread_no, version, at, body)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::bytea[])
    )""",
    "threads": """
    moved AS (
        UPDATE threads SET version = new.version, written_at = new.at, written_hour = new.hour,
            is_covered = new.snapshot_bytes IS NOT NULL,
            bytes = threads.bytes + new.bytes,
            snapshot_bytes = coalesce(new.snapshot_bytes, threads.snapshot_bytes),
            updated_at = coalesce(new.updated_at, threads.updated_at),
            run_id = CASE WHEN new.body IS NULL THEN threads.run_id ELSE new.run_id END,
            can_go_on = coalesce(new.can_go_on, threads.can_go_on),
            is_running = coalesce(new.is_running, threads.is_running),
            kept_from = CASE WHEN new.body IS NULL THEN threads.kept_from ELSE new.kept_from END,
            body = coalesce(new.body, threads.body),
            worker = CASE WHEN new.lease_until IS NULL THEN threads.worker ELSE new.worker END,
            lease_until = coalesce(new.lease_until, threads.lease_until)
        FROM unnest(
            $1::bigint[], $2::bigint[], $3::float8[], $4::bigint[], $5::bigint[], $6::bigint[], $7::float8[],
            $8::text[], $9::bool[], $10::bool[], $11::bigint[], $12::bytea[], $13::text[], $14::float8[]
        ) AS new (
            thread_no, version, at, hour, bytes, snapshot_bytes, updated_at,
            run_id, can_go_on, is_running, kept_from, body, worker, lease_until
        ) WHERE threads.thread_no = new.thread_no
    )""",
    "snapshots": """
    covered AS (
        INSERT INTO snapshots (thread_no, version, body)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
        ON CONFLICT (thread_no) DO UPDATE SET version = excluded.version, body = excluded.body
    )""",
    "calls": f"""
    called AS (
        INSERT INTO calls ({CALL_COLUMNS})
        SELECT * FROM unnest(
            $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
            $9::float8[], $10::float8[], $11::float8[], $12::bytea[])
        ON CONFLICT (tenant, subject, call_id) DO UPDATE
            SET approval_id = excluded.approval_id, client_id = excluded.client_id,
                deadline = excluded.deadline, settled_at = excluded.settled_at, body = excluded.body
            WHERE calls.thread_no = excluded.thread_no
    )""",
    "runs": f"""
    ran AS (
        INSERT INTO runs ({RUN_COLUMNS})
        SELECT * FROM unnest(
            $1::bigint[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::float8[], $7::bytea[])
        ON CONFLICT (tenant, subject, run_id) DO UPDATE SET ended_at = excluded.ended_at, body = excluded.body
            WHERE runs.thread_no = excluded.thread_no
    )""",
    "tools": """
    declared AS (
        INSERT INTO tools (version, body) SELECT * FROM unnest($1::text[], $2::bytea[])
        ON CONFLICT DO NOTHING
    )""",
    "files": """
    wanted_files AS MATERIALIZED (
        SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[])
            AS each (thread_no, tenant, subject, ref)
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
        INSERT INTO feeds (tenant, subject, last) SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
        ON CONFLICT (tenant, subject) DO UPDATE SET last = feeds.last + excluded.last
        RETURNING tenant, subject, last
    ), fed AS (
        INSERT INTO feed (tenant, subject, no, count, at, thread_id, thread_no, version)
        SELECT tenant, subject, last - behind, count, at, thread_id, thread_no, version
        FROM unnest(
            $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::float8[],
            $9::text[], $10::bigint[], $11::bigint[]
        ) AS new (tenant, subject, behind, count, at, thread_id, thread_no, version)
            JOIN ends USING (tenant, subject)
    )""",
}

NOTIFY = "SELECT pg_notify($1, note) FROM unnest($2::text[]) AS note"


class WriteStatement:
    def __init__(self) -> None:
        self.values: list[object] = []
        self._parts: list[tuple[str, int]] = []
        """The name of a part, and how many values come before its own."""

    @property
    def sql(self) -> str:
        return _compose(tuple(self._parts))

    def add_appends(self, numbered: Sequence[tuple[int, EncodedAppend]], known_tools: set[str]) -> None:
        appends = [(number, each, each.append) for number, each in numbered]
        self.add("log", [(no, append.version + 1, append.at, append.body) for no, _, append in appends])
        self.add("threads", [(no, *each.row) for no, each, _ in appends])
        self.add(
            "snapshots",
            [
                (no, append.version + 1, append.snapshot)
                for no, _, append in appends
                if append.snapshot is not None
            ],
        )
        # by their request ids, so that two transactions with the same ones wait in the same order
        calls = _by_id((no, *call) for no, each, _ in appends for call in each.calls)
        self.add("calls", sorted(calls, key=lambda call: str(call[6])))
        self.add("runs", _by_id((no, *run) for no, each, _ in appends for run in each.runs))
        tools = {version: body for _, each, _ in appends for version, body in each.tools}
        self.add("tools", [pair for pair in sorted(tools.items()) if pair[0] not in known_tools])
        self.add("files", sorted((no, *each.key[:2], ref) for no, each, a in appends for ref in a.files))
        self._add_feed([(no, each) for no, each, append in appends if append.feed])

    def add_notifications(self, channel: str, notes: list[str]) -> None:
        self._parts.append(("notify", len(self.values)))
        self.values += [channel, notes]

    def add(self, name: str, rows: Sequence[Values]) -> None:
        if rows:
            self._parts.append((name, len(self.values)))
            self.values += columns(rows, len(rows[0]))

    def _add_feed(self, numbered: list[tuple[int, EncodedAppend]]) -> None:
        """`behind` is how many entries of the owner come after it in this transaction."""
        if not numbered:
            return
        totals: dict[tuple[str, str], int] = {}
        rows: list[Values] = []
        for number, each in reversed(numbered):
            append = each.append
            owner = each.key[:2]
            behind = totals.get(owner, 0)
            totals[owner] = behind + append.feed
            place = (append.thread_id, number, append.version + 1)
            rows.append((*owner, behind, append.feed, append.at, *place))
        self._parts.append(("feed", len(self.values)))
        self.values += columns([(*owner, count) for owner, count in sorted(totals.items())], 3)
        self.values += columns(rows, 8)


def _by_id(rows: Iterable[Values]) -> list[Values]:
    """The last of each owner and id, the columns after the thread: a statement changes a row once."""
    return list({row[1:4]: row for row in rows}.values())


@cache
def _compose(parts: tuple[tuple[str, int], ...]) -> str:
    written = ",".join(_shift(_PARTS[name], before) for name, before in parts if name != "notify")
    notify = next((_shift(NOTIFY, before) for name, before in parts if name == "notify"), "SELECT 1")
    return f"WITH {written} {notify}"


def _shift(sql: str, offset: int) -> str:
    return re.sub(r"\$(\d+)", lambda found: f"${int(found[1]) + offset}", sql)


class AppendTransaction:
    """`accepted` holds what is written; `results` has all results."""

    def __init__(self, connection: Connection, appends: list[EncodedAppend], clock: DatabaseClock) -> None:
        self.results: dict[Key, AppendResult] = {}
        self.accepted: list[EncodedAppend] = []
        self._connection = connection
        self._appends = appends
        self._clock = clock
        self._numbers: dict[Key, int] = {}

    async def lock(self) -> None:
        """From here on no other process moves these threads; the time is read after the last lock."""
        wanted = [(*each.key, each.mode) for each in self._appends]
        asked_at = self._clock.monotonic()
        rows = await self._connection.fetch(LOCK, *columns(wanted, 4), self._clock.override)
        found = {self._appends[place - 1].key: thread for place, *thread, _ in rows}
        now = max((row[4] for row in rows), default=0.0)
        if rows:
            self._clock.update(now, asked_at=asked_at)
        for each in self._appends:
            if each.key not in found and each.mode == "new":
                raise TransactionConflict("another transaction has just created this thread")
            number, version, last_at = found.get(each.key) or (0, 0, None)
            self._numbers[each.key] = number
            self._judge(each, version=version, last_at=last_at, now=now)

    def _judge(self, encoded: EncodedAppend, *, version: int, last_at: float | None, now: float) -> None:
        result = judge(encoded.append, version=version, last_at=last_at, now=now)
        self.results[encoded.key] = result
        if encoded.append.body and isinstance(result, Appended):
            self.accepted.append(encoded)

    async def look_for_requests(self, *, everywhere: bool) -> None:
        """Finds request ids that another call of the owner has. A call that has moved was checked when it was
        opened; a race that this misses ends at the unique index, and the next attempt checks `everywhere`."""
        asked = [
            (each.key, request, call_id)
            for each in self.accepted
            for request, call_id in each.requests(everywhere=everywhere)
        ]
        if not asked:
            return
        rows = await self._connection.fetch(REQUESTS, *columns([request for _, request, _ in asked], 3))
        holders: dict[Key, str] = {(row[0], row[1], row[2]): row[3] for row in rows}
        for key, request, call_id in asked:
            # of two in this very batch the first one has it
            if holders.setdefault(request, call_id) != call_id:
                self.results[key] = RequestTaken()
        self.accepted = [each for each in self.accepted if isinstance(self.results[each.key], Appended)]

    async def write(self, channel: str, sender: str, known_tools: set[str]) -> None:
        if not self.accepted:
            return
        statement = WriteStatement()
        numbered = [(self._numbers[each.key], each) for each in self.accepted]
        statement.add_appends(numbered, known_tools)
        statement.add_notifications(channel, payloads(sender, hints_of(self.accepted)))
        await self._connection.fetch(statement.sql, *statement.values)
        await self._drop_empty()

    async def _drop_empty(self) -> None:
        """Removes threads that were created for an append that does not hold."""
        held = {each.key for each in self.accepted}
        empty = [
            self._numbers[each.key] for each in self._appends if each.mode == "new" and each.key not in held
        ]
        if empty:
            await self._connection.fetch(DROP_EMPTY, empty)


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
