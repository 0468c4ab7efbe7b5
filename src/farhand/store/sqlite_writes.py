"""What each write means: its guard and its change, one function per write, judged against the draft.

Each answers with the reason why its guard does not hold, or with None. Must not know of queue or file.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from farhand.core.call import Call, Phase
from farhand.core.event import Entry, Event
from farhand.core.run import ENDED, Run, RunState
from farhand.core.thread import Thread
from farhand.store.base import (
    AllowTool,
    ClaimRun,
    Commit,
    Committed,
    InsertCall,
    InsertMessage,
    InsertRun,
    InsertThread,
    ParkRun,
    Stale,
    SwapCall,
    When,
    Why,
    Write,
    WriteRun,
)
from farhand.store.sqlite_draft import CallRow, Draft, RunRow, ThreadRow
from farhand.store.sqlite_rows import Unknown, encode, encode_with


class Told(Struct):
    """One commit as the hub hears of it once it is durable. A run that was only touched has no entries."""

    at: float
    calls: list[Call] = field(default_factory=list)
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)


def draft_commit(draft: Draft, told: Told, writes: tuple[Write, ...]) -> Commit:
    """All of the writes are in the draft now, or none of them."""
    try:
        for write in writes:
            why = _draft(draft, told, write)
            if why is not None:
                draft.take_back()
                return Stale(write, why)
    except BaseException:
        draft.take_back()
        raise
    draft.keep()
    return Committed(told.at, told.runs)


def insert_thread(draft: Draft, write: InsertThread) -> None:
    key = (write.thread.owner, write.thread.thread_id)
    known = draft.threads.get(key)
    if known is None:
        row = ThreadRow(draft.next_thread_no(), write.thread, {}, encode(write.thread))
    else:
        row = _with_thread(known, replace(known.thread, updated_at=write.thread.updated_at))
    draft.threads.put(key, row)


def allow_tool(draft: Draft, write: AllowTool) -> Why | None:
    known = draft.threads.get((write.owner, write.thread_id))
    if known is None:
        return "missing"
    allowed = tuple(dict.fromkeys((*known.thread.allowed, write.tool_version)))
    changed = _with_thread(known, replace(known.thread, allowed=allowed))
    draft.threads.put((write.owner, write.thread_id), changed)
    return None


def insert_message(draft: Draft, write: InsertMessage) -> Why | None:
    thread = draft.threads.get((write.owner, write.thread_id))
    if thread is None:
        return "missing"
    key = (thread.thread_no, write.message.message_id)
    if draft.messages.get(key) is not None:
        return "exists"
    draft.messages.put(key, encode(write.message))
    return None


def insert_run(draft: Draft, told: Told, write: InsertRun) -> Why | None:
    run = write.run
    if draft.known_run(run.run_id):
        return "exists"
    thread = draft.threads.get((run.owner, run.thread_id))
    if thread is None:
        return "missing"
    last = draft.active.get(thread.thread_no)
    active = None if last is None else draft.runs.get(last)
    if active is not None and active.run.active:
        return "active"
    draft.active.put(thread.thread_no, run.run_id)
    _put_run(draft, told, RunRow(draft.next_run_no(), thread.thread_no, run))
    return None


def insert_call(draft: Draft, told: Told, write: InsertCall) -> Why | None:
    call = write.call
    if draft.known_call(call.call_id):
        return "exists"
    run = None if call.run_id is None else draft.runs.get(call.run_id)
    if run is None and call.run_id is not None:
        return "missing"
    run_no = None if run is None else run.run_no
    draft.calls.put(call.call_id, _call_row(call, draft.next_call_no(), run_no, {}))
    if write.tool is not None and draft.tools.get(call.tool_version) is None:
        draft.tools.put(call.tool_version, encode(write.tool))
    _block(draft, told, run, int(call.blocks))
    return None


def swap_call(draft: Draft, told: Told, write: SwapCall) -> Why | None:
    before, after = write.before, write.after
    stored = draft.calls.get(before.call_id)
    if stored is None:
        return "missing"
    if stored.version != before.version:
        return "version"
    late = stored.deadline is not None and stored.deadline <= told.at
    if late and write.when is When.IN_TIME:
        return "overdue"
    if not late and write.when is When.OVERDUE:
        return "in_time"
    run = None if before.run_id is None else draft.runs.get(before.run_id)
    draft.calls.put(before.call_id, _call_row(after, stored.call_no, stored.run_no, stored.unknown))
    told.calls.append(after)
    _block(draft, told, run, int(after.blocks) - int(before.blocks))
    return None


def claim_run(draft: Draft, told: Told, write: ClaimRun) -> Why | None:
    row = draft.runs.get(write.run_id)
    if row is None:
        return "missing"
    run = row.run
    if not run.active:
        return "ended"
    if not write.by_force and not run.parked and run.lease_until > told.at:
        return "held"
    lease = told.at + write.lease_sec
    claimed = replace(run, fence=run.fence + 1, lease_until=lease, parked=False, state=RunState.RUNNING)
    _put_run(draft, told, RunRow(row.run_no, row.thread_no, claimed))
    return None


def write_run(draft: Draft, told: Told, write: WriteRun) -> Why | None:
    row = draft.runs.get(write.run_id)
    if row is None:
        return "missing"
    if write.fence is not None and write.fence != row.run.fence:
        return "fence"
    if write.fence is None and not _only_appends(write):
        return "fence"
    run = _append(draft, told, row, write.events)
    _put_run(draft, told, RunRow(row.run_no, row.thread_no, _changed(run, write, told.at)))
    return None


def park_run(draft: Draft, told: Told, write: ParkRun) -> Why | None:
    row = draft.runs.get(write.run_id)
    if row is None:
        return "missing"
    if write.fence != row.run.fence:
        return "fence"
    if row.run.blockers == 0:
        return "nothing_open"
    run = _append(draft, told, row, (write.event,))
    parked = replace(run, state=RunState.WAITING, parked=True, lease_until=0.0)
    _put_run(draft, told, RunRow(row.run_no, row.thread_no, parked))
    return None


def _draft(draft: Draft, told: Told, write: Write) -> Why | None:
    match write:
        case SwapCall():
            return swap_call(draft, told, write)
        case InsertCall():
            return insert_call(draft, told, write)
        case InsertThread() | AllowTool() | InsertMessage():
            return _draft_thread(draft, write)
        case InsertRun() | ClaimRun() | WriteRun() | ParkRun():
            return _draft_run(draft, told, write)
    assert_never(write)


def _draft_thread(draft: Draft, write: InsertThread | AllowTool | InsertMessage) -> Why | None:
    match write:
        case InsertThread():
            insert_thread(draft, write)
            return None
        case AllowTool():
            return allow_tool(draft, write)
        case InsertMessage():
            return insert_message(draft, write)
    assert_never(write)


def _draft_run(draft: Draft, told: Told, write: InsertRun | ClaimRun | WriteRun | ParkRun) -> Why | None:
    match write:
        case WriteRun():
            return write_run(draft, told, write)
        case InsertRun():
            return insert_run(draft, told, write)
        case ClaimRun():
            return claim_run(draft, told, write)
        case ParkRun():
            return park_run(draft, told, write)
    assert_never(write)


def _with_thread(row: ThreadRow, thread: Thread) -> ThreadRow:
    return ThreadRow(row.thread_no, thread, row.unknown, encode_with(row.unknown, thread))


def _call_row(call: Call, call_no: int, run_no: int | None, unknown: Unknown) -> CallRow:
    is_open = call.phase is not Phase.SETTLED
    body = encode_with(unknown, call)
    return CallRow(call_no, run_no, call.version, call.deadline, is_open, unknown, call, body)


def _only_appends(write: WriteRun) -> bool:
    return write.state is None and write.step is None and write.error is None and write.lease_sec is None


def _changed(run: Run, write: WriteRun, now: float) -> Run:
    if _only_appends(write):
        return run
    state = write.state or run.state
    ended = state in ENDED
    lease = run.lease_until if write.lease_sec is None else now + write.lease_sec
    return replace(
        run,
        state=state,
        step=run.step if write.step is None else write.step,
        error=write.error or run.error,
        ended_at=now if ended and run.ended_at is None else run.ended_at,
        lease_until=0.0 if ended else lease,
    )


def _append(draft: Draft, told: Told, row: RunRow, events: tuple[Event, ...]) -> Run:
    added = [Entry(seq, event, told.at) for seq, event in enumerate(events, row.run.last_seq + 1)]
    draft.append(row.run_no, added)
    told.entries.setdefault(row.run.run_id, []).extend(added)
    return replace(row.run, last_seq=row.run.last_seq + len(added))


def _block(draft: Draft, told: Told, row: RunRow | None, by: int) -> None:
    if row is None:
        return
    if by == 0:
        _tell(told, row.run)
        return
    _put_run(draft, told, RunRow(row.run_no, row.thread_no, replace(row.run, blockers=row.run.blockers + by)))


def _put_run(draft: Draft, told: Told, row: RunRow) -> None:
    draft.runs.put(row.run.run_id, row)
    _tell(told, row.run)


def _tell(told: Told, run: Run) -> None:
    told.runs[run.run_id] = run
    told.entries.setdefault(run.run_id, [])
