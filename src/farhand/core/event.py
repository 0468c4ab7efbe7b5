"""What a run says, in order. A journal entry is an event with its number.

Each event names one thing that is already stored when it is told (text deltas excepted: they reach
readers at once and the journal joined).
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec
from msgspec import Struct

from farhand.core.call import Phase
from farhand.core.outcome import Outcome
from farhand.core.run import RunState, Usage
from farhand.core.tool import Executor


class RunStarted(Struct, frozen=True, gc=False, tag_field="type", tag="run-started"):
    thread_id: str
    user_message_id: str | None = None


class StepStarted(Struct, frozen=True, gc=False, tag_field="type", tag="step-started"):
    step: int


class ModelDelayed(Struct, frozen=True, gc=False, tag_field="type", tag="model-delayed"):
    """The provider is busy and is asked again by itself; `message` says so to whoever watches."""

    message: str


class TextAdded(Struct, frozen=True, gc=False, tag_field="type", tag="text-added"):
    """`part` tells blocks of text of one step apart."""

    part: int
    text: str


class ReasoningAdded(Struct, frozen=True, gc=False, tag_field="type", tag="reasoning-added"):
    part: int
    text: str


class CallBegun(Struct, frozen=True, gc=False, tag_field="type", tag="call-begun"):
    """The model is writing the input of a call; nobody may run it yet."""

    call_id: str
    tool: str


class InputAdded(Struct, frozen=True, gc=False, tag_field="type", tag="input-added"):
    call_id: str
    text: str


class CallOpened(Struct, frozen=True, gc=False, kw_only=True, tag_field="type", tag="call-opened"):
    call_id: str
    tool: str
    executor: Executor
    input: dict[str, object]
    phase: Phase
    approval_id: str | None = None
    deadline: float | None = None
    card: str | None = None


class CallRejected(Struct, frozen=True, gc=False, kw_only=True, tag_field="type", tag="call-rejected"):
    """An unknown tool or a bad input: back to the model, seen by nobody else."""

    call_id: str
    tool: str
    input: object
    error: str


class ApprovalAnswered(
    Struct, frozen=True, gc=False, kw_only=True, tag_field="type", tag="approval-answered"
):
    """`input` and `deadline` are what holds from now on."""

    call_id: str
    approval_id: str
    approved: bool
    reason: str = ""
    tool: str = ""
    executor: Executor = Executor.SERVER
    input: dict[str, object]
    deadline: float | None = None


class CallTaken(Struct, frozen=True, gc=False, tag_field="type", tag="call-taken"):
    call_id: str
    holder: str


class CallReleased(Struct, frozen=True, gc=False, tag_field="type", tag="call-released"):
    call_id: str


class CallSettled(Struct, frozen=True, gc=False, kw_only=True, tag_field="type", tag="call-settled"):
    call_id: str
    tool: str
    executor: Executor
    outcome: Outcome
    digest: str


class StepFinished(Struct, frozen=True, gc=False, tag_field="type", tag="step-finished"):
    step: int
    stop_reason: str
    usage: Usage = Usage()


class StepDiscarded(Struct, frozen=True, gc=False, tag_field="type", tag="step-discarded"):
    """The step was cut by a crash and is asked again; replays leave it out."""

    step: int


class RunParked(Struct, frozen=True, gc=False, tag_field="type", tag="run-parked"):
    """Saved; it goes on when its last open call is answered."""


class RunResumed(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type", tag="run-resumed"):
    """`taken_over` if it was not parked: whoever advanced it may have told words that were never stored."""

    taken_over: bool = False


class RunFinished(Struct, frozen=True, gc=False, tag_field="type", tag="run-finished"):
    """`heard` if somebody was reading at that moment: else the answer waits for its first reader."""

    state: RunState
    reason: str = ""
    heard: bool = False


class RunFailed(Struct, frozen=True, gc=False, tag_field="type", tag="run-failed"):
    """`message` is for people who chat, `detail` for those who may inspect runs."""

    code: str
    message: str
    heard: bool = False
    detail: str = ""


class AnswerHeard(Struct, frozen=True, gc=False, tag_field="type", tag="answer-heard"):
    """An answer that ended while nobody was reading has been delivered since."""


Delta: TypeAlias = TextAdded | ReasoningAdded | InputAdded
DELTAS = (TextAdded, ReasoningAdded, InputAdded)

Event: TypeAlias = (
    RunStarted
    | StepStarted
    | ModelDelayed
    | TextAdded
    | ReasoningAdded
    | CallBegun
    | InputAdded
    | CallOpened
    | CallRejected
    | ApprovalAnswered
    | CallTaken
    | CallReleased
    | CallSettled
    | StepFinished
    | StepDiscarded
    | RunParked
    | RunResumed
    | RunFinished
    | RunFailed
    | AnswerHeard
)


class ClientRegistered(Struct, frozen=True, gc=False, tag_field="type", tag="client-registered"):
    """A client offers these tools from now on."""

    client_id: str
    tools: tuple[str, ...]


class ClientUnregistered(Struct, frozen=True, gc=False, tag_field="type", tag="client-unregistered"):
    """These tools are gone."""

    client_id: str
    tools: tuple[str, ...]
    reason: str = ""


class CallProgressed(Struct, frozen=True, gc=False, tag_field="type", tag="call-progressed"):
    """Whoever executes a call says how far it is: for people who watch, not for journals or models."""

    call_id: str
    tool: str
    text: str
    request_id: str | None = None


Happening: TypeAlias = Event | ClientRegistered | ClientUnregistered | CallProgressed
"""What an owner's feed tells of: runs, calls with or without a run, clients."""

TOLD = (
    RunStarted,
    CallOpened,
    CallRejected,
    ApprovalAnswered,
    CallTaken,
    CallReleased,
    CallSettled,
    RunParked,
    RunResumed,
    RunFinished,
    RunFailed,
)
"""The events of a run that its owner's feed tells, too: not what the model is saying."""


class News(Struct, frozen=True, gc=False):
    """One entry of an owner's feed, over all runs."""

    no: int
    at: float
    event: Happening
    thread_id: str | None = None
    run_id: str | None = None


class Entry(Struct, frozen=True, gc=False):
    """An event in a run's journal. `offset` counts the characters of it that were told before this piece.

    `takeover` is set by readers: the number of the last takeover before it.
    """

    seq: int
    event: Event
    at: float
    offset: int = 0
    takeover: int = 0

    @property
    def end(self) -> Position:
        """Where a reader stands once it has this piece."""
        if isinstance(self.event, DELTAS):
            return Position(self.seq, self.offset + len(self.event.text), self.takeover)
        return Position(self.seq, 0, self.takeover)


class Position(Struct, frozen=True, gc=False, order=True):
    """How far a reader is: the last event it has; of a delta, how many characters of it.

    `takeover` is the number of the last takeover that it heard of. The same numbers may have been told before
    it, for words that were lost with the worker that said them: who stands there stands nowhere.
    """

    seq: int = 0
    offset: int = 0
    takeover: int = 0

    def __str__(self) -> str:
        if self.takeover:
            return f"{self.seq}.{self.offset}.{self.takeover}"
        return f"{self.seq}.{self.offset}"


START = Position()

_POSITION = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,15})(?:\.([1-9][0-9]{0,14}))?)?")


def parse_position(text: str) -> Position | None:
    """None for anything but `seq`, `seq.offset` or `seq.offset.takeover`."""
    found = _POSITION.fullmatch(text)
    return None if found is None else Position(int(found[1]), int(found[2] or 0), int(found[3] or 0))


class Bookmark(Struct, frozen=True, gc=False):
    """A position, and which run it is in: in another run of the thread the same numbers mean other events.

    `mark` is empty where a reader does not say; then it means the current run.
    """

    position: Position
    mark: str = ""

    def is_in(self, run_id: str) -> bool:
        return self.mark in ("", mark_of(run_id))


def mark_of(run_id: str) -> str:
    """Enough of a run's id to tell the runs of one thread apart."""
    return run_id.removeprefix("run_")[:8]


def parse_bookmark(text: str) -> Bookmark | None:
    """None for anything but a position, or a position with `~` and a mark behind it."""
    place, tilde, mark = text.partition("~")
    position = parse_position(place)
    if position is None or (tilde and _MARK.fullmatch(mark) is None):
        return None
    return Bookmark(position, mark)


_MARK = re.compile(r"[A-Za-z0-9_-]{1,8}")


def join(first: Delta, second: Delta) -> Delta | None:
    """Both as one, or None if they belong to different blocks."""
    if not is_same_block(first, second):
        return None
    return msgspec.structs.replace(first, text=first.text + second.text)


def is_same_block(first: Delta, second: Delta) -> bool:
    if isinstance(first, InputAdded):
        return isinstance(second, InputAdded) and first.call_id == second.call_id
    return type(first) is type(second) and first.part == second.part
