"""Locks and reads the rows that the guards of some writes will look at.

Always in the same order: threads, runs, calls, each by their ids. So two batches that want the same rows wait
for each other and never in a circle. The time is read last: what a deadline is compared with is never older
than the locks.

An id of ours is fresh, so whether it is taken is left to the tables (`Raced`); `careful` looks at that, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.thread import Thread, UserMessage
from farhand.store.base import (
    AllowTool,
    BindFiles,
    ClaimRun,
    CutThread,
    DeleteThread,
    InsertCall,
    InsertMessage,
    InsertRun,
    InsertThread,
    ParkRun,
    RenameThread,
    SwapCall,
    Write,
    WriteRun,
)
from farhand.store.draft.draft import CallRow, Draft, Find, MessageKey, RunRow, ThreadKey, ThreadRow
from farhand.store.draft.records import Columns, run_of, thread_of, unknown_in
from farhand.store.postgres.line import Line
from farhand.store.postgres.sql import ANY_RUN


class Wanted:
    """The keys of the rows that these writes look at or change."""

    def __init__(self, writes: Iterable[Write]) -> None:
        self.threads: set[ThreadKey] = set()
        self.runs: set[str] = set()
        self.calls: set[str] = set()
        self.new_threads = 0
        self.new_runs: list[InsertRun] = []
        self.new_calls: list[Call] = []
        self.messages: list[InsertMessage] = []
        for write in writes:
            self._add(write)

    def _add(self, write: Write) -> None:
        match write:
            case WriteRun() | ClaimRun() | ParkRun():
                self.runs.add(write.run_id)
            case SwapCall():
                self.calls.add(write.before.call_id)
                self._add_run_of(write.before)
            case InsertCall():
                self.new_calls.append(write.call)
                self._add_run_of(write.call)
            case InsertRun():
                self.threads.add((write.run.owner, write.run.thread_id))
                self.new_runs.append(write)
            case _:
                self._add_thread(write)

    def _add_thread(self, write: Write) -> None:
        match write:
            case InsertThread():
                self.threads.add((write.thread.owner, write.thread.thread_id))
                self.new_threads += 1
            case AllowTool() | RenameThread() | CutThread() | DeleteThread() | InsertMessage() | BindFiles():
                self.threads.add((write.owner, write.thread_id))
            case _:
                # looks at no row that has to be locked before
                pass
        if isinstance(write, InsertMessage):
            self.messages.append(write)

    def _add_run_of(self, call: Call) -> None:
        if call.run_id is not None:
            self.runs.add(call.run_id)


class Gathered(Struct, frozen=True):
    """The draft; the database's time, read after every row was locked; and the transaction's own id, by which
    it can be asked for later."""

    draft: Draft
    at: float
    transaction: str


async def gather(line: Line, wanted: Wanted, *, careful: bool, told_time: float | None) -> Gathered:
    draft = Draft(Find(), careful=careful)
    if wanted.threads:
        await _gather_threads(line, draft, wanted, careful=careful)
    if wanted.runs or (careful and wanted.new_runs):
        await _gather_runs(line, draft, wanted, careful=careful)
    if wanted.new_runs:
        await _gather_active(line, draft, wanted)
    if wanted.calls or (careful and wanted.new_calls):
        await _gather_calls(line, draft, wanted, careful=careful)
    if careful and wanted.new_calls:
        await _gather_requests(line, draft, wanted)
    moment: Columns = await line.fetch(MOMENT, told_time, wanted.new_threads, len(wanted.new_runs))
    [(transaction, at, thread_numbers, run_numbers)] = moment
    draft.thread_numbers, draft.run_numbers = iter(thread_numbers), iter(run_numbers)
    return Gathered(draft, at, transaction)


async def _gather_threads(line: Line, draft: Draft, wanted: Wanted, *, careful: bool) -> None:
    keys = sorted((owner.tenant, owner.subject, thread_id) for owner, thread_id in wanted.threads)
    for row in await line.fetch(THREADS, *_columns(keys)):
        thread_no, body = _two(row)
        thread = thread_of(body)
        found = ThreadRow(thread_no, thread, unknown_in(body, Thread))
        draft.threads[thread.owner, thread.thread_id] = found
    # a user's message is named by its sender, who may send it twice; the others have names of ours
    said = [each for each in wanted.messages if careful or isinstance(each.message, UserMessage)]
    known = [(draft.threads.get((each.owner, each.thread_id)), each.message.message_id) for each in said]
    looked = [(thread.thread_no, message_id) for thread, message_id in known if thread is not None]
    if looked:
        for row in await line.fetch(MESSAGES, *_columns(looked)):
            key: MessageKey = _two(row)
            draft.messages[key] = True


async def _gather_runs(line: Line, draft: Draft, wanted: Wanted, *, careful: bool) -> None:
    run_ids = wanted.runs | {each.run.run_id for each in wanted.new_runs} if careful else wanted.runs
    for row in await line.fetch(RUNS, sorted(run_ids)):
        found = _run_row(row)
        draft.runs[found.run.run_id] = found


async def _gather_active(line: Line, draft: Draft, wanted: Wanted) -> None:
    """Not locked, since its thread is: nobody else begins one. One that ends at this moment still counts."""
    places = {(each.run.owner, each.run.thread_id) for each in wanted.new_runs}
    keys = [(*_owner(key), key[1]) for key in places if draft.threads.get(key) is not None]
    if not keys:
        return
    found = await line.fetch(ACTIVE, *_columns(sorted(keys)))
    for run, row in ((run_of(row), row) for row in found):
        draft.active[run.owner, run.thread_id] = run.run_id
        draft.runs.setdefault(run.run_id, _run_row(row))


def _run_row(row: Columns) -> RunRow:
    return RunRow(row[0], run_of(row))


async def _gather_calls(line: Line, draft: Draft, wanted: Wanted, *, careful: bool) -> None:
    call_ids = wanted.calls | {call.call_id for call in wanted.new_calls} if careful else wanted.calls
    found: Sequence[Columns] = await line.fetch(CALLS, sorted(call_ids))
    for call_id, run_no, version, deadline, is_open, body in found:
        draft.calls[call_id] = CallRow(0, run_no, version, deadline, is_open, unknown_in(body, Call))


async def _gather_requests(line: Line, draft: Draft, wanted: Wanted) -> None:
    asked = {
        (call.owner, call.request.request_id): call
        for call in wanted.new_calls
        if call.request is not None and call.request.request_id is not None
    }
    for (owner, request_id), call in asked.items():
        if await line.fetch(REQUESTED, owner.tenant, owner.subject, request_id):
            draft.requests[owner, request_id or ""] = call.call_id


def _owner(key: ThreadKey) -> tuple[str, str]:
    return key[0].tenant, key[0].subject


def _two(row: Columns) -> Columns:
    return row[0], row[1]


def _columns(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


MOMENT = """
    SELECT pg_current_xact_id()::text,
           coalesce($1::float8, extract(epoch FROM clock_timestamp())::float8),
           ARRAY(SELECT nextval('threads_thread_no_seq')
                 FROM generate_series(1, $2::int)),
           ARRAY(SELECT nextval('runs_run_no_seq')
                 FROM generate_series(1, $3::int))
"""

THREADS = """
    SELECT thread_no, body FROM threads
    WHERE (tenant, subject, thread_id) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))
    ORDER BY tenant, subject, thread_id FOR UPDATE OF threads
"""

MESSAGES = """
    SELECT thread_no, message_id FROM messages
    WHERE (thread_no, message_id) IN (SELECT * FROM unnest($1::bigint[], $2::text[]))
"""

RUNS = ANY_RUN + " WHERE run_id = ANY($1::text[]) ORDER BY run_id FOR UPDATE"

_PLACES = "(SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))"

ACTIVE = ANY_RUN + f" WHERE (tenant, subject, thread_id) IN {_PLACES} AND ended_at IS NULL"

CALLS = """
    SELECT call_id, run_no, version, deadline, is_open, body FROM calls
    WHERE call_id = ANY($1::text[]) ORDER BY call_id FOR UPDATE
"""

REQUESTED = "SELECT 1 FROM calls WHERE tenant = $1 AND subject = $2 AND request_id = $3"
