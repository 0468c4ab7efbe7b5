"""What a reader has heard before it was stored, until the record says the same.

In a store that processes share, another one may take the run over before the words of the first are stored.
Then the same numbers come to mean other events, and who has heard the lost words must not simply go on.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.event import DELTAS, CallBegun, Entry, Event, StepStarted, is_same_block

AT_MOST = 256


class Ahead:
    __slots__ = ("heard",)

    def __init__(self) -> None:
        self.heard: dict[int, Event] = {}
        """By their numbers."""

    @property
    def first(self) -> int | None:
        """The number of the oldest event that the record has not confirmed."""
        return next(iter(self.heard), None)

    def hear(self, entry: Entry) -> None:
        """Only what the model says is told before it is stored."""
        event = entry.event
        if not isinstance(event, _SPOKEN):
            return
        before = self.heard.get(entry.seq)
        if isinstance(before, DELTAS) and isinstance(event, DELTAS):
            event = replace(event, text=before.text + event.text)
        self.heard[entry.seq] = event
        if len(self.heard) > AT_MOST:
            del self.heard[next(iter(self.heard))]

    def agrees(self, entry: Entry) -> bool:
        """Whether this entry, told or stored, goes with what was heard under its number."""
        heard = self.heard.get(entry.seq)
        if heard is None or entry.offset:
            return True
        event = entry.event
        if isinstance(heard, DELTAS) and isinstance(event, DELTAS):
            return is_same_block(heard, event) and event.text.startswith(heard.text)
        return heard == event

    def confirm(self, entry: Entry) -> None:
        """The record has it."""
        self.heard.pop(entry.seq, None)


_SPOKEN = (StepStarted, CallBegun, *DELTAS)
