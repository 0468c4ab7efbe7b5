"""Runs server tools, all those of a step at once, and settles their calls like any other executor.

The intent is stored before the effect: the server takes a call before its tool starts. A tool that was in
flight when a process died is not run again unless it is declared idempotent: the model gets an unknown
outcome (`core/decide/calls.py`, `recovered`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import count
from math import inf

from msgspec import Struct

from farhand.agent.context import AgentContext
from farhand.agent.offered_tools import OfferedTools
from farhand.agent.park import Hold, runs_at_client
from farhand.agent.tool_context import ToolLink, context_of
from farhand.core.call import Call, Phase
from farhand.core.decide.calls import CHANGED
from farhand.core.decide.opening import BACKSTOP_SEC
from farhand.core.decide.runs import rest
from farhand.core.outcome import Outcome, TimedOut
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.core.tool import Executor, Tool
from farhand.errors import LostClaim, StoreDown
from farhand.eventlog.pubsub import (
    STORE_RETRY_SEC,
    Subscription,
    freed_topic,
    resting_topic,
    thread_topic,
)
from farhand.tools.context import acting
from farhand.tools.execute import ToolNotStarted, to_failure

log = logging.getLogger("farhand.runs")

_LONGEST_NAP_SEC = 3600.0


async def may_repeat(context: AgentContext, call: Call) -> bool:
    """Whether a tool that was in flight is run again: as it is declared now or, if the program chose it for a
    person, as it was when the call was opened."""
    declared = context.toolbox.declared(call.tool)
    if declared is not None:
        return declared.tool.idempotent
    tool = await context.log.get_tool(call.tool_version) if context.choose_tools is not None else None
    return tool is not None and tool.idempotent


async def run_tool(
    context: AgentContext, call: Call, run: Run | None = None, *, since: float
) -> Outcome | None:
    """`run` is the call's run, which knows who started it; None for a direct call. The call was held here at
    the time `since`, by the clock of the event loop; None if another process has taken it over, or it ended,
    before its tool could start."""
    try:
        offered = await _offered_to(context, call, run)
    # the program's own function chooses the tools, and may raise anything
    except Exception as error:
        return context.recorded(to_failure(call.tool, error))
    tool = offered.toolbox.get(call.tool)
    if tool is None or tool.version != call.tool_version:
        # the tool chosen now is not the one that was requested or approved
        return CHANGED
    span = call.timeout_sec or context.settings.timeouts.server_tool
    within = min(span, _seconds_left(context, call))
    if within <= 0:
        return TimedOut(span)
    link = ToolLink(context, call, offered, fence=None if run is None else run.fence)
    try:
        with acting(context_of(call, run, link)):
            outcome = await offered.toolbox.execute(
                call.tool,
                call.input,
                within=within,
                call_id=call.call_id,
                at_most=context.settings.limits.tool_output,
                # the last thing before the effect
                may_start=lambda: context.still_holds(since, lambda: _is_held(context, call, run)),
            )
    except ToolNotStarted:
        return None
    finally:
        await link.close()
    return context.recorded(outcome)


def _seconds_left(context: AgentContext, call: Call) -> float:
    """Until the tool must have ended. A direct call's time has been running since it was opened or approved,
    no matter when its tool starts. That of a run's call starts with its tool, unless this process was
    suspended in between: after its deadline the model is told that it timed out."""
    if call.deadline is None:
        return inf
    left = call.deadline - context.log.now()
    return left - BACKSTOP_SEC if call.run_id is None else left


async def _is_held(context: AgentContext, call: Call, run: Run | None) -> bool:
    def look(thread: ThreadState) -> bool:
        if run is not None and (thread.run is None or thread.run.fence != run.fence):
            return False
        current = thread.calls.get(call.call_id)
        return current is not None and current.phase is Phase.TAKEN and current.version == call.version

    return await context.log.read(call.owner, call.thread_id, look)


async def find_tool(context: AgentContext, call: Call, run: Run | None) -> Tool | None:
    """The tool as it is now for the person this call is executed for; None if it is not available."""
    try:
        return (await _offered_to(context, call, run)).toolbox.get(call.tool)
    # as above
    except Exception:
        log.exception("could not choose the tools for call %s", call.call_id)
        return None


async def _offered_to(context: AgentContext, call: Call, run: Run | None) -> OfferedTools:
    return await context.offered(context_of(call, run), () if run is None else run.request_tools)


async def execute(context: AgentContext, call: Call, run: Run, *, since: float) -> None:
    """Runs the tool of a run's call and settles it, unless another claim on the run exists. `since` is when
    the run was this process's own, by the clock of the event loop."""
    held: Call | None = call
    if call.phase is Phase.READY:
        tool = await find_tool(context, call, run)
        since = asyncio.get_running_loop().time()
        held = await context.desk.start(call, tool, fence=run.fence)
    outcome = None if held is None else await run_tool(context, held, run, since=since)
    if held is not None and outcome is not None:
        await store_outcome(context, held, outcome, fence=run.fence)


async def store_outcome(
    context: AgentContext, call: Call, outcome: Outcome, *, fence: int | None = None
) -> None:
    """Keeps what the tool returned until the store accepts it: the tool had its effect, and only this process
    knows its outcome. `fence` is that of the claim on its run."""
    for attempt in count():
        try:
            await context.desk.finish(call, outcome, fence=fence)
        except StoreDown as error:
            level = logging.DEBUG if attempt else logging.WARNING
            log.log(level, "could not store the outcome of call %s; will retry: %s", call.call_id, error)
            await asyncio.sleep(STORE_RETRY_SEC)
        else:
            return


def executable(calls: Sequence[Call], started: set[str]) -> list[Call]:
    """The calls that the server executes and this claim has not started. A call that the server holds was
    opened here a moment ago, or taken over with the claim."""
    own = [call for call in calls if call.executor is Executor.SERVER and call.call_id not in started]
    return [call for call in own if call.phase in (Phase.READY, Phase.TAKEN)]


class _Look(Struct, frozen=True):
    run: Run
    calls: list[Call]
    """The calls of its step."""


class StepTools:
    """The server tools of one step: starts them, waits for them, and rests meanwhile if they only wait for
    answers.

    A run whose tools only wait for answers waits itself: it is held for its time, then its responses end as
    they do when it parks. Its tools stay with this worker, and so does the run.
    """

    def __init__(self, context: AgentContext, hold: Hold, run: Run, started: set[str]) -> None:
        """`started` are the calls whose tools this claim on the run has started."""
        self._context = context
        self._hold = hold
        self._run = run
        self._started = started
        self._at_work: set[asyncio.Task[None]] = set()
        self._is_waiting = False
        """Whether the run was waiting at the last check."""
        self._look_at = inf
        self._error: StoreDown | None = None
        """Why a tool could not be started."""

    async def finish(self, calls: Sequence[Call], step: Sequence[Call], *, since: float) -> None:
        """Runs the tools of these calls of the step at once and waits for them, and for those of its other
        calls that become ready meanwhile. Starts none once another claim on the run exists; none did at the
        time `since`."""
        run, broker = self._run, self._context.log.broker
        topics = (resting_topic(run.run_id), freed_topic(run.run_id), thread_topic(run.owner, run.thread_id))
        self._plan_look(step)
        try:
            with broker.subscribe(*topics) as news:
                await self._work(calls, news, since)
        except ExceptionGroup as several:
            # tools do not raise here: it is the store or a bug of ours, and one error is enough
            raise several.exceptions[0] from several
        finally:
            self._go_on()

    async def _work(self, calls: Sequence[Call], news: Subscription, since: float) -> None:
        async with asyncio.TaskGroup() as group:
            self._begin(calls, group, news, since)
            while self._at_work:
                await self._check(group, news)
        if self._error is not None:
            raise self._error

    def _begin(
        self, calls: Sequence[Call], group: asyncio.TaskGroup, news: Subscription, since: float
    ) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._at_work.discard(task)
            news.wake()

        for call in calls:
            self._started.add(call.call_id)
            task = group.create_task(self._execute(call, since))
            self._at_work.add(task)
            task.add_done_callback(ended)

    async def _execute(self, call: Call, since: float) -> None:
        try:
            await execute(self._context, call, self._run, since=since)
        except StoreDown as error:
            # the other tools finish first: then the run continues from the log
            self._error = error

    async def _check(self, group: asyncio.TaskGroup, news: Subscription) -> None:
        if not await self._has_news(news):
            return
        since = self._context.log.broker.loop.time()
        try:
            look = await self._look()
            self._begin(executable(look.calls, self._started), group, news, since)
            await self._rest(look)
        except StoreDown:
            # no reason to cancel tools that are running
            self._look_at = self._context.log.broker.loop.time() + STORE_RETRY_SEC

    async def _has_news(self, news: Subscription) -> bool:
        """Whether there may be more to do than to wait for the tools."""
        loop = self._context.log.broker.loop
        if not news.is_stale:
            await news.wait(max(0.0, min(self._look_at - loop.time(), _LONGEST_NAP_SEC)))
        has_news = news.is_stale or bool(news.items) or loop.time() >= self._look_at
        news.is_stale = False
        news.items.clear()
        return has_news and bool(self._at_work)

    async def _look(self) -> _Look:
        run = self._run
        look = await self._context.log.read(run.owner, run.thread_id, lambda thread: _seen(thread, run))
        if look is None:
            raise LostClaim(f"Run {run.run_id} was taken over.")
        return look

    async def _rest(self, look: _Look) -> None:
        """Ends the responses once the run has been held for long enough."""
        self._plan_look(look.calls)
        if not look.run.waits:
            self._go_on()
            return
        if not self._is_waiting:
            is_elsewhere = any(runs_at_client(call) for call in look.calls)
            self._hold.begin(at_least=self._context.settings.timeouts.hold_for if is_elsewhere else 0.0)
            self._is_waiting = True
            self._context.quotas.rest(self._run)
        left = inf if look.run.kept else self._hold.seconds_left()
        if left <= 0:
            run = self._run
            self._hold.is_over = await self._context.log.decide(
                run.owner, run.thread_id, lambda thread, now: rest(thread, run.fence)
            )
            return
        self._look_at = min(self._look_at, self._context.log.broker.loop.time() + left)

    def _go_on(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._context.quotas.go_on(self._run)

    def _plan_look(self, calls: Sequence[Call]) -> None:
        """When to check the log again although nothing was published: a notification from another process may
        be lost."""
        broker = self._context.log.broker
        waits = any(call.blocks for call in calls)
        self._look_at = broker.loop.time() + broker.recheck if waits else inf


def _seen(thread: ThreadState, claimed: Run) -> _Look | None:
    """None once another claim exists, or the run has ended."""
    run = thread.run_record()
    if run is None or run.run_id != claimed.run_id or run.fence != claimed.fence or not run.active:
        return None
    return _Look(run, thread.step_calls())
