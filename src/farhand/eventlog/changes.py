"""What the events of one append change: the records of calls and runs, the files, the entries of the feed.

Collected while the events are applied, since one append may end a run and begin the next, which forgets the
calls of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from farhand.core import fold
from farhand.core.call import Call
from farhand.core.event import (
    CallChange,
    CallEvent,
    CallSettled,
    Event,
    MessageAdded,
    MessagesCopied,
    ModelOutput,
    RunClaim,
    RunMove,
    RunParked,
    ThreadChange,
)
from farhand.core.file import refs_in
from farhand.core.outcome import Success
from farhand.core.position import Entry
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.core.thread import File, Message, ResultsMessage, UserMessage
from farhand.eventlog.codec import Body
from farhand.store.base import Lease, ThreadRow


class Changes:
    __slots__ = (
        "_outside",
        "_run_before",
        "_seq_before",
        "calls",
        "entries",
        "events",
        "feed",
        "files",
        "is_claimed",
        "is_listed",
        "new_runs",
        "runs",
        "thread",
    )

    def __init__(self, thread: ThreadState) -> None:
        self.thread = thread
        """As it is after them."""
        self.events: list[Event] = []
        self.entries: dict[str, list[Entry]] = {}
        """The events of runs, numbered, by run: one may end and the next one begin."""
        self.calls: dict[str, Call] = {}
        self.runs: dict[str, Run] = {}
        """Those that began, parked, resumed or ended."""
        self.new_runs: list[Run] = []
        """The same, one after the other, until they are taken to start or stop work on them."""
        self.files: list[str] = []
        self.feed = 0
        self.is_listed = False
        """Whether lists show the thread otherwise after it: words alone change nothing there."""
        self.is_claimed: bool | None = None
        """Whether the worker that appends this advances the run from now on; None: as before."""
        self._outside: list[int] = []
        run = thread.run
        self._run_before = None if run is None else run.run_id
        self._seq_before = 0 if run is None else run.seq

    def apply(self, event: Event, at: float) -> None:
        fold.apply(self.thread, event, at)
        self.events.append(event)
        if isinstance(event, ModelOutput) or self._note(event):
            run = self.thread.run
            assert run is not None, "the log has a run before its events"
            self.entries.setdefault(run.run_id, []).append(Entry(run.seq, event, at))
        else:
            self._outside.append(len(self.events) - 1)

    def body(self) -> Body:
        return Body(tuple(self.events), self._run_before, self._seq_before, tuple(self._outside))

    def lease(self, worker: str, until: float) -> Lease | None:
        if self.is_claimed is None:
            return None
        return Lease(worker, until) if self.is_claimed else Lease("", 0.0)

    def _note(self, event: Event) -> bool:
        """Whether the event belongs to the run."""
        self.is_listed = True
        self.feed += event.in_feed
        if isinstance(event, CallChange):
            return self._note_call(event)
        if isinstance(event, ThreadChange):
            if isinstance(event, MessageAdded):
                self.files += [part.ref for part in event.message.parts if isinstance(part, File)]
            elif isinstance(event, MessagesCopied):
                self.files += _files_of(event.messages)
            return False
        if isinstance(event, RunMove):
            run = self.thread.run_record()
            assert run is not None, "the log has a run before its events"
            self.runs[run.run_id] = run
            self.new_runs.append(run)
            if not (isinstance(event, RunParked) and event.is_kept):
                self.is_claimed = isinstance(event, RunClaim)
        return True

    def _note_call(self, event: CallEvent) -> bool:
        call = self.thread.calls[event.call_id]
        self.calls[call.call_id] = call
        if isinstance(event, CallSettled) and isinstance(event.outcome, Success):
            # files that a result refers to go with the thread from now on
            self.files += refs_in(event.outcome.output)
        return call.run_id is not None


def _files_of(messages: Sequence[Message]) -> list[str]:
    """The files that these messages and their results refer to."""
    found: list[str] = []
    for message in messages:
        if isinstance(message, UserMessage):
            found += [part.ref for part in message.parts if isinstance(part, File)]
        elif isinstance(message, ResultsMessage):
            outcomes = [resolved.outcome for resolved in message.results]
            found += [ref for each in outcomes if isinstance(each, Success) for ref in refs_in(each.output)]
    return found


def thread_row(thread: ThreadState) -> ThreadRow:
    """How lists and finders see the thread."""
    row = ThreadRow(
        title=thread.title,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        open_calls=len(thread.open_calls()),
        runs=thread.runs,
    )
    run = thread.run
    if run is None:
        return row
    return replace(
        row,
        run_id=run.run_id,
        run_state=run.state,
        is_parked=run.is_parked,
        kept_from=run.since if run.is_active else None,
    )
