"""The history of a call in sentences, from its record and its run's journal. Pure.

A call without a run has no journal: then the record alone is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from farhand.core.call import Call, Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    RunParked,
    RunResumed,
    StepStarted,
)
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.position import Entry
from farhand.core.tool import Executor

Tone: TypeAlias = Literal["good", "care", "bad", "open"]


class TimelineEntry(Struct, frozen=True):
    """`at` in seconds since the run (or the call without one) began; None for what has not happened yet."""

    at: float | None
    title: str
    detail: str = ""
    tone: Tone = "good"


def timeline_of(call: Call, entries: Sequence[Entry], *, began: float) -> list[TimelineEntry]:
    story = _Story(call, began)
    for entry in entries:
        story.note(entry)
    if not story.told:
        story.tell_from_record()
    return [*story.told, *story.to_come()]


class _Story:
    def __init__(self, call: Call, began: float) -> None:
        self.told: list[TimelineEntry] = []
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

    def tell_from_record(self) -> None:
        call = self._call
        self._say(call.opened_at, "Asked by a program", "Input checked against the schema.")
        approval = call.approval
        if approval is not None and approval.answer is not None and approval.answered_at is not None:
            answer = approval.answer
            self._say_answer(approval.answered_at, answer.reason, approved=answer.approved)
        if call.outcome is not None and call.settled_at is not None:
            self._settle(call.outcome, call.settled_at)

    def to_come(self) -> list[TimelineEntry]:
        call = self._call
        if call.phase is Phase.SETTLED:
            return []
        waits = {
            Phase.ASKING: "Waiting for a person's yes or no",
            Phase.READY: f"Waiting for {_whom(call)}",
            Phase.TAKEN: f"Running in {_holder_of(call)}",
        }
        return [TimelineEntry(None, waits[call.phase], _time_left(call), "open")]

    def _note_run(self, event: StepStarted | RunParked | RunResumed, at: float) -> None:
        if isinstance(event, StepStarted):
            if self._answered_at is not None and event.step > self._call.step:
                self._say(at, "Model went on", f"Step {event.step}.")
                self._answered_at = None
        elif self._open and isinstance(event, RunParked):
            self._say(at, "Run parked, call kept", "It costs rows and nothing else until the answer comes.")

    def _note_call(self, entry: Entry) -> None:
        event, at = entry.event, entry.at
        match event:
            case CallOpened():
                self._opened(event, at)
            case CallRejected(error=error):
                self._say(at, "Asked by the model", "The input did not pass.")
                self._say(at, "Back to the model, seen by nobody else", error, "bad")
                self._answered_at = at
            case ApprovalAnswered(approved=approved, reason=reason):
                self._say_answer(at, reason, approved=approved)
                if approved:
                    self._ready(at, event.deadline)
            case CallTaken(holder=holder):
                self._taken(holder, at)
            case CallReleased():
                self._say(at, "Given back, call kept", "Whoever took it let go; it is offered again.", "care")
            case CallSettled(outcome=outcome):
                self._settle(outcome, at)
            case _:
                pass

    def _opened(self, event: CallOpened, at: float) -> None:
        self._open = True
        self._say(at, "Asked by the model", "Input checked against the schema.")
        if event.phase is Phase.ASKING:
            self._say(at, "A person is asked first", _until(event.deadline, at))
        elif self._call.approval is not None:
            self._say(at, "Allowed before, for this whole chat")
            self._ready(at, event.deadline)
        else:
            self._ready(at, event.deadline)

    def _ready(self, at: float, deadline: float | None) -> None:
        match self._call.executor:
            case Executor.SERVER:
                self._say(at, "Run on the server")
            case Executor.FRONTEND:
                self._say(at, "Sent to whoever watches the chat", _until(deadline, at))
            case Executor.CLIENT:
                self._say(at, f"Offered to {self._call.client_id}", _until(deadline, at))

    def _taken(self, holder: str, at: float) -> None:
        if self._call.executor is Executor.SERVER:
            return
        again = self._holder not in ("", holder)
        self._holder = holder
        self._say(
            at,
            f"Taken again, by {holder}" if again else f"Taken by {holder}",
            "The one who had it before is gone." if again else "It alone runs the call.",
            "care" if again else "good",
        )

    def _say_answer(self, at: float, reason: str, *, approved: bool) -> None:
        if not approved:
            self._say(at, "A person said no", reason, "bad")
            return
        approval = self._call.approval
        edited = approval is not None and approval.asked_input is not None
        self._say(at, "Allowed, with a changed input" if edited else "Allowed by a person", reason)

    def _settle(self, outcome: Outcome, at: float) -> None:
        self._open = False
        self._answered_at = at
        title, detail, tone = _ending(self._call, outcome)
        if isinstance(outcome, Denied) and self.told and self.told[-1].tone == "bad":
            # the denial is in the timeline already
            return
        self._say(at, title, detail, tone)

    def _say(self, at: float, title: str, detail: str = "", tone: Tone = "good") -> None:
        self.told.append(TimelineEntry(round(max(0.0, at - self._began), 3), title, detail, tone))


def entries_about(call_id: str, entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if getattr(entry.event, "call_id", None) == call_id]


def _ending(call: Call, outcome: Outcome) -> tuple[str, str, Tone]:
    match outcome:
        case Success():
            done = "Done on the server" if call.executor is Executor.SERVER else "Answer taken, once"
            return done, "Stored before anybody was told.", "good"
        case Failure(error=error):
            return "It failed, and the model is told so", error, "bad"
        case Denied(reason=reason):
            return "A person said no", reason, "bad"
        case TimedOut(after_sec=after):
            waited = f"The run went on after {after:g} s." if after else "The run went on."
            return "Nobody answered in time", waited, "bad"
        case Cancelled(reason=reason):
            return "Cancelled", f"{reason[:1].upper()}{reason[1:]}.", "care"
    assert_never(outcome)


def _until(deadline: float | None, at: float) -> str:
    return "" if deadline is None else f"{_duration(deadline - at)} to answer."


def _time_left(call: Call) -> str:
    return "" if call.deadline is None else f"{_duration(call.deadline - call.opened_at)} in all."


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (120, "minutes")):
        if seconds >= size:
            whole = seconds / (60 if unit == "minutes" else size)
            return f"{whole:.0f} {unit}" if round(whole) != 1 else f"1 {unit[:-1]}"
    return f"{seconds:.0f} s"


def _whom(call: Call) -> str:
    if call.executor is Executor.CLIENT:
        return call.client_id or "a client"
    return "the server" if call.executor is Executor.SERVER else "a person" if call.card else "a page"


def _holder_of(call: Call) -> str:
    if call.executor is Executor.SERVER:
        return "the server"
    return call.take.holder if call.take is not None else "a client"
