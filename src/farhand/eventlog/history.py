"""What rows of a log say of one run: its events, numbered, and its calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from farhand.core.call import Call
from farhand.core.call_state import moved, opened_call
from farhand.core.event import CallOpened, CallRejected, CallStep, StepDiscarded, StepFinished, StepStarted
from farhand.core.position import Entry
from farhand.core.run import Run
from farhand.eventlog.codec import decode_body
from farhand.store.base import Row


def entries_in(rows: Iterable[Row], run_id: str) -> list[Entry]:
    """Up to the last row that can be read."""
    found: list[Entry] = []
    for row in rows:
        found += decode_body(row).entries(row.at).get(run_id, ())
    return found


def calls_in(run: Run, rows: Iterable[Row]) -> list[Call]:
    """The calls of this run as its events leave them, in the order they were opened."""
    calls: dict[str, Call] = {}
    for entry in entries_in(rows, run.run_id):
        event = entry.event
        if isinstance(event, CallOpened | CallRejected):
            call = opened_call(event, run.owner, run.thread_id, run.run_id, entry.at)
            calls[call.call_id] = call
        elif isinstance(event, CallStep) and event.call_id in calls:
            calls[event.call_id] = moved(calls[event.call_id], event, entry.at)
    return list(calls.values())


def without_discarded(entries: Sequence[Entry]) -> list[Entry]:
    """A replay leaves out the steps that a crash cut short."""
    kept: list[Entry] = []
    begun: int | None = None
    for entry in entries:
        match entry.event:
            case StepStarted():
                begun = len(kept)
            case StepFinished():
                begun = None
            case StepDiscarded() if begun is not None:
                del kept[begun:]
                begun = None
                continue
        kept.append(entry)
    return kept
