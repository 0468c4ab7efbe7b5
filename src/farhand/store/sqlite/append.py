"""The appends of one job in the writer's transaction: first everything that may refuse them, then their rows.

Rows are collected and written with one statement per kind, whatever the number of appends. The look-up rows
of an active run are held back until it parks or ends (`HeldRows`).
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence

from farhand.core.call import Call
from farhand.core.decide.direct import needs_worker
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.store.base import (
    Append,
    Appended,
    AppendResult,
    Lease,
    Moved,
    OutOfTime,
    RequestTaken,
    ThreadRow,
)
from farhand.store.guards import can_go_on, is_current, is_in_time, is_open, is_running, key_of
from farhand.store.records import encode
from farhand.store.sqlite.files import bind_files
from farhand.store.sqlite.held_rows import HeldThread
from farhand.store.sqlite.writer import ThreadHeader, WriteConnection

HELD_CALLS = 32
"""Per run: with more of them, all are written."""


class Rows(defaultdict[str, list[tuple[object, ...]]]):
    """What is to be written, by statement. `requests` are the request ids of its calls."""

    def __init__(self) -> None:
        super().__init__(list)
        self.requests: dict[tuple[str, str, str], str] = {}

    def write(self, db: sqlite3.Connection) -> None:
        for sql, values in self.items():
            db.executemany(sql, values)


def append_all(writing: WriteConnection, appends: Sequence[Append]) -> list[AppendResult]:
    rows = Rows()
    results = [_append(writing, rows, each) for each in appends]
    rows.write(writing.db)
    return results


def _append(writing: WriteConnection, rows: Rows, append: Append) -> AppendResult:
    header = writing.find_thread(append.owner, append.thread_id)
    version, last_at = (0, None) if header is None else (header.version, header.last_at)
    if not is_current(append, version, last_at):
        return Moved(version)
    now = writing.now()
    if not is_in_time(append, now):
        return OutOfTime(now)
    if not append.body:
        return Appended()
    if append.calls and _is_taken(writing.db, rows, append):
        return RequestTaken()
    if header is None:
        header = _insert_thread(writing, rows, append)
    else:
        _update_thread(writing, rows, header, append)
    _add_rows(writing, rows, header, append)
    return Appended()


def _is_taken(db: sqlite3.Connection, rows: Rows, append: Append) -> bool:
    """Whether another call of the owner has the request id of one of these."""
    requests: dict[tuple[str, str, str], str] = {}
    for call in append.calls:
        request_id = key_of(call, "request")
        if request_id is None:
            continue
        key = (append.owner.tenant, append.owner.subject, request_id)
        found = db.execute(FIND_REQUEST, key).fetchone()
        holder = rows.requests.get(key, call.call_id) if found is None else found[0]
        if requests.setdefault(key, holder) != call.call_id:
            return True
    rows.requests |= requests
    return False


def _insert_thread(writing: WriteConnection, rows: Rows, append: Append) -> ThreadHeader:
    row, owner, size = append.thread, append.owner, len(append.body)
    assert row is not None, "the first append says how the thread is listed"
    no, state = writing.next_thread_no(), run_state_columns(row)
    _, goes_on, running, *_ = state
    values = (
        no,
        owner.tenant,
        owner.subject,
        append.thread_id,
        1,
        row.updated_at,
        append.at,
        append.at,
        0 if append.snapshot is None else 1,
        size,
        *state,
        *_lease_columns(append.lease if goes_on else None),
        encode(row),
    )
    rows[INSERT_THREAD].append(values)
    writing.count(owner, threads=1, running=running, open_calls=row.open_calls, size=size)
    header = ThreadHeader(no, (1, append.at), row.updated_at, (goes_on, running, True), row.open_calls)
    return writing.keep_thread(owner, append.thread_id, header)


def _update_thread(writing: WriteConnection, rows: Rows, header: ThreadHeader, append: Append) -> None:
    row, lease, size = append.thread, append.lease, len(append.body)
    header.version += 1
    header.last_at = append.at
    always = (header.version, append.at, size, None if append.snapshot is None else header.version)
    if row is None:
        rows[UPDATE_LOG].append((*always, header.no))
        if not header.has_rows:
            rows[UPDATE_OLDEST].append((append.at, header.no))
        if lease is not None:
            rows[UPDATE_LEASE].append((*_lease_columns(lease), header.no))
        header.has_rows = True
        writing.count(append.owner, size=size)
        return
    state = run_state_columns(row)
    kept_from, goes_on, running, open_calls, run_id = state
    # if its indexed values are unchanged, the indexes are not touched
    is_in_place = header.has_rows and (header.updated_at, header.can_go_on) == (row.updated_at, goes_on)
    if lease is None and is_in_place:
        rows[UPDATE_ROW].append((*always, kept_from, running, open_calls, run_id, encode(row), header.no))
    else:
        worker, until = _lease_columns(lease if goes_on else None)
        is_leased_anew = lease is not None or not goes_on
        leases = (is_leased_anew, worker, is_leased_anew, until)
        listed = (append.at, row.updated_at)
        rows[UPDATE_THREAD].append((*always, *listed, *state, *leases, encode(row), header.no))
    writing.count(
        append.owner,
        running=running - header.is_running,
        open_calls=open_calls - header.open_calls,
        size=size,
    )
    header.updated_at, header.open_calls = row.updated_at, open_calls
    header.can_go_on, header.is_running, header.has_rows = goes_on, running, True


def run_state_columns(row: ThreadRow) -> tuple[int | None, bool, bool, int, str | None]:
    return row.kept_from, can_go_on(row), is_running(row), row.open_calls, row.run_id


def _lease_columns(lease: Lease | None) -> tuple[str | None, float | None]:
    return (None, None) if lease is None or not lease.worker else (lease.worker, lease.until)


def _add_rows(writing: WriteConnection, rows: Rows, header: ThreadHeader, append: Append) -> None:
    owner, no, version = append.owner, header.no, header.version
    rows[INSERT_LOG].append((no, version, append.at, append.body))
    if append.snapshot is not None:
        rows[PUT_SNAPSHOT].append((no, version, append.snapshot))
    if append.thread is not None or append.calls or append.runs:
        _add_lookups(writing, rows, header, append)
    for tool in append.tools:
        if writing.is_new_tool(tool.version):
            rows[PUT_TOOL].append((tool.version, encode(tool)))
    if append.files:
        bind_files(writing.db, owner, no, append.files)
    if append.feed:
        last = writing.next_feed_no(owner, append.feed)
        rows[INSERT_FEED].append((owner.tenant, owner.subject, last, append.feed, append.at, no, version))


# ------------------------------------------------------------------------------ rows that are held back


def _add_lookups(writing: WriteConnection, rows: Rows, header: ThreadHeader, append: Append) -> None:
    """Writes the records of calls and runs, or holds back those of an active run."""
    no, row, owner = header.no, append.thread, append.owner
    before = writing.held.get(no)
    run_id = row.run_id if row is not None and header.can_go_on and not row.is_parked else None
    calls, runs = append.calls, append.runs
    if before is not None:
        run_id = before.run_id if row is None else run_id
        calls, runs = _newest(before, append)
    if run_id is None:
        _write_lookups(rows, no, owner, calls=calls, runs=runs)
        if before is not None:
            writing.held.put(no, None)
        return
    waiting = tuple([call for call in calls if call.run_id == run_id and _can_wait(call)])
    if len(waiting) > HELD_CALLS:
        waiting = ()
    run = next((each for each in runs if each.run_id == run_id), None)
    others = [call for call in calls if call not in waiting]
    _write_lookups(rows, no, owner, calls=others, runs=[each for each in runs if each is not run])
    is_any = waiting or run is not None
    writing.held.put(no, HeldThread(owner, append.thread_id, run_id, run, waiting) if is_any else None)


def _newest(before: HeldThread, append: Append) -> tuple[tuple[Call, ...], tuple[Run, ...]]:
    """The held records and those of the append, which replace them."""
    calls = {call.call_id: call for call in (*before.calls, *append.calls)}
    if before.run is None or before.run_id in [run.run_id for run in append.runs]:
        return tuple(calls.values()), append.runs
    return tuple(calls.values()), (before.run, *append.runs)


def _can_wait(call: Call) -> bool:
    """A request id is unique for its owner, which its row enforces."""
    return call.request is None or call.request.request_id is None


def write_held(writing: WriteConnection, numbers: Iterable[int]) -> None:
    """Writes the held rows of these threads."""
    rows = Rows()
    for no in numbers:
        held = writing.held.get(no)
        if held is not None:
            runs = () if held.run is None else (held.run,)
            _write_lookups(rows, no, held.owner, calls=held.calls, runs=runs)
            writing.held.put(no, None)
    rows.write(writing.db)


def _write_lookups(rows: Rows, no: int, owner: Owner, *, calls: Iterable[Call], runs: Iterable[Run]) -> None:
    for call in calls:
        rows[PUT_CALL].append(call_columns(no, owner, call))
    for run in runs:
        rows[PUT_RUN].append(run_columns(no, owner, run))


def call_columns(no: int, owner: Owner, call: Call) -> tuple[object, ...]:
    return (
        call.call_id,
        no,
        owner.tenant,
        owner.subject,
        call.run_id,
        key_of(call, "approval"),
        key_of(call, "request"),
        call.client_id,
        call.deadline,
        call.opened_at,
        None if is_open(call) else call.settled_at or call.opened_at,
        needs_worker(call),
        encode(call),
    )


def run_columns(no: int, owner: Owner, run: Run) -> tuple[object, ...]:
    return run.run_id, no, owner.tenant, owner.subject, run.started_at, run.ended_at, encode(run)


# ------------------------------------------------------------------------------------------- other writes


def put_snapshot(
    writing: WriteConnection, owner: Owner, thread_id: str, version: int, body: bytes, *, at: float
) -> None:
    key = (version, owner.tenant, owner.subject, thread_id, version, version, at)
    found = writing.db.execute(COVER_THREAD, key).fetchone()
    if found is not None:
        writing.db.execute(PUT_SNAPSHOT, (*found, version, body))


FIND_REQUEST = "SELECT call_id FROM calls WHERE tenant = ? AND subject = ? AND request_id = ?"

INSERT_THREAD = """
INSERT INTO threads (
    no, tenant, subject, thread_id, version, updated_at, oldest_at, appended_at, snapshot_version, size,
    kept_from, can_go_on, is_running, open_calls, run_id, worker, lease_until, record
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

_ALWAYS = """
UPDATE threads SET version = ?, appended_at = ?, size = size + ?,
    snapshot_version = coalesce(?, snapshot_version)"""

UPDATE_LOG = f"{_ALWAYS} WHERE no = ?"

UPDATE_ROW = f"""{_ALWAYS}, kept_from = ?, is_running = ?, open_calls = ?, run_id = ?,
    record = ? WHERE no = ?"""

UPDATE_THREAD = f"""{_ALWAYS},
    oldest_at = coalesce(oldest_at, ?), updated_at = ?,
    kept_from = ?, can_go_on = ?, is_running = ?, open_calls = ?, run_id = ?,
    worker = CASE WHEN ? THEN ? ELSE worker END, lease_until = CASE WHEN ? THEN ? ELSE lease_until END,
    record = ?
WHERE no = ?"""

UPDATE_OLDEST = "UPDATE threads SET oldest_at = ? WHERE no = ?"

UPDATE_LEASE = "UPDATE threads SET worker = ?, lease_until = ? WHERE no = ?"

END_LEASES = """
UPDATE threads SET worker = NULL, lease_until = NULL WHERE can_go_on = 1 AND lease_until IS NOT NULL"""
"""A thread that cannot continue has none."""

RESERVE = "UPDATE threads SET worker = NULL, lease_until = ? WHERE no = ?"
"""A lease without a worker: nobody renews it."""

RENEW_LEASES = "UPDATE threads SET lease_until = ? WHERE can_go_on = 1 AND worker = ?"

INSERT_LOG = "INSERT INTO log (thread_no, version, at, body) VALUES (?, ?, ?, ?)"

PUT_SNAPSHOT = """
INSERT INTO snapshots (thread_no, version, body) VALUES (?, ?, ?)
ON CONFLICT (thread_no) DO UPDATE SET version = excluded.version, body = excluded.body"""

COVER_THREAD = """
UPDATE threads SET snapshot_version = ? WHERE tenant = ? AND subject = ? AND thread_id = ?
    AND snapshot_version < ?
    AND EXISTS (SELECT 1 FROM log WHERE log.thread_no = threads.no AND log.version = ? AND log.at = ?)
RETURNING no"""

INSERT_FEED = """
INSERT INTO feed (tenant, subject, no, count, at, thread_no, version) VALUES (?, ?, ?, ?, ?, ?, ?)"""

CALL_COLUMNS = """
    call_id, thread_no, tenant, subject, run_id, approval_id, request_id, client_id, deadline, opened_at,
    settled_at, needs_worker, record"""
RUN_COLUMNS = "run_id, thread_no, tenant, subject, started_at, ended_at, record"

PUT_CALL = f"""
INSERT INTO calls ({CALL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (call_id) DO UPDATE
SET client_id = excluded.client_id, deadline = excluded.deadline, settled_at = excluded.settled_at,
    needs_worker = excluded.needs_worker, record = excluded.record
WHERE thread_no = excluded.thread_no"""
"""The immutable columns of a call are not written again, nor are their indexes touched. No thread can change
a call of another."""

PUT_RUN = f"""
INSERT INTO runs ({RUN_COLUMNS})
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id) DO UPDATE SET ended_at = excluded.ended_at, record = excluded.record
WHERE thread_no = excluded.thread_no"""

PUT_TOOL = "INSERT OR IGNORE INTO tools (version, record) VALUES (?, ?)"
