"""What is written to runs: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.event import TOLD, Entry, Event
from farhand.store.base import ClaimRun, InsertRun, ParkRun, Why, WriteRun
from farhand.store.rules import changed, claimed, parked
from farhand.store.sqlite.draft import Draft, RunRow
from farhand.store.sqlite.told import Told

_TOLD = frozenset(TOLD)


def insert_run(draft: Draft, told: Told, write: InsertRun) -> Why | None:
    run = write.run
    if draft.known_run(run.run_id):
        return "exists"
    key = (run.owner, run.thread_id)
    thread = draft.threads.get(key)
    if thread is None:
        return "missing"
    active_in = draft.active.peek if draft.threads.is_new(key) else draft.active.get
    last = active_in(thread.thread_no)
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
    after = claimed(row.run, write, told.at)
    if isinstance(after, str):
        return after
    _put_run(draft, told, RunRow(row.run_no, row.thread_no, after))
    return None


def write_run(draft: Draft, told: Told, write: WriteRun) -> Why | None:
    row = draft.runs.get(write.run_id)
    if row is None:
        return "missing"
    after = changed(row.run, write, told.at)
    if isinstance(after, str):
        return after
    _append(draft, told, RunRow(row.run_no, row.thread_no, after), write.events)
    return None


def park_run(draft: Draft, told: Told, write: ParkRun) -> Why | None:
    row = draft.runs.get(write.run_id)
    if row is None:
        return "missing"
    after = parked(row.run, write)
    if isinstance(after, str):
        return after
    _append(draft, told, RunRow(row.run_no, row.thread_no, after), (write.event,))
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


def _append(draft: Draft, told: Told, row: RunRow, events: tuple[Event, ...]) -> None:
    run = row.run
    if events:
        added = [Entry(seq, event, told.at) for seq, event in enumerate(events, run.last_seq + 1)]
        draft.append(row.run_no, added)
        _tell(draft, told, row, [entry for entry in added if type(entry.event) in _TOLD])
        told.entries.setdefault(run.run_id, []).extend(added)
        run = replace(run, last_seq=run.last_seq + len(added))
    _put_run(draft, told, RunRow(row.run_no, row.thread_no, run))


def _tell(draft: Draft, told: Told, row: RunRow, entries: list[Entry]) -> None:
    """Points the owner's feed at those entries of the journal that are worth telling."""
    if not entries:
        return
    owner = row.run.owner
    first = draft.next_feed_no(owner, len(entries))
    draft.pointers += [
        (owner.tenant, owner.subject, no, told.at, row.run_no, entry.seq)
        for no, entry in enumerate(entries, first)
    ]
    told.feeds.add(owner)


def _put_run(draft: Draft, told: Told, row: RunRow) -> None:
    draft.runs.put(row.run.run_id, row)
    told.touch_run(row.run)
