"""The events of one run, from any position: first the stored ones, then the published ones, without a gap.

A reader subscribes before it reads, so nothing falls in between. It checks the log after a period of silence
or when an item was lost, so a lost notification costs at most one read. It never holds up the run or another
reader.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.event import DELTAS, RunFailed, RunFinished
from farhand.core.position import START, Entry, Position, first_after
from farhand.core.run import Run
from farhand.eventlog.codec import without_discarded
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import SubscribedReader, thread_topic


class LogReader(SubscribedReader):
    """Use it as a context manager; `next()` returns new entries in order."""

    __slots__ = (
        "_is_behind",
        "_is_exact",
        "_is_silent",
        "_is_whole",
        "_log",
        "_run",
        "at",
        "cut",
    )

    def __init__(self, eventlog: EventLog, run: Run, after: Position = START) -> None:
        super().__init__(eventlog.broker.subscribe(run.run_id, thread_topic(run.owner, run.thread_id)))
        self.at = after
        self.cut = False
        """Whether it ended although there is more, for a reader that connects again: this process is about to
        stop, or the log no longer has what was read."""
        self._log = eventlog
        self._run = run
        self._is_behind = True
        self._is_exact = False
        """Whether the position is known to be after a whole event: the first one may be inside a text."""
        self._is_silent = False
        """Whether nothing came for a while: a notification may have been lost, so the store is asked."""
        self._is_whole = after == START

    async def next(self, seconds: float) -> list[Entry] | None:
        """The entries after `at`; an empty list if none came in time; None if there will be no more: the run
        has ended and all of it was returned, or it must be read by connecting again (`cut`)."""
        broker = self._log.broker
        while not self._is_left:
            if self._is_behind:
                stored, is_over = await self._look()
                if stored or is_over:
                    return stored or None
            if not self._subscription.items:
                if broker.closed:
                    self.cut = True
                    break
                if not await self._subscription.wait(min(seconds, broker.recheck)):
                    # something may have been lost on the way, so check the log
                    self._is_behind = self._is_silent = True
                    return []
            fresh = self._published()
            if fresh:
                return fresh
        return None

    async def _look(self) -> tuple[list[Entry], bool]:
        """The log's entries after the position, and whether there will never be more."""
        self._subscription.is_stale = False
        is_certain = self._is_silent
        find = self._log.get_run if is_certain else self._log.get_recent_run
        run = await find(self._run.owner, self._run.run_id)
        self._is_behind = self._is_silent = False
        if run is None:
            return [], True
        if self.at.seq > run.last_seq and is_certain:
            # the database has gone back in time: a reader that comes again is told of the gap
            self.cut = True
            return [], True
        if self.at.seq > run.last_seq or self._is_at_end(run):
            return [], not run.active
        # from one number earlier: the position may be inside a joined text
        entries = await self._log.entries(run, after=max(0, self.at.seq - 1))
        fresh = self._fresh(entries)
        self._is_exact = True
        # what was published meanwhile follows these entries or is among them; after the end nothing follows
        self._is_behind = (self._is_behind and bool(fresh)) or _has_end(fresh)
        return (without_discarded(fresh) if self._is_whole else fresh), not fresh and not run.active

    def _is_at_end(self, run: Run) -> bool:
        return self.at.seq == run.last_seq and (self._is_exact or self.at.seq == 1 or not run.active)

    def _published(self) -> list[Entry]:
        """The published entries that were not read before."""
        news, self._subscription.items = self._subscription.items, []
        fresh: list[Entry] = []
        for entries in news:
            assert isinstance(entries, list), "the topic has lists of entries"
            fresh += self._fresh(entries)
        if fresh:
            self._is_whole = False
        if self._subscription.is_stale or _has_end(fresh):
            self._is_behind = True
        return fresh

    def _fresh(self, entries: list[Entry]) -> list[Entry]:
        """The entries that follow the position. A gap means that something was lost: the log has it."""
        if entries and entries[0].seq <= self.at.seq:
            place = first_after(entries, self.at.seq)
            # the last entry before that may be a text that continues after the position
            rest = rest_of(entries[place - 1], self.at)
            entries = entries[place:] if rest is None else [rest, *entries[place:]]
        fresh = _until_hole(entries, self.at.seq)
        if len(fresh) < len(entries):
            self._is_behind = True
        if fresh:
            self.at = fresh[-1].end
        return fresh


def _has_end(entries: list[Entry]) -> bool:
    return bool(entries) and isinstance(entries[-1].event, RunFinished | RunFailed)


def _until_hole(entries: list[Entry], seq: int) -> list[Entry]:
    """The entries that follow the number without a gap: nearly always all of them. The first may be the rest
    of the text with this number."""
    if not entries or entries[0].seq > seq + 1:
        return []
    first = entries[0].seq
    if entries[-1].seq - first == len(entries) - 1:
        return entries
    return [entry for place, entry in enumerate(entries) if entry.seq == first + place]


def rest_of(entry: Entry, at: Position) -> Entry | None:
    """The part of this entry after a position in it; None if there is none."""
    if entry.seq != at.seq:
        return None
    if not isinstance(entry.event, DELTAS) or entry.offset + len(entry.event.text) <= at.offset:
        return None
    text = entry.event.text[at.offset - entry.offset :]
    return replace(entry, offset=at.offset, event=replace(entry.event, text=text))


def entries_until(entries: list[Entry], position: Position) -> list[Entry]:
    """What a reader at this position has received."""
    until = entries[: first_after(entries, position.seq)]
    if until and until[-1].seq == position.seq and isinstance(until[-1].event, DELTAS):
        text = until[-1].event.text[: position.offset]
        until[-1] = replace(until[-1], event=replace(until[-1].event, text=text))
    return until


def has_position(entries: list[Entry], position: Position) -> bool:
    """False for a position that no reader of these entries can have reached."""
    if position == START:
        return True
    found = next((entry for entry in entries if entry.seq == position.seq), None)
    if found is None:
        return False
    length = len(found.event.text) if isinstance(found.event, DELTAS) else 0
    return position.offset <= length
