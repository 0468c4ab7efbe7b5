"""What a request contains besides answers to open calls: tools, and a message that is to be answered next."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from msgspec import Struct

from farhand.core.call import Call, Phase
from farhand.core.call_state import moved
from farhand.core.decide.calls import settled
from farhand.core.decide.decision import Decision
from farhand.core.decide.runs import (
    MOVED_ON,
    Beginning,
    Known,
    NewRun,
    NotStarted,
    begin_after,
    change_request_tools,
)
from farhand.core.event import CALL_MOVES, Event, MessageQueued
from farhand.core.outcome import Cancelled
from farhand.core.result import Receipt
from farhand.core.run import RunState
from farhand.core.state import ThreadState
from farhand.core.thread import UserMessage, is_same_message
from farhand.core.tool import Tool


class Queued(Struct, frozen=True, gc=False):
    """The message is stored. A run with this id answers it when the run before is done."""

    run_id: str


Next: TypeAlias = Beginning | Queued


def accept_with_tools(
    thread: ThreadState,
    accepted: Decision[list[Receipt]],
    run_id: str,
    tools: tuple[Tool, ...],
    *,
    alias: str,
) -> Decision[list[Receipt]]:
    """The accepted submissions, and the tools of their request, in one append."""
    changed = change_request_tools(thread, run_id, tools, alias=alias)
    return accepted.extended(accepted.answer, *changed.events, tools=changed.tools)


def answer_next(
    thread: ThreadState, accepted: Decision[list[Receipt]], message: UserMessage, new: NewRun
) -> Decision[tuple[Next, list[Receipt]]]:
    """Answers to the previous run and a new message, in one append. The run continues with the answers, and
    the message is queued behind it. If only a page or a person could move the run on, the new message ends it
    instead. Nothing is applied if the message cannot be accepted."""
    known = _known(thread, message)
    if isinstance(known, NotStarted):
        return Decision((known, []))
    if known is not None:
        return accepted.extended((known, accepted.answer))
    run = thread.active_run
    if run is None:
        return begin_after(thread, accepted, message, new)
    undone = [
        call for call in _moved(thread.step_calls(), accepted.events) if call.phase is not Phase.SETTLED
    ]
    asked = [call for call in undone if call.blocks and not call.runs_at_client]
    left: tuple[Event, ...] = ()
    if run.state is RunState.WAITING and asked:
        if len(asked) == len(undone):
            return begin_after(thread, accepted, message, new)
        # nobody sees the rest, and what was just approved has to run
        left = tuple(settled(call, Cancelled(MOVED_ON)) for call in asked)
    request_tools = tuple(tool.version for tool in new.request_tools)
    queue = MessageQueued(message, new.run_id, new.hold_for, new.claims, request_tools, new.alias)
    queued = Queued(new.run_id)
    return accepted.extended((queued, accepted.answer), *left, queue, tools=new.request_tools)


def _known(thread: ThreadState, message: UserMessage) -> Next | None:
    """What the message was answered before, or why it cannot be accepted; None for a new one."""
    queued, said = thread.queued, thread.user_message(message.message_id)
    if said is not None and (not is_same_message(said, message) or thread.run is None):
        return NotStarted("different_message")
    if said is not None and thread.run is not None:
        return Known(thread.run.run_id)
    if queued is None:
        return None
    if queued.message.message_id != message.message_id:
        return NotStarted("busy")
    return (
        Queued(queued.run_id) if is_same_message(queued.message, message) else NotStarted("different_message")
    )


def _moved(calls: Collection[Call], events: Collection[Event]) -> list[Call]:
    """The calls as these events leave them."""
    # their time makes no difference here
    after = {call.call_id: call for call in calls}
    for event in events:
        if isinstance(event, CALL_MOVES) and event.call_id in after:
            after[event.call_id] = moved(after[event.call_id], event, 0.0)
    return list(after.values())
