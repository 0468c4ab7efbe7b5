"""Locks and reads the rows that the guards of some writes will look at, in one statement.

Always in the same order: threads, runs, calls, each by their ids. So two batches that want the same rows wait
for each other and never in a circle. The time is read last: what a deadline is compared with is never older
than the locks.

What is not locked (messages, which run of a thread is active) is as it was before the locks were waited for,
and an id of ours is fresh: whether one is taken after all is left to the tables (`Raced`). `careful` looks at
the ids, too, and twice: the second time nobody else is left who could change anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.principal import Owner
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
from farhand.store.draft.draft import CallRow, Draft, Find, RunRow, ThreadKey, ThreadRow
from farhand.store.draft.records import Columns, encode, run_of, thread_of, unknown_in
from farhand.store.postgres.line import Line
from farhand.store.postgres.sql import ANY_RUN, RUN_COLUMNS


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
    keys = _keys_of(wanted, careful=careful)
    if careful:
        await line.fetch(GATHER, _text({**keys, "new_threads": 0, "new_runs": 0}), told_time)
    [row] = await line.fetch(GATHER, _text(keys), told_time)
    found: Columns = row
    threads, messages, runs, active, calls, transaction, thread_numbers, run_numbers, at = found
    _draft_threads(draft, threads or ())
    for message in messages or ():
        draft.messages[message[0], message[1]] = True
    _draft_runs(draft, runs or (), active or ())
    for call_id, run_no, version, deadline, is_open, body in calls or ():
        draft.calls[call_id] = CallRow(0, run_no, version, deadline, is_open, unknown_in(body, Call))
    if careful and wanted.new_calls:
        await _gather_requests(line, draft, wanted)
    draft.thread_numbers, draft.run_numbers = iter(thread_numbers), iter(run_numbers)
    return Gathered(draft, at, transaction)


def _keys_of(wanted: Wanted, *, careful: bool) -> dict[str, object]:
    new_runs = [each.run for each in wanted.new_runs]
    # a user's message is named by its sender, who may send it twice; the others have names of ours
    said = [each for each in wanted.messages if careful or isinstance(each.message, UserMessage)]
    return {
        "threads": [(*_owner(owner), thread_id) for owner, thread_id in wanted.threads],
        "messages": [(*_owner(each.owner), each.thread_id, each.message.message_id) for each in said],
        "runs": [*wanted.runs, *(run.run_id for run in new_runs if careful)],
        "active": [(*_owner(run.owner), run.thread_id) for run in new_runs],
        "calls": [*wanted.calls, *(call.call_id for call in wanted.new_calls if careful)],
        "new_threads": wanted.new_threads,
        "new_runs": len(new_runs),
    }


def _draft_threads(draft: Draft, rows: Sequence[Columns]) -> None:
    for thread_no, body in rows:
        thread = thread_of(body)
        draft.threads[thread.owner, thread.thread_id] = ThreadRow(thread_no, thread, unknown_in(body, Thread))


def _draft_runs(draft: Draft, locked: Sequence[Columns], active: Sequence[Columns]) -> None:
    """An active one is not locked, since its thread is: nobody else begins one. One that ends at this moment
    still counts."""
    for row in locked:
        draft.runs[row[1]] = RunRow(row[0], run_of(row))
    for row in active:
        run = run_of(row)
        draft.active[run.owner, run.thread_id] = run.run_id
        draft.runs.setdefault(run.run_id, RunRow(row[0], run))


async def _gather_requests(line: Line, draft: Draft, wanted: Wanted) -> None:
    asked = {
        (call.owner, call.request.request_id): call
        for call in wanted.new_calls
        if call.request is not None and call.request.request_id is not None
    }
    for (owner, request_id), call in asked.items():
        if await line.fetch(REQUESTED, owner.tenant, owner.subject, request_id):
            draft.requests[owner, request_id or ""] = call.call_id


def _owner(owner: Owner) -> tuple[str, str]:
    return owner.tenant, owner.subject


def _text(keys: dict[str, object]) -> str:
    return encode(keys).decode()


_THREE = "SELECT r->>0, r->>1, r->>2 FROM jsonb_array_elements($1::jsonb->'{}') AS r"
_TEXTS = "ARRAY(SELECT jsonb_array_elements_text($1::jsonb->'{}'))"
_NUMBERS = "ARRAY(SELECT nextval('{}') FROM generate_series(1, ($1::jsonb->>'{}')::int))"

# each waits for all locks of the one before, and the time for all of them: what sums up rows is there when
# the last of them is
GATHER = f"""
    WITH locked_threads AS (
        SELECT thread_no, tenant, subject, thread_id, body FROM threads
        WHERE (tenant, subject, thread_id) IN ({_THREE.format("threads")})
        ORDER BY tenant, subject, thread_id FOR UPDATE OF threads
    ), locked_runs AS (
        {ANY_RUN} WHERE run_id = ANY({_TEXTS.format("runs")})
            AND (SELECT count(*) FROM locked_threads) >= 0
        ORDER BY run_id FOR UPDATE
    ), locked_calls AS (
        SELECT call_id, run_no, version, deadline, is_open, body FROM calls
        WHERE call_id = ANY({_TEXTS.format("calls")}) AND (SELECT count(*) FROM locked_runs) >= 0
        ORDER BY call_id FOR UPDATE
    ), said AS (
        SELECT thread_no, message_id
        FROM (SELECT r->>0, r->>1, r->>2, r->>3 FROM jsonb_array_elements($1::jsonb->'messages') AS r)
                AS asked (tenant, subject, thread_id, message_id)
            JOIN threads USING (tenant, subject, thread_id)
            JOIN messages USING (thread_no, message_id)
    ), active AS (
        {ANY_RUN} WHERE (tenant, subject, thread_id) IN ({_THREE.format("active")}) AND ended_at IS NULL
    )
    SELECT threads.found, messages.found, runs.found, actives.found, calls.found,
        pg_current_xact_id()::text,
        {_NUMBERS.format("threads_thread_no_seq", "new_threads")},
        {_NUMBERS.format("runs_run_no_seq", "new_runs")},
        coalesce($2::float8, extract(epoch FROM clock_timestamp())::float8)
    FROM (SELECT array_agg(ROW(thread_no, body)) FROM locked_threads) AS threads (found),
        (SELECT array_agg(ROW(thread_no, message_id)) FROM said) AS messages (found),
        (SELECT array_agg(ROW({RUN_COLUMNS})) FROM locked_runs) AS runs (found),
        (SELECT array_agg(ROW({RUN_COLUMNS})) FROM active) AS actives (found),
        (SELECT array_agg(ROW(call_id, run_no, version, deadline, is_open, body)) FROM locked_calls)
            AS calls (found)
"""

REQUESTED = "SELECT 1 FROM calls WHERE tenant = $1 AND subject = $2 AND request_id = $3"
