"""What took the time of a run: one row for each model step and each call, each row cut into segments.

Pure: a journal in, rows and figures out. Tells only what the journal knows: nobody wrote down when a frame
arrived at the other side, so a call is on its way until somebody takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

from msgspec import Struct

from farhand.core.call import Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    Entry,
    RunFailed,
    RunFinished,
    StepDiscarded,
    StepFinished,
    StepStarted,
)
from farhand.core.outcome import kind_of
from farhand.core.tool import Executor


class Kind(StrEnum):
    """Whom a moment is spent on."""

    MODEL = "model"
    SERVER = "server"
    CLIENT = "client"
    PERSON = "person"
    WAY = "way"


class Segment(Struct, frozen=True):
    """In seconds since the run began; without an end it is still going. `lost`: given back by who had it."""

    kind: Kind
    start: float
    end: float | None = None
    lost: bool = False


class Row(Struct, frozen=True, kw_only=True):
    """A model step, or a call of one (`call_id`). `outcome` is there once it has ended."""

    step: int
    start: float
    end: float | None = None
    segments: tuple[Segment, ...] = ()
    call_id: str | None = None
    tool: str = ""
    executor: Executor | None = None
    card: str | None = None
    outcome: str | None = None


class Figures(Struct, frozen=True, kw_only=True):
    """Milliseconds. The five add up to the whole: each moment counts once, for who was at work in it."""

    whole: int
    model: int
    person: int
    client: int
    way: int
    server: int


def rows_of(entries: Sequence[Entry], began: float) -> list[Row]:
    drawn = _Drawing(began)
    for entry in entries:
        drawn.note(entry)
    return [bar.row() for bar in drawn.bars]


def figures_of(rows: Iterable[Row], seconds: float) -> Figures:
    """Where several were at work at once, the one counts that comes first in `Kind`; farhand itself where
    nobody was."""
    whole = max(0, round(seconds * 1000))
    pieces = [_in_ms(segment, whole) for row in rows for segment in row.segments]
    marks = sorted({0, whole, *(mark for _, start, end in pieces for mark in (start, end))})
    spent = dict.fromkeys(Kind, 0)
    for start, end in pairwise(marks):
        busy = {kind for kind, begun, ended in pieces if begun <= start and end <= ended}
        spent[next((kind for kind in Kind if kind in busy), Kind.SERVER)] += end - start
    return Figures(whole=whole, **{kind.value: spent[kind] for kind in Kind})


def _in_ms(segment: Segment, whole: int) -> tuple[Kind, int, int]:
    end = whole if segment.end is None else round(segment.end * 1000)
    return segment.kind, min(round(segment.start * 1000), whole), min(end, whole)


class _Bar:
    """A row while it is drawn."""

    def __init__(self, kind: Kind, at: float, *, step: int, opened: CallOpened | CallRejected | None) -> None:
        self.kind: Kind | None = kind
        self._since = at
        self._start = at
        self._end: float | None = None
        self._step = step
        self._opened = opened
        self._lost = False
        self._was_taken = False
        self._outcome: str | None = None
        self._segments: list[Segment] = []

    @property
    def after_yes(self) -> Kind:
        """Whom the call waits for once it may run."""
        opened = self._opened
        if not isinstance(opened, CallOpened) or opened.executor is Executor.SERVER:
            return Kind.SERVER
        shows_card = opened.executor is Executor.FRONTEND and opened.card is not None
        return Kind.PERSON if shows_card else Kind.WAY

    def take(self, at: float) -> None:
        self._was_taken = True
        self.turn(Kind.SERVER if self.after_yes is Kind.SERVER else Kind.CLIENT, at)

    def turn(self, kind: Kind | None, at: float, *, lost: bool = False) -> None:
        """From now on it is somebody else's time; nobody's, if it has ended."""
        if self.kind is not None and (at > self._since or kind is None):
            self._segments.append(Segment(self.kind, self._since, at, self._lost))
        self.kind, self._since, self._lost = kind, at, lost

    def end(self, at: float, outcome: str | None = None) -> None:
        if self._end is not None:
            return
        if self.kind is Kind.WAY and not self._was_taken and outcome in ("success", "failure"):
            # a wire without a take: it was brought to somebody, who ran it
            self.kind = Kind.CLIENT
        self.turn(None, at)
        self._end, self._outcome = at, outcome

    def row(self) -> Row:
        going = () if self.kind is None else (Segment(self.kind, self._since, None, self._lost),)
        opened = self._opened
        call = opened if isinstance(opened, CallOpened) else None
        return Row(
            step=self._step,
            start=self._start,
            end=self._end,
            segments=(*self._segments, *going),
            call_id=None if opened is None else opened.call_id,
            tool="" if opened is None else opened.tool,
            executor=None if call is None else call.executor,
            card=None if call is None else call.card,
            outcome=self._outcome,
        )


class _Drawing:
    def __init__(self, began: float) -> None:
        self.bars: list[_Bar] = []
        self._began = began
        self._model: _Bar | None = None
        self._step = 0
        self._calls: dict[str, _Bar] = {}

    def note(self, entry: Entry) -> None:
        at = max(0.0, round(entry.at - self._began, 4))
        match entry.event:
            case StepStarted(step=step):
                self._step = step
                self._model = self._add(_Bar(Kind.MODEL, at, step=step, opened=None))
            case StepFinished() | StepDiscarded() as event:
                self._end_step(at, "discarded" if isinstance(event, StepDiscarded) else "success")
            case CallOpened() | CallRejected() as event:
                self._open(event, at)
            case ApprovalAnswered() | CallTaken() | CallReleased() | CallSettled() as event:
                self._move(event, at)
            case RunFinished() | RunFailed() as event:
                self._end_step(at, "failure" if isinstance(event, RunFailed) else "stopped")
            case _:
                pass

    def _add(self, bar: _Bar) -> _Bar:
        self.bars.append(bar)
        return bar

    def _end_step(self, at: float, outcome: str) -> None:
        if self._model is not None:
            self._model.end(at, outcome)

    def _open(self, event: CallOpened | CallRejected, at: float) -> None:
        bar = self._calls[event.call_id] = self._add(_Bar(Kind.SERVER, at, step=self._step, opened=event))
        if isinstance(event, CallRejected):
            bar.end(at, "failure")
            return
        bar.kind = Kind.PERSON if event.phase is Phase.ASKING else bar.after_yes

    def _move(self, event: ApprovalAnswered | CallTaken | CallReleased | CallSettled, at: float) -> None:
        bar = self._calls.get(event.call_id)
        if bar is None:
            # a journal that was cut at its beginning
            return
        match event:
            case ApprovalAnswered(approved=True):
                bar.turn(bar.after_yes, at)
            case ApprovalAnswered():
                pass
            case CallTaken():
                bar.take(at)
            case CallReleased():
                bar.turn(Kind.WAY, at, lost=True)
            case CallSettled(outcome=outcome):
                bar.end(at, kind_of(outcome))
