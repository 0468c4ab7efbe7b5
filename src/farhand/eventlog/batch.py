"""The commands of one thread that are decided together, what they change, and the append that stores it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from farhand.core import fold
from farhand.core.call import Call
from farhand.core.decide.decision import Decision
from farhand.core.event import (
    CallChange,
    CallEvent,
    CallOpened,
    CallSettled,
    Event,
    MessageAdded,
    MessageQueued,
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
from farhand.core.tool import Tool
from farhand.errors import NameTaken, Unreadable
from farhand.eventlog.codec import FORMAT, Body, encode_body, encode_snapshot
from farhand.eventlog.thread_cache import CachedThread, Key
from farhand.store.base import Append, Lease, ThreadRow

REFUSALS = 8
"""A thread may be deleted and created again while a command waits, but not this often."""

T = TypeVar("T")
Command = Callable[[ThreadState, float], Decision[T]]
# a command's answer may have any type: `then` turns it into the caller's
Then = Callable[[ThreadState, Any], T]


class PendingCommand(Struct, Generic[T], eq=False):
    """A command and the future of its caller. `events` and `answer` are set once it is decided."""

    key: Key
    command: Command[Any]
    then: Then[T] | None
    future: asyncio.Future[T]
    events: tuple[Event, ...] = ()
    # Any: not read before it is decided
    answer: Any = None
    refused_on: tuple[int, float | None] | None = None
    """The version, and the time of its append, on which the store last refused it."""
    refusals: int = 0
    """How often in a row the store has refused it on that version."""

    @property
    def has_request(self) -> bool:
        """Whether it opens a call under a request id, which must be unique for its owner."""
        opened = [event for event in self.events if isinstance(event, CallOpened)]
        return any(each.request is not None and each.request.request_id is not None for each in opened)


class ThreadBatch(Struct, eq=False):
    """The commands decided in one thread until the store is free, and the append that stores them."""

    cached: CachedThread
    now: float
    version: int
    """The version that its commands are decided on."""
    changes: Changes
    commands: list[PendingCommand[Any]] = []
    encoded: bytes = b""
    snapshot: bytes | None = None
    is_relied_on: bool = False
    """Whether a worker continued with what is decided here before it is durable."""
    is_stored: bool = True
    """False once the store or the fold requires that it be decided again."""
    tools: dict[str, Tool] = {}
    not_after: float | None = None
    not_before: float | None = None

    def decide(self, pending: PendingCommand[Any]) -> bool:
        """Decides on the state as the previous command leaves it. False if that broke the state."""
        state = self.cached.state
        try:
            decision = pending.command(state, self.now)
            if decision.events:
                pending.events = decision.events
                self._apply(decision)
            then, answer = pending.then, decision.answer
            pending.answer = answer if then is None else then(state, answer)
        # only this caller gets the error
        except Exception as error:  # noqa: BLE001
            fail([pending], error)
            return self.is_stored
        self.commands.append(pending)
        return True

    def fail_requests(self) -> None:
        """Another thread has a request id of these commands."""
        taken = NameTaken("This request id was used for another call.", hint="Use a new one.")
        fail([each for each in self.commands if each.has_request], taken)
        self.commands = [each for each in self.commands if not each.has_request]

    def fail_stuck(self, decided_on: tuple[int, float | None]) -> None:
        """The thread has moved on. A command that is refused on the same version again and again, though the
        log was read in between, would be refused forever."""
        for each in self.commands:
            each.refusals = each.refusals + 1 if each.refused_on == decided_on else 1
            each.refused_on = decided_on
        stuck = [each for each in self.commands if each.refusals >= REFUSALS]
        if stuck:
            broken = "The log of this thread does not reach the version that the store has."
            fail(stuck, Unreadable(broken, hint="Run `farhand rebuild`."))
            self.commands = [each for each in self.commands if each not in stuck]

    def append(self, *, worker: str, lease_until: float, known_tools: set[str]) -> Append:
        owner, thread_id = self.cached.key
        changes, state = self.changes, self.cached.state
        if not changes.events:
            return Append(
                owner=owner,
                thread_id=thread_id,
                version=self.version,
                at=self.now,
                last_at=self.cached.last_at,
            )
        self.encoded = encode_body(changes.body())
        state.version += 1
        if self.cached.needs_snapshot:
            self.snapshot = encode_snapshot(state)
        return Append(
            owner=owner,
            thread_id=thread_id,
            version=self.version,
            at=self.now,
            # as it is now: the batch before this one is stored
            last_at=self.cached.last_at,
            body=self.encoded,
            thread=thread_row(state) if changes.is_listed else None,
            calls=tuple(changes.calls.values()),
            runs=tuple(changes.runs.values()),
            tools=tuple([tool for version, tool in self.tools.items() if version not in known_tools]),
            files=tuple(changes.files),
            feed=changes.feed,
            lease=changes.lease(worker, lease_until),
            snapshot=self.snapshot,
            not_after=self.not_after,
            not_before=self.not_before,
        )

    def _apply(self, decision: Decision[object]) -> None:
        try:
            self.changes.apply(decision.events, self.now)
        except Exception:
            # the state is half changed
            self.is_stored = False
            raise
        for tool in decision.tools:
            self.tools[tool.version] = tool
        if decision.not_after is not None:
            self.not_after = min(decision.not_after, self.not_after or decision.not_after)
        if decision.not_before is not None:
            self.not_before = max(decision.not_before, self.not_before or decision.not_before)


def begin_batch(cached: CachedThread, now: float) -> ThreadBatch:
    state = cached.state
    return ThreadBatch(cached, now, state.version, begin_changes(state))


def fail(commands: Iterable[PendingCommand[Any]], error: Exception) -> None:
    for each in commands:
        if not each.future.done():
            each.future.set_exception(error)
            # the caller may be gone
            each.future.exception()


class Changes(Struct, eq=False):
    """What the events of one append change: the records of calls and runs, the files, the feed.

    Collected while the events are applied, since one append may end a run and start the next, which discards
    the calls of the first.
    """

    thread: ThreadState
    """The state after them."""
    run_before: str | None = None
    seq_before: int = 0
    events: list[Event] = []
    entries: dict[str, list[Entry]] = {}
    """The events of runs, numbered, by run: one may end and the next one start."""
    calls: dict[str, Call] = {}
    runs: dict[str, Run] = {}
    """Runs that started, parked, resumed or ended."""
    new_runs: list[Run] = []
    """The same runs in order, until they are removed to start or stop work on them."""
    files: list[str] = []
    feed: int = 0
    is_listed: bool = False
    """Whether the thread's row in lists changes: text alone does not change it."""
    is_claimed: bool | None = None
    """Whether the appending worker advances the run from now on; None if that is unchanged."""
    outside: list[int] = []
    """The indexes of events that belong to no run."""

    def apply(self, events: Iterable[Event], at: float) -> None:
        thread = self.thread
        for event in events:
            fold.apply(thread, event, at)
            self.events.append(event)
            if isinstance(event, ModelOutput) or self._note(event):
                run = thread.run
                assert run is not None, "the log has a run before its events"
                self.entries.setdefault(run.run_id, []).append(Entry(run.seq, event, at))
            else:
                self.outside.append(len(self.events) - 1)

    def apply_body(self, body: Body, at: float) -> None:
        """What another process has appended."""
        self.thread.format = max(self.thread.format, body.format)
        self.apply(body.events, at)

    def body(self) -> Body:
        return Body(tuple(self.events), self.run_before, self.seq_before, tuple(self.outside), FORMAT)

    def lease(self, worker: str, until: float) -> Lease | None:
        if self.is_claimed is None:
            return None
        return Lease(worker, until) if self.is_claimed else Lease("", 0.0)

    def _note(self, event: Event) -> bool:
        """Records what the event changes; returns whether it belongs to the run."""
        self.is_listed = True
        self.feed += event.in_feed
        if isinstance(event, CallChange):
            return self._note_call(event)
        if isinstance(event, ThreadChange):
            if isinstance(event, MessageAdded | MessageQueued):
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
            # files that a result refers to belong to the thread from now on
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


def begin_changes(thread: ThreadState) -> Changes:
    run = thread.run
    return Changes(thread) if run is None else Changes(thread, run.run_id, run.seq)


def thread_row(thread: ThreadState) -> ThreadRow:
    """The thread as lists and finders see it."""
    run = thread.run
    if run is None:
        run_id = run_state = kept_from = None
    else:
        run_id, run_state, kept_from = run.run_id, run.state, run.since if run.is_active else None
    return ThreadRow(
        title=thread.title,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        run_id=run_id,
        run_state=run_state,
        is_parked=run is not None and run.is_parked,
        open_calls=len(thread.open_calls()),
        runs=thread.runs,
        kept_from=kept_from,
    )
