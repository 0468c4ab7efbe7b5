"""The loop: ask the model, open its calls, wait for their outcomes, repeat. Also after a resume.

Whatever it shows is stored first. Every write carries the run's fence: once another claim exists, nothing
here changes anything any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

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
from farhand.core.run import Run, RunState
from farhand.core.thread import Asked, AssistantMessage, Message, ResultsMessage, apart
from farhand.errors import LostClaim, ModelFault
from farhand.models.base import Prompt, Remembering, Stop
from farhand.store.base import InsertMessage, Write, WriteRun


@dataclass(slots=True)
class Work:
    """One claim on one run: what it writes with, and what the model has been told so far."""

    kit: Kit
    log: RunLog
    hold: Hold
    messages: list[Message] = field(default_factory=list)
    unsaved: ResultsMessage | None = None
    """Outcomes of the last step: stored with the next one, and until then the calls have them."""
    step: Step | None = None
    """What it waits for while it is held."""


@dataclass(frozen=True, slots=True)
class Step:
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
        await _fail(work, fault.code, str(fault))
        return None


async def _step_left_open(work: Work) -> Step | None:
    """After a park or a crash: the step whose calls have no results in the thread yet."""
    kit, run = work.kit, work.log.run
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
        await _fail(work, *trouble)
        if isinstance(kit.model, Remembering):
            await kit.model.leave(prompt)
        return None
    work.log.say(StepStarted(run.step + 1))
    listener = Listener(work.log, kit.clock)
    stop = await listener.listen(kit.model, await with_files(kit.files, run.owner, prompt))
    opened = await _open_wishes(work, listener, stop)
    step = Step(
        AssistantMessage(
            run.run_id, run.step + 1, listener.parts({each.call.call_id: each.input for each in opened})
        ),
        [each.call for each in opened],
        opened_here=True,
    )
    return await _store(work, step, opened, stop)


async def _open_wishes(work: Work, listener: Listener, stop: Stop) -> list[Opened]:
    kit, run = work.kit, work.log.run
    wishes = list(listener.wishes.values())
    if not wishes:
        return []
    # only a tool that may ask cares what was allowed in its thread before
    asks = any(_may_ask(kit, run, wish) for wish in wishes)
    thread = await kit.store.get_thread(run.owner, run.thread_id) if asks else None
    around = Circumstances(run, run.step + 1, stop, work.hold.seconds > 0, thread)
    limit = kit.settings.limits.open_calls_per_run
    why = f"a step may ask for {limit} calls at most."
    opened = [
        open_wish(kit, wish, around) if number < limit else too_many(kit, wish, around, why)
        for number, wish in enumerate(wishes)
    ]
    return await _without_crowd(kit, around, wishes, opened)


def _may_ask(kit: Kit, run: Run, wish: Wish) -> bool:
    tool = kit.tool(run.owner, wish.tool)
    return tool is not None and tool.may_ask


async def _without_crowd(
    kit: Kit, around: Circumstances, wishes: list[Wish], opened: list[Opened]
) -> list[Opened]:
    """Rejects what the thread or the tenant has no room for. Only what has to wait takes room."""
    waiting = [number for number, each in enumerate(opened) if each.call.blocks]
    if not waiting:
        return opened
    fit = await kit.room.fit(around.run.owner, around.run.thread_id, len(waiting))
    for number in waiting[fit.count :]:
        opened[number] = too_many(kit, wishes[number], around, fit.why)
    return opened


async def _store(work: Work, step: Step, opened: list[Opened], stop: Stop) -> Step | None:
    """The message, its calls and their events in one transaction: none of them exists without the others."""
    number = step.message.step
    finished = StepFinished(number, stop.reason, stop.usage)
    told: tuple[Event, ...] = (*[each.event for each in opened], finished)
    writes = (*_unsaved(work), *_insert(work, step.message))
    calls = [(each.call, each.tool) for each in opened]
    work.messages.append(step.message)
    if stop.reason == "pause" or (opened and stop.reason == "calls"):
        change = WriteRun(run_id=work.log.run.run_id, step=number, state=_state_with(step.calls))
        await work.log.write(*told, change=change, beside=writes, through=partial(work.kit.desk.open, calls))
        return step
    # calls of an answer that ended early were rejected: their results close the history
    results = _insert(work, results_of(step.message, step.calls)) if opened else ()
    done = WriteRun(run_id=work.log.run.run_id, step=number, state=RunState.DONE)
    told = (*told, RunFinished(RunState.DONE, stop.reason, heard=_heard(work)))
    await work.log.write(
        *told, change=done, beside=(*writes, *results), through=partial(work.kit.desk.open, calls)
    )
    return None


async def _settle(work: Work, step: Step) -> Rest | None:
    """None when every call of the step has its outcome; else how the run waits for them."""
    kit, run, hold = work.kit, work.log.run, work.hold
    calls, asked = step.calls, step.message.asked
    if not hold.listens and await execute(kit, calls, run, opened_here=step.opened_here):
        calls = await _see(work, step.message.step)
    while hold.listens or not _have_all(calls, asked):
        if hold.listens or any(call.blocks for call in calls):
            answered = await wait_or_park(kit, work.log, hold, calls)
            if isinstance(answered, Rest):
                work.step = step
                return answered
            calls = answered
        # what a person said yes to meanwhile, be it while a tool was running
        if await execute(kit, calls, run) or not _have_all(calls, asked):
            calls = await _see(work, step.message.step)
    # the model is shown copies: whatever it does to them, the record of the step stays as it is
    work.messages[-1] = apart(step.message)
    if calls:
        work.unsaved = results_of(step.message, calls)
        work.messages.append(apart(work.unsaved))
    return None


def _have_all(calls: list[Call], asked: Sequence[Asked]) -> bool:
    """Whether every call that the model asked for has its outcome: it is never asked again without."""
    missing = set(map(_call_id, asked))
    for call in calls:
        if call.outcome is not None:
            missing.discard(call.call_id)
    return not missing


_call_id = attrgetter("call_id")


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


async def _fail(work: Work, code: str, message: str) -> None:
    failed = WriteRun(run_id=work.log.run.run_id, state=RunState.FAILED, error=message)
    told = RunFailed(code, message, heard=_heard(work))
    await work.log.write(told, change=failed, beside=_unsaved(work))


def _heard(work: Work) -> bool:
    return work.kit.store.hub.watched(work.log.run.run_id) > 0


def _trouble(work: Work) -> tuple[str, str] | None:
    limits, run = work.kit.settings.limits, work.log.run
    if run.step >= limits.max_steps:
        return "max_steps", f"The model was asked {limits.max_steps} times without coming to an answer."
    # each failure took a step
    enough = run.step >= limits.same_failure
    stuck = stuck_on(work.messages, run.run_id, limits.same_failure) if enough else None
    if stuck is None:
        return None
    return (
        "stuck",
        f"The same call of '{stuck}' with the same input failed {limits.same_failure} times in a row.",
    )


def _state_with(calls: list[Call]) -> RunState:
    """Waiting, if only a person or a far hand can move the step on."""
    open_calls = [call for call in calls if call.outcome is None]
    waits = bool(open_calls) and all(call.blocks for call in open_calls)
    return RunState.WAITING if waits else RunState.RUNNING


def _unsaved(work: Work) -> tuple[Write, ...]:
    if work.unsaved is None:
        return ()
    results, work.unsaved = work.unsaved, None
    return _insert(work, results)


def _insert(work: Work, message: Message) -> tuple[Write, ...]:
    run = work.log.run
    return (InsertMessage(run.owner, run.thread_id, message),)
