"""The commands of one thread that are decided together, and the append that stores them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from farhand.core import state as fold
from farhand.core.decide.decision import Decision
from farhand.core.log import Event
from farhand.core.principal import Owner
from farhand.core.state import ThreadState
from farhand.eventlog.codec import Body, encode_body, encode_snapshot
from farhand.eventlog.lookups import changed_calls, is_in_feed, thread_row
from farhand.store.log.base import Append

T = TypeVar("T")
Command = Callable[[ThreadState, float], Decision[T]]
Key = tuple[Owner, str]

SNAPSHOT_AFTER = 200
"""Rows after which a thread gets a new snapshot."""


class Cached:
    """A thread's state, with what it costs to keep and how many rows there are since its last snapshot."""

    __slots__ = ("key", "rows", "size", "state")

    def __init__(self, key: Key, state: ThreadState, *, size: int, rows: int) -> None:
        self.key = key
        self.state = state
        self.size = size
        self.rows = rows

    def grow(self, size: int, *, is_snapshot: bool = False) -> int:
        self.rows = 0 if is_snapshot else self.rows + 1
        self.size += size
        return size


class Waiting(Generic[T]):
    """A command, and whoever waits for its answer."""

    __slots__ = ("_decided", "answer", "command", "key")

    def __init__(self, key: Key, command: Command[T]) -> None:
        self.key = key
        self.command = command
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._decided: Decision[T] | None = None

    def decide(self, state: ThreadState, now: float) -> Decision[T]:
        self._decided = self.command(state, now)
        return self._decided

    def conclude(self) -> None:
        """What was decided is durable. Whoever asked may be gone."""
        if self._decided is not None and not self.answer.done():
            self.answer.set_result(self._decided.answer)


class ThreadBatch:
    def __init__(self, cached: Cached, commands: list[Waiting[Any]], now: float) -> None:
        self.cached = cached
        self.commands = commands
        self.now = now
        self.events: tuple[Event, ...] = ()
        self.encoded = b""
        self.snapshot: bytes | None = None
        self.is_stored = True
        """False once the store, or the fold, says that it is to be decided again."""
        self._version = cached.state.version
        run = cached.state.run
        self._before = (None, 0) if run is None else (run.run_id, run.seq)
        self._outside: list[int] = []
        self._not_after: float | None = None
        self._not_before: float | None = None

    def decide(self) -> None:
        """Each command on the state as the one before leaves it."""
        kept: list[Waiting[Any]] = []
        for each in self.commands:
            try:
                decision = each.decide(self.cached.state, self.now)
                self._apply(decision)
            # a rule that broke is told to the one who asked, and to nobody else
            except Exception as error:  # noqa: BLE001
                fail([each], error)
            else:
                kept.append(each)
        self.commands = kept
        if self.events:
            self.cached.state.version += 1

    def is_due(self, *, is_shared: bool) -> bool:
        """Whether the store has to be asked: to write, or whether an answer holds where others write, too."""
        return self.is_stored and (bool(self.events) or (is_shared and bool(self.commands)))

    @property
    def body(self) -> Body:
        run_id, seq = self._before
        return Body(self.events, run_id, seq, tuple(self._outside))

    def append(self) -> Append:
        owner, thread_id = self.cached.key
        if not self.events:
            return Append(owner=owner, thread_id=thread_id, version=self._version, at=self.now)
        state = self.cached.state
        self.encoded = encode_body(self.body)
        if self.cached.rows >= SNAPSHOT_AFTER:
            self.snapshot = encode_snapshot(state)
        return Append(
            owner=owner,
            thread_id=thread_id,
            version=self._version,
            at=self.now,
            body=self.encoded,
            thread=thread_row(state),
            calls=changed_calls(state, self.events),
            in_feed=is_in_feed(self.events),
            snapshot=self.snapshot,
            not_after=self._not_after,
            not_before=self._not_before,
        )

    def _apply(self, decision: Decision[object]) -> None:
        try:
            for place, event in enumerate(decision.events, len(self.events)):
                fold.apply(self.cached.state, event, self.now)
                if not fold.belongs_to_run(self.cached.state, event):
                    self._outside.append(place)
        except Exception:
            # the state is half changed: what the others decided on it does not count
            self.is_stored = False
            raise
        self.events = (*self.events, *decision.events)
        if decision.not_after is not None:
            self._not_after = min(decision.not_after, self._not_after or decision.not_after)
        if decision.not_before is not None:
            self._not_before = max(decision.not_before, self._not_before or decision.not_before)


def fail(commands: Iterable[Waiting[Any]], error: Exception) -> None:
    for each in commands:
        if not each.answer.done():
            each.answer.set_exception(error)
