"""Hands a draft to the database, inside its transaction: a few statements for all of its commits.

A column that an index holds is named only where it changes, since SQLite rewrites the entry of every index
whose columns a statement names. What is frequent is bound neither as None nor as `bytes`: the driver looks
for an adapter of each, at the price of a small row; `nullif` and `bytearray` say the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

from farhand.core.call import Call
from farhand.core.run import Run
from farhand.store.draft.draft import CallRow, RunRow
from farhand.store.draft.records import stray_at
from farhand.store.sqlite import sql
from farhand.store.sqlite.draft import SqliteDraft

Value: TypeAlias = str | bytes | bytearray | float | None

NULL = ""
"""What the statements take for one, in columns that are never empty text."""


def flush(draft: SqliteDraft) -> None:
    """With few users a transaction is one commit, so what it has nothing of must cost nothing."""
    db = draft.db
    if draft.threads.changed:
        _flush_threads(db, draft)
    if draft.said:
        said = [(thread_no, name, is_sent, bytearray(body)) for thread_no, name, is_sent, body in draft.said]
        db.executemany(sql.INSERT_MESSAGE, said)
    if draft.runs.changed:
        _flush_runs(db, draft)
    if draft.opened:
        _flush_opened(db, draft)
    if draft.moved:
        _flush_moved(db, draft)
    if draft.events:
        _flush_events(db, draft)
    if draft.mentions:
        _flush_feed(db, draft)
    draft.flushed()


def _flush_threads(db: sqlite3.Connection, draft: SqliteDraft) -> None:
    added: list[Sequence[Value]] = []
    updated: list[Sequence[Value]] = []
    for (owner, thread_id), (old, row) in draft.threads.changed.items():
        changing = (row.thread.updated_at, bytearray(row.body), row.thread_no)
        if old is None:
            added.append((*changing, owner.tenant, owner.subject, thread_id))
        else:
            updated.append(changing)
    if updated:
        db.executemany(sql.UPDATE_THREAD, updated)
    if added:
        db.executemany(sql.INSERT_THREAD, added)


def _flush_runs(db: sqlite3.Connection, draft: SqliteDraft) -> None:
    added: list[Sequence[Value]] = []
    counted: list[Sequence[Value]] = []
    watched: list[Sequence[Value]] = []
    for old, row in draft.runs.changed.values():
        run = row.run
        if old is None:
            added.append(_whole_run(draft, row))
        elif _is_seen_anew(old.run, run):
            watched.append((*_counted(run), *_watched(run), row.run_no))
        elif _is_recounted(old.run, run):
            counted.append((*_counted(run), row.run_no))
    if counted:
        db.executemany(sql.UPDATE_RUN, counted)
    if watched:
        db.executemany(sql.UPDATE_RUN_WATCHED, watched)
    if added:
        db.executemany(sql.INSERT_RUN, added)


def _flush_opened(db: sqlite3.Connection, draft: SqliteDraft) -> None:
    db.executemany(sql.INSERT_CALL, [_whole_call(*each) for each in draft.opened])
    if draft.tools.changed:
        db.executemany(sql.INSERT_TOOL, draft.tools.added())


def _flush_moved(db: sqlite3.Connection, draft: SqliteDraft) -> None:
    stayed: dict[int, Sequence[Value]] = {}
    moved: dict[int, Sequence[Value]] = {}
    for old, row, call, body in draft.moved:
        # no index has to hear of it; but what follows on a move in the same transaction goes with it
        if row.is_open == old.is_open and row.deadline == old.deadline and row.call_no not in moved:
            stayed[row.call_no] = (row.version, bytearray(body), row.call_no)
        else:
            moved[row.call_no] = _moved(row, call, body)
    if stayed:
        db.executemany(sql.UPDATE_CALL, stayed.values())
    if moved:
        db.executemany(sql.MOVE_CALL, moved.values())


def _flush_events(db: sqlite3.Connection, draft: SqliteDraft) -> None:
    said: list[Sequence[Value]] = []
    for run_no, first, at, bodies in draft.events:
        place = (run_no << sql.PLACE_BITS) + first + len(bodies) - 1
        said.append((place, at, bytearray(b"[%b]" % b",".join(bodies))))
    db.executemany(sql.INSERT_EVENTS, said)


def _flush_feed(db: sqlite3.Connection, draft: SqliteDraft) -> None:
    pointers: list[Sequence[Value]] = []
    news: list[Sequence[Value]] = []
    ends = draft.feeds
    for each in draft.mentions:
        owner = each.owner
        ends[owner] = no = (ends[owner] or 0) + 1
        if each.run_no is not None:
            pointers.append((owner.tenant, owner.subject, no, each.at, each.run_no, each.seq))
        else:
            news.append((owner.tenant, owner.subject, no, each.at, each.thread_id, each.body))
    if pointers:
        db.executemany(sql.INSERT_POINTER, pointers)
    if news:
        db.executemany(sql.INSERT_NEWS, news)


def _is_recounted(old: Run, run: Run) -> bool:
    """An event more is no change: the journal itself tells how long it is."""
    return (
        run.state is not old.state
        or run.blockers != old.blockers
        or run.step != old.step
        or run.fence != old.fence
    )


def _is_seen_anew(old: Run, run: Run) -> bool:
    """Whether an index may have to hear of it."""
    return (
        run.ended_at != old.ended_at
        or run.lease_until != old.lease_until
        or run.error != old.error
        or run.parked != old.parked
        or (run.parked and (run.blockers == 0) != (old.blockers == 0))
    )


def _counted(run: Run) -> tuple[Value, ...]:
    """What changes often, and no index holds."""
    return run.last_seq, str(run.state), int(run.parked), run.step, run.fence, run.lease_until, run.blockers


def _watched(run: Run) -> tuple[float | str, ...]:
    """What changes seldom and indexes hold: from when on the run is a stray, and how it ended."""
    if run.ended_at is not None:
        return NULL, run.ended_at, run.error or NULL
    stray = stray_at(run)
    return NULL if stray is None else stray, NULL, run.error or NULL


def _whole_run(draft: SqliteDraft, row: RunRow) -> tuple[Value, ...]:
    run = row.run
    thread = draft.threads[run.owner, run.thread_id]
    assert thread is not None, "a run is drafted only into a thread that is there"
    own = (row.run_no, run.run_id, thread.thread_no, run.started_at, run.hold_for)
    return *_counted(run), *_watched(run), *own


def _moved(row: CallRow, call: Call, body: bytes) -> tuple[Value, ...]:
    deadline = NULL if row.deadline is None else row.deadline
    settled_at = NULL if call.settled_at is None else call.settled_at
    return row.version, bytearray(body), int(row.is_open), deadline, settled_at, row.call_no


def _whole_call(row: CallRow, call: Call, body: bytes) -> tuple[Value, ...]:
    return (
        *_moved(row, call, body),
        row.run_no or NULL,
        call.call_id,
        call.owner.tenant,
        call.owner.subject,
        call.thread_id,
        call.step,
        NULL if call.approval is None else call.approval.approval_id,
        call.client_id or NULL,
        NULL if call.request is None else call.request.request_id or NULL,
    )
