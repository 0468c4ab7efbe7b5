"""The pen of a run: what it says, in order, told and stored.

What the model is saying reaches attached readers at once and the journal joined, a moment later. Everything
else is stored before it is told. `reader.py` is the other side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from farhand.core.event import (
    DELTAS,
    CallBegun,
    Delta,
    Entry,
    Event,
    InputAdded,
    ModelDelayed,
    ReasoningAdded,
    StepStarted,
    TextAdded,
    is_same_block,
)
from farhand.core.run import Run
from farhand.errors import FarhandError, LostClaim, StoreDown
from farhand.store.base import Commit, Stale, Store, Write, WriteRun

JOIN_FOR_SEC = 0.05
WORDS_SEC = 0.001
"""So long words gather for readers that had some a moment ago."""

Committer = Callable[..., Awaitable[Commit]]

Spoken = StepStarted | ModelDelayed | TextAdded | ReasoningAdded | CallBegun | InputAdded
"""Reveals nothing stored: the model is asked, the model writes. What is lost of it is asked again."""


class RunLog:
    """For whoever holds the claim on the run; only this side appends while the model speaks."""

    def __init__(
        self,
        store: Store,
        run: Run,
        group: asyncio.TaskGroup,
        *,
        is_sure: Callable[[], bool] = lambda: True,
    ) -> None:
        """`group` is where a flush runs: beside the model, which may be silent for a while. `is_sure` says
        whether nobody else can have the run: readers are not told what may never be stored."""
        self.run = run
        self._store = store
        self._group = group
        self._spoken: list[Spoken | _Words] = []
        self._told = 0
        """How many of them readers have been told, all but the last of these wholly."""
        self._telling: asyncio.Handle | None = None
        self._words_told_at = 0.0
        self._next_seq = run.last_seq + 1
        self._flush_at: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._pen = asyncio.Lock()
        self._is_sure = is_sure
        self._is_lost = False

    @property
    def is_stored(self) -> bool:
        """Whether the journal has all that was said."""
        return not self._spoken and not self._pen.locked()

    def seen(self, run: Run) -> None:
        """The run as it is now: others may have appended while it waited."""
        self.run = run
        self._next_seq = run.last_seq + 1

    def say(self, event: Spoken) -> None:
        """Tells readers soon; the journal gets it with its neighbours.

        The first word leaves as soon as this moment is over, the next ones together.
        """
        if self._is_lost:
            raise LostClaim(f"Run {self.run.run_id} was taken over.")
        last = self._spoken[-1] if self._spoken else None
        if not isinstance(event, DELTAS):
            self._spoken.append(event)
        elif type(last) is _Words and is_same_block(last.first, event):
            last.pieces.append(event.text)
        else:
            self._spoken.append(_Words(event))
        if self._telling is None:
            self._tell_soon()

    def say_word(self, kind: type[TextAdded | ReasoningAdded], part: int, text: str) -> None:
        """The same for one more word of a block, of which a model says thousands."""
        last = self._spoken[-1] if self._spoken else None
        if type(last) is not _Words or last.kind is not kind or last.part != part or self._is_lost:
            self.say(kind(part, text))
            return
        last.pieces.append(text)
        if self._telling is None:
            self._tell_soon()

    async def write(
        self,
        *events: Event,
        change: WriteRun | None = None,
        beside: tuple[Write, ...] = (),
        through: Committer | None = None,
    ) -> None:
        """Stores what was said, these events and what is written beside them, in one transaction.

        `through` is the desk's door when calls are opened in it.
        """
        async with self._pen:
            first = self._next_seq
            if self._telling is not None and not events:
                # the model goes on speaking, and its next word must find readers at the end of this one
                self._tell()
            self._cancel_telling()
            self._cancel_timer()
            # when it has ended, readers are told its last words with the commit
            said, told = self._spoken, self._told
            self._spoken, self._told = [], 0
            self._next_seq += len(said) + len(events)
            write = change or WriteRun(run_id=self.run.run_id)
            whole = [each.whole() if type(each) is _Words else each for each in said]
            write = replace(write, fence=self.run.fence, events=(*whole, *events))
            try:
                commit = await (through or self._store.commit)(*beside, write)
            except StoreDown:
                # readers have heard these words under these numbers: they come before anything else, and are
                # not told again, which a reader would take for a sign that they are stored
                self._told = len(said) + self._told if self._told else told
                self._spoken, self._next_seq = [*said, *self._spoken], first
                raise
            self._wrote(commit)

    async def saved(self) -> bool:
        """Stores what was said while the store was away; False if another claim has the run."""
        try:
            await self.write()
        except LostClaim:
            return False
        return True

    async def close(self) -> None:
        """Stores what was said and not stored yet; after this nothing is written behind the holder's back."""
        if self._flushing is not None:
            await asyncio.wait([self._flushing])
        if self._spoken:
            await self._flush_now()

    def _wrote(self, commit: Commit) -> None:
        if isinstance(commit, Stale):
            self._is_lost = True
            raise LostClaim(f"Run {self.run.run_id} was taken over ({commit.why}).")
        self.run = commit.runs[self.run.run_id]
        if not self._spoken:
            # others append while the model is silent: a settled call, an answered approval
            self._next_seq = self.run.last_seq + 1

    def _tell_soon(self) -> None:
        loop = asyncio.get_running_loop()
        at = self._words_told_at + WORDS_SEC
        self._telling = loop.call_soon(self._tell) if at <= loop.time() else loop.call_at(at, self._tell)

    def _tell(self) -> None:
        """Together what was said together."""
        self._cancel_telling()
        if not self._spoken:
            return
        if self._flush_at is None:
            self._flush_at = asyncio.get_running_loop().call_later(JOIN_FOR_SEC, self._flush)
        if not self._is_sure():
            return
        first, at = max(0, self._told - 1), self._store.now()
        entries: list[Entry] = []
        for seq, said in enumerate(self._spoken[first:], self._next_seq + first):
            entry = _untold(seq, said, at, is_new=seq >= self._next_seq + self._told)
            if entry is not None:
                entries.append(entry)
        self._told = len(self._spoken)
        if type(self._spoken[-1]) is _Words:
            self._words_told_at = asyncio.get_running_loop().time()
        if entries:
            self._store.hub.tell(self.run.run_id, entries)

    def _flush(self) -> None:
        self._flush_at = None
        self._flushing = self._group.create_task(self._flush_now())

    async def _flush_now(self) -> None:
        try:
            await self.write()
        except FarhandError:
            # whoever writes next is told the same: a lost claim, or a store that is away
            return

    def _cancel_telling(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None

    def _cancel_timer(self) -> None:
        if self._flush_at is not None:
            self._flush_at.cancel()
            self._flush_at = None


class _Words:
    """A block as it is being said: put together only when it is stored, however many pieces it comes in."""

    __slots__ = ("_told_chars", "_told_pieces", "first", "kind", "part", "pieces")

    def __init__(self, first: Delta) -> None:
        self.pieces = [first.text]
        self.first = first
        self.kind = type(first)
        self.part = None if isinstance(first, InputAdded) else first.part
        self._told_pieces = 0
        self._told_chars = 0

    def whole(self) -> Delta:
        return replace(self.first, text="".join(self.pieces)) if len(self.pieces) > 1 else self.first

    def rest(self) -> tuple[Delta, int] | None:
        """What was added since the last time, and how many characters were there before it."""
        if self._told_pieces == len(self.pieces):
            return None
        text, offset = "".join(self.pieces[self._told_pieces :]), self._told_chars
        self._told_pieces = len(self.pieces)
        self._told_chars += len(text)
        return replace(self.first, text=text), offset


def _untold(seq: int, said: Spoken | _Words, at: float, *, is_new: bool) -> Entry | None:
    if not isinstance(said, _Words):
        return Entry(seq, said, at) if is_new else None
    rest = said.rest()
    return None if rest is None else Entry(seq, rest[0], at, rest[1])
