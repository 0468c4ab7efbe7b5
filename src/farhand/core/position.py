"""Places in the log: an event with its number, how far a reader has got, an entry of a feed.

Every event is stored before a reader gets it, so a number means the same event forever. `Position` counts
characters too, because the clients of every wire return it as they got it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct

from farhand.core.event import DELTAS, Event, Notice

Happening: TypeAlias = Event | Notice
"""What an owner's feed reports: runs, calls with or without a run, clients."""


class News(Struct, frozen=True, gc=False):
    """One entry of an owner's feed, across all runs."""

    no: int
    at: float
    event: Happening
    thread_id: str | None = None
    run_id: str | None = None


class Entry(Struct, frozen=True, gc=False):
    """An event of a run with its number; the numbers of a run have no gaps. `offset` counts the characters of
    a text that the reader had before this piece."""

    seq: int
    event: Event
    at: float
    offset: int = 0

    @property
    def end(self) -> Position:
        """The reader's position once it has this piece."""
        if isinstance(self.event, DELTAS):
            return Position(self.seq, self.offset + len(self.event.text))
        return Position(self.seq, 0)


def first_after(entries: Sequence[Entry], seq: int) -> int:
    """The index of the first entry with a higher number; they are in order."""
    return bisect_right(entries, seq, key=_SEQ)


_SEQ = attrgetter("seq")


class Position(Struct, frozen=True, gc=False, order=True):
    """How far a reader has got: the last event it has; for a text, how many characters of it."""

    seq: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.seq}.{self.offset}"


START = Position()

_POSITION = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,15}))?")


def parse_position(text: str) -> Position | None:
    """None for anything but `seq` or `seq.offset`."""
    found = _POSITION.fullmatch(text)
    return None if found is None else Position(int(found[1]), int(found[2] or 0))


class Bookmark(Struct, frozen=True, gc=False):
    """A position, and which run it is in: in another run of the thread the same numbers mean other events.

    `mark` is empty if a reader does not send one; then it means the current run.
    """

    position: Position
    mark: str = ""

    def is_in(self, run_id: str) -> bool:
        return self.mark in ("", mark_of(run_id))


def mark_of(run_id: str) -> str:
    """Enough of a run's id to distinguish the runs of one thread."""
    return run_id.removeprefix("run_")[:8]


def parse_bookmark(text: str) -> Bookmark | None:
    """None for anything but a position, or a position followed by `~` and a mark."""
    place, tilde, mark = text.partition("~")
    position = parse_position(place)
    if position is None or (tilde and _MARK.fullmatch(mark) is None):
        return None
    return Bookmark(position, mark)


_MARK = re.compile(r"[A-Za-z0-9_-]{1,8}")
