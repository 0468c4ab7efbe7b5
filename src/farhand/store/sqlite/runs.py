"""What is written to runs: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.event import Entry, Event
from farhand.core.run import ENDED, Run, RunState
from farhand.store.base import ClaimRun, InsertRun, ParkRun, Why, WriteRun
from farhand.store.sqlite.draft import Draft, RunRow
from farhand.store.sqlite.told import Told


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
    if write.fence != row.run.fence and not (write.fence is None and write.only_appends):
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


def block_run(draft: Draft, told: Told, row: RunRow | None, by: int) -> None:
    """Counts the calls that only others can move."""
    if row is None:
        return
    if by == 0:
        told.touch_run(row.run)
        return
    run = replace(row.run, blockers=row.run.blockers + by)
    _put_run(draft, told, RunRow(row.run_no, row.thread_no, run))


def _changed(run: Run, write: WriteRun, now: float) -> Run:
    if write.only_appends:
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


def _put_run(draft: Draft, told: Told, row: RunRow) -> None:
    draft.runs.put(row.run.run_id, row)
    told.touch_run(row.run)
