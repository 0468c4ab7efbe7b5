"""Hands a draft to the database, inside its transaction: a few statements for all of its commits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.store.draft.draft import CallRow, Draft, Mention, RunRow
from farhand.store.draft.records import stray_at
from farhand.store.postgres.line import Line

Value: TypeAlias = str | bytes | float | None
Rows: TypeAlias = Sequence[Sequence[Value]]


class Announcement(Struct, frozen=True):
    """What the other processes are told, if this is kept; and who wrote it, as which of its transactions."""

    channel: str = ""
    notes: tuple[str, ...] = ()
    writer: str = ""
    batch: int = 0


NOTHING = Announcement()


async def flush(line: Line, draft: Draft, said: Announcement = NOTHING) -> None:
    await _flush_threads(line, draft)
    updated = [(row.run_no, *_changing(row.run)) for old, row in draft.runs.updated() if old.run != row.run]
    added = [_whole_run(row) for _, row in draft.runs.added()]
    if added:
        # updates first: a thread's old run must have ended before the new one is there
        await _many(line, UPDATE_RUNS, updated)
        await _many(line, INSERT_RUNS, added)
        updated = []
    await _many(line, INSERT_CALLS, [_whole_call(*each) for each in draft.opened])
    await _many(line, INSERT_TOOLS, sorted(draft.tools.added()))
    await _flush_moves(line, draft, updated, said)


async def _flush_threads(line: Line, draft: Draft) -> None:
    updated = [(row.thread_no, row.thread.updated_at, row.body) for _, row in draft.threads.updated()]
    await _many(line, UPDATE_THREADS, updated)
    added = sorted(
        (owner.tenant, owner.subject, thread_id, row.thread_no, row.thread.updated_at, row.body)
        for (owner, thread_id), row in draft.threads.added()
    )
    await _many(line, INSERT_THREADS, added)
    await _many(line, INSERT_MESSAGES, draft.said)


async def _flush_moves(line: Line, draft: Draft, runs: Rows, said: Announcement) -> None:
    """What nearly every batch has to write, in one round trip; it comes last, since an owner's other writers
    wait from the numbering of its feed to the end of the transaction."""
    # of several moves of one call the last one is written
    moved = {call.call_id: _moved(row, call, body) for _, row, call, body in draft.moved}
    calls = list(moved.values())
    counts = Counter(mention.owner for mention in draft.mentions)
    if not (runs or calls or draft.events or counts or said.notes or said.batch):
        return
    owners = [(owner.tenant, owner.subject, count) for owner, count in sorted(counts.items())]
    columns = [
        *_columns(runs, 11),
        *_columns(calls, 6),
        *_columns(draft.events, 4),
        *_columns(owners, 3),
        *_columns(_numbered_from_the_end(draft.mentions, counts), 8),
    ]
    await _send(line, MOVE, columns, said.channel, list(said.notes), said.writer, said.batch)


def _numbered_from_the_end(mentions: Sequence[Mention], counts: Mapping[Owner, int]) -> Rows:
    """The statement knows an owner's last number only when it has moved it: the third column counts back."""
    left = dict(counts)
    rows: list[tuple[Value, ...]] = []
    for each in mentions:
        left[each.owner] -= 1
        key = (each.owner.tenant, each.owner.subject, left[each.owner])
        rows.append((*key, each.at, each.run_no, each.seq, each.thread_id, each.body))
    return rows


def _changing(run: Run) -> tuple[Value, ...]:
    return (
        str(run.state),
        run.parked,
        run.step,
        run.fence,
        run.lease_until,
        run.last_seq,
        run.blockers,
        run.ended_at,
        run.error,
        stray_at(run),
    )


def _whole_run(row: RunRow) -> tuple[Value, ...]:
    run = row.run
    owner = (run.owner.tenant, run.owner.subject)
    return row.run_no, *_changing(run), run.run_id, *owner, run.thread_id, run.started_at, run.hold_for


def _moved(row: CallRow, call: Call, body: bytes) -> tuple[Value, ...]:
    return call.call_id, row.version, body, row.is_open, row.deadline, call.settled_at


def _whole_call(row: CallRow, call: Call, body: bytes) -> tuple[Value, ...]:
    return (
        *_moved(row, call, body),
        row.run_no,
        call.owner.tenant,
        call.owner.subject,
        call.thread_id,
        call.step,
        None if call.approval is None else call.approval.approval_id,
        call.client_id,
        None if call.request is None else call.request.request_id,
    )


async def _many(line: Line, sql: str, rows: Rows) -> None:
    if rows:
        await _send(line, sql, _columns(rows, len(rows[0])))


def _columns(rows: Rows, count: int) -> list[Sequence[Value]]:
    return list(zip(*rows, strict=True)) if rows else [()] * count


async def _send(line: Line, sql: str, columns: list[Sequence[Value]], *others: object) -> None:
    """Numbers go as one text for each column: of an array, the driver asks every element whether it is an
    array, which costs more than to read a number."""
    statement, numbers = _SENT[sql]
    sent = [_literal(each) if place in numbers else list(each) for place, each in enumerate(columns, 1)]
    await line.fetch(statement, *sent, *others)


def _literal(column: Sequence[Value]) -> str:
    return "{" + ",".join(["NULL" if each is None else repr(each) for each in column]) + "}"


UPDATE_THREADS = """
    UPDATE threads SET updated_at = new.updated_at, body = new.body
    FROM unnest($1::bigint[], $2::float8[], $3::bytea[]) AS new (thread_no, updated_at, body)
    WHERE threads.thread_no = new.thread_no
"""

INSERT_THREADS = """
    INSERT INTO threads (tenant, subject, thread_id, thread_no, updated_at, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[], $6::bytea[])
"""

INSERT_MESSAGES = """
    INSERT INTO messages (thread_no, message_id, body)
    SELECT thread_no, message_id, body
    FROM unnest($1::bigint[], $2::text[], $3::bytea[])
        WITH ORDINALITY AS new (thread_no, message_id, body, place)
    ORDER BY place
"""

UPDATE_RUNS = """
    UPDATE runs SET state = new.state, parked = new.parked, step = new.step, fence = new.fence,
        lease_until = new.lease_until, last_seq = new.last_seq, blockers = new.blockers,
        ended_at = new.ended_at, error = new.error, stray_at = new.stray_at
    FROM unnest($1::bigint[], $2::text[], $3::bool[], $4::bigint[], $5::bigint[], $6::float8[], $7::bigint[],
            $8::bigint[], $9::float8[], $10::text[], $11::float8[])
        AS new (run_no, state, parked, step, fence, lease_until, last_seq, blockers, ended_at, error,
            stray_at)
    WHERE runs.run_no = new.run_no
"""

INSERT_RUNS = """
    INSERT INTO runs (run_no, state, parked, step, fence, lease_until, last_seq, blockers, ended_at, error,
        stray_at, run_id, tenant, subject, thread_id, started_at, hold_for)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bool[], $4::bigint[], $5::bigint[], $6::float8[],
        $7::bigint[], $8::bigint[], $9::float8[], $10::text[], $11::float8[],
        $12::text[], $13::text[], $14::text[], $15::text[], $16::float8[], $17::float8[])
"""

INSERT_CALLS = """
    INSERT INTO calls (call_id, version, body, is_open, deadline, settled_at, run_no, tenant, subject,
        thread_id, step, approval_id, client_id, request_id)
    SELECT call_id, version, body, is_open, deadline, settled_at, run_no, tenant, subject,
        thread_id, step, approval_id, client_id, request_id
    FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bool[], $5::float8[], $6::float8[], $7::bigint[],
        $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[], $13::text[], $14::text[])
        WITH ORDINALITY AS new (call_id, version, body, is_open, deadline, settled_at, run_no, tenant,
            subject, thread_id, step, approval_id, client_id, request_id, place)
    ORDER BY place
"""

INSERT_TOOLS = """
    INSERT INTO tools (version, body) SELECT * FROM unnest($1::text[], $2::bytea[])
    ON CONFLICT DO NOTHING
"""

_ALSO_MOVED = """calls_moved AS (
    UPDATE calls SET version = new.version, body = new.body, is_open = new.is_open,
        deadline = new.deadline, settled_at = new.settled_at
    FROM unnest($12::text[], $13::bigint[], $14::bytea[], $15::bool[], $16::float8[], $17::float8[])
        AS new (call_id, version, body, is_open, deadline, settled_at)
    WHERE calls.call_id = new.call_id
), events_said AS (
    INSERT INTO events (run_no, seq, at, body)
    SELECT * FROM unnest($18::bigint[], $19::bigint[], $20::float8[], $21::bytea[])
), ends AS (
    INSERT INTO feed_ends (tenant, subject, last_no)
    SELECT * FROM unnest($22::text[], $23::text[], $24::bigint[])
    ON CONFLICT (tenant, subject) DO UPDATE SET last_no = feed_ends.last_no + excluded.last_no
    RETURNING tenant, subject, last_no
), feed_told AS (
    INSERT INTO feed (tenant, subject, feed_no, at, run_no, seq, thread_id, body)
    SELECT tenant, subject, last_no - back, at, run_no, seq, thread_id, body
    FROM unnest($25::text[], $26::text[], $27::bigint[], $28::float8[], $29::bigint[], $30::bigint[],
            $31::text[], $32::bytea[])
        AS new (tenant, subject, back, at, run_no, seq, thread_id, body)
        JOIN ends USING (tenant, subject)
), signed AS (
    INSERT INTO writers (name, batch) SELECT $35::text, $36::bigint WHERE $36::bigint > 0
    ON CONFLICT (name) DO UPDATE SET batch = excluded.batch, at = now()
)
SELECT pg_notify($33, note) FROM unnest($34::text[]) AS note
"""

MOVE = "WITH runs_moved AS (" + UPDATE_RUNS + "), " + _ALSO_MOVED

_NUMBERS = re.compile(r"\$(\d+)::(?=(?:bigint|float8|bool)\[)")
_SENT = {
    sql: (_NUMBERS.sub(r"$\1::text::", sql), frozenset(map(int, _NUMBERS.findall(sql))))
    for sql in (
        UPDATE_THREADS,
        INSERT_THREADS,
        INSERT_MESSAGES,
        UPDATE_RUNS,
        INSERT_RUNS,
        INSERT_CALLS,
        INSERT_TOOLS,
        MOVE,
    )
}
"""Each statement as it reads numbers from a text, and where it has them."""
