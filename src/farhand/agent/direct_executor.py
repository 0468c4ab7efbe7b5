"""Runs the server tools of calls without a run, and takes over such calls when their worker is gone.

An accepted approval is acted on: the worker that stored it starts the tool. If that worker is killed first,
the sweep of another one, or of the next process, finds the call and starts it. Who does is decided in the
call's thread. What was in flight is run again only if the tool is idempotent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from functools import partial
from math import inf

from farhand.agent.active_runs import LOOK_SEC
from farhand.agent.context import AgentContext
from farhand.agent.execute import find_tool, may_repeat, run_tool, store_outcome
from farhand.agent.keyed_calls import Reporter
from farhand.agent.ownership import Membership
from farhand.calls.desk import executing_worker
from farhand.core.call import Call, Phase
from farhand.core.decide.direct import is_unwanted
from farhand.core.outcome import Outcome
from farhand.core.principal import Owner
from farhand.core.state import ThreadState
from farhand.core.tool import Executor
from farhand.errors import StoreDown
from farhand.eventlog.pubsub import DIRECT_CALLS, Subscription, thread_topic

log = logging.getLogger("farhand.calls")

CALLER_LOST = "the caller of this call is no longer connected"
MAX_UNCONFIRMED = 10_000


class DirectExecutor:
    def __init__(self, context: AgentContext, membership: Membership) -> None:
        self._context = context
        self._membership = membership
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, Call] = {}
        """The calls whose tools run here."""
        self._unconfirmed: dict[str, None] = {}
        """Calls that may have been opened or taken here, but the store did not confirm it, so nothing was
        started."""
        self._group: asyncio.TaskGroup | None = None
        self.callers: Counter[tuple[Owner, str | None]] = Counter()
        """The number of callers here, by owner and request id, for calls that end with their callers."""
        self.reporter = Reporter(context, membership.name)
        """Reports settled calls to the program."""

    def open(self, group: asyncio.TaskGroup) -> None:
        self._group = group

    def begin(self, call: Call, since: float = -inf) -> None:
        """Runs the tool of this call in its own task, unless it may not run or is already running here.
        `since` is a time, by the clock of the event loop, at which no other worker could have taken the
        call."""
        if call.executor is not Executor.SERVER or call.phase not in (Phase.READY, Phase.TAKEN):
            return
        if call.call_id in self._tasks:
            return
        assert self._group is not None, "a worker runs tools while it serves"
        # no longer unconfirmed: a sweep that read the call earlier must not start it again after it has ended
        self._unconfirmed.pop(call.call_id, None)
        task = self._group.create_task(self._run(call, since))
        self._tasks[call.call_id], self._running[call.call_id] = task, call
        task.add_done_callback(lambda _: self._forget(call.call_id))

    def _forget(self, call_id: str) -> None:
        self._tasks.pop(call_id, None)
        self._running.pop(call_id, None)

    def mark_unconfirmed(self, call_id: str) -> None:
        """The store did not confirm that this call was opened or taken. If it was, the sweep finds it."""
        self._unconfirmed[call_id] = None
        if len(self._unconfirmed) > MAX_UNCONFIRMED:
            del self._unconfirmed[next(iter(self._unconfirmed))]

    async def is_gone(self, worker: str) -> bool:
        return bool(await self._membership.gone([worker]))

    async def start_approved(self) -> None:
        """Runs until cancelled. Starts what was approved at this worker."""
        broker = self._context.log.broker
        with broker.subscribe(DIRECT_CALLS, limit=10_000) as subscription:
            while not broker.closed:
                await subscription.wait(broker.recheck)
                while subscription.items:
                    call = subscription.items.pop(0)
                    assert isinstance(call, Call), "the topic tells calls"
                    self._report(call)
                    self.begin(call)

    async def sweep(self) -> None:
        """Takes over calls whose worker is gone, and starts approved calls that were not started."""
        found = await self._context.log.direct_calls()
        workers = [name for call in found for name in (attached_worker(call), executing_worker(call)) if name]
        gone = await self._membership.gone(workers)
        for call in found:
            try:
                await self._check(call, gone)
            except StoreDown:
                raise
            # an error in one call must not keep the others waiting
            except Exception:
                log.exception("could not check call %s", call.call_id)

    async def drain(self, seconds: float) -> None:
        """Waits up to `seconds` for running tools to finish, but not for tools that only wait for an answer,
        which may take days."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (working := await self._working_tasks()) and (left := until - loop.time()) > 0:
            await asyncio.wait(working, timeout=min(left, LOOK_SEC), return_when=asyncio.FIRST_COMPLETED)

    async def _working_tasks(self) -> list[asyncio.Task[None]]:
        return [task for name, task in list(self._tasks.items()) if not await self._only_asks(name)]

    async def _only_asks(self, call_id: str) -> bool:
        call = self._running.get(call_id)
        if call is None:
            return False
        try:
            return await self._context.log.read(call.owner, call.thread_id, partial(_has_question, call_id))
        except StoreDown:
            return False

    def end(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def _report(self, call: Call, *, is_lost: bool = False) -> None:
        assert self._group is not None, "a worker reports while it serves"
        if not call.is_unreported:
            return
        name = f"report {call.call_id}"
        if name in self._tasks:
            return
        task = self._group.create_task(self._report_outcome(call, is_lost=is_lost))
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _report_outcome(self, call: Call, *, is_lost: bool) -> None:
        try:
            await self.reporter.report(call, is_lost=is_lost)
        except StoreDown as error:
            # the sweep finds it again; the store logs its outages
            log.debug("could not report the outcome of call %s; will retry: %s", call.call_id, error)

    async def _check(self, call: Call, gone: set[str]) -> None:
        if call.is_unreported:
            other = attached_worker(call)
            if other in (None, self._membership.name) or other in gone:
                self._report(call, is_lost=other in gone)
            return
        worker = executing_worker(call)
        in_flight = call.executor is Executor.SERVER and call.phase is Phase.TAKEN
        if in_flight and not self._is_lost(worker, gone):
            # only the worker's own call: another worker may run what this one opened
            if call.call_id in self._unconfirmed and worker == self._membership.name:
                await self._begin_unconfirmed(call)
            return
        if in_flight and not await may_repeat(self._context, call):
            await self._context.desk.abandon(call)
        elif is_unwanted(call) and self._is_lost(attached_worker(call), gone):
            await self._context.desk.cancel_unwanted([call], CALLER_LOST)
        else:
            self.begin(call)

    async def _begin_unconfirmed(self, call: Call) -> None:
        """The call was opened after all, although its caller was told that this is unknown."""
        if is_unwanted(call):
            del self._unconfirmed[call.call_id]
            await self._context.desk.cancel_unwanted([call], CALLER_LOST)
        elif await self._is_own(call):
            self.begin(call)

    def _is_lost(self, worker: str | None, gone: set[str]) -> bool:
        """True if the worker that had the call is gone."""
        if worker is None:
            # stored by a version that recorded no worker: in a shared store, that worker may still be running
            return not self._context.log.is_shared
        return worker in gone

    async def _run(self, call: Call, since: float) -> None:
        """The outermost guard of a call: an error stays confined to this call."""
        try:
            await self._execute(call, since)
        except StoreDown as error:
            # a call that was not started stays ready, and the sweep finds it
            log.debug("call %s interrupted, store unavailable: %s", call.call_id, error)
        except Exception:
            log.exception("call %s failed unexpectedly", call.call_id)

    async def _execute(self, call: Call, since: float) -> None:
        topics = (call.call_id, thread_topic(call.owner, call.thread_id))
        with self._context.log.broker.subscribe(*topics) as subscription:
            if not self._has_begun(call):
                since = asyncio.get_running_loop().time()
            taken = await self._start(call)
            outcome = None if taken is None else await self._outcome(taken, subscription, since)
        if taken is not None and outcome is not None:
            await store_outcome(self._context, taken, outcome)

    async def _start(self, call: Call) -> Call | None:
        try:
            return await self._start_or_take_over(call)
        except StoreDown:
            # the call may have been taken for this worker without being started
            self.mark_unconfirmed(call.call_id)
            raise

    async def _start_or_take_over(self, call: Call) -> Call | None:
        """The call once its tool may start; None if it must not. Starts the call, or takes it over from
        another worker, unless this worker has started it already."""
        if self._has_begun(call):
            return call
        tool = await find_tool(self._context, call, None)
        return await self._context.desk.start_direct(call, tool, self._membership.name)

    def _has_begun(self, call: Call) -> bool:
        return call.phase is Phase.TAKEN and executing_worker(call) == self._membership.name

    async def _is_own(self, call: Call) -> bool:
        """Whether the call is unchanged since it was read: it may have ended, or another process may have
        taken it over."""
        current = await self._context.log.get_call(call.owner, call.call_id)
        return current is not None and current.phase is Phase.TAKEN and current.version == call.version

    async def _outcome(self, call: Call, subscription: Subscription, since: float) -> Outcome | None:
        """The tool's outcome; None if the call ended before the tool did, for instance because it was
        cancelled, or if another worker has taken it over."""
        async with asyncio.TaskGroup() as group:
            running = group.create_task(run_tool(self._context, call, since=since))
            ending = group.create_task(self._wait_until_ended(call, subscription))
            await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            running.cancel()
        return None if running.cancelled() else running.result()

    async def _wait_until_ended(self, call: Call, subscription: Subscription) -> None:
        """Returns when somebody else has settled the call, or it no longer exists."""
        broker = self._context.log.broker
        while True:
            has_news = await subscription.wait(0.0 if subscription.is_stale else broker.recheck)
            if any(isinstance(item, Call) and item.phase is Phase.SETTLED for item in subscription.items):
                return
            subscription.items.clear()
            is_told = has_news and not subscription.is_stale
            subscription.is_stale = False
            if not is_told and await self._is_over(call):
                return

    async def _is_over(self, call: Call) -> bool:
        try:
            current = await self._context.log.get_call(call.owner, call.call_id)
        except StoreDown:
            return False
        return current is None or current.phase is Phase.SETTLED


def _has_question(call_id: str, thread: ThreadState) -> bool:
    """Whether the tool of this call waits for an answer."""
    return any(each.parent is not None and each.parent.call_id == call_id for each in thread.open_calls())


def attached_worker(call: Call) -> str | None:
    """The worker where all callers of this call wait, if the call ends with them; for a settled call, the
    worker that reports it."""
    return None if call.request is None else call.request.worker
