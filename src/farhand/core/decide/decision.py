"""What a decision gives: events to append, the answer to whoever asked, and when that is still true."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from farhand.core.event import Event
from farhand.core.tool import Tool

T_co = TypeVar("T_co", covariant=True)


class Decision(Struct, Generic[T_co], frozen=True):
    """`answer` may be given once `events` are durable; without events, once the store confirms that the state
    on which it was decided is durable and still the newest.

    `not_after` and `not_before` are judged by the store's own clock where the append is written: an append
    that comes too late or too early changes nothing and is decided again.
    """

    answer: T_co
    events: tuple[Event, ...] = ()
    tools: tuple[Tool, ...] = ()
    """Of the calls that these events open: a call keeps the schema it was opened with."""
    not_after: float | None = None
    not_before: float | None = None
