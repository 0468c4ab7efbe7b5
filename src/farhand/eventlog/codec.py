"""Encodes appends, snapshots and notices as JSON, so that a log can be read without farhand. Also reads the
events and calls of one run from the rows of a log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from farhand.core.call import Call
from farhand.core.call_state import moved, opened_call
from farhand.core.event import (
    CallOpened,
    CallRejected,
    CallStep,
    Event,
    Notice,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
)
from farhand.core.fold import append as fold_append
from farhand.core.position import Entry
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.errors import Unreadable
from farhand.store.base import Loaded, Row

FORMAT = 0
"""Raised by one whenever events, or the state, get a field. Versions of farhand that share a store ignore
what they do not know in a row, and the row keeps it. A snapshot replaces rows, so no version makes one of a
thread that a newer format has been written to."""


class Body(Struct, frozen=True, gc=False, omit_defaults=True):
    """The events of one append, with what a reader needs to number them without the state: the thread's run
    before them and the number of that run's last event; and the indexes of events that belong to no run.
    `format` is that of the version of farhand that wrote it."""

    events: tuple[Event, ...]
    run_id: str | None = None
    seq: int = 0
    outside: tuple[int, ...] = ()
    format: int = 0

    def entries(self, at: float) -> dict[str, list[Entry]]:
        """Its events by run, numbered. One run may end in it and the next one start."""
        found: dict[str, list[Entry]] = {}
        current, seq = self.run_id, self.seq
        for place, event in enumerate(self.events):
            if place in self.outside:
                continue
            if isinstance(event, RunStarted):
                current, seq = event.run_id, 0
            seq += 1
            if current is not None:
                found.setdefault(current, []).append(Entry(seq, event, at))
        return found


_encoder = msgspec.json.Encoder()
_body = msgspec.json.Decoder(Body)
_notice = msgspec.json.Decoder(Notice)
_snapshot = msgspec.json.Decoder(ThreadState)
_BAD = (msgspec.DecodeError, UnicodeDecodeError)


def encode_body(body: Body) -> bytes:
    return _encoder.encode(body)


def decode_body(row: Row) -> Body:
    """Raises `Unreadable` for a row that another version wrote or a disk damaged."""
    try:
        return _body.decode(row.body)
    except _BAD as error:
        raise Unreadable(f"Row {row.version} of a thread's log cannot be read: {error}") from None


def encode_notice(notice: Notice) -> bytes:
    return _encoder.encode(notice)


def decode_notice(body: bytes) -> Notice:
    try:
        notice: Notice = _notice.decode(body)
    except _BAD as error:
        raise Unreadable(f"An entry of a feed cannot be read: {error}") from None
    return notice


def encode_snapshot(thread: ThreadState) -> bytes:
    """Raises `Unreadable` if it would lose what a newer version of farhand has written."""
    if thread.format > FORMAT:
        raise Unreadable("A newer version of farhand has written to it.")
    return _encoder.encode(thread)


def fold_loaded(
    owner: Owner, thread_id: str, loaded: Loaded, bodies: Iterable[Body] | None = None
) -> ThreadState:
    """Folds a snapshot and the rows after it into a state; `bodies` are those rows, if they are decoded."""
    thread = ThreadState(owner=owner, thread_id=thread_id)
    if loaded.snapshot is not None:
        try:
            thread = _snapshot.decode(loaded.snapshot)
        except _BAD as error:
            raise Unreadable(f"The snapshot of a thread cannot be read: {error}") from None
    for row, body in zip(loaded.rows, bodies or map(decode_body, loaded.rows), strict=True):
        thread.format = max(thread.format, body.format)
        try:
            fold_append(thread, body.events, row.at)
        # the event does not follow from the rows before it: one was damaged, or another version wrote it
        except (AssertionError, LookupError) as error:
            raise Unreadable(f"Row {row.version} of a thread's log makes no sense: {error}") from error
    thread.format = max(thread.format, FORMAT)
    return thread


def entries_in(rows: Iterable[Row], run_id: str) -> list[Entry]:
    """Up to the last readable row."""
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
    """Leaves out the steps that a crash cut short, as a replay does."""
    kept: list[Entry] = []
    start: int | None = None
    for entry in entries:
        match entry.event:
            case StepStarted():
                start = len(kept)
            case StepFinished():
                start = None
            case StepDiscarded() if start is not None:
                del kept[start:]
                start = None
                continue
        kept.append(entry)
    return kept
