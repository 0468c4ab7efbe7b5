"""What is written to runs: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.event import TOLD, Entry, Event
from farhand.store.base import ClaimRun, InsertRun, ParkRun, Why, WriteRun
from farhand.store.draft.draft import Draft, Mention, RunRow
from farhand.store.draft.records import encode
from farhand.store.rules import changed, claimed, parked
from farhand.store.told import Told

_TOLD = frozenset(TOLD)


def insert_run(draft: Draft, told: Told, write: InsertRun) -> Why | None:
    run = write.run
    if (draft.runs[run.run_id] if draft.careful else draft.runs.get(run.run_id)) is not None:
        return "exists"
    key = (run.owner, run.thread_id)
    if draft.threads[key] is None:
        return "missing"
    last = draft.active.get(key) if draft.threads.is_new(key) else draft.active[key]
    active = None if last is None else draft.runs[last]
    if active is not None and active.run.active:
        return "active"
    draft.active.put(key, run.run_id)
    draft.runs.put(run.run_id, RunRow(next(draft.run_numbers), run))
    told.runs[run.run_id] = run
    return None


def claim_run(draft: Draft, told: Told, write: ClaimRun) -> Why | None:
    row = draft.runs[write.run_id]
    if row is None:
        return "missing"
    run = claimed(row.run, write, told.at)
    if isinstance(run, str):
        return run
    if not row.run.parked:
        told.claimed.append(write.run_id)
    draft.runs.put(write.run_id, RunRow(row.run_no, run))
    told.runs[write.run_id] = run
    return None


def write_run(draft: Draft, told: Told, write: WriteRun) -> Why | None:
    row = draft.runs[write.run_id]
    if row is None:
        return "missing"
    run = changed(row.run, write, told.at)
    if isinstance(run, str):
        return run
    if write.events:
        _append(draft, told, row, write.events)
    draft.runs.put(write.run_id, RunRow(row.run_no, run))
    told.runs[write.run_id] = run
    return None


def park_run(draft: Draft, told: Told, write: ParkRun) -> Why | None:
    row = draft.runs[write.run_id]
    if row is None:
        return "missing"
    run = parked(row.run, write)
    if isinstance(run, str):
        return run
    _append(draft, told, row, (write.event,))
    draft.runs.put(write.run_id, RunRow(row.run_no, run))
    told.runs[write.run_id] = run
    return None


def block_run(draft: Draft, told: Told, row: RunRow, by: int) -> None:
    """Counts the calls that only others can move."""
    run = row.run
    if by:
        run = replace(run, blockers=run.blockers + by)
        draft.runs.put(run.run_id, RunRow(row.run_no, run))
    told.runs[run.run_id] = run


def _append(draft: Draft, told: Told, row: RunRow, events: tuple[Event, ...]) -> None:
    """To the journal; and the owner's feed points at those entries that are worth telling."""
    run, run_no, at = row.run, row.run_no, told.at
    first = run.last_seq + 1
    bodies: list[bytes] = []
    draft.events.append((run_no, first, at, bodies))
    added = told.entries.setdefault(run.run_id, [])
    for seq, event in enumerate(events, first):
        bodies.append(encode(event))
        added.append(Entry(seq, event, at))
        if type(event) in _TOLD:
            draft.mentions.append(Mention(run.owner, at, run_no, seq))
            told.feeds.add(run.owner)
