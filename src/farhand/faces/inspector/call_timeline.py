"""The history of a call in sentences, from its record and its run's journal; and what happened to a run
between its segments: connections lost, pauses, answers that changed nothing. Pure.

A call without a run has no journal: then the record alone is used. Pauses are in the journal; readers and
repeated answers are only what this process has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from farhand.agent.observations import Observation
from farhand.core.call import Call, Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    StepStarted,
)
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.position import Entry
from farhand.core.tool import Executor
from farhand.faces.inspector.shapes import InspectedSentence

Tone: TypeAlias = Literal["good", "care", "bad", "open"]
MarkKind: TypeAlias = Literal["lost", "resumed", "paused", "continued", "repeat", "conflict"]


class Mark(Struct, frozen=True):
    """`at` is a time; `call_id` for what concerns one call."""

    at: float
    kind: MarkKind
    call_id: str | None = None


def timeline_of(
    call: Call, entries: Sequence[Entry], marks: Sequence[Mark] = (), *, began: float
) -> list[InspectedSentence]:
    """`marks` are those of the run: connections that were lost, answers that changed nothing. Times are in
    seconds since the run, or the call without one, began."""
    timeline = _Timeline(call, began)
    for entry in entries:
        timeline.note(entry)
    if not timeline.past:
        timeline.read_record()
    for mark in marks:
        timeline.note_mark(mark)
    timeline.past.sort(key=lambda sentence: sentence.at or 0.0)
    return [*timeline.past, *timeline.to_come()]


class _Timeline:
    def __init__(self, call: Call, began: float) -> None:
        self.past: list[InspectedSentence] = []
        self._call = call
        self._began = began
        self._open = False
        self._answered_at: float | None = None
        self._holder = ""

    def note(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, StepStarted | RunParked | RunResumed):
            self._note_run(event, entry.at)
        elif getattr(event, "call_id", None) == self._call.call_id:
            self._note_call(entry)

    def note_mark(self, mark: Mark) -> None:
        """What concerns this call: its own repeats, and connections that were lost while it was open."""
        call = self._call
        match mark.kind:
            case "repeat" if mark.call_id == call.call_id:
                self._add(mark.at, "Same answer received again", "Ignored: the first one counts.", "care")
            case "conflict" if mark.call_id == call.call_id:
                self._add(
                    mark.at, "A different answer arrived later", "Refused: the first one counts.", "care"
                )
            case "lost" if self._was_open(mark.at):
                self._add(mark.at, "Connection lost, call kept", "", "care")
            case "resumed" if self._was_open(mark.at):
                self._add(mark.at, "Reconnected", "The call was sent again, from where the reader was.")
            case _:
                pass

    def _was_open(self, at: float) -> bool:
        return self._call.opened_at <= at and (self._call.settled_at is None or at <= self._call.settled_at)

    def read_record(self) -> None:
        call = self._call
        self._add(call.opened_at, "Asked by a program", "Input checked against the schema.")
        approval = call.approval
        if approval is not None and approval.answer is not None and approval.answered_at is not None:
            answer = approval.answer
            self._add_answer(approval.answered_at, answer.reason, approved=answer.approved)
        if call.outcome is not None and call.settled_at is not None:
            self._settle(call.outcome, call.settled_at)

    def to_come(self) -> list[InspectedSentence]:
        call = self._call
        if call.phase is Phase.SETTLED:
            return []
        waits = {
            Phase.ASKING: "Waiting for a person to allow or deny it",
            Phase.READY: f"Waiting for {_whom(call)}",
            Phase.TAKEN: f"Running in {_holder_of(call)}",
        }
        return [InspectedSentence(waits[call.phase], _time_left(call), "open")]

    def _note_run(self, event: StepStarted | RunParked | RunResumed, at: float) -> None:
        if isinstance(event, StepStarted):
            if self._answered_at is not None and event.step > self._call.step:
                self._add(at, "Model continued", f"Step {event.step}.")
                self._answered_at = None
        elif self._open and isinstance(event, RunParked):
            self._add(at, "Run saved while waiting", "Nothing runs until the answer arrives.")

    def _note_call(self, entry: Entry) -> None:
        event, at = entry.event, entry.at
        match event:
            case CallOpened():
                self._opened(event, at)
            case CallRejected(error=error):
                self._add(at, "Asked by the model", "The input did not pass.")
                self._add(at, "Rejected; reported to the model only", error, "bad")
                self._answered_at = at
            case ApprovalAnswered(approved=approved, reason=reason):
                self._add_answer(at, reason, approved=approved)
                if approved:
                    self._ready(at, event.deadline)
            case CallTaken(holder=holder):
                self._taken(holder, at)
            case CallReleased():
                self._add(
                    at,
                    "Released, call kept",
                    "The client that took it released it; it is offered again.",
                    "care",
                )
            case CallSettled(outcome=outcome):
                self._settle(outcome, at)
            case _:
                pass

    def _opened(self, event: CallOpened, at: float) -> None:
        self._open = True
        self._add(at, "Asked by the model", "Input checked against the schema.")
        if event.phase is Phase.ASKING:
            self._add(at, "Needs approval first", _until(event.deadline, at))
        elif self._call.approval is not None:
            self._add(at, "Always allowed in this chat")
            self._ready(at, event.deadline)
        else:
            self._ready(at, event.deadline)

    def _ready(self, at: float, deadline: float | None) -> None:
        match self._call.executor:
            case Executor.SERVER:
                self._add(at, "Run on the server")
            case Executor.FRONTEND:
                self._add(at, "Offered to open browsers of this chat", _until(deadline, at))
            case Executor.CLIENT:
                self._add(at, f"Offered to {self._call.client_id}", _until(deadline, at))

    def _taken(self, holder: str, at: float) -> None:
        if self._call.executor is Executor.SERVER:
            return
        again = self._holder not in ("", holder)
        self._holder = holder
        self._add(
            at,
            f"Taken again, by {holder}" if again else f"Taken by {holder}",
            "The client that had it before is gone." if again else "No one else runs the call.",
            "care" if again else "good",
        )

    def _add_answer(self, at: float, reason: str, *, approved: bool) -> None:
        if not approved:
            self._add(at, "Denied by a person", reason, "care")
            return
        approval = self._call.approval
        edited = approval is not None and approval.asked_input is not None
        self._add(at, "Allowed, with a changed input" if edited else "Allowed by a person", reason)

    def _settle(self, outcome: Outcome, at: float) -> None:
        self._open = False
        self._answered_at = at
        title, detail, tone = _ending(self._call, outcome)
        if isinstance(outcome, Denied) and self.past and self.past[-1].title == "Denied by a person":
            # the denial is in the timeline already
            return
        self._add(at, title, detail, tone)

    def _add(self, at: float, title: str, detail: str = "", tone: Tone = "good") -> None:
        self.past.append(InspectedSentence(title, detail, tone, round(max(0.0, at - self._began), 3)))


def _ending(call: Call, outcome: Outcome) -> tuple[str, str, Tone]:
    match outcome:
        case Success():
            done = (
                "Done on the server" if call.executor is Executor.SERVER else "Answer stored (exactly once)"
            )
            return done, "", "good"
        case Failure(error=error):
            return "Failed; reported to the model", error, "bad"
        case Denied(reason=reason):
            return "Denied by a person", reason, "care"
        case TimedOut(after_sec=after):
            waited = f"The run continued after {after:g} s." if after else "The run continued."
            return "Timed out", waited, "care"
        case Cancelled(reason=reason):
            return "Cancelled", f"{reason[:1].upper()}{reason[1:]}.", "care"
    assert_never(outcome)


def _until(deadline: float | None, at: float) -> str:
    return "" if deadline is None else f"{_duration(deadline - at)} to answer."


def _time_left(call: Call) -> str:
    return "" if call.deadline is None else f"{_duration(call.deadline - call.opened_at)} total."


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (120, "minutes")):
        if seconds >= size:
            whole = seconds / (60 if unit == "minutes" else size)
            return f"{whole:.0f} {unit}" if round(whole) != 1 else f"1 {unit[:-1]}"
    return f"{seconds:.0f} s"


def _whom(call: Call) -> str:
    if call.executor is Executor.CLIENT:
        return call.client_id or "a client"
    if call.executor is Executor.SERVER:
        return "the server"
    # a page shows a card that it guesses, unless it has a handler
    return "a person" if call.card else "a person, or a page that runs it"


def _holder_of(call: Call) -> str:
    if call.executor is Executor.SERVER:
        return "the server"
    return call.take.holder if call.take is not None else "a client"


def marks_of(
    entries: Sequence[Entry], readers: Iterable[Observation], calls: Mapping[str, Iterable[Observation]]
) -> list[Mark]:
    """`calls` has the observations of each call, by its id. In the order of time."""
    pauses = [
        Mark(entry.at, "paused" if isinstance(entry.event, RunParked) else "continued")
        for entry in entries
        if isinstance(entry.event, RunParked | RunResumed)
    ]
    answers = [
        Mark(each.at, each.seen, call_id)
        for call_id, seen in calls.items()
        for each in seen
        if each.seen in ("repeat", "conflict")
    ]
    return sorted([*pauses, *_connections(entries, readers), *answers], key=lambda mark: mark.at)


def _connections(entries: Sequence[Entry], readers: Iterable[Observation]) -> list[Mark]:
    """A connection is lost when the last reader leaves a run that works or is held for it; a response that
    ends with a pause or with the run is not a loss."""
    marks: list[Mark] = []
    for each in readers:
        is_lost = bool(marks) and marks[-1].kind == "lost"
        if each.seen == "joined" and is_lost:
            marks.append(Mark(each.at, "resumed"))
        elif each.seen == "left" and each.readers == 0 and not is_lost and not _is_at_rest(entries, each.at):
            marks.append(Mark(each.at, "lost"))
    return marks


def _is_at_rest(entries: Sequence[Entry], at: float) -> bool:
    moves = [entry.event for entry in entries if entry.at <= at and isinstance(entry.event, _MOVES)]
    return bool(moves) and not isinstance(moves[-1], RunResumed)


_MOVES = (RunParked, RunResumed, RunFinished, RunFailed)


def observed_calls(calls: Sequence[Call]) -> dict[str, tuple[str, ...]]:
    """The names by which answers for each call come: its own, and that of its approval."""
    return {
        call.call_id: (call.call_id,) if call.approval is None else (call.call_id, call.approval.approval_id)
        for call in calls
    }
