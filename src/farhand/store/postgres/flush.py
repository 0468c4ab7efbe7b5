"""Hands a draft to the database, inside its transaction: one statement for all of its commits.

Rows travel as one JSON text and their bodies as one run of bytes that they point into: of an array, the
driver would ask every element whether it is an array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.store.draft.draft import CallRow, Draft, Mention, RunRow
from farhand.store.draft.records import encode, stray_at
from farhand.store.postgres.line import Line
from farhand.store.postgres.written import UPDATE_RUNS, WRITE

Value: TypeAlias = str | float | None
Row: TypeAlias = tuple[Value, ...]
Rows: TypeAlias = dict[str, Sequence[Row]]
"""By the names that the statement has for them."""


class Announcement(Struct, frozen=True):
    """What the other processes are told, if this is kept; and who wrote it, as which of its transactions."""

    channel: str = ""
    notes: tuple[str, ...] = ()
    writer: str = ""
    batch: int = 0


NOTHING = Announcement()


async def flush(line: Line, draft: Draft, said: Announcement = NOTHING) -> None:
    updated = [row for old, row in draft.runs.updated() if old.run != row.run]
    added = [row for _, row in draft.runs.added()]
    if updated and added and not _places(updated).isdisjoint(_places(added)):
        # first: a thread's old run must have ended before the new one is there
        await line.fetch(UPDATE_RUNS, _text({"moved_runs": [_moved_run(row) for row in updated]}))
        updated = []
    bodies = Bodies()
    rows = {
        "runs": [_whole_run(row) for row in added],
        "moved_runs": [_moved_run(row) for row in updated],
        **_rows_of_threads(draft, bodies),
        **_rows_of_calls(draft, bodies),
        **_rows_of_events(draft, bodies),
    }
    if any(rows.values()) or said.notes or said.batch:
        await line.fetch(WRITE, _text({**rows, **msgspec.structs.asdict(said)}), bodies.joined())


class Bodies:
    """Bodies one behind the other. A row has two numbers for each: where it begins, and its length."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._end = 1

    def put(self, body: bytes | None) -> tuple[int | None, int | None]:
        if body is None:
            return None, None
        begin, size = self._end, len(body)
        self._parts.append(body)
        self._end = begin + size
        return begin, size

    def joined(self) -> bytes:
        return b"".join(self._parts)


def _rows_of_threads(draft: Draft, bodies: Bodies) -> Rows:
    put = bodies.put
    return {
        "threads": sorted(
            (owner.tenant, owner.subject, thread_id, row.thread_no, row.thread.updated_at, *put(row.body))
            for (owner, thread_id), row in draft.threads.added()
        ),
        "used_threads": [
            (row.thread_no, row.thread.updated_at, *put(row.body)) for _, row in draft.threads.updated()
        ],
        "messages": [(thread_no, message_id, *put(body)) for thread_no, message_id, _, body in draft.said],
        "tools": [(version, *put(body)) for version, body in sorted(draft.tools.added())],
    }


def _rows_of_calls(draft: Draft, bodies: Bodies) -> Rows:
    """Of several moves of one call the last one is written; one that is opened here is written as it is by
    then, since the statement does not see what it adds itself."""
    put = bodies.put
    moved = {call.call_id: (row, call, body) for _, row, call, body in draft.moved}
    opened = [moved.pop(call.call_id, (row, call, body)) for row, call, body in draft.opened]
    return {
        "calls": [_whole_call(row, call, put(body)) for row, call, body in opened],
        "moved_calls": [_moved_call(row, call, put(body)) for row, call, body in moved.values()],
    }


def _rows_of_events(draft: Draft, bodies: Bodies) -> Rows:
    counts = Counter(mention.owner for mention in draft.mentions)
    return {
        "events": [
            (run_no, seq, at, *bodies.put(body))
            for run_no, first, at, said in draft.events
            for seq, body in enumerate(said, first)
        ],
        "ends": [(owner.tenant, owner.subject, count) for owner, count in sorted(counts.items())],
        "feed": _numbered_from_the_end(draft.mentions, counts, bodies),
    }


def _text(rows: Mapping[str, object]) -> str:
    return encode(rows).decode()


def _places(rows: Sequence[RunRow]) -> set[tuple[Owner, str]]:
    return {(row.run.owner, row.run.thread_id) for row in rows}


def _numbered_from_the_end(
    mentions: Sequence[Mention], counts: Mapping[Owner, int], bodies: Bodies
) -> list[Row]:
    """The statement knows an owner's last number only when it has moved it: the third column counts back."""
    left = dict(counts)
    rows: list[Row] = []
    for each in mentions:
        left[each.owner] -= 1
        key = (each.owner.tenant, each.owner.subject, left[each.owner])
        rows.append((*key, each.at, each.run_no, each.seq, each.thread_id, *bodies.put(each.body)))
    return rows


def _moved_run(row: RunRow) -> Row:
    return row.run_no, *_changing(row.run)


def _changing(run: Run) -> Row:
    return (
        str(run.state),
        run.parked,
        run.step,
        run.fence,
        run.lease_until,
        run.last_seq,
        run.blockers,
        run.ended_at,
        run.error,
        stray_at(run),
    )


def _whole_run(row: RunRow) -> Row:
    run = row.run
    owner = (run.owner.tenant, run.owner.subject)
    return row.run_no, *_changing(run), run.run_id, *owner, run.thread_id, run.started_at, run.hold_for


def _moved_call(row: CallRow, call: Call, body: Row) -> Row:
    return call.call_id, row.version, *body, row.is_open, row.deadline, call.settled_at


def _whole_call(row: CallRow, call: Call, body: Row) -> Row:
    return (
        *_moved_call(row, call, body),
        row.run_no,
        call.owner.tenant,
        call.owner.subject,
        call.thread_id,
        call.step,
        None if call.approval is None else call.approval.approval_id,
        call.client_id,
        None if call.request is None else call.request.request_id,
    )
