"""The fold of a thread's log: `apply` is the only place where a thread changes.

The same function serves live events and those read again after a restart, so a state can be dropped at any
time. Must not decide anything: an event in the log has happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from farhand.core.call import Call, Phase
from farhand.core.call_state import moved, opened_call
from farhand.core.event import (
    STOPPED,
    AnswerDelivered,
    ApprovalAnswered,
    CallBegun,
    CallersMoved,
    CallMove,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    Event,
    InputAdded,
    MessageAdded,
    MessageQueued,
    MessagesCopied,
    ModelDelayed,
    OutcomeReported,
    ReasoningAdded,
    RequestToolsChanged,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TakeRenewed,
    TextAdded,
    ThreadCreated,
    ThreadCut,
    ThreadRenamed,
    ToolAllowed,
    ToolDisallowed,
)
from farhand.core.run import RunState
from farhand.core.state import Block, RunProgress, ThreadState, ToolPermission
from farhand.core.thread import (
    AssistantMessage,
    Part,
    Reasoning,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
)

SETTLED_KEPT = 32
"""Settled direct calls that a state keeps. Late results for older ones are answered from the look-up rows."""


def append(thread: ThreadState, events: tuple[Event, ...], at: float) -> None:
    """One append of the log: all its events, and the thread's next version."""
    for event in events:
        apply(thread, event, at)
    thread.version += 1


def apply(thread: ThreadState, event: Event, at: float) -> None:
    _FOLD[type(event)](thread, event, at)


# ---------------------------------------------------------------------------------------- the thread


def _create_thread(thread: ThreadState, event: ThreadCreated, at: float) -> None:
    thread.title, thread.created_at, thread.updated_at = event.title, at, at


def _rename_thread(thread: ThreadState, event: ThreadRenamed, at: float) -> None:
    thread.title = event.title


def _add_message(thread: ThreadState, event: MessageAdded, at: float) -> None:
    thread.messages.append(event.message)
    if thread.queued is not None and thread.queued.message.message_id == event.message.message_id:
        thread.queued = None


def _queue_message(thread: ThreadState, event: MessageQueued, at: float) -> None:
    thread.queued = event


def _copy_messages(thread: ThreadState, event: MessagesCopied, at: float) -> None:
    thread.messages = list(event.messages)


def _cut_thread(thread: ThreadState, event: ThreadCut, at: float) -> None:
    del thread.messages[event.keep :]


def _allow_tool(thread: ThreadState, event: ToolAllowed, at: float) -> None:
    thread.allowed[event.tool_version] = ToolPermission(event.tool, at, event.by)


def _disallow_tool(thread: ThreadState, event: ToolDisallowed, at: float) -> None:
    thread.allowed = {key: each for key, each in thread.allowed.items() if each.tool != event.tool}


def _change_request_tools(thread: ThreadState, event: RequestToolsChanged, at: float) -> None:
    assert thread.run is not None, "request tools belong to a run"
    thread.run.request_tools, thread.run.alias = event.request_tools, event.alias


# ------------------------------------------------------------------------------------------- the run


def _start_run(thread: ThreadState, event: RunStarted, at: float) -> None:
    # settled calls of earlier runs are in the messages; late results for them are answered from the look-up
    # rows
    thread.calls = {
        call_id: call
        for call_id, call in thread.calls.items()
        if call.phase is not Phase.SETTLED or _is_needed(thread, call)
    }
    thread.run = RunProgress(
        run_id=event.run_id,
        user_message_id=event.user_message_id,
        started_at=at,
        since=thread.version,
        fence=event.fence,
        hold_for=event.hold_for,
        claims=event.claims,
        request_tools=event.request_tools,
        alias=event.alias,
        seq=1,
    )
    thread.runs += 1
    thread.updated_at = at


def _count_event(thread: ThreadState) -> RunProgress:
    """Counts one more event; returns the thread's run."""
    run = thread.run
    assert run is not None, "the log has a run before its events"
    run.seq += 1
    return run


def _written(thread: ThreadState) -> list[Block]:
    """Counts one more event; returns what the model has written of its step."""
    run = _count_event(thread)
    if run.blocks is None:
        run.blocks = []
    return run.blocks


def _write_nothing(thread: ThreadState, event: StepStarted | InputAdded | ModelDelayed, at: float) -> None:
    """For readers only; the complete input comes with the call."""
    _written(thread)


def _write_text(thread: ThreadState, event: TextAdded | ReasoningAdded, at: float) -> None:
    blocks = _written(thread)
    if not blocks or blocks[-1].part != event.part or blocks[-1].asked is not None:
        blocks.append(Block(event.part, is_reasoning=isinstance(event, ReasoningAdded)))
    blocks[-1].pieces.append(event.text)


def _write_call(thread: ThreadState, event: CallBegun, at: float) -> None:
    blocks = _written(thread)
    blocks.append(Block(len(blocks), asked=ToolCallPart(event.call_id, event.tool, None)))


def _finish_step(thread: ThreadState, event: StepFinished, at: float) -> None:
    run = _count_event(thread)
    blocks, run.blocks, run.step, run.opened = run.blocks or [], None, event.step, 0
    is_cut = event.stop_reason == STOPPED
    if is_cut:
        blocks = [block for block in blocks if block.asked is None and not block.is_reasoning]
    for echo in event.echoes:
        if all(block.part != echo.part or block.asked is not None for block in blocks):
            # a reasoning item whose text the provider does not reveal
            blocks.insert(echo.part, Block(echo.part, is_reasoning=True))
    if blocks or not is_cut:
        echoes = {echo.part: echo.item for echo in event.echoes}
        parts = tuple([_part(block, echoes) for block in blocks])
        thread.messages.append(AssistantMessage(run.run_id, event.step, parts))
    if _judge_waiting(thread, run):
        _add_results(thread, run)


def _part(block: Block, echoes: dict[int, object]) -> Part:
    if block.asked is not None:
        return block.asked
    text = "".join(block.pieces)
    return Reasoning(text, echoes.get(block.part)) if block.is_reasoning else Text(text)


def _discard_step(thread: ThreadState, event: StepDiscarded, at: float) -> None:
    run = _count_event(thread)
    run.blocks, run.opened = None, 0
    _judge_waiting(thread, run)


def _park_run(thread: ThreadState, event: RunParked, at: float) -> None:
    run = _count_event(thread)
    run.is_kept, run.is_parked = event.is_kept, not event.is_kept
    _judge_waiting(thread, run)


def _resume_run(thread: ThreadState, event: RunResumed, at: float) -> None:
    run = _count_event(thread)
    run.is_parked = run.is_kept = False
    run.fence += 1
    _judge_waiting(thread, run)


def _end_run(thread: ThreadState, event: RunFinished | RunFailed, at: float) -> None:
    run = _count_event(thread)
    run.ended_at, run.is_delivered, run.blocks = at, event.delivered, None
    if isinstance(event, RunFailed):
        run.state, run.error = RunState.FAILED, event.message
    else:
        run.state = event.state


def _deliver_answer(thread: ThreadState, event: AnswerDelivered, at: float) -> None:
    _count_event(thread).is_delivered = True


def _judge_waiting(thread: ThreadState, run: RunProgress) -> bool:
    """Sets the run to waiting if only a person or a far hand can move it on: a tool that asks waits for them
    too. A run with a tool that may run because it was approved does not wait, parked or not. True if every
    call that the model requested in the last step has its outcome."""
    undone: list[Call] = []
    if run.blocks is None:
        run_id, step = run.run_id, run.step
        undone = [
            call
            for call in thread.calls.values()
            if call.outcome is None and call.step == step and call.run_id == run_id
        ]
    blockers = sum(call.blocks for call in undone)
    askers = [call.parent.call_id for call in undone if call.parent is not None]
    if run.is_active:
        waits = 0 < blockers == len(undone) - len(set(askers))
        run.state = RunState.WAITING if waits else RunState.RUNNING
        run.is_kept = run.is_kept and waits
    return len(undone) == len(askers)


# ----------------------------------------------------------------------------------------- the calls


def _open_call(thread: ThreadState, event: CallOpened | CallRejected, at: float) -> None:
    run = thread.run
    call = opened_call(event, thread.owner, thread.thread_id, None if run is None else run.run_id, at)
    thread.calls[call.call_id] = call
    if run is None or call.run_id is None:
        thread.updated_at = at
        return
    run.seq += 1
    if call.parent is not None:
        # not a call of the current step: the step has ended, and the model does not see this call
        _judge_waiting(thread, run)
        return
    if run.opened:
        thread.calls[call.call_id] = replace(call, number=run.opened)
    run.opened += 1
    for block in run.blocks or ():
        if block.asked is not None and block.asked.call_id == call.call_id:
            block.asked = ToolCallPart(call.call_id, event.tool, event.input, event.model_call_id)
    if run.blocks is None:
        _judge_waiting(thread, run)


def _move_call(thread: ThreadState, event: CallMove, at: float) -> None:
    after = moved(thread.calls[event.call_id], event, at)
    if after.run_id is None and after.phase is Phase.SETTLED:
        # in the order they were settled: a call that took long must not be dropped first
        del thread.calls[after.call_id]
    thread.calls[after.call_id] = after
    run = thread.run
    if run is None or after.run_id is None:
        _forget_oldest(thread)
        return
    run.seq += 1
    if _judge_waiting(thread, run):
        _add_results(thread, run)


def _forget_oldest(thread: ThreadState) -> None:
    settled = [
        call
        for call in thread.calls.values()
        if call.run_id is None and call.phase is Phase.SETTLED and not _is_needed(thread, call)
    ]
    for call in settled[:-SETTLED_KEPT]:
        del thread.calls[call.call_id]


def _is_needed(thread: ThreadState, call: Call) -> bool:
    """Whether a running tool asked it, and needs the answer if it is run again; or whether its outcome is
    still to be reported."""
    if call.is_unreported:
        return True
    parent = None if call.parent is None else thread.calls.get(call.parent.call_id)
    return parent is not None and parent.phase is not Phase.SETTLED


def _add_results(thread: ThreadState, run: RunProgress) -> None:
    """The outcomes of a step follow its message once all of them are there, in the order of its calls."""
    last = thread.messages[-1] if thread.messages else None
    if not isinstance(last, AssistantMessage) or last.run_id != run.run_id:
        return
    results: list[ToolResultPart] = []
    for asked in last.tool_calls:
        call = thread.calls.get(asked.call_id)
        if call is None or call.outcome is None:
            return
        results.append(_resolved(asked, call))
    if results:
        thread.messages.append(ResultsMessage(run.run_id, last.step, tuple(results)))


def _resolved(asked: ToolCallPart, call: Call) -> ToolResultPart:
    assert call.outcome is not None, "only settled calls have results"
    # the model gets what ran: a person may have edited the input
    ran = call.input if call.approval is not None else asked.input
    return ToolResultPart(
        asked.call_id, asked.tool, ran, call.outcome, asked.model_call_id, call.untrusted, call.record
    )


# Any: each function takes the event of its key
_FOLD: dict[type[Event], Callable[[ThreadState, Any, float], None]] = {
    ThreadCreated: _create_thread,
    ThreadRenamed: _rename_thread,
    MessageAdded: _add_message,
    MessageQueued: _queue_message,
    MessagesCopied: _copy_messages,
    ThreadCut: _cut_thread,
    ToolAllowed: _allow_tool,
    ToolDisallowed: _disallow_tool,
    RequestToolsChanged: _change_request_tools,
    RunStarted: _start_run,
    StepStarted: _write_nothing,
    ModelDelayed: _write_nothing,
    InputAdded: _write_nothing,
    TextAdded: _write_text,
    ReasoningAdded: _write_text,
    CallBegun: _write_call,
    StepFinished: _finish_step,
    StepDiscarded: _discard_step,
    RunParked: _park_run,
    RunResumed: _resume_run,
    RunFinished: _end_run,
    RunFailed: _end_run,
    AnswerDelivered: _deliver_answer,
    CallOpened: _open_call,
    CallRejected: _open_call,
    ApprovalAnswered: _move_call,
    CallTaken: _move_call,
    TakeRenewed: _move_call,
    CallReleased: _move_call,
    OutcomeReported: _move_call,
    CallersMoved: _move_call,
    CallSettled: _move_call,
}
