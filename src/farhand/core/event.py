"""The events of a thread's log: the record that everything else is made from.

An append stores one or more of these under the thread's next version, all with the same time. `state.py`
folds them; readers get those that belong to a run. An event holds every fact that the fold needs, so nothing
has to be read besides the log.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from farhand.core.approval import Approval
from farhand.core.call import Phase, ProgramRequest, Question
from farhand.core.outcome import Failure, Outcome
from farhand.core.run import RunState, Usage
from farhand.core.thread import Message, UserMessage
from farhand.core.tool import Executor

SERVER = "server"
"""Holder of the calls that the server executes itself."""

STOPPED = "stopped"
"""Stop reason of a step that was cut from outside: of what the model had written, only the text counts."""


class LogEvent(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type"):
    """Base of all events: tagged in JSON, immutable, defaults omitted."""

    in_feed: ClassVar[bool] = False
    """Whether it is in an owner's feed: the model's output is not."""


class ThreadChange(LogEvent, frozen=True, gc=False):
    """Base of events that concern only the thread."""


class ModelOutput(LogEvent, frozen=True, gc=False):
    """Base of the model's output: it reveals nothing stored, and the model is asked again for what is
    lost."""


class RunMove(LogEvent, frozen=True, gc=False):
    """Base of events that start, park, resume or end a run."""


class RunClaim(RunMove, frozen=True, gc=False):
    """Base of events that let the appending worker advance the run."""


class CallChange(LogEvent, frozen=True, gc=False):
    """Base of events of a call."""


class CallStep(CallChange, frozen=True, gc=False):
    """Base of events that move an existing call."""


# ---------------------------------------------------------------------------------------- the thread


class ThreadCreated(ThreadChange, frozen=True, gc=False, tag="thread-created"):
    title: str = ""


class ThreadRenamed(ThreadChange, frozen=True, gc=False, tag="thread-renamed"):
    title: str


class MessageAdded(ThreadChange, frozen=True, gc=False, tag="message-added"):
    """A user's message. The model's messages are folded from the events of its steps."""

    message: UserMessage


class MessageQueued(ThreadChange, frozen=True, gc=False, tag="message-queued"):
    """A message of the user that arrived while a run was active. The run that answers it, named here, starts
    when the one before it ends or waits."""

    message: UserMessage
    run_id: str
    hold_for: float = 0.0
    claims: dict[str, object] = {}
    request_tools: tuple[str, ...] = ()
    alias: str = ""


class MessagesCopied(ThreadChange, frozen=True, gc=False, tag="messages-copied"):
    """The thread is a copy of another and starts with its messages."""

    messages: tuple[Message, ...]


class ThreadCut(ThreadChange, frozen=True, gc=False, tag="thread-cut"):
    """Removes every message from this index on: `keep` is how many stay."""

    keep: int


class ToolAllowed(ThreadChange, frozen=True, gc=False, tag="tool-allowed"):
    """A person allowed this version of the tool for the whole thread; `by` are that person's claims."""

    tool: str
    tool_version: str
    by: dict[str, object] = {}


class ToolDisallowed(ThreadChange, frozen=True, gc=False, tag="tool-disallowed"):
    """That permission was withdrawn, for every version of the tool."""

    tool: str


class RequestToolsChanged(ThreadChange, frozen=True, gc=False, tag="request-tools-changed"):
    """A later request for the same run has other tools, named by their versions, or another name for the run:
    its next step uses these."""

    request_tools: tuple[str, ...]
    alias: str = ""


# ------------------------------------------------------------------------------------------- the run


class RunStarted(RunClaim, frozen=True, gc=False, tag="run-started"):
    in_feed: ClassVar[bool] = True
    run_id: str
    user_message_id: str | None = None
    hold_for: float = 0.0
    claims: dict[str, object] = {}
    """Of the person who started it."""
    request_tools: tuple[str, ...] = ()
    """Versions of the tools in its client's request."""
    alias: str = ""
    """The name that its client gave it."""
    fence: int = 1
    """The fence of its first claim. It continues from the fence of the previous run, so that late writes of
    that run's worker cannot count as this one's."""


class StepStarted(ModelOutput, frozen=True, gc=False, tag="step-started"):
    step: int


class ModelDelayed(ModelOutput, frozen=True, gc=False, tag="model-delayed"):
    """The provider is busy and is asked again; `message` says so to readers."""

    message: str


class TextAdded(ModelOutput, frozen=True, gc=False, tag="text-added"):
    """`part` is the index of the block in the step."""

    part: int
    text: str


class ReasoningAdded(ModelOutput, frozen=True, gc=False, tag="reasoning-added"):
    part: int
    text: str


class CallBegun(ModelOutput, frozen=True, gc=False, tag="call-begun"):
    """The model is writing the input of a call; it cannot be executed yet."""

    call_id: str
    tool: str


class InputAdded(ModelOutput, frozen=True, gc=False, tag="input-added"):
    call_id: str
    text: str


class Echo(Struct, frozen=True, gc=False):
    """A provider's own reasoning item, sent back to it unchanged; `part` is the block it belongs to."""

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


class RunParked(RunMove, frozen=True, gc=False, tag="run-parked"):
    """Responses end here until a call of the run is answered. `is_kept`: its worker keeps it, since a running
    tool waits for an answer and nothing else can continue; else no process does."""

    in_feed: ClassVar[bool] = True

    is_kept: bool = False


class RunResumed(RunClaim, frozen=True, gc=False, tag="run-resumed"):
    """A worker claimed the run; `taken_over` if it was not parked, so that its last worker is gone."""

    in_feed: ClassVar[bool] = True

    taken_over: bool = False


class RunFinished(RunMove, frozen=True, gc=False, tag="run-finished"):
    """`delivered` if it had a reader then; else the answer waits for its first reader."""

    in_feed: ClassVar[bool] = True

    state: RunState
    reason: str = ""
    delivered: bool = False


class RunFailed(RunMove, frozen=True, gc=False, tag="run-failed"):
    """`message` is for people in the chat, `detail` for those who may inspect runs."""

    in_feed: ClassVar[bool] = True

    code: str
    message: str
    delivered: bool = False
    detail: str = ""


class AnswerDelivered(LogEvent, frozen=True, gc=False, tag="answer-delivered"):
    """An answer that ended without a reader has been read since."""


# ----------------------------------------------------------------------------------------- the calls


class CallOpened(CallChange, frozen=True, gc=False, kw_only=True, tag="call-opened"):
    """A call exists. `is_direct` if it was made without a run; `holder` if the server runs it at once."""

    in_feed: ClassVar[bool] = True

    call_id: str
    tool: str
    tool_version: str
    executor: Executor
    input: dict[str, object]
    step: int = 0
    is_direct: bool = False
    holder: str | None = None
    model_call_id: str | None = None
    client_id: str | None = None
    request: ProgramRequest | None = None
    card: str | None = None
    is_typed: bool = False
    """Whether its answer takes longer than a press."""
    title: str | None = None
    """The title of its tool, a template over the input."""
    untrusted: bool = False
    timeout_sec: float | None = None
    deadline: float | None = None
    approval: Approval | None = None
    claims: dict[str, object] = {}
    """Of the person who made it without a run."""
    parent: Question | None = None

    @property
    def phase(self) -> Phase:
        if self.approval is not None and self.approval.answer is None:
            return Phase.ASKING
        return Phase.READY if self.holder is None else Phase.TAKEN

    @property
    def approval_id(self) -> str | None:
        """Of the approval that the call waits for."""
        if self.approval is None or self.approval.answer is not None:
            return None
        return self.approval.approval_id


class CallRejected(CallChange, frozen=True, gc=False, kw_only=True, tag="call-rejected"):
    """An unknown tool, a bad input or a limit: only the model gets it. `error` is for people in the chat;
    `failure` is for the model, if that is more."""

    in_feed: ClassVar[bool] = True

    call_id: str
    tool: str
    input: object
    error: str
    step: int = 0
    model_call_id: str | None = None
    tool_version: str = ""
    executor: Executor = Executor.SERVER
    failure: Failure | None = None


class ApprovalAnswered(CallStep, frozen=True, gc=False, kw_only=True, tag="approval-answered"):
    """`approval` is the whole record, including the answer; `input` and `deadline` apply from now on."""

    in_feed: ClassVar[bool] = True

    call_id: str
    tool: str
    executor: Executor
    approval: Approval
    input: dict[str, object]
    deadline: float | None = None

    @property
    def approval_id(self) -> str:
        return self.approval.approval_id

    @property
    def approved(self) -> bool:
        return self.approval.answer is not None and self.approval.answer.approved

    @property
    def reason(self) -> str:
        return "" if self.approval.answer is None else self.approval.answer.reason


class CallTaken(CallStep, frozen=True, gc=False, tag="call-taken"):
    """`deadline` is set if taking starts the clock: for tools that run on the server."""

    in_feed: ClassVar[bool] = True

    call_id: str
    holder: str
    deadline: float | None = None


class TakeRenewed(CallStep, frozen=True, gc=False, tag="take-renewed"):
    """The holder is still working; `deadline` is the new one if this moved it."""

    call_id: str
    holder: str
    deadline: float | None = None


class OutcomeReported(CallStep, frozen=True, gc=False, tag="outcome-reported"):
    """The outcome is being reported to the program that made the call: `by` this worker; if empty, it has
    been reported."""

    call_id: str
    by: str | None = None


class CallersMoved(CallStep, frozen=True, gc=False, tag="callers-moved"):
    """All callers that wait for the call do so at this worker from now on; if empty, the call no longer ends
    with them."""

    call_id: str
    worker: str | None = None


class CallReleased(CallStep, frozen=True, gc=False, tag="call-released"):
    in_feed: ClassVar[bool] = True
    call_id: str


class CallSettled(CallStep, frozen=True, gc=False, kw_only=True, tag="call-settled"):
    """`digest` is of the result as it was sent, before its output was checked."""

    in_feed: ClassVar[bool] = True

    call_id: str
    tool: str
    executor: Executor
    outcome: Outcome
    digest: str
    title: str | None = None
    metadata: dict[str, object] | None = None
    summary: str | None = None
    """A short summary of the output, for people."""
    answered_by: str = ""
    """The name of the person who sent the result, if the sign-in has one."""


ThreadEvent: TypeAlias = (
    ThreadCreated
    | ThreadRenamed
    | MessageAdded
    | MessageQueued
    | MessagesCopied
    | ThreadCut
    | ToolAllowed
    | ToolDisallowed
    | RequestToolsChanged
)
THREAD_EVENTS = (
    ThreadCreated,
    ThreadRenamed,
    MessageAdded,
    MessageQueued,
    MessagesCopied,
    ThreadCut,
    ToolAllowed,
    ToolDisallowed,
    RequestToolsChanged,
)
DELTAS = (TextAdded, ReasoningAdded, InputAdded)
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
    CallOpened
    | CallRejected
    | ApprovalAnswered
    | CallTaken
    | TakeRenewed
    | CallReleased
    | CallSettled
    | OutcomeReported
    | CallersMoved
)
CallMove: TypeAlias = (
    ApprovalAnswered | CallTaken | TakeRenewed | CallReleased | CallSettled | OutcomeReported | CallersMoved
)
CALL_MOVES = (
    ApprovalAnswered,
    CallTaken,
    TakeRenewed,
    CallReleased,
    CallSettled,
    OutcomeReported,
    CallersMoved,
)
"""Events that move an existing call."""

Event: TypeAlias = ThreadEvent | RunEvent | CallEvent


# ------------------------------------------------------------------------------- beside the threads


class ClientRegistered(LogEvent, frozen=True, gc=False, tag="client-registered"):
    """A client offers these tools from now on."""

    client_id: str
    tools: tuple[str, ...]


class ClientUnregistered(LogEvent, frozen=True, gc=False, tag="client-unregistered"):
    """These tools are gone."""

    client_id: str
    tools: tuple[str, ...]
    reason: str = ""


class CallProgressed(LogEvent, frozen=True, gc=False, tag="call-progressed"):
    """A client that executes a call reports its progress: for people who watch, not for journals or
    models."""

    call_id: str
    tool: str
    text: str
    request_id: str | None = None


Notice: TypeAlias = ClientRegistered | ClientUnregistered | CallProgressed
"""Entries of an owner's feed besides the events of threads."""
