"""Sends a script as frames of the provider's stream, with faults on demand.

Must not know how any provider spells a frame.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Literal, Protocol

from msgspec import Struct

from farhand.errors import ModelFault
from farhand.models.base import ModelEvent


class Writer(Protocol):
    """Spells what the script says as frames of the provider's stream."""

    def begin(self) -> bytes: ...

    def write(self, event: ModelEvent) -> bytes: ...

    def fail(self, fault: ModelFault) -> bytes: ...


class Cut(Struct, frozen=True):
    """The answer breaks off after so many events: the connection is dropped, or the response just ends."""

    after: int
    how: Literal["drop", "end"]


class Inserted(Struct, frozen=True):
    """Bytes that no script said, after so many events."""

    after: int
    raw: bytes


class Trouble(Struct, frozen=True):
    """What happens to one answer."""

    cut: Cut | None = None
    inserted: Inserted | None = None

    def inserted_after(self, said: int) -> bytes:
        return self.inserted.raw if self.inserted is not None and self.inserted.after == said else b""


async def frames_of(
    events: AsyncGenerator[ModelEvent, None], writer: Writer, trouble: Trouble
) -> AsyncIterator[bytes]:
    yield writer.begin()
    said = 0
    try:
        async with aclosing(_up_to(trouble.cut, events)) as heard:
            async for event in heard:
                yield trouble.inserted_after(said) + writer.write(event)
                said += 1
    except ModelFault as fault:
        yield writer.fail(fault)


async def begun(
    first: ModelEvent, rest: AsyncGenerator[ModelEvent, None]
) -> AsyncGenerator[ModelEvent, None]:
    """The whole of an answer whose first event was waited for."""
    async with aclosing(rest):
        yield first
        async for event in rest:
            yield event


class _Dropped(Exception):
    """Raised in the middle of a response: the server can only drop the connection."""


async def _up_to(
    cut: Cut | None, events: AsyncGenerator[ModelEvent, None]
) -> AsyncGenerator[ModelEvent, None]:
    said = 0
    async with aclosing(events):
        async for event in events:
            if cut is not None and said == cut.after:
                break
            yield event
            said += 1
    if cut is not None and cut.how == "drop":
        raise _Dropped
