"""The loop: ask the model, open its calls, wait for their outcomes, repeat. Also after a resume.

Everything it shows is stored first. Every command carries the run's fence: once another claim exists, nothing
here changes anything any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from farhand.agent.attachments import with_files
from farhand.agent.context import AgentContext
from farhand.agent.execute import StepTools, executable
from farhand.agent.model_stream import StepCollector
from farhand.agent.open_calls import StepContext, prepare_call
from farhand.agent.park import Hold, Rest, wait_or_park
from farhand.agent.tool_context import person_of
from farhand.core.call import Call
from farhand.core.decide import runs
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import StepResult
from farhand.core.event import CallRejected, RunFailed, StepStarted
from farhand.core.outcome import Failure, TimedOut, canonical
from farhand.core.run import Run, RunState
from farhand.core.state import ThreadState
from farhand.core.thread import AssistantMessage, Message, ResultsMessage, apart
from farhand.errors import LostClaim, ModelFault
from farhand.eventlog.writer import RunWriter
from farhand.models.base import Prompt, StatefulModel, Stop

log = logging.getLogger("farhand.runs")


class ActiveRun(Struct, eq=False):
    """One claim on one run: its writer, and the messages that the model has received so far."""

    context: AgentContext
    run: Run
    """The run as it was claimed."""
    hold: Hold
    writer: RunWriter
    messages: list[Message] = field(default_factory=list)
    """Copies of the thread's messages for the model: whatever it does to them, the log is unchanged."""
    step: int = 0
    """The last finished step."""
    request_tools: tuple[str, ...] = ()
    """Versions of the tools in the newest request for the run."""
    started: set[str] = field(default_factory=set)
    """Calls whose tools this claim has started."""
    confirmed_at: float = 0.0
    """When the store last confirmed that this process has the run, by the clock of the event loop."""


class Look(Struct, frozen=True):
    """The current thread, as its run sees it."""

    step: int
    last_seq: int
    messages: list[Message]
    """Messages that the model has not received yet."""
    request_tools: tuple[str, ...] = ()
    waits: bool = False
    """Whether only a person or a far hand can move the run on."""
    calls: list[Call] | None = None
    """The calls of the last step, if some have no outcome."""


async def run(active: ActiveRun) -> Rest | None:
    """Returns None when the run has ended, or how it waits. A held run is run again, with the same context,
    when there may be more to do."""
    try:
        look: Look | None = await _look(active)
        while look is not None:
            if look.calls is None:
                look = await _ask(active)
                continue
            rest = await _settle(active, look.calls, waits=look.waits)
            if rest is not None:
                return rest
            look = await _look(active)
    except ModelFault as fault:
        failed = RunFailed(fault.code, active.context.public_text(fault), detail=fault.detail)
        await _fail(active, failed, hint=fault.hint, provider_message=fault.provider_message)
    return None


async def _look(active: ActiveRun) -> Look:
    run, log, known = active.run, active.context.log, len(active.messages)
    asked_at = asyncio.get_running_loop().time()
    # otherwise another process may have taken over the run, and this one may not know yet
    is_current = not active.hold.begin_look() and active.context.is_sure(active.confirmed_at)
    if log.is_shared and is_current:
        look = await log.read_recent(run.owner, run.thread_id, lambda thread: _seen(thread, run, known))
    else:
        look = await log.read_uncommitted(run.owner, run.thread_id, lambda thread: _seen(thread, run, known))
        active.confirmed_at = asked_at
    if look is None:
        # this claim did not start its tools, and two workers must not both ask the model
        raise LostClaim(f"Run {active.run.run_id} was taken over.")
    active.writer.follow(look.last_seq)
    if active.hold.listens and not look.waits:
        active.hold.end()
    return _note(active, look)


def _note(active: ActiveRun, look: Look) -> Look:
    active.step, active.request_tools = look.step, look.request_tools
    active.messages += map(apart, look.messages)
    return look


def _seen(thread: ThreadState, claimed: Run, known: int) -> Look | None:
    """None once another claim exists, or the run has ended, or the log has gone back in time: then it lacks
    messages that the model has received."""
    run = thread.run
    if run is None or run.run_id != claimed.run_id or run.fence != claimed.fence or not run.is_active:
        return None
    if len(thread.messages) < known:
        return None
    last = thread.messages[-1] if thread.messages else None
    is_open = isinstance(last, AssistantMessage) and last.run_id == run.run_id and bool(last.tool_calls)
    return Look(
        run.step,
        run.seq,
        thread.messages[known:],
        run.request_tools,
        run.state is RunState.WAITING,
        thread.step_calls() if is_open else None,
    )


async def _ask(active: ActiveRun) -> Look | None:
    """Asks the model for its next step and stores it; None if the run ended with it."""
    context, run = active.context, active.run
    trouble = _trouble(active)
    person = person_of(run)
    offered = await context.offered(person, active.request_tools)
    instructions = await context.instructions_for(person)
    prompt = Prompt(tuple(active.messages), offered.tools(), instructions, run.thread_id)
    if trouble is not None:
        await _fail(active, trouble)
        if isinstance(context.model, StatefulModel):
            await context.model.leave(prompt)
        return None
    if isinstance(active.messages[-1], ResultsMessage) and not context.log.is_shared:
        # a model never gets a result that a crash could take back
        await context.log.read(run.owner, run.thread_id, lambda thread: None)
    step = active.step + 1
    active.writer.add(StepStarted(step))
    collector = StepCollector(active.writer, context.clock)
    stop = await collector.listen(context.model, await with_files(context.files, run.owner, prompt))
    step_context = StepContext(step, stop, is_held=active.hold.seconds > 0, offered=offered)
    calls = tuple(
        [prepare_call(context, requested, step_context) for requested in collector.requested_calls.values()]
    )
    return await _store(active, collector, calls, stop)


async def _store(
    active: ActiveRun, collector: StepCollector, calls: tuple[Opening | CallRejected, ...], stop: Stop
) -> Look | None:
    """Stores the message, its calls and their events in one append: none of them exists without the others.
    None if the run ended with it."""
    context, run, known = active.context, active.run, len(active.messages)
    is_last = not (stop.reason == "pause" or (calls and stop.reason == "calls"))
    waiting = sum(isinstance(each, Opening) and each.has_to_wait for each in calls)
    calls_left = await context.open_call_limit.left(run.owner.tenant) if waiting else 0
    written, after = active.writer.unstored()
    result = StepResult(
        step=active.step + 1,
        stop_reason=stop.reason,
        written=written,
        after=after,
        calls=calls,
        usage=stop.usage,
        echoes=collector.echoes(),
        is_last=is_last,
        is_delivered=_is_read(active),
    )
    is_claimed, look = await context.log.decide_uncommitted(
        run.owner,
        run.thread_id,
        lambda thread, now: runs.finish_step(
            thread, run.fence, result, now=now, settings=context.settings, calls_left=calls_left
        ),
        lambda thread, is_claimed: (is_claimed, _seen(thread, run, known)),
    )
    if not is_claimed:
        raise LostClaim(f"Run {run.run_id} was taken over.")
    context.open_call_limit.use(run.owner.tenant, waiting)
    if look is None:
        return None
    active.writer.note(look.last_seq)
    return _note(active, look)


async def _settle(active: ActiveRun, calls: list[Call], *, waits: bool) -> Rest | None:
    """None when there is something new to read; else how the run waits for its calls."""
    run = active.run
    own = [] if active.hold.listens else executable(calls, active.started)
    if own:
        since = asyncio.get_running_loop().time()
        # the intent is durable before the effect starts
        held = await active.context.log.read(run.owner, run.thread_id, partial(_held_ids, run))
        # its deadline may have passed since
        own = [call for call in own if call.call_id in held]
        tools = StepTools(active.context, active.hold, run, active.started)
        await tools.finish(own, calls, since=since)
        return None
    if not waits:
        # its tools have ended here, and the log does not have it: it has gone back in time
        raise LostClaim(f"The log of run {run.run_id} lacks what its tools did.")
    return await wait_or_park(active.context, active.hold, run, calls)


def _held_ids(claimed: Run, thread: ThreadState) -> set[str]:
    if thread.run is None or thread.run.fence != claimed.fence:
        return set()
    return {call.call_id for call in thread.open_calls()}


async def _fail(active: ActiveRun, failed: RunFailed, **facts: str) -> None:
    """`facts` go to the log only, each as a separate field."""
    run = active.run
    failure = replace(failed, delivered=_is_read(active))
    written, after = active.writer.unstored()
    is_claimed = await active.context.log.decide(
        run.owner,
        run.thread_id,
        lambda thread, now: runs.fail_run(thread, run.fence, failure, written=written, after=after),
    )
    if not is_claimed:
        raise LostClaim(f"Run {run.run_id} was taken over.")
    known = {"run_id": run.run_id, "thread_id": run.thread_id, "code": failed.code}
    why = failed.detail or failed.message
    log.error("run %s of thread %s failed: %s", run.run_id, run.thread_id, why, extra=known | facts)


def _is_read(active: ActiveRun) -> bool:
    return active.context.log.broker.count(active.run.run_id) > 0


def _trouble(active: ActiveRun) -> RunFailed | None:
    limits, run = active.context.settings.limits, active.run
    if active.step >= limits.max_steps:
        return RunFailed(
            "max_steps", f"The run was stopped after {limits.max_steps} steps without an answer."
        )
    # each failure took a step
    enough = active.step >= limits.same_failure
    stuck = stuck_on(active.messages, run.run_id, limits.same_failure) if enough else None
    if stuck is None:
        return None
    return RunFailed(
        "stuck",
        f"The same call of '{stuck}' with the same input failed {limits.same_failure} times in a row.",
    )


def stuck_on(messages: Sequence[Message], run_id: str, times: int) -> str | None:
    """The tool whose same call with the same input failed in each of the last `times` steps of this run."""
    steps = [
        message for message in messages if isinstance(message, ResultsMessage) and message.run_id == run_id
    ]
    if len(steps) < times:
        return None
    in_all = set.intersection(*(_failures(step) for step in steps[-times:]))
    return min(in_all)[0] if in_all else None


def _failures(step: ResultsMessage) -> set[tuple[str, bytes]]:
    return {
        (resolved.tool, canonical(resolved.input))
        for resolved in step.results
        if isinstance(resolved.outcome, Failure | TimedOut)
    }
