"""The rules of a run: one at a time in a thread, one per user message, advanced only by its newest claim."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from farhand.core.call import Call, Phase
from farhand.core.decide.calls import recovered, settled
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import Opening, opened
from farhand.core.decide.threads import created, title_of
from farhand.core.event import (
    STOPPED,
    AnswerDelivered,
    CallOpened,
    CallRejected,
    CallSettled,
    Echo,
    Event,
    MessageAdded,
    RequestToolsChanged,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    ThreadCut,
)
from farhand.core.outcome import Cancelled
from farhand.core.principal import Claims
from farhand.core.result import Receipt
from farhand.core.run import RunState, Usage
from farhand.core.settings import Limits, Settings, Timeouts
from farhand.core.state import RunProgress, ThreadState
from farhand.core.thread import Message, UserMessage, is_same_message
from farhand.core.tool import Tool

MOVED_ON = "the user moved on"


class Started(Struct, frozen=True, gc=False):
    """A run with this id answers the message."""

    run_id: str


class Known(Struct, frozen=True, gc=False):
    """The same message was posted before. This is the newest run of the thread: a repeated post gets its
    answer, also that of a regeneration."""

    run_id: str


class NotStarted(Struct, frozen=True, gc=False):
    """`different_message`: another message has this id. `busy`: the previous run is still working, or another
    one has started. `asked`: it waits for a person. `no_message`: the message to be replaced does not
    exist."""

    why: Literal["different_message", "busy", "asked", "no_message"]


Beginning: TypeAlias = Started | Known | NotStarted


class StepResult(Struct, frozen=True, kw_only=True):
    """What the model wrote in one step. `written` follows the run's event number `after` and is not known to
    be stored; `calls` are in the model's order."""

    step: int
    stop_reason: str
    written: tuple[Event, ...] = ()
    after: int = 0
    calls: tuple[Opening | CallRejected, ...] = ()
    usage: Usage = Usage()
    echoes: tuple[Echo, ...] = ()
    is_last: bool = False
    """Whether the run ends with it."""
    is_delivered: bool = False
    """Whether it has a reader."""


# ---------------------------------------------------------------------------------------------- beginning


class NewRun(Struct, frozen=True):
    """A run to be started: its id, how long it is held at a pause, and who starts it."""

    run_id: str
    hold_for: float = 0.0
    claims: Claims = {}
    request_tools: tuple[Tool, ...] = ()
    """Tools that its client describes and executes itself."""
    alias: str = ""
    """The name that its client gives it."""
    spares_questions: bool = False
    """Whether it must not start while a person is being asked something."""
    title: str = ""
    """The title of its thread if it is new; empty for the first words of the message."""


def begin(
    thread: ThreadState,
    message: UserMessage,
    new: NewRun,
    *,
    instead_of: str | None = None,
    settles: Collection[str] = (),
) -> Decision[Beginning]:
    """Answers a new message. With `instead_of` it replaces that message and everything after it. `settles`
    are open calls that have their results in the same append."""
    if instead_of == message.message_id and _last_user_message(thread.messages) == message:
        # the same words in the same place change nothing
        instead_of = None
    keep = None if instead_of is None else _place_of(thread.messages, instead_of)
    if instead_of is not None and keep is None:
        return Decision(NotStarted("no_message"))
    known = None if instead_of == message.message_id else thread.user_message(message.message_id)
    if known is not None:
        if not is_same_message(known, message) or thread.run is None:
            return Decision(NotStarted("different_message"))
        return Decision(Known(thread.run.run_id))
    if thread.queued is not None and thread.queued.message.message_id == message.message_id:
        # its run starts by itself
        is_same = is_same_message(thread.queued.message, message)
        return Decision(NotStarted("busy" if is_same else "different_message"))
    if new.spares_questions and thread.is_asking:
        return Decision(NotStarted("asked"))
    left = _leave(thread, settles)
    if left is None:
        return Decision(NotStarted("busy"))
    cut = () if keep is None else (ThreadCut(keep),)
    made = created(thread, new.title or title_of(message))
    start = _start(thread, new, message)
    events = (*made, *left, *cut, MessageAdded(message), start)
    return Decision(Started(new.run_id), events, tools=new.request_tools)


def begin_after(
    thread: ThreadState, accepted: Decision[list[Receipt]], message: UserMessage, new: NewRun
) -> Decision[tuple[Beginning, list[Receipt]]]:
    """Results for the previous run and a new message, in one append: what is `accepted` settles, the old run
    ends without another step of the model, and the new one starts. Nothing is applied if no run can start."""
    settles = frozenset(event.call_id for event in accepted.events if isinstance(event, CallSettled))
    started = begin(thread, message, new, settles=settles)
    if not isinstance(started.answer, Started):
        return Decision((started.answer, []))
    return accepted.extended((started.answer, accepted.answer), *started.events, tools=started.tools)


def begin_again(
    thread: ThreadState, new: NewRun, *, instead_of: str | None = None, after_run: str | None = None
) -> Decision[Beginning]:
    """Another answer to the user's message before `instead_of`, or to the last one; with `after_run` only if
    no other run has started since that one."""
    if after_run is not None and (thread.run is None or thread.run.run_id != after_run):
        return Decision(NotStarted("busy"))
    if thread.queued is not None:
        # it would be cut off with the answer
        return Decision(NotStarted("busy"))
    keep = _answer_place(thread.messages, instead_of)
    asked = None if keep is None else _last_user_message(thread.messages[:keep])
    if keep is None or asked is None:
        return Decision(NotStarted("no_message"))
    left = _leave(thread)
    if left is None:
        return Decision(NotStarted("busy"))
    events = (*left, ThreadCut(keep), _start(thread, new, asked))
    return Decision(Started(new.run_id), events, tools=new.request_tools)


def change_request_tools(
    thread: ThreadState, run_id: str, tools: tuple[Tool, ...], *, alias: str = ""
) -> Decision[bool]:
    """A later request for the same run has other tools, and may have its own name for it and for the run that
    follows; False if the run has ended. Open calls keep the version they were opened with."""
    run, queued = thread.active_run, thread.queued
    if run is None or run.run_id != run_id:
        return Decision(False)
    versions = tuple(tool.version for tool in tools)
    events: list[Event] = []
    if (versions, alias or run.alias) != (run.request_tools, run.alias):
        events.append(RequestToolsChanged(versions, alias or run.alias))
    if queued is not None and (versions, alias or queued.alias) != (queued.request_tools, queued.alias):
        events.append(replace(queued, request_tools=versions, alias=alias or queued.alias))
    return Decision(True, tuple(events), tools=tools if events else ())


def _start(thread: ThreadState, new: NewRun, message: UserMessage) -> RunStarted:
    request_tools = tuple(tool.version for tool in new.request_tools)
    return RunStarted(
        new.run_id,
        message.message_id,
        new.hold_for,
        new.claims,
        request_tools,
        new.alias,
        fence=_next_fence(thread),
    )


def _next_fence(thread: ThreadState) -> int:
    return 1 if thread.run is None else thread.run.fence + 1


def _leave(thread: ThreadState, settles: Collection[str] = ()) -> tuple[Event, ...] | None:
    """Ends a run that only waits; None for a working one: a message does not interrupt it."""
    run = thread.active_run
    if run is None:
        return ()
    if run.state is not RunState.WAITING:
        return None
    return (*_moved_on(thread, run, settles), *_queued_message(thread))


def _moved_on(thread: ThreadState, run: RunProgress, settles: Collection[str] = ()) -> tuple[Event, ...]:
    last = RunFinished(RunState.STOPPED, MOVED_ON, delivered=True)
    return _ended(thread, run, MOVED_ON, last, settles=settles)


def _queued_message(thread: ThreadState) -> tuple[Event, ...]:
    """A message that waited for the run to end: it stays in the thread, however the run ended."""
    return () if thread.queued is None else (MessageAdded(thread.queued.message),)


def _queued_run(thread: ThreadState) -> tuple[Event, ...]:
    """The same with the run that answers it, for a run that ends or waits by itself."""
    queued = thread.queued
    if queued is None:
        return ()
    start = RunStarted(
        queued.run_id,
        queued.message.message_id,
        queued.hold_for,
        queued.claims,
        queued.request_tools,
        queued.alias,
        fence=_next_fence(thread),
    )
    return (MessageAdded(queued.message), start)


def _last_user_message(messages: Sequence[Message]) -> UserMessage | None:
    return next((each for each in reversed(messages) if isinstance(each, UserMessage)), None)


def _place_of(messages: Sequence[Message], message_id: str) -> int | None:
    for place, message in enumerate(messages):
        if message.message_id == message_id:
            return place
    return None


def _answer_place(messages: Sequence[Message], instead_of: str | None) -> int | None:
    """Where the answer to be replaced starts: a run's by its id, or what follows a user's message."""
    for place, message in enumerate(messages):
        if isinstance(message, UserMessage):
            if message.message_id == instead_of:
                return place + 1
        elif message.run_id == instead_of:
            return place
    if instead_of is not None:
        return None
    last = _last_user_message(messages)
    return None if last is None else max(place for place, each in enumerate(messages) if each is last) + 1


# ---------------------------------------------------------------------------------------------- advancing


def write(thread: ThreadState, fence: int, written: tuple[Event, ...], *, after: int) -> Decision[int | None]:
    """What the model wrote after the run's event with this number; returns the number of the last one, or
    None if another claim has the run. Events that are already stored, by a write whose answer was lost, are
    not stored again: nothing else adds to a run while its model writes. A log that does not reach that number
    has gone back in time, and the claim is void."""
    run = thread.active_run
    if run is None or run.fence != fence or run.seq < after:
        return Decision(None)
    last = after + len(written)
    return Decision(last, written[max(0, run.seq - after) :])


def finish_step(
    thread: ThreadState, fence: int, result: StepResult, *, now: float, settings: Settings, calls_left: int
) -> Decision[bool]:
    """The model's message and its calls, which exist together or not at all. False if another claim has the
    run, or if the log lacks what the step follows from. `calls_left` is how many calls the tenant may still
    open."""
    run = thread.run
    if run is None or run.fence != fence:
        return Decision(False)
    if run.step >= result.step:
        # stored by an attempt whose answer was lost
        return Decision(True)
    if not run.is_active or run.step + 1 != result.step or run.seq < result.after:
        return Decision(False)
    calls = _opened(thread, result, now=now, settings=settings, calls_left=calls_left)
    finished = StepFinished(result.step, result.stop_reason, result.usage, result.echoes)
    events: list[Event] = [*result.written[max(0, run.seq - result.after) :], *calls, finished]
    if result.is_last:
        events.append(RunFinished(RunState.DONE, result.stop_reason, delivered=result.is_delivered))
        events += _queued_run(thread)
    tools = tuple([each.tool for each in result.calls if isinstance(each, Opening)])
    return Decision(True, tuple(events), tools=tools)


def _opened(
    thread: ThreadState, result: StepResult, *, now: float, settings: Settings, calls_left: int
) -> list[CallOpened | CallRejected]:
    """Rejects calls beyond a limit; only calls that have to wait count for thread and tenant."""
    limits = settings.limits
    waiting = sum(call.blocks for call in thread.open_calls())
    events: list[CallOpened | CallRejected] = []
    for number, each in enumerate(result.calls):
        if isinstance(each, CallRejected):
            events.append(each)
            continue
        event = opened(thread, each, now=now, timeouts=settings.timeouts)
        full = None
        if number >= limits.open_calls_per_run:
            full = f"a step may ask for {limits.open_calls_per_run} calls at most."
        elif event.phase is not Phase.TAKEN:
            full = exceeded_limit(waiting, calls_left, limits)
            waiting, calls_left = waiting + 1, calls_left - 1
        events.append(event if full is None else _rejected(each, full))
    return events


def exceeded_limit(waiting: int, calls_left: int, limits: Limits) -> str | None:
    """Why a call that has to wait cannot be opened beside `waiting` others of its thread."""
    if waiting >= limits.open_calls_per_thread:
        return f"A thread may have {limits.open_calls_per_thread} open calls at most."
    if calls_left <= 0:
        return f"A tenant may have {limits.open_calls_per_tenant} open calls at most."
    return None


def _rejected(opening: Opening, why: str) -> CallRejected:
    return CallRejected(
        call_id=opening.call_id,
        tool=opening.tool.name,
        tool_version=opening.tool.version,
        executor=opening.tool.executor,
        input=opening.input,
        error=f"Not executed: {why}",
        step=opening.step,
        model_call_id=opening.model_call_id,
    )


# ----------------------------------------------------------------------------------------- park and claim


def park(thread: ThreadState, fence: int) -> Decision[Literal["parked", "can_go_on", "lost"]]:
    """Releases a run that only waits. With a queued message it ends instead, and the next one starts."""
    run = thread.active_run
    if run is None or run.fence != fence:
        return Decision("lost")
    if run.is_parked:
        # stored by an attempt whose answer was lost
        return Decision("parked")
    if run.state is not RunState.WAITING:
        return Decision("can_go_on")
    if thread.queued is not None:
        # nobody sees its questions: the user has sent something else
        return Decision("lost", (*_moved_on(thread, run), *_queued_run(thread)))
    return Decision("parked", (RunParked(),))


def rest(thread: ThreadState, fence: int) -> Decision[bool]:
    """Ends the responses of a run that only waits while its worker keeps it: one of its tools asks. False if
    none does, if another one works, or if another claim has the run."""
    run = thread.active_run
    if run is None or run.fence != fence or run.state is not RunState.WAITING:
        return Decision(False)
    if not any(call.parent is not None and call.blocks for call in thread.step_calls()):
        # its tools have ended: it parks
        return Decision(False)
    if thread.queued is not None:
        return Decision(False, (*_moved_on(thread, run), *_queued_run(thread)))
    return Decision(True, () if run.is_kept else (RunParked(is_kept=True),))


# the state, the run that is meant, and what the decision needs besides
def claim(  # noqa: PLR0913
    thread: ThreadState,
    run_id: str,
    fence: int,
    may_repeat: Callable[[Call], bool],
    *,
    now: float,
    timeouts: Timeouts,
    version: int | None = None,
) -> Decision[int | None]:
    """Takes over a run that no worker advances; returns its new fence, or None if it has changed since it was
    read: in its fence or, if one is given, in the version of its thread.

    A step that a crash cut is discarded with the claim, and the tools that were running are resolved.
    """
    run = thread.active_run
    if run is None or run.run_id != run_id or run.fence != fence or version not in (None, thread.version):
        return Decision(None)
    if run.is_parked and run.state is RunState.WAITING:
        return Decision(None)
    cut = () if run.blocks is None else (StepDiscarded(run.step + 1),)
    resumed = RunResumed(taken_over=not run.is_parked)
    crashed = recovered(thread, may_repeat, now=now, timeouts=timeouts)
    return Decision(fence + 1, (*cut, resumed, *crashed))


# ------------------------------------------------------------------------------------------------- ending


def stop(thread: ThreadState, run_id: str, reason: str) -> Decision[bool]:
    """Ends a run from outside, no matter which worker advances it; False if it had ended. A queued message
    stays in the thread, and is answered only with the next message."""
    run = thread.active_run
    if run is None or run.run_id != run_id:
        return Decision(False)
    last = RunFinished(RunState.STOPPED, reason, delivered=True)
    return Decision(True, (*_ended(thread, run, reason, last), *_queued_message(thread)))


def fail_run(
    thread: ThreadState, fence: int, failure: RunFailed, *, written: tuple[Event, ...] = (), after: int = 0
) -> Decision[bool]:
    """Ends a run whose model failed, after what it had written (as in `write`); False if another claim has
    the run. Unfinished output is in the journal and not in the thread."""
    run = thread.active_run
    if run is None or run.fence != fence or run.seq < after:
        return Decision(False)
    return Decision(True, (*written[max(0, run.seq - after) :], failure, *_queued_run(thread)))


def break_off(thread: ThreadState, fence: int, failure: RunFailed) -> Decision[bool]:
    """Ends a run that failed unexpectedly, leaving a thread that a model can still continue; False if another
    claim has it."""
    run = thread.active_run
    if run is None or run.fence != fence:
        return Decision(False)
    return Decision(True, (*_ended(thread, run, "the run failed", failure), *_queued_run(thread)))


def deliver(thread: ThreadState, run_id: str) -> Decision[bool]:
    """An answer that ended without a reader has now been read."""
    run = thread.run
    if run is None or run.run_id != run_id or run.is_active or run.is_delivered:
        return Decision(False)
    return Decision(True, (AnswerDelivered(),))


def _ended(
    thread: ThreadState,
    run: RunProgress,
    reason: str,
    last: RunFinished | RunFailed,
    *,
    settles: Collection[str] = (),
) -> tuple[Event, ...]:
    """Then every open call of the run has an outcome, so that the history stays valid for a model."""
    open_calls = [
        call for call in thread.open_calls() if call.run_id == run.run_id and call.call_id not in settles
    ]
    cancelled = tuple(settled(call, Cancelled(reason)) for call in open_calls)
    has_text = any(block.asked is None and not block.is_reasoning for block in run.blocks or ())
    cut = (StepFinished(run.step + 1, STOPPED),) if has_text else ()
    return (*cancelled, *cut, last)
