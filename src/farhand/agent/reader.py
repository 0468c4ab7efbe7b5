"""Reads a run's journal after a position, then live, without a gap and without a repetition.

A reader takes its events from the hub while it keeps up and from the store when it doesn't. It never holds
up the run or another reader.
"""

from __future__ import annotations

import asyncio
from operator import attrgetter
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from farhand.agent.ahead import AT_MOST, Ahead
from farhand.core.event import (
    DELTAS,
    START,
    Entry,
    Position,
    RunResumed,
    StepDiscarded,
    StepFinished,
    StepStarted,
)
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.errors import ShuttingDown
from farhand.store.base import Store
from farhand.store.hub import Watch

PAGE = 200
SPOKEN_SOON_SEC = 0.5


class Reader:
    """Use it as a context manager; `next()` gives what there is, in order."""

    __slots__ = (
        "_ahead",
        "_behind",
        "_believes",
        "_left",
        "_owner",
        "_run_id",
        "_store",
        "_watch",
        "_whole",
        "at",
        "cut",
    )

    def __init__(self, store: Store, owner: Owner, run_id: str, after: Position = START) -> None:
        self.at = after
        self.cut = False
        self._left = False
        self._store = store
        self._owner = owner
        self._run_id = run_id
        self._watch: Watch = store.hub.watch(run_id)
        self._behind = True
        self._whole = after == START
        self._ahead = Ahead()
        self._believes = 0.0

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    def leave(self) -> None:
        """Ends a `next()` that is under way; every later one ends at once."""
        self._left = True
        self._watch.wake()

    def believe(self, run: Run) -> None:
        """The run is as it was a moment ago, so a reader at its end need not look whether there is more."""
        if run.active and self.at.seq >= run.last_seq:
            self._behind = False
            self._believes = SPOKEN_SOON_SEC

    async def next(self, seconds: float) -> list[Entry] | None:
        """What comes after `at`; an empty list when nothing came in time; None when nothing will come.

        That is when the run ended before, or when this process is about to stop (`cut`): then the rest is to
        be had from another reader.
        """
        while not self._left:
            if self._behind:
                stored, is_all = await self._recorded()
                if not is_all:
                    return stored
            if not self._watch.news:
                if self._store.hub.closed:
                    self.cut = True
                    break
                recheck, self._believes = self._believes or self._store.hub.recheck, 0.0
                if not await self._watch.wait(min(seconds, recheck)):
                    # perhaps something was lost on its way here, so the record is asked
                    self._behind = True
                    return []
            news, self._watch.news = self._watch.news, []
            heard = self._new_in(news)
            # what was told before is heard again when it is stored: that is no reason to say anything
            if heard:
                return heard
        return None

    async def _recorded(self) -> tuple[list[Entry] | None, bool]:
        """What the record has; and whether that is nothing, of a run that may say more."""
        stored, caught_up = await self._stored()
        if stored or not caught_up:
            return stored, False
        run = await self._store.get_run(self._owner, self._run_id)
        if run is None or not run.active:
            # what was written between the two looks is the last there is
            stored, _ = await self._stored()
            return stored or None, False
        return None, True

    async def _stored(self) -> tuple[list[Entry], bool]:
        """The next page of the journal, and whether the reader has caught up with it."""
        self._watch.lost = False
        page = await self._page(max(0, min(self.at.seq, self._ahead.first or self.at.seq) - 1))
        more = len(page) == PAGE
        # only the end of a step tells whether a replay may show it
        while more and self._whole and _ends_in_step(page):
            next_page = await self._page(page[-1].seq)
            page += next_page
            more = len(next_page) == PAGE
        self._behind = more
        fresh = self._fresh(page)
        for entry in page:
            self._ahead.confirm(entry)
        return (without_discarded(fresh) if self._whole else fresh), not more

    async def _page(self, after: int) -> list[Entry]:
        return await self._store.events(self._owner, self._run_id, after=after, limit=PAGE)

    def _new_in(self, news: list[object]) -> list[Entry]:
        """What of the news was not heard before."""
        fresh: list[Entry] = []
        if self._left:
            # cut while it slept: what comes now would seem to follow on words that were lost
            return fresh
        self._whole = False
        for entries in news:
            assert isinstance(entries, list)
            heard = self._fresh(entries)
            fresh += heard
            if self._store.is_shared:
                # before the next ones are judged: they may say that these are lost
                for entry in heard:
                    self._ahead.hear(entry)
            if self._behind or self._left:
                break
        if self._watch.lost:
            self._behind = True
        return joined(fresh) if len(news) > 1 else fresh

    def _fresh(self, entries: list[Entry]) -> list[Entry]:
        """What of these is new. A hole means that something was not heard: the rest comes from the store."""
        if not entries:
            return entries
        first, last, at = entries[0], entries[-1], self.at
        if first.seq == at.seq:
            follows = 0 < first.offset == at.offset
        else:
            follows = first.seq == at.seq + 1 and first.offset == 0
        # as nearly always: all of them are new and follow directly, in a run that was never taken over
        if (
            follows
            and last.seq - first.seq == len(entries) - 1
            and not at.takeover
            and not self._ahead.heard
            and _TAKEOVERS.isdisjoint(map(type, map(_EVENT, entries)))
        ):
            self.at = last.end
            return entries
        return self._sort_out(entries)

    def _sort_out(self, entries: list[Entry]) -> list[Entry]:
        fresh: list[Entry] = []
        for entry in entries:
            end = entry.end
            if not self._ahead.agrees(entry):
                # what was heard is nowhere: the reader has to come back and be told of the gap
                self._left = self.cut = True
                break
            if end <= self.at:
                self._ahead.confirm(entry)
                continue
            piece = rest_of(entry, self.at)
            if piece is None:
                self._behind = True
                break
            takeover = _takeover_in(piece) or self.at.takeover
            if takeover:
                piece = replace(piece, takeover=takeover)
                end = piece.end
            self.at = end
            fresh.append(piece)
        return fresh


async def step_end(store: Store, run: Run, step: int) -> Position:
    """The position right after this step of the run; the journal's end if it is not there."""
    after = takeover = 0
    while page := await store.events(run.owner, run.run_id, after=after, limit=PAGE):
        for entry in page:
            takeover = _takeover_in(entry) or takeover
            if isinstance(entry.event, StepFinished) and entry.event.step == step:
                return Position(entry.seq, 0, takeover)
        after = page[-1].seq
    return Position(after, 0, takeover)


async def entries_of_last_step(store: Store, run: Run) -> list[Entry]:
    """The journal from its last beginning or end of a step on; read from the end, as a run may have many."""
    entries: list[Entry] = []
    before = run.last_seq
    while before > 0:
        after = max(0, before - PAGE)
        page = await store.events(run.owner, run.run_id, after=after, limit=before - after)
        entries = [*page, *entries]
        if any(isinstance(entry.event, StepStarted | StepFinished | StepDiscarded) for entry in page):
            break
        before = after
    return entries


async def told_until(store: Store, run: Run, position: Position) -> list[Entry]:
    """What a reader at this position has been told."""
    told: list[Entry] = []
    while page := await store.events(run.owner, run.run_id, after=told[-1].seq if told else 0, limit=PAGE):
        told += [entry for entry in page if entry.seq <= position.seq]
        if page[-1].seq >= position.seq:
            break
    if told and isinstance(told[-1].event, DELTAS):
        said = replace(told[-1].event, text=told[-1].event.text[: position.offset])
        told[-1] = replace(told[-1], event=said)
    return told


async def knows(store: Store, run: Run, position: Position, *, within: float = SPOKEN_SOON_SEC) -> bool:
    """False for a position that no reader of this journal can have reached.

    One behind its end may be of words that are told and not stored yet. Whoever says them stores them in a
    moment, or later if the store is slow, or never: then another takes the run over. The journal is asked
    until it says which, or for so many seconds.
    """
    now: Run | None = run
    until = _now() + within
    with store.hub.watch(run.run_id) as watch:
        while True:
            told = await told_until(store, run, position)
            if max(map(_takeover_in, told), default=0) != position.takeover:
                return False
            end = told[-1].end if told else START
            if end.seq == position.seq:
                return end.offset == position.offset
            left = until - _now()
            if now is None or not _may_be_said(now, position) or left <= 0:
                return False
            if store.hub.closed:
                raise ShuttingDown("The server is about to stop.", hint="Resume the stream in a moment.")
            # what is heard here may be told and not stored, too
            watch.news.clear()
            await watch.wait(min(left, SPOKEN_SOON_SEC))
            now = await store.get_run(run.owner, run.run_id)


def _may_be_said(run: Run, position: Position) -> bool:
    """Whether the model may be speaking, and so much ahead of the journal: while the run waits, all that was
    told is stored."""
    return run.active and run.blockers == 0 and not run.parked and position.seq <= run.last_seq + AT_MOST


_EVENT = attrgetter("event")
_TAKEOVERS = frozenset({RunResumed, StepDiscarded})


def _takeover_in(entry: Entry) -> int:
    """Its number, if it is one: what was told under this number or a later one before it may be lost."""
    event = entry.event
    if isinstance(event, RunResumed):
        return entry.seq if event.taken_over else 0
    return entry.seq if isinstance(event, StepDiscarded) else 0


def rest_of(entry: Entry, at: Position) -> Entry | None:
    """What of this entry follows directly on the position; None if something is missing between."""
    if entry.seq == at.seq + 1 and entry.offset == 0:
        return entry
    if entry.seq != at.seq or entry.offset > at.offset:
        return None
    event = entry.event
    if not isinstance(event, DELTAS):
        return None
    return replace(entry, offset=at.offset, event=replace(event, text=event.text[at.offset - entry.offset :]))


def joined(entries: list[Entry]) -> list[Entry]:
    """Pieces of one entry as one piece: what has queued up leaves together."""
    if not entries or entries[-1].seq - entries[0].seq == len(entries) - 1:
        # each has a number of its own
        return entries
    kept = [entries[0]]
    pieces: list[str] = []
    for entry in entries[1:]:
        last = kept[-1]
        if entry.seq != last.seq or not isinstance(entry.event, DELTAS) or not isinstance(last.event, DELTAS):
            _close(kept, pieces)
            kept.append(entry)
        else:
            pieces = pieces or [last.event.text]
            pieces.append(entry.event.text)
    _close(kept, pieces)
    return kept


def _close(kept: list[Entry], pieces: list[str]) -> None:
    """Puts the pieces of the last entry together."""
    last = kept[-1]
    if pieces and isinstance(last.event, DELTAS):
        kept[-1] = replace(last, event=replace(last.event, text="".join(pieces)))
        pieces.clear()


def without_discarded(entries: list[Entry]) -> list[Entry]:
    """A replay leaves out the steps that a crash cut short."""
    kept: list[Entry] = []
    begun: int | None = None
    for entry in entries:
        match entry.event:
            case StepStarted():
                begun = len(kept)
            case StepFinished():
                begun = None
            case StepDiscarded() if begun is not None:
                del kept[begun:]
                begun = None
                continue
        kept.append(entry)
    return kept


def _ends_in_step(page: list[Entry]) -> bool:
    for entry in reversed(page):
        if isinstance(entry.event, StepStarted | StepFinished | StepDiscarded):
            return isinstance(entry.event, StepStarted)
    return False


def _now() -> float:
    return asyncio.get_running_loop().time()
