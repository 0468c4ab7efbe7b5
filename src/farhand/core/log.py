"""The events of a thread's log: the record that everything else is made from.

An append stores one or more of these under the thread's next version, all with the same time. `state.py`
folds them; readers are sent those that belong to a run. An event holds every fact that the fold needs, so
nothing has to be read besides the log.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from farhand.core.approval import Approval
from farhand.core.call import Phase, Request
from farhand.core.outcome import Outcome
from farhand.core.run import RunState, Usage
from farhand.core.thread import UserMessage
from farhand.core.tool import Executor

SERVER = "server"
"""Holder of the calls that the server executes itself."""

STOPPED = "stopped"
"""Stop reason of a step that was cut from outside: of what the model had written, only the text counts."""


class LogEvent(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type"):
    """Base of all events: tagged in JSON, immutable, without what has its default."""


# ---------------------------------------------------------------------------------------- the thread


class ThreadCreated(LogEvent, frozen=True, gc=False, tag="thread-created"):
    title: str = ""


class ThreadRenamed(LogEvent, frozen=True, gc=False, tag="thread-renamed"):
    title: str


class MessageAdded(LogEvent, frozen=True, gc=False, tag="message-added"):
    """A user's message. What the model says is folded from the events of its step."""

    message: UserMessage


class ThreadCut(LogEvent, frozen=True, gc=False, tag="thread-cut"):
    """Removes every message from this place on: `keep` is how many stay."""

    keep: int


class ToolAllowed(LogEvent, frozen=True, gc=False, tag="tool-allowed"):
    """A person allowed this version of the tool for the whole thread."""

    tool: str
    tool_version: str


class ToolDisallowed(LogEvent, frozen=True, gc=False, tag="tool-disallowed"):
    """That permission was taken back, for every version of the tool."""

    tool: str


# ------------------------------------------------------------------------------------------- the run


class RunStarted(LogEvent, frozen=True, gc=False, tag="run-started"):
    run_id: str
    user_message_id: str | None = None
    hold_for: float = 0.0


class StepStarted(LogEvent, frozen=True, gc=False, tag="step-started"):
    step: int


class ModelDelayed(LogEvent, frozen=True, gc=False, tag="model-delayed"):
    """The provider is busy and is asked again; `message` says so to readers."""

    message: str


class TextAdded(LogEvent, frozen=True, gc=False, tag="text-added"):
    """`part` is the place of the block in the step."""

    part: int
    text: str


class ReasoningAdded(LogEvent, frozen=True, gc=False, tag="reasoning-added"):
    part: int
    text: str


class CallBegun(LogEvent, frozen=True, gc=False, tag="call-begun"):
    """The model is writing the input of a call; it cannot be executed yet."""

    call_id: str
    tool: str


class InputAdded(LogEvent, frozen=True, gc=False, tag="input-added"):
    call_id: str
    text: str


class Echo(Struct, frozen=True, gc=False):
    """A provider's own reasoning item, handed back to it unchanged; `part` is the block it belongs to."""

    part: int
    item: object


class StepFinished(LogEvent, frozen=True, gc=False, tag="step-finished"):
    step: int
    stop_reason: str
    usage: Usage = Usage()
    echoes: tuple[Echo, ...] = ()


class StepDiscarded(LogEvent, frozen=True, gc=False, tag="step-discarded"):
    """The step was cut by a crash and is asked again; replays leave it out."""

    step: int


class RunParked(LogEvent, frozen=True, gc=False, tag="run-parked"):
    """No process keeps the run any more; it goes on when its last open call is answered."""


class RunResumed(LogEvent, frozen=True, gc=False, tag="run-resumed"):
    """A worker claimed the run. `taken_over` if it was not parked: its last worker may have sent text that
    was never stored."""

    taken_over: bool = False


class RunFinished(LogEvent, frozen=True, gc=False, tag="run-finished"):
    """`delivered` if somebody was reading then; else the answer waits for its first reader."""

    state: RunState
    reason: str = ""
    delivered: bool = False


class RunFailed(LogEvent, frozen=True, gc=False, tag="run-failed"):
    code: str
    message: str
    delivered: bool = False


class AnswerDelivered(LogEvent, frozen=True, gc=False, tag="answer-delivered"):
    """An answer that ended without a reader has been read since."""


# ----------------------------------------------------------------------------------------- the calls


class CallOpened(LogEvent, frozen=True, gc=False, kw_only=True, tag="call-opened"):
    """A call exists. `is_direct` if it was made without a run, `is_started` if the server runs it at once."""

    call_id: str
    tool: str
    tool_version: str
    executor: Executor
    input: dict[str, object]
    step: int = 0
    is_direct: bool = False
    is_started: bool = False
    model_call_id: str | None = None
    client_id: str | None = None
    request: Request | None = None
    card: str | None = None
    timeout_sec: float | None = None
    deadline: float | None = None
    approval: Approval | None = None

    @property
    def phase(self) -> Phase:
        if self.approval is not None and self.approval.answer is None:
            return Phase.ASKING
        return Phase.TAKEN if self.is_started else Phase.READY


class CallRejected(LogEvent, frozen=True, gc=False, kw_only=True, tag="call-rejected"):
    """An unknown tool, a bad input or a limit: only the model is told."""

    call_id: str
    tool: str
    input: object
    error: str
    step: int = 0
    model_call_id: str | None = None


class ApprovalAnswered(LogEvent, frozen=True, gc=False, kw_only=True, tag="approval-answered"):
    """`approval` is the whole record, answer included; `input` and `deadline` hold from now on."""

    call_id: str
    tool: str
    executor: Executor
    approval: Approval
    input: dict[str, object]
    deadline: float | None = None


class CallTaken(LogEvent, frozen=True, gc=False, tag="call-taken"):
    """`deadline` is set where taking starts the clock: for tools that run on the server."""

    call_id: str
    holder: str
    deadline: float | None = None


class TakeRenewed(LogEvent, frozen=True, gc=False, tag="take-renewed"):
    """The holder is still at it; `deadline` is the new one if this moved it."""

    call_id: str
    holder: str
    deadline: float | None = None


class CallReleased(LogEvent, frozen=True, gc=False, tag="call-released"):
    call_id: str


class CallSettled(LogEvent, frozen=True, gc=False, kw_only=True, tag="call-settled"):
    """`digest` is of the result as it was sent, before its output was checked."""

    call_id: str
    tool: str
    executor: Executor
    outcome: Outcome
    digest: str
    title: str | None = None
    metadata: dict[str, object] | None = None


ThreadEvent: TypeAlias = (
    ThreadCreated | ThreadRenamed | MessageAdded | ThreadCut | ToolAllowed | ToolDisallowed
)
THREAD_EVENTS = (ThreadCreated, ThreadRenamed, MessageAdded, ThreadCut, ToolAllowed, ToolDisallowed)
Delta: TypeAlias = TextAdded | ReasoningAdded | InputAdded
RunEvent: TypeAlias = (
    RunStarted
    | StepStarted
    | ModelDelayed
    | TextAdded
    | ReasoningAdded
    | CallBegun
    | InputAdded
    | StepFinished
    | StepDiscarded
    | RunParked
    | RunResumed
    | RunFinished
    | RunFailed
    | AnswerDelivered
)
CallEvent: TypeAlias = (
    CallOpened | CallRejected | ApprovalAnswered | CallTaken | TakeRenewed | CallReleased | CallSettled
)
CallMove: TypeAlias = ApprovalAnswered | CallTaken | TakeRenewed | CallReleased | CallSettled
CALL_MOVES = (ApprovalAnswered, CallTaken, TakeRenewed, CallReleased, CallSettled)
"""Events that move a call which exists."""

Event: TypeAlias = ThreadEvent | RunEvent | CallEvent
