"""What is written to runs: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.event import TOLD, Entry, Event
from farhand.store.base import ClaimRun, InsertRun, ParkRun, Why, WriteRun
from farhand.store.postgres.draft import Draft, Mention, RunRow
from farhand.store.postgres.told import Told
from farhand.store.rules import changed, claimed, parked

_TOLD = frozenset(TOLD)


def insert_run(draft: Draft, told: Told, write: InsertRun) -> Why | None:
    run = write.run
    if draft.runs.get(run.run_id) is not None:
        return "exists"
    key = (run.owner, run.thread_id)
    if draft.threads.get(key) is None:
        return "missing"
    last = draft.active.get(key)
    before = None if last is None else draft.runs.get(last)
    if before is not None and before.run.active:
        return "active"
    draft.active.put(key, run.run_id)
    _put_run(draft, told, RunRow(draft.run_numbers.pop(), run))
    return None


def claim_run(draft: Draft, told: Told, write: ClaimRun) -> Why | None:
    row = draft.runs.get(write.run_id)
    if row is None:
        return "missing"
    after = claimed(row.run, write, told.at)
    if isinstance(after, str):
        return after
    if not row.run.parked:
        # somebody held it, and may still believe so
        told.claimed.append(write.run_id)
    _put_run(draft, told, RunRow(row.run_no, after))
    return None


def write_run(draft: Draft, told: Told, write: WriteRun) -> Why | None:
    row = draft.runs.get(write.run_id)
    if row is None:
        return "missing"
    after = changed(row.run, write, told.at)
    if isinstance(after, str):
        return after
    _append(draft, told, RunRow(row.run_no, after), write.events)
    return None


def park_run(draft: Draft, told: Told, write: ParkRun) -> Why | None:
    row = draft.runs.get(write.run_id)
    if row is None:
        return "missing"
    after = parked(row.run, write)
    if isinstance(after, str):
        return after
    _append(draft, told, RunRow(row.run_no, after), (write.event,))
    return None


def block_run(draft: Draft, told: Told, row: RunRow | None, by: int) -> None:
    """Counts the calls that only others can move."""
    if row is None:
        return
    if by == 0:
        told.touch_run(row.run)
        return
    _put_run(draft, told, RunRow(row.run_no, replace(row.run, blockers=row.run.blockers + by)))


def _append(draft: Draft, told: Told, row: RunRow, events: tuple[Event, ...]) -> None:
    run = row.run
    if events:
        added = [Entry(seq, event, told.at) for seq, event in enumerate(events, run.last_seq + 1)]
        draft.append(row.run_no, added)
        _tell(draft, told, row, [entry for entry in added if type(entry.event) in _TOLD])
        told.entries.setdefault(run.run_id, []).extend(added)
        run = replace(run, last_seq=run.last_seq + len(added))
    _put_run(draft, told, RunRow(row.run_no, run))


def _tell(draft: Draft, told: Told, row: RunRow, entries: list[Entry]) -> None:
    """Points the owner's feed at those entries of the journal that are worth telling."""
    if not entries:
        return
    owner = row.run.owner
    draft.mentions += [Mention(owner, told.at, run_no=row.run_no, seq=entry.seq) for entry in entries]
    told.feeds.add(owner)


def _put_run(draft: Draft, told: Told, row: RunRow) -> None:
    draft.runs.put(row.run.run_id, row)
    told.touch_run(row.run)
