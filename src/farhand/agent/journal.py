"""The pen of a run: what it says, in order, told and stored.

What the model is saying reaches attached readers at once and the journal joined, a moment later. Everything
else is stored before it is told. `reader.py` is the other side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

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

    __slots__ = (
        "_flush_at",
        "_flushing",
        "_group",
        "_holds_back",
        "_is_lost",
        "_is_sure",
        "_loop",
        "_next_seq",
        "_pen",
        "_promised",
        "_spoken",
        "_store",
        "_telling",
        "_told",
        "_words_told_at",
        "run",
    )

    def __init__(
        self,
        store: Store,
        run: Run,
        group: asyncio.TaskGroup,
        *,
        is_sure: Callable[[Run, float], bool] = lambda run, now: True,
    ) -> None:
        """`group` is where a flush runs: beside the model, which may be silent for a while. `is_sure` says
        whether nobody else can have the run at this time of the loop: readers are not told what may never be
        stored."""
        self.run = run
        self._store = store
        self._group = group
        self._loop = store.hub.loop
        self._spoken: list[_Said] = []
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
        self._holds_back = False
        """Something is being stored that readers were not told, because nobody was sure of the run then."""

    @property
    def is_stored(self) -> bool:
        """Whether the journal has all that was said."""
        return not self._spoken and not self._pen.locked()

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can have the run by now."""
        return self._is_sure(self.run, self._loop.time())

    def seen(self, run: Run) -> None:
        """The run as it is now: others may have appended while it waited."""
        self.run = run
        self._next_seq = run.last_seq + 1

    def say(self, event: Spoken) -> None:
        """Tells readers soon; the journal gets it with its neighbours.

        The first word leaves as soon as this moment is over, the next ones together.
        """
        if isinstance(event, DELTAS):
            of = event.call_id if isinstance(event, InputAdded) else event.part
            self.say_word(type(event), of, event.text)
            return
        if self._is_lost:
            raise LostClaim(f"Run {self.run.run_id} was taken over.")
        self._spoken.append(_Whole(event))
        if self._telling is None:
            self._tell_soon()

    def say_word(self, kind: type[Delta], of: int | str, text: str) -> None:
        """The same for one more word of a block, of which a model says thousands."""
        if self._is_lost:
            raise LostClaim(f"Run {self.run.run_id} was taken over.")
        last = self._spoken[-1] if self._spoken else None
        if type(last) is _Words and last.kind is kind and last.of == of:
            last.untold.append(text)
        else:
            self._spoken.append(_Words(kind, of, text))
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
            if self._telling is not None:
                self._telling.cancel()
                if not events:
                    # the model goes on speaking, and its next word must find readers at the end of this one
                    self._tell()
                # when it has ended, readers are told its last words with the commit
                self._telling = None
            self._cancel_timer()
            said, told = self._spoken, self._told
            self._spoken, self._told = [], 0
            self._next_seq += len(said) + len(events)
            # of these, readers hear with the commit: whatever is said meanwhile must not reach them before
            self._holds_back = not all(each.is_told for each in said)
            write = change or WriteRun(run_id=self.run.run_id)
            whole = [each.whole() for each in said]
            write = replace(write, fence=self.run.fence, events=(*whole, *events))
            try:
                commit = await (through or self._store.commit)(*beside, write)
            except StoreDown:
                # readers have heard these words under these numbers: they come before anything else, and are
                # not told again, which a reader would take for a sign that they are stored
                self._told = len(said) + self._told if self._told else told
                self._spoken, self._next_seq = [*said, *self._spoken], first
                raise
            finally:
                self._holds_back = False
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
        at = self._words_told_at + WORDS_SEC
        if at > self._loop.time():
            self._telling = self._loop.call_at(at, self._tell)
        else:
            self._telling = self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        """Together what was said together."""
        self._telling = None
        now = self._loop.time()
        if self._flush_at is None:
            self._flush_at = self._loop.call_at(now + JOIN_FOR_SEC, self._flush)
        if self._holds_back or not self._is_sure(self.run, now):
            return
        first, at = max(0, self._told - 1), self._store.now()
        told: list[Entry] = []
        for seq, said in enumerate(self._spoken[first:], self._next_seq + first):
            rest = said.rest(seq, at)
            if rest is not None:
                told.append(rest)
        self._told = len(self._spoken)
        if type(self._spoken[-1]) is _Words:
            self._words_told_at = now
        if told:
            self._store.hub.tell(self.run.run_id, told)

    def _flush(self) -> None:
        self._flush_at = None
        self._flushing = self._group.create_task(self._flush_now())

    async def _flush_now(self) -> None:
        try:
            await self.write()
        except FarhandError:
            # whoever writes next is told the same: a lost claim, or a store that is away
            return

    def _cancel_timer(self) -> None:
        if self._flush_at is not None:
            self._flush_at.cancel()
            self._flush_at = None


class _Whole:
    """Said at once."""

    __slots__ = ("_event", "is_told")

    def __init__(self, event: Spoken) -> None:
        self._event = event
        self.is_told = False

    def whole(self) -> Event:
        return self._event

    def rest(self, seq: int, at: float) -> Entry | None:
        """What was not told yet, as an entry of this number."""
        if self.is_told:
            return None
        self.is_told = True
        return Entry(seq, self._event, at)


class _Words:
    """A block as it is being said: put together only when it is stored, however many pieces it comes in."""

    __slots__ = ("_chars", "_told", "kind", "of", "untold")

    def __init__(self, kind: type[Delta], of: int | str, text: str) -> None:
        self.kind = kind
        self.of = of
        """The part of the answer, or the call, that they belong to."""
        self.untold = [text]
        self._told: list[str] = []
        self._chars = 0

    @property
    def is_told(self) -> bool:
        return not self.untold

    def whole(self) -> Event:
        return self._saying("".join([*self._told, *self.untold]))

    def rest(self, seq: int, at: float) -> Entry | None:
        if not self.untold:
            return None
        text, before = "".join(self.untold), self._chars
        self.untold.clear()
        self._told.append(text)
        self._chars += len(text)
        return Entry(seq, self._saying(text), at, before)

    def _saying(self, text: str) -> Delta:
        # each kind of them is made of these two
        make: Callable[[int | str, str], Delta] = self.kind
        return make(self.of, text)


_Said: TypeAlias = _Whole | _Words
