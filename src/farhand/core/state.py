"""A thread as the fold of its log: `apply` is the only place where a thread changes.

The same function serves what happens now and what is read again after a restart, so a state can be thrown
away at any time. Must not decide anything: an event in the log has happened.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from msgspec import Struct, field

from farhand.core.call import Call, Phase
from farhand.core.call_state import moved, opened_call
from farhand.core.log import (
    CALL_MOVES,
    STOPPED,
    THREAD_EVENTS,
    AnswerDelivered,
    CallBegun,
    CallMove,
    CallOpened,
    CallRejected,
    Event,
    InputAdded,
    MessageAdded,
    ModelDelayed,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
    ThreadCreated,
    ThreadCut,
    ThreadEvent,
    ThreadRenamed,
    ToolAllowed,
    ToolDisallowed,
)
from farhand.core.principal import Owner
from farhand.core.run import ENDED, RunState
from farhand.core.thread import (
    Asked,
    AssistantMessage,
    Message,
    Part,
    Reasoning,
    Resolved,
    ResultsMessage,
    Text,
    UserMessage,
)

SETTLED_KEPT = 32
"""Settled direct calls that a state keeps. Late results for older ones find them in the look-up."""


class Block(Struct):
    """A part of a step while the model writes it: text, reasoning, or a call."""

    part: int
    pieces: list[str] = field(default_factory=list)
    is_reasoning: bool = False
    asked: Asked | None = None


class RunProgress(Struct, kw_only=True):
    """The thread's last run. `fence` counts the claims on it, `seq` its events."""

    run_id: str
    user_message_id: str | None
    started_at: float
    since: int = 0
    """The version of the thread before the run began: its events are in the rows after it."""
    hold_for: float = 0.0
    state: RunState = RunState.RUNNING
    is_parked: bool = False
    step: int = 0
    fence: int = 1
    seq: int = 0
    blocks: list[Block] | None = None
    """What the model has written of the step under way; None between steps."""
    ended_at: float | None = None
    error: str = ""
    is_delivered: bool = True

    @property
    def is_active(self) -> bool:
        return self.state not in ENDED


class Allowed(Struct, frozen=True, gc=False):
    """A permission for the whole thread: which version of which tool, since when."""

    tool: str
    at: float


class ThreadState(Struct, kw_only=True):
    """`version` counts the appends. `calls` has the calls of the last run and every call that is open."""

    owner: Owner
    thread_id: str
    version: int = 0
    title: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    allowed: dict[str, Allowed] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    run: RunProgress | None = None
    calls: dict[str, Call] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        return self.version > 0

    @property
    def active_run(self) -> RunProgress | None:
        return self.run if self.run is not None and self.run.is_active else None

    def step_calls(self) -> list[Call]:
        """The calls of the run's last step, in the order in which the model asked for them."""
        run = self.run
        if run is None:
            return []
        return [call for call in self.calls.values() if call.run_id == run.run_id and call.step == run.step]

    def open_calls(self) -> list[Call]:
        return [call for call in self.calls.values() if call.phase is not Phase.SETTLED]

    def asking(self, approval_id: str) -> Call | None:
        """The call that this approval belongs to, answered or not."""
        for call in self.calls.values():
            if call.approval is not None and call.approval.approval_id == approval_id:
                return call
        return None

    def user_message(self, message_id: str) -> UserMessage | None:
        for message in self.messages:
            if isinstance(message, UserMessage) and message.message_id == message_id:
                return message
        return None


def append(thread: ThreadState, events: tuple[Event, ...], at: float) -> None:
    """One append of the log: every event of it, and the thread's next version."""
    for event in events:
        apply(thread, event, at)
    thread.version += 1


def apply(thread: ThreadState, event: Event, at: float) -> None:
    if isinstance(event, _WRITTEN):
        _write_step(_run_of(thread), event)
    elif isinstance(event, CallOpened | CallRejected):
        _open(thread, event, at)
    elif isinstance(event, CALL_MOVES):
        _move(thread, event, at)
    elif isinstance(event, THREAD_EVENTS):
        _change_thread(thread, event, at)
    elif isinstance(event, RunStarted):
        _start_run(thread, event, at)
    else:
        _advance_run(thread, event, at)


_WRITTEN = (TextAdded, ReasoningAdded, InputAdded, CallBegun, StepStarted, ModelDelayed)
"""What the model is doing: it reveals nothing stored, and what is lost of it is asked again."""


def belongs_to_run(thread: ThreadState, event: Event) -> bool:
    """Whether the event is part of the run's journal: not what concerns the thread or a direct call alone."""
    if isinstance(event, CallOpened):
        return not event.is_direct
    if isinstance(event, CALL_MOVES):
        return thread.calls[event.call_id].run_id is not None
    return not isinstance(event, THREAD_EVENTS)


# ---------------------------------------------------------------------------------------- the thread


def _change_thread(thread: ThreadState, event: ThreadEvent, at: float) -> None:
    match event:
        case ThreadCreated(title=title):
            thread.title, thread.created_at, thread.updated_at = title, at, at
        case ThreadRenamed(title=title):
            thread.title = title
        case MessageAdded(message=message):
            thread.messages.append(message)
        case ThreadCut(keep=keep):
            del thread.messages[keep:]
        case ToolAllowed(tool=tool, tool_version=version):
            thread.allowed[version] = Allowed(tool, at)
        case ToolDisallowed(tool=tool):
            thread.allowed = {key: each for key, each in thread.allowed.items() if each.tool != tool}
        case _:
            assert_never(event)


# ------------------------------------------------------------------------------------------- the run


def _run_of(thread: ThreadState) -> RunProgress:
    assert thread.run is not None, "the log has a run before its events"
    return thread.run


RunMove: TypeAlias = (
    StepFinished | StepDiscarded | RunParked | RunResumed | RunFinished | RunFailed | AnswerDelivered
)


def _advance_run(thread: ThreadState, event: RunMove, at: float) -> None:
    run = _run_of(thread)
    run.seq += 1
    match event:
        case StepFinished():
            _finish_step(thread, run, event)
        case StepDiscarded():
            run.blocks = None
        case RunParked():
            run.is_parked = True
        case RunResumed():
            run.is_parked = False
            run.fence += 1
        case AnswerDelivered():
            run.is_delivered = True
        case RunFinished() | RunFailed():
            _end_run(run, event, at)
        case _:
            assert_never(event)
    _judge_waiting(thread)


def _end_run(run: RunProgress, event: RunFinished | RunFailed, at: float) -> None:
    run.ended_at, run.is_delivered, run.blocks = at, event.delivered, None
    if isinstance(event, RunFailed):
        run.state, run.error = RunState.FAILED, event.message
    else:
        run.state = event.state


def _start_run(thread: ThreadState, event: RunStarted, at: float) -> None:
    # settled calls of runs before this one are in the messages; a late result finds them in the look-up
    thread.calls = {
        call_id: call for call_id, call in thread.calls.items() if call.phase is not Phase.SETTLED
    }
    thread.run = RunProgress(
        run_id=event.run_id,
        user_message_id=event.user_message_id,
        started_at=at,
        since=thread.version,
        hold_for=event.hold_for,
        seq=1,
    )
    thread.updated_at = at


def _write_step(
    run: RunProgress,
    event: TextAdded | ReasoningAdded | InputAdded | CallBegun | StepStarted | ModelDelayed,
) -> None:
    run.seq += 1
    if run.blocks is None:
        run.blocks = []
    match event:
        case TextAdded(part=part, text=text):
            _block(run.blocks, part, is_reasoning=False).pieces.append(text)
        case ReasoningAdded(part=part, text=text):
            _block(run.blocks, part, is_reasoning=True).pieces.append(text)
        case CallBegun(call_id=call_id, tool=tool):
            run.blocks.append(Block(len(run.blocks), asked=Asked(call_id, tool, None)))
        case StepStarted() | InputAdded() | ModelDelayed():
            # shown to readers; the whole input comes with the call
            pass
        case _:
            assert_never(event)


def _block(blocks: list[Block], part: int, *, is_reasoning: bool) -> Block:
    if not blocks or blocks[-1].part != part or blocks[-1].asked is not None:
        blocks.append(Block(part, is_reasoning=is_reasoning))
    return blocks[-1]


def _finish_step(thread: ThreadState, run: RunProgress, event: StepFinished) -> None:
    blocks, run.blocks, run.step = run.blocks or [], None, event.step
    is_cut = event.stop_reason == STOPPED
    if is_cut:
        blocks = [block for block in blocks if block.asked is None and not block.is_reasoning]
    if blocks or not is_cut:
        echoes = {echo.part: echo.item for echo in event.echoes}
        parts = tuple([_part(block, echoes) for block in blocks])
        thread.messages.append(AssistantMessage(run.run_id, event.step, parts))
    _add_results(thread, run)


def _part(block: Block, echoes: dict[int, object]) -> Part:
    if block.asked is not None:
        return block.asked
    text = "".join(block.pieces)
    return Reasoning(text, echoes.get(block.part)) if block.is_reasoning else Text(text)


def _judge_waiting(thread: ThreadState) -> None:
    """Waiting, if only a person or a far hand can move the run on."""
    run = thread.run
    if run is None or not run.is_active:
        return
    undone = [call for call in thread.step_calls() if call.outcome is None] if run.blocks is None else []
    waits = bool(undone) and all(call.blocks for call in undone)
    run.state = RunState.WAITING if waits else RunState.RUNNING


# ----------------------------------------------------------------------------------------- the calls


def _open(thread: ThreadState, event: CallOpened | CallRejected, at: float) -> None:
    run_id = None if thread.run is None else thread.run.run_id
    call = opened_call(event, thread.owner, thread.thread_id, run_id, at)
    thread.calls[call.call_id] = call
    run = thread.run
    if run is None or call.run_id is None:
        return
    run.seq += 1
    for block in run.blocks or ():
        if block.asked is not None and block.asked.call_id == call.call_id:
            block.asked = Asked(call.call_id, event.tool, event.input, event.model_call_id)
    _judge_waiting(thread)


def _move(thread: ThreadState, event: CallMove, at: float) -> None:
    before = thread.calls[event.call_id]
    after = moved(before, event, at)
    thread.calls[after.call_id] = after
    run = thread.run
    if run is None or after.run_id is None:
        _forget_oldest(thread)
        return
    run.seq += 1
    _add_results(thread, run)
    _judge_waiting(thread)


def _forget_oldest(thread: ThreadState) -> None:
    settled = [call for call in thread.calls.values() if call.run_id is None and call.phase is Phase.SETTLED]
    for call in settled[:-SETTLED_KEPT]:
        del thread.calls[call.call_id]


def _add_results(thread: ThreadState, run: RunProgress) -> None:
    """The outcomes of a step follow its message once all of them are there, in the order of its calls."""
    last = thread.messages[-1] if thread.messages else None
    if not isinstance(last, AssistantMessage) or last.run_id != run.run_id or not last.asked:
        return
    results: list[Resolved] = []
    for asked in last.asked:
        call = thread.calls.get(asked.call_id)
        if call is None or call.outcome is None:
            return
        results.append(_resolved(asked, call))
    thread.messages.append(ResultsMessage(run.run_id, last.step, tuple(results)))


def _resolved(asked: Asked, call: Call) -> Resolved:
    assert call.outcome is not None, "only settled calls have results"
    # the model is told what ran: a person may have edited the input
    ran = call.input if call.approval is not None else asked.input
    return Resolved(asked.call_id, asked.tool, ran, call.outcome, asked.model_call_id, call.untrusted)
