"""The output of this process's models on its way into the log: joined, and stored by one tick for all of
them.

The first words after a silence are stored at once; words that follow within a tick are joined into one event.
Readers get only what is stored, so nobody ever sees words that a crash could take back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from farhand.core.event import (
    DELTAS,
    CallBegun,
    Event,
    InputAdded,
    ModelDelayed,
    ReasoningAdded,
    StepStarted,
    TextAdded,
)
from farhand.core.run import Run
from farhand.errors import LostClaim, StoreDown

log = logging.getLogger("farhand.eventlog")

TICK_SEC = 0.05

Written: TypeAlias = StepStarted | ModelDelayed | CallBegun
Words: TypeAlias = TextAdded | ReasoningAdded | InputAdded
Block: TypeAlias = tuple[type[Event], int | str]
Append: TypeAlias = Callable[[Run, tuple[Event, ...], int], asyncio.Future[int | None]]
"""Appends these events after the run's event with this number; returns the number of the run's last event
then, or None if another worker has the run. Events that are already stored are not stored twice."""


class RunWriter:
    """For the worker that advances one run. Events sent to the store are kept until they are known to be
    stored: they may be sent again, after the same number."""

    __slots__ = (
        "_after",
        "_append",
        "_block",
        "_events",
        "_handed_over",
        "_is_lost",
        "_pieces",
        "_run",
        "_tick",
    )

    def __init__(self, tick: Tick, run: Run, append: Append) -> None:
        self._run = run
        self._tick = tick
        self._append = append
        self._after = run.last_seq
        """The number of the run's last event that is known to be stored."""
        self._events: list[Event] = []
        self._handed_over = 0
        """How many of them are being stored."""
        self._block: Block | None = None
        """The block of the last event, if that is text that may continue; its whole text is in `_pieces`."""
        self._pieces: list[str] = []
        self._is_lost = False

    def add(self, event: Written) -> None:
        self._add(event)

    def add_words(self, kind: type[Words], place: int | str, text: str) -> None:
        """Adds text to one block: to the text or reasoning with this number, or to the input of this call."""
        block = (kind, place)
        if block == self._block and not self._is_lost:
            self._pieces.append(text)
            return
        # each kind has its own type of place, and the caller knows both
        self._add(kind(place, text))  # type: ignore[arg-type]
        self._block, self._pieces = block, [text]

    def _add(self, event: Written | Words) -> None:
        if self._is_lost:
            raise LostClaim(f"Run {self._run.run_id} was taken over.")
        self._close_block()
        self._events.append(event)
        self._tick.want(self)

    def follow(self, last_seq: int) -> None:
        """Others have appended to the run while its model was silent."""
        self._after = last_seq

    @property
    def has_words(self) -> bool:
        """Whether there is something to store that is not being stored yet."""
        return len(self._events) > self._handed_over and not self._is_lost

    def flush(self) -> asyncio.Future[int | None]:
        """Stores what was written. If the store is down, the text is kept for the next time."""
        stored = self._append(self._run, *self.unstored())
        stored.add_done_callback(self._note)
        return stored

    def unstored(self) -> tuple[tuple[Event, ...], int]:
        """The text that is not known to be stored, and the number of the event before it: to be stored
        together with the end of a step. Pass the result to `note`."""
        self._close_block()
        self._handed_over = len(self._events)
        return tuple(self._events), self._after

    def note(self, last_seq: int | None) -> None:
        """Everything up to this event number is stored. Raises `LostClaim` for None: another worker has the
        run."""
        if last_seq is None:
            self._is_lost = True
            raise LostClaim(f"Run {self._run.run_id} was taken over.")
        more = last_seq - self._after
        if more > 0:
            del self._events[:more]
            self._handed_over = max(0, self._handed_over - more)
            self._after = last_seq

    def _note(self, stored: asyncio.Future[int | None]) -> None:
        if stored.cancelled() or stored.exception() is not None:
            self._handed_over = 0
            return
        try:
            self.note(stored.result())
        except LostClaim:
            # the run learns of it with its next text
            return

    def _close_block(self) -> None:
        if len(self._pieces) > 1:
            self._events[-1] = replace(self._events[-1], text="".join(self._pieces))
        if self._block is not None:
            self._block, self._pieces = None, []


class Tick:
    """One timer for all writers: their events are stored together, in one transaction."""

    def __init__(self, seconds: float = TICK_SEC) -> None:
        self._seconds = seconds
        self._wanted: dict[RunWriter, None] = {}
        self._timer: asyncio.Handle | None = None
        self._storing: asyncio.Future[list[int | BaseException | None]] | None = None
        self._next_at = 0.0

    def want(self, writer: RunWriter) -> None:
        self._wanted[writer] = None
        if self._timer is None and self._storing is None:
            self._set_timer()

    async def close(self) -> None:
        """Waits until the queued writers are stored."""
        if self._timer is not None:
            self._timer.cancel()
            self._flush()
        if self._storing is not None:
            await asyncio.wait([self._storing])

    def _set_timer(self) -> None:
        loop = asyncio.get_running_loop()
        if self._next_at > loop.time():
            self._timer = loop.call_at(self._next_at, self._flush)
        else:
            # not before everything written in this turn of the loop is in
            self._timer = loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._timer = None
        # usually a step was stored as a whole before its first tick
        writers = [writer for writer in self._wanted if writer.has_words]
        self._wanted = {}
        if not writers:
            return
        self._next_at = asyncio.get_running_loop().time() + self._seconds
        stored = [writer.flush() for writer in writers]
        self._storing = asyncio.gather(*stored, return_exceptions=True)
        self._storing.add_done_callback(lambda _: self._end_flush(writers, stored))

    def _end_flush(self, writers: list[RunWriter], stored: list[asyncio.Future[int | None]]) -> None:
        self._storing = None
        for writer, each in zip(writers, stored, strict=True):
            error = None if each.cancelled() else each.exception()
            if isinstance(error, StoreDown):
                self._wanted[writer] = None
            elif error is not None:
                log.error("could not store text of a run", exc_info=error)
        if self._wanted:
            self._set_timer()


def block_of(event: TextAdded | ReasoningAdded | InputAdded) -> Block:
    """Deltas of one block follow each other and may be joined."""
    return type(event), event.call_id if isinstance(event, InputAdded) else event.part


def is_same_block(first: Event, second: Event) -> bool:
    return isinstance(first, DELTAS) and isinstance(second, DELTAS) and block_of(first) == block_of(second)
