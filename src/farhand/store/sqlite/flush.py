"""Hands a draft to the database, inside its transaction: a few statements for all of its commits.

A column that an index holds is named only where it changes, since SQLite rewrites the entry of every index
whose columns a statement names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from farhand.core.call import Call
from farhand.core.run import Run
from farhand.store.sqlite.draft import CallRow, Draft, RunRow

Value: TypeAlias = str | bytes | float | None


def flush(draft: Draft) -> None:
    _flush_threads(draft.db, draft)
    _flush_runs(draft.db, draft)
    _flush_calls(draft.db, draft)
    _flush_events(draft.db, draft)
    draft.flushed()


def _flush_events(db: sqlite3.Connection, draft: Draft) -> None:
    _many(db, "INSERT INTO events (run_no, seq, at, body) VALUES (?, ?, ?, ?)", draft.events)
    # two statements: a NULL that is bound costs as much as a number that is inserted
    _many(
        db,
        "INSERT INTO feed (tenant, subject, feed_no, at, run_no, seq) VALUES (?, ?, ?, ?, ?, ?)",
        draft.pointers,
    )
    _many(
        db,
        "INSERT INTO feed (tenant, subject, feed_no, at, thread_id, body) VALUES (?, ?, ?, ?, ?, ?)",
        draft.news,
    )


def _flush_threads(db: sqlite3.Connection, draft: Draft) -> None:
    updated = [(row.thread.updated_at, row.body, row.thread_no) for _, row in draft.threads.updated()]
    _many(db, "UPDATE threads SET updated_at = ?, body = ? WHERE thread_no = ?", updated)
    added = [
        (row.thread_no, owner.tenant, owner.subject, thread_id, row.thread.updated_at, row.body)
        for (owner, thread_id), row in draft.threads.added()
    ]
    _many(
        db,
        "INSERT INTO threads (thread_no, tenant, subject, thread_id, updated_at, body)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        added,
    )
    messages = [(*key, body) for key, body in draft.messages.added()]
    _many(db, "INSERT INTO messages (thread_no, message_id, body) VALUES (?, ?, ?)", messages)


def _flush_runs(db: sqlite3.Connection, draft: Draft) -> None:
    # updates first: a thread's old run must have ended before the new one is there
    updated = [(old, row) for old, row in draft.runs.updated() if _changed(old.run, row.run)]
    _many(
        db,
        "UPDATE runs SET state = ?, parked = ?, step = ?, fence = ?, lease_until = ?, last_seq = ?,"
        " blockers = ? WHERE run_no = ?",
        [(*_counted(row.run), row.run_no) for _, row in updated],
    )
    watched = [(row.run_no, _watched(old.run), _watched(row.run)) for old, row in updated]
    _many(
        db,
        "UPDATE runs SET stray_at = ?, ended_at = ?, error = ? WHERE run_no = ?",
        [(*now, run_no) for run_no, before, now in watched if now != before],
    )
    _many(
        db,
        "INSERT INTO runs (state, parked, step, fence, lease_until, last_seq, blockers,"
        " stray_at, ended_at, error, run_no, run_id, thread_no, started_at, hold_for)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_whole_run(row) for _, row in draft.runs.added()],
    )


def _flush_calls(db: sqlite3.Connection, draft: Draft) -> None:
    updated = draft.calls.updated()
    _many(
        db,
        "UPDATE calls SET version = ?, body = ? WHERE call_no = ?",
        [(row.version, row.body, row.call_no) for old, row in updated if _stays(old, row)],
    )
    _many(
        db,
        "UPDATE calls SET version = ?, body = ?, is_open = ?, deadline = ?, settled_at = ? WHERE call_no = ?",
        [_moved(row, row.call) for old, row in updated if not _stays(old, row) and row.call is not None],
    )
    _many(
        db,
        "INSERT INTO calls (call_no, run_no, version, body, is_open, deadline, settled_at,"
        " call_id, tenant, subject, thread_id, step, approval_id, client_id, request_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_whole_call(row, row.call) for _, row in draft.calls.added() if row.call is not None],
    )
    _many(db, "INSERT INTO tools (version, body) VALUES (?, ?)", draft.tools.added())


def _changed(old: Run, run: Run) -> bool:
    """An event more is no change: the journal itself tells how long it is."""
    return old != replace(run, last_seq=old.last_seq)


def _counted(run: Run) -> tuple[Value, ...]:
    return (
        str(run.state),
        int(run.parked),
        run.step,
        run.fence,
        run.lease_until,
        run.last_seq,
        run.blockers,
    )


def _watched(run: Run) -> tuple[float | None, float | None, str | None]:
    """What changes seldom and indexes hold: from when on the run is a stray, and how it ended."""
    if run.ended_at is not None:
        return None, run.ended_at, run.error
    if run.parked:
        return (0.0 if run.could_go_on else None), None, run.error
    return run.lease_until, None, run.error


def _whole_run(row: RunRow) -> tuple[Value, ...]:
    run = row.run
    return *_counted(run), *_watched(run), row.run_no, run.run_id, row.thread_no, run.started_at, run.hold_for


def _stays(old: CallRow, row: CallRow) -> bool:
    """True if no index has to hear of the change."""
    return row.is_open == old.is_open and row.deadline == old.deadline


def _moved(row: CallRow, call: Call) -> tuple[Value, ...]:
    return row.version, row.body, int(row.is_open), row.deadline, call.settled_at, row.call_no


def _whole_call(row: CallRow, call: Call) -> tuple[Value, ...]:
    return (
        row.call_no,
        row.run_no,
        row.version,
        row.body,
        int(row.is_open),
        row.deadline,
        call.settled_at,
        call.call_id,
        call.owner.tenant,
        call.owner.subject,
        call.thread_id,
        call.step,
        None if call.approval is None else call.approval.approval_id,
        call.client_id,
        None if call.request is None else call.request.request_id,
    )


def _many(db: sqlite3.Connection, sql: str, rows: Sequence[Sequence[Value]]) -> None:
    if rows:
        db.executemany(sql, rows)
