"""The rules of a copied thread: what of a recorded run is kept, and what must not be repeated without asking.

A copy starts with the messages before a step. From a call, the model's message of that step is kept too: the
call is opened again, and the others of the step keep their outcomes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from farhand.core.call import Call, Phase
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import Opening, opened
from farhand.core.decide.runs import NewRun
from farhand.core.event import (
    CallBegun,
    CallRejected,
    CallSettled,
    Echo,
    Event,
    MessagesCopied,
    ReasoningAdded,
    RunStarted,
    StepFinished,
    StepStarted,
    TextAdded,
    ThreadCreated,
)
from farhand.core.outcome import Cancelled, Failure, Success, TimedOut, may_have_had_effect
from farhand.core.settings import Timeouts
from farhand.core.state import ThreadState
from farhand.core.thread import AssistantMessage, Message, Part, Reasoning, Text, ToolCallPart, UserMessage
from farhand.core.tool import Executor


class CopiedCall(Struct, frozen=True, kw_only=True):
    """A call of the step in which a copy starts: opened again or, with `settled`, finished as it was."""

    copy_of: str
    opening: Opening | CallRejected
    settled: CallSettled | None = None


class ThreadCopy(Struct, frozen=True, kw_only=True):
    """`messages` come before the step; `step` is the model's message, if one of its calls is opened again."""

    title: str
    messages: tuple[Message, ...]
    new: NewRun
    user_message_id: str | None = None
    step: AssistantMessage | None = None
    calls: tuple[CopiedCall, ...] = ()


def begin_copy(thread: ThreadState, copy: ThreadCopy, *, now: float, timeouts: Timeouts) -> Decision[bool]:
    """Starts a run in a new thread; False if the thread exists."""
    if thread.exists:
        return Decision(False)
    new = copy.new
    request_tools = tuple(tool.version for tool in new.request_tools)
    started = RunStarted(new.run_id, copy.user_message_id, new.hold_for, new.claims, request_tools)
    events: list[Event] = [ThreadCreated(copy.title), MessagesCopied(copy.messages), started]
    if copy.step is not None:
        events += _step(thread, copy.step, copy.calls, now=now, timeouts=timeouts)
    tools = tuple(each.opening.tool for each in copy.calls if isinstance(each.opening, Opening))
    return Decision(True, tuple(events), tools=(*new.request_tools, *tools))


def messages_before(messages: Sequence[Message], run_id: str, step: int) -> tuple[Message, ...]:
    """What the model knew when it was asked for this step of the run."""
    for place, message in enumerate(messages):
        if not isinstance(message, UserMessage) and message.run_id == run_id and message.step >= step:
            return tuple(messages[:place])
    return tuple(messages)


def may_be_repeated(calls: Collection[Call], *, step: int, call_id: str | None) -> list[Call]:
    """Calls of server tools that may have had an effect, and that a new run from here may make again without
    approval: those of this step and of later ones; from a call, that call, those of its step that have not
    finished, and those of later steps."""
    begun = [
        call
        for call in calls
        if call.executor is Executor.SERVER and call.approval is None and _may_have_run(call)
    ]
    if call_id is None:
        return [call for call in begun if call.step >= step]
    return [
        call
        for call in begun
        if call.step > step or call.call_id == call_id or (call.step == step and call.outcome is None)
    ]


def _may_have_run(call: Call) -> bool:
    match call.outcome:
        case None:
            return call.phase is Phase.TAKEN
        case Failure() as failure:
            return may_have_had_effect(failure)
        case outcome:
            return isinstance(outcome, Success | TimedOut | Cancelled)


def _step(
    thread: ThreadState,
    step: AssistantMessage,
    calls: Sequence[CopiedCall],
    *,
    now: float,
    timeouts: Timeouts,
) -> list[Event]:
    """The model's message as if it had just been written, with its calls."""
    by_origin = {each.copy_of: each for each in calls}
    written = [_written(place, part, by_origin) for place, part in enumerate(step.parts)]
    openings = [
        each.opening
        if isinstance(each.opening, CallRejected)
        else opened(thread, each.opening, now=now, timeouts=timeouts)
        for each in calls
    ]
    echoes = tuple(
        Echo(place, part.echo)
        for place, part in enumerate(step.parts)
        if isinstance(part, Reasoning) and part.echo is not None
    )
    ends = [each.settled for each in calls if each.settled is not None]
    finished = StepFinished(1, "calls", echoes=echoes)
    return [StepStarted(1), *(event for event in written if event is not None), *openings, finished, *ends]


def _written(place: int, part: Part, calls: dict[str, CopiedCall]) -> Event | None:
    match part:
        case Text(text=text):
            return TextAdded(place, text)
        case Reasoning(text=text) if text:
            return ReasoningAdded(place, text)
        case ToolCallPart(call_id=call_id, tool=tool) if call_id in calls:
            return CallBegun(calls[call_id].opening.call_id, tool)
        case _:
            return None
