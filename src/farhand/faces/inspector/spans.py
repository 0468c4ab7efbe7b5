"""How the time of a run was spent: one row for each model step and each call, divided into segments. Pure.

Only what the journal knows: it does not record when a frame arrived, so a call is on its way until somebody
takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

from msgspec import UNSET, UnsetType

from farhand.core.call import Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    RunFailed,
    RunFinished,
    StepDiscarded,
    StepFinished,
    StepStarted,
)
from farhand.core.outcome import kind_of
from farhand.core.position import Entry
from farhand.core.run import Usage
from farhand.core.template import fill
from farhand.core.tool import Executor
from farhand.faces.inspector.shapes import InspectedFigures, InspectedRow, InspectedSegment


class SpanKind(StrEnum):
    """Who works during a segment."""

    MODEL = "model"
    SERVER = "server"
    CLIENT = "client"
    PERSON = "person"
    WAY = "way"


def span_rows(entries: Sequence[Entry], began: float) -> list[InspectedRow]:
    """Titles are not redacted yet, and no step has its cost."""
    drawn = _Drawing(began)
    for entry in entries:
        drawn.note(entry)
    return [bar.row() for bar in drawn.bars]


def split_time(rows: Iterable[InspectedRow], seconds: float) -> InspectedFigures:
    """If several worked at once, the first one in `SpanKind` counts; if nobody did, the server."""
    whole = max(0, round(seconds * 1000))
    pieces = [_in_ms(segment, whole) for row in rows for segment in row.segments]
    marks = sorted({0, whole, *(mark for _, start, end in pieces for mark in (start, end))})
    spent = dict.fromkeys(SpanKind, 0)
    for start, end in pairwise(marks):
        busy = {kind for kind, since, until in pieces if since <= start and end <= until}
        spent[next((kind for kind in SpanKind if kind in busy), SpanKind.SERVER)] += end - start
    return InspectedFigures(whole=whole, **{kind.value: spent[kind] for kind in SpanKind})


def _in_ms(segment: InspectedSegment, whole: int) -> tuple[str, int, int]:
    end = whole if segment.end is UNSET else round(segment.end * 1000)
    return segment.kind, min(round(segment.start * 1000), whole), min(end, whole)


class _Bar:
    """A row while it is built."""

    def __init__(
        self, kind: SpanKind, at: float, *, step: int, opened: CallOpened | CallRejected | None
    ) -> None:
        self.kind: SpanKind | None = kind
        self._since = at
        self._start = at
        self._end: float | UnsetType = UNSET
        self._step = step
        self._opened = opened
        self._lost = False
        self._was_taken = False
        self._outcome: str | UnsetType = UNSET
        self.usage: Usage | None = None
        self._segments: list[InspectedSegment] = []

    @property
    def once_approved(self) -> SpanKind:
        """Who has to act once the call is approved."""
        opened = self._opened
        if not isinstance(opened, CallOpened) or opened.executor is Executor.SERVER:
            return SpanKind.SERVER
        # without a declared card, it counts as one that pages derive from the schemas, unless a page has a
        # handler
        return SpanKind.PERSON if opened.executor is Executor.FRONTEND else SpanKind.WAY

    def take(self, at: float) -> None:
        self._was_taken = True
        if (
            isinstance(self._opened, CallOpened)
            and self._opened.card is None
            and self.kind is SpanKind.PERSON
        ):
            # a handler took it: cards that are derived from the schemas are answered without a take
            self.kind = SpanKind.WAY
        self.turn(SpanKind.SERVER if self.once_approved is SpanKind.SERVER else SpanKind.CLIENT, at)

    def turn(self, kind: SpanKind | None, at: float, *, lost: bool = False) -> None:
        """Starts the next segment; None if the row has ended."""
        if self.kind is not None and (at > self._since or kind is None):
            self._segments.append(InspectedSegment(self.kind, self._since, at, self._lost))
        self.kind, self._since, self._lost = kind, at, lost

    def end(self, at: float, outcome: str) -> None:
        if self._end is not UNSET:
            return
        if self.kind is SpanKind.WAY and not self._was_taken and outcome in ("success", "failure"):
            # a wire without takes: somebody ran the call nevertheless
            self.kind = SpanKind.CLIENT
        self.turn(None, at)
        self._end, self._outcome = at, outcome

    def row(self) -> InspectedRow:
        segments = list(self._segments)
        if self.kind is not None:
            segments.append(InspectedSegment(self.kind, self._since, lost=self._lost))
        row = InspectedRow(self._step, self._start, segments, self._end, outcome=self._outcome)
        opened = self._opened
        if opened is not None:
            row.call_id, row.tool = opened.call_id, opened.tool
        if isinstance(opened, CallOpened):
            row.executor = opened.executor.value
            row.card = opened.card or UNSET
            row.title = UNSET if opened.title is None else fill(opened.title, opened.input)
        if self.usage is not None:
            row.input_tokens, row.output_tokens = self.usage.input_tokens, self.usage.output_tokens
        return row


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
                self._model = self._add(_Bar(SpanKind.MODEL, at, step=step, opened=None))
            case StepFinished() | StepDiscarded() as event:
                if self._model is not None and isinstance(event, StepFinished) and event.usage != Usage():
                    self._model.usage = event.usage
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
        bar = self._calls[event.call_id] = self._add(_Bar(SpanKind.SERVER, at, step=self._step, opened=event))
        if isinstance(event, CallRejected):
            bar.end(at, "failure")
            return
        bar.kind = SpanKind.PERSON if event.phase is Phase.ASKING else bar.once_approved

    def _move(self, event: ApprovalAnswered | CallTaken | CallReleased | CallSettled, at: float) -> None:
        bar = self._calls.get(event.call_id)
        if bar is None:
            # the beginning of the journal was removed
            return
        match event:
            case ApprovalAnswered(approved=True):
                bar.turn(bar.once_approved, at)
            case ApprovalAnswered():
                pass
            case CallTaken():
                bar.take(at)
            case CallReleased():
                bar.turn(SpanKind.WAY, at, lost=True)
            case CallSettled(outcome=outcome):
                bar.end(at, kind_of(outcome))
