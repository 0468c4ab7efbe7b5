"""The loop: ask the model, open its calls, wait for their outcomes, repeat. Also after a resume.

Whatever it shows is stored first. Every write carries the run's fence: once another claim exists, nothing
here changes anything any more.
"""

from __future__ import annotations

import logging
from functools import partial
from operator import attrgetter

from msgspec import Struct, field
from msgspec.structs import replace

from farhand.agent.attached import with_files
from farhand.agent.execute import execute
from farhand.agent.history import open_step, results_of, stuck_on
from farhand.agent.journal import RunLog
from farhand.agent.kit import Kit
from farhand.agent.listen import Listener, Wish
from farhand.agent.park import Hold, Rest, wait_or_park
from farhand.agent.wish import Circumstances, Opened, open_wish, too_many
from farhand.core.call import Call
from farhand.core.event import (
    Event,
    RunFailed,
    RunFinished,
    StepFinished,
    StepStarted,
)
from farhand.core.run import RunState
from farhand.core.thread import Asked, AssistantMessage, Message, ResultsMessage, apart
from farhand.core.tool import Tool
from farhand.errors import LostClaim, ModelFault
from farhand.models.base import Prompt, Remembering, Stop
from farhand.store.base import InsertMessage, Write, WriteRun

log = logging.getLogger("farhand.runs")


class Work(Struct, eq=False):
    """One claim on one run: what it writes with, and what the model has been told so far."""

    kit: Kit
    log: RunLog
    hold: Hold
    messages: list[Message] = field(default_factory=list)
    is_read: bool = False
    """Whether these are what the thread holds, before a first look at it."""
    unsaved: ResultsMessage | None = None
    """Outcomes of the last step: stored with the next one, and until then the calls have them."""
    step: Step | None = None
    """What it waits for while it is held."""


class Step(Struct, frozen=True, eq=False):
    message: AssistantMessage
    calls: list[Call]
    opened_here: bool = False


async def run(work: Work) -> Rest | None:
    """Returns when the run has ended, or how it waits. One that is held is run again, with the same work,
    when there may be more to do: the store need not be asked then where it stands."""
    try:
        step, work.step = work.step or await _step_left_open(work), None
        while True:
            step = step or await _ask(work)
            if step is None:
                return None
            rest = await _settle(work, step)
            if rest is not None:
                return rest
            step = None
    except ModelFault as fault:
        failed = RunFailed(fault.code, fault.public, detail=fault.detail)
        await _fail(work, failed, hint=fault.hint, provider_words=fault.words)
        return None


async def _step_left_open(work: Work) -> Step | None:
    """After a park or a crash: the step whose calls have no results in the thread yet."""
    kit, run = work.kit, work.log.run
    if work.is_read:
        # the run began with its thread, and nothing was said since
        return None
    work.messages = await kit.store.messages(run.owner, run.thread_id)
    message = open_step(work.messages, run.run_id)
    if message is None:
        return None
    return Step(message, await _see(work, message.step))


async def _ask(work: Work) -> Step | None:
    """The model's next step, stored; None if the run ended with it."""
    kit, run = work.kit, work.log.run
    trouble = _trouble(work)
    prompt = Prompt(tuple(work.messages), kit.tools(run.owner), kit.instructions, run.thread_id)
    if trouble is not None:
        await _fail(work, trouble)
        if isinstance(kit.model, Remembering):
            await kit.model.leave(prompt)
        return None
    work.log.say(StepStarted(run.step + 1))
    listener = Listener(work.log, kit.clock)
    stop = await listener.listen(kit.model, await with_files(kit.files, run.owner, prompt))
    opened = await _open_wishes(work, listener, stop) if listener.wishes else []
    return await _store(work, AssistantMessage(run.run_id, run.step + 1, listener.parts()), opened, stop)


async def _open_wishes(work: Work, listener: Listener, stop: Stop) -> list[Opened]:
    kit, run = work.kit, work.log.run
    wishes: list[tuple[Wish, Tool | None]] = []
    asks = False
    for wish in listener.wishes.values():
        tool = kit.tool(run.owner, wish.tool)
        asks = asks or (tool is not None and tool.may_ask)
        wishes.append((wish, tool))
    # only a tool that may ask cares what was allowed in its thread before
    thread = await kit.store.get_thread(run.owner, run.thread_id) if asks else None
    around = Circumstances(run, run.step + 1, stop, work.hold.seconds > 0, thread)
    limit = kit.settings.limits.open_calls_per_run
    opened: list[Opened] = []
    waiting: list[int] = []
    for number, (wish, tool) in enumerate(wishes):
        if number < limit:
            each = open_wish(kit, wish, tool, around)
        else:
            each = too_many(kit, wish, around, f"a step may ask for {limit} calls at most.")
        opened.append(each)
        if each.call.blocks:
            waiting.append(number)
    # what the thread or the tenant has no room for is rejected; only what has to wait takes room
    if waiting:
        fit = await kit.room.fit(run.owner, run.thread_id, len(waiting))
        for number in waiting[fit.count :]:
            opened[number] = too_many(kit, wishes[number][0], around, fit.why)
    return opened


async def _store(work: Work, message: AssistantMessage, opened: list[Opened], stop: Stop) -> Step | None:
    """The message, its calls and their events in one transaction: none of them exists without the others."""
    events: list[Event] = []
    calls: list[Call] = []
    kept: list[tuple[Call, Tool | None]] = []
    for each in opened:
        events.append(each.event)
        calls.append(each.call)
        kept.append((each.call, each.tool))
    events.append(StepFinished(message.step, stop.reason, stop.usage))
    through = partial(work.kit.desk.open, kept) if kept else None
    work.messages.append(message)
    if stop.reason == "pause" or (opened and stop.reason == "calls"):
        change = WriteRun(run_id=work.log.run.run_id, step=message.step, state=_state_with(calls))
        await work.log.write(*events, change=change, beside=_said(work, message), through=through)
        return Step(message, calls, opened_here=True)
    events.append(RunFinished(RunState.DONE, stop.reason, heard=_heard(work)))
    # calls of an answer that ended early were rejected: their results close the history
    said = _said(work, message, results_of(message, calls)) if opened else _said(work, message)
    done = WriteRun(run_id=work.log.run.run_id, step=message.step, state=RunState.DONE)
    await work.log.write(*events, change=done, beside=said, through=through)
    return None


async def _settle(work: Work, step: Step) -> Rest | None:
    """None when every call of the step has its outcome; else how the run waits for them."""
    kit, run, hold = work.kit, work.log.run, work.hold
    calls, message = step.calls, step.message
    if step.opened_here and not hold.listens and not work.log.is_sure:
        # a process that was stopped here for a while begins nothing that another has taken over meanwhile
        calls = await _see(work, message.step)
    if not hold.listens and await execute(kit, calls, run, opened_here=step.opened_here):
        calls = await _see(work, message.step)
    is_over = not hold.listens and _have_all(calls, message)
    while not is_over:
        if hold.listens or any(map(_blocks, calls)):
            answered = await wait_or_park(kit, work.log, hold, calls)
            if isinstance(answered, Rest):
                work.step = step
                return answered
            calls = answered
        # what a person said yes to meanwhile, be it while a tool was running
        is_over = not await execute(kit, calls, run) and _have_all(calls, message)
        if not is_over:
            calls = await _see(work, message.step)
            is_over = _have_all(calls, message)
    # the model is shown copies: whatever it does to them, the record of the step stays as it is
    work.messages[-1] = apart(message)
    if calls:
        work.unsaved = results_of(message, calls)
        work.messages.append(apart(work.unsaved))
    return None


_blocks = attrgetter("blocks")


def _have_all(calls: list[Call], message: AssistantMessage) -> bool:
    """Whether every call that the model asked for has its outcome: it is never asked again without."""
    missing: set[str] = set()
    for part in message.parts:
        if isinstance(part, Asked):
            missing.add(part.call_id)
    for call in calls:
        if call.outcome is not None:
            missing.discard(call.call_id)
    return not missing


async def _see(work: Work, step: int) -> list[Call]:
    """The calls of this step as they are, and the journal's end behind all that is told of them.

    The calls first: what is settled after this look is appended after the end that is seen, and the model is
    not asked before a later look has found it. The other way round its next word would be told under the
    number of an outcome that came in between.
    """
    store, run = work.kit.store, work.log.run
    calls = await store.calls_of(run.owner, run.run_id, step)
    now = await store.get_run(run.owner, run.run_id)
    if now is None or now.fence != run.fence:
        # its tools were not begun here, and the model is not asked by two
        raise LostClaim(f"Run {run.run_id} was taken over.")
    work.log.seen(now)
    return calls


async def _fail(work: Work, failed: RunFailed, **facts: str) -> None:
    """`facts` are for the log alone, each as a field of its own."""
    run = work.log.run
    change = WriteRun(run_id=run.run_id, state=RunState.FAILED, error=failed.message)
    await work.log.write(replace(failed, heard=_heard(work)), change=change, beside=_said(work))
    known = {"run_id": run.run_id, "thread_id": run.thread_id, "code": failed.code}
    why = failed.detail or failed.message
    log.error("run %s of thread %s failed: %s", run.run_id, run.thread_id, why, extra=known | facts)


def _heard(work: Work) -> bool:
    return work.kit.store.hub.watched(work.log.run.run_id) > 0


def _trouble(work: Work) -> RunFailed | None:
    limits, run = work.kit.settings.limits, work.log.run
    if run.step >= limits.max_steps:
        return RunFailed(
            "max_steps", f"The model was asked {limits.max_steps} times without coming to an answer."
        )
    # each failure took a step
    enough = run.step >= limits.same_failure
    stuck = stuck_on(work.messages, run.run_id, limits.same_failure) if enough else None
    if stuck is None:
        return None
    return RunFailed(
        "stuck",
        f"The same call of '{stuck}' with the same input failed {limits.same_failure} times in a row.",
    )


def _state_with(calls: list[Call]) -> RunState:
    """Waiting, if only a person or a far hand can move the step on."""
    state = RunState.RUNNING
    for call in calls:
        if call.outcome is None and not call.blocks:
            return RunState.RUNNING
        if call.outcome is None:
            state = RunState.WAITING
    return state


def _said(work: Work, *messages: Message) -> tuple[Write, ...]:
    """Into the thread: what is not stored yet of the last step, then these."""
    run = work.log.run
    unsaved, work.unsaved = (() if work.unsaved is None else (work.unsaved,)), None
    return tuple([InsertMessage(run.owner, run.thread_id, each) for each in (*unsaved, *messages)])
