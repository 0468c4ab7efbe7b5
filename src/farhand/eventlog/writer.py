"""What the models of this process write, on its way into the log: joined, and stored by one tick for all.

The first words of a run are stored at once; those that follow within a tick are joined to one event. Readers
are sent what is stored, so nobody ever sees words that a crash could take back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from farhand.core.log import (
    CallBegun,
    Event,
    InputAdded,
    ModelDelayed,
    ReasoningAdded,
    StepStarted,
    TextAdded,
)

TICK_SEC = 0.05

Written: TypeAlias = StepStarted | ModelDelayed | TextAdded | ReasoningAdded | CallBegun | InputAdded
Store = Callable[[tuple[Event, ...]], Awaitable[bool]]
"""Appends these events; False if another worker has the run."""


class RunWriter:
    """For the worker that advances one run."""

    def __init__(self, tick: Tick, store: Store) -> None:
        self.is_lost = False
        """Whether another worker has the run: what is written from now on is for nobody."""
        self._tick = tick
        self._store = store
        self._waiting: list[Event] = []
        self._pieces: list[str] = []
        """Of the last event, which is a block of text that may go on."""
        self._storing = asyncio.Lock()

    def add(self, event: Written) -> None:
        last = self._waiting[-1] if self._waiting else None
        if last is not None and is_same_block(last, event):
            self._pieces.append(_text(event))
        else:
            self._close_block()
            self._waiting.append(event)
            self._pieces = [_text(event)]
        self._tick.want(self)

    def take(self) -> tuple[Event, ...]:
        """What is not stored yet, for whoever stores it with something else: the end of a step."""
        self._close_block()
        waiting, self._waiting = self._waiting, []
        return tuple(waiting)

    async def flush(self) -> None:
        """Stores what was written; in order, however often it is asked."""
        async with self._storing:
            events = self.take()
            if events and not self.is_lost:
                self.is_lost = not await self._store(events)

    def _close_block(self) -> None:
        if len(self._pieces) > 1:
            self._waiting[-1] = with_text(self._waiting[-1], "".join(self._pieces))
        self._pieces = []


class Tick:
    """One timer for all writers: what they have is stored together, in one transaction."""

    def __init__(self, seconds: float = TICK_SEC) -> None:
        self._seconds = seconds
        self._wanted: dict[RunWriter, None] = {}
        self._arrived = asyncio.Event()

    def want(self, writer: RunWriter) -> None:
        self._wanted[writer] = None
        self._arrived.set()

    async def serve(self) -> None:
        """For ever. If the store is down, the worker of the run is told so by its own next write."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            writers, self._wanted = list(self._wanted), {}
            await asyncio.gather(*(writer.flush() for writer in writers), return_exceptions=True)
            await asyncio.sleep(self._seconds)


def is_same_block(first: Event, second: Event) -> bool:
    match first, second:
        case (TextAdded(part=one), TextAdded(part=other)) | (
            ReasoningAdded(part=one),
            ReasoningAdded(part=other),
        ):
            return one == other
        case InputAdded(call_id=one_id), InputAdded(call_id=other_id):
            return one_id == other_id
        case _:
            return False


def with_text(event: Event, text: str) -> Event:
    match event:
        case TextAdded(part=part):
            return TextAdded(part, text)
        case ReasoningAdded(part=part):
            return ReasoningAdded(part, text)
        case InputAdded(call_id=call_id):
            return InputAdded(call_id, text)
        case _:
            raise AssertionError("only blocks of text are joined")


def _text(event: Written) -> str:
    return event.text if isinstance(event, TextAdded | ReasoningAdded | InputAdded) else ""
