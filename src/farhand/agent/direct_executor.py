"""Runs the server tools of calls that have no run, whoever is attached to them, and looks after such calls
when the worker that had them is gone.

An accepted yes is acted on: the worker that took it starts the tool. If that worker is killed first, the
sweep of another one, or of the next process, finds the call and starts it. The desk's take decides who does.
What was in flight is run again only if the tool is idempotent.
"""

from __future__ import annotations

import asyncio
import logging

from farhand.agent.execute import UNKNOWN, begin_call, may_repeat, run_tool
from farhand.agent.kit import Kit
from farhand.agent.membership import Membership
from farhand.calls.desk import executing_worker
from farhand.core.call import Call, Phase
from farhand.core.outcome import Outcome
from farhand.core.tool import Executor
from farhand.errors import StoreDown
from farhand.store.base import When
from farhand.store.hub import DIRECT_CALLS, Watch

log = logging.getLogger("farhand.calls")

NOBODY_ASKS = "the server was restarted, and nobody can ask for this call again"
AGAIN_SEC = 1.0


class DirectExecutor:
    def __init__(self, kit: Kit, membership: Membership) -> None:
        self._kit = kit
        self._membership = membership
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def open(self, group: asyncio.TaskGroup) -> None:
        self._group = group

    def begin(self, call: Call) -> None:
        """Runs the tool of this call in a task of its own, if it may run and is not run here already."""
        if call.executor is not Executor.SERVER or call.phase not in (Phase.READY, Phase.TAKEN):
            return
        if call.call_id in self._tasks:
            return
        assert self._group is not None, "a worker runs tools while it serves"
        task = self._group.create_task(self._run(call))
        self._tasks[call.call_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(call.call_id, None))

    async def start_approved(self) -> None:
        """For ever: starts what was approved at this worker."""
        hub = self._kit.store.hub
        with hub.watch(DIRECT_CALLS, limit=10_000) as watch:
            while not hub.closed:
                await watch.wait(hub.recheck)
                while watch.news:
                    call = watch.news.pop(0)
                    assert isinstance(call, Call), "the topic tells calls"
                    self.begin(call)

    async def sweep(self) -> None:
        """Looks after calls whose worker is gone, and starts what is approved and was not started."""
        found = await self._kit.store.direct_calls()
        workers = [name for call in found for name in (attached_worker(call), executing_worker(call)) if name]
        gone = await self._membership.gone(workers)
        for call in found:
            await self._look_after(call, gone)

    async def drain(self, seconds: float) -> None:
        """Lets what runs come to its end, for so long."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=seconds)

    def end(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _look_after(self, call: Call, gone: set[str]) -> None:
        worker = executing_worker(call)
        in_flight = call.executor is Executor.SERVER and call.phase is Phase.TAKEN
        if in_flight and not self._is_lost(worker, gone):
            return
        if in_flight and not may_repeat(self._kit, call):
            await self._kit.desk.finish(call, UNKNOWN, when=When.ANY_TIME)
        elif is_unwanted(call) and self._is_lost(attached_worker(call), gone):
            await self._kit.desk.cancel([call], NOBODY_ASKS)
        else:
            self.begin(call)

    def _is_lost(self, worker: str | None, gone: set[str]) -> bool:
        """True if whoever had the call does not have it any more."""
        if worker is None:
            # written by a version that named no worker: it may be alive where others share the store
            return not self._kit.store.is_shared
        return worker in gone

    async def _run(self, call: Call) -> None:
        """The outermost guard of a call: whatever breaks in it is its own affair."""
        try:
            await self._execute(call)
        except StoreDown as error:
            # one that was not started stays ready, and the sweep finds it
            log.warning("call %s waits for the store: %s", call.call_id, error)
        except Exception:
            log.exception("call %s broke", call.call_id)

    async def _execute(self, call: Call) -> None:
        with self._kit.store.hub.watch(call.call_id) as watch:
            taken = await begin_call(self._kit, call, is_begun=self._is_begun(call))
            outcome = None if taken is None else await self._outcome(taken, watch)
        if taken is not None and outcome is not None:
            await self._finish(taken, outcome)

    def _is_begun(self, call: Call) -> bool:
        """Whether it was opened as taken by this worker; one that was taken by another is taken over."""
        return call.phase is Phase.TAKEN and executing_worker(call) == self._membership.name

    async def _outcome(self, call: Call, watch: Watch) -> Outcome | None:
        """What the tool brings; None if the call ended before it did, for instance by a cancellation."""
        async with asyncio.TaskGroup() as group:
            running = group.create_task(run_tool(self._kit, call))
            ending = group.create_task(self._ended(call, watch))
            await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            running.cancel()
        return None if running.cancelled() else running.result()

    async def _ended(self, call: Call, watch: Watch) -> None:
        """Until the call is settled by somebody else, or gone."""
        while True:
            told = await watch.wait(self._kit.store.hub.recheck)
            if any(isinstance(item, Call) and item.phase is Phase.SETTLED for item in watch.news):
                return
            watch.news.clear()
            if not told and await self._is_over(call):
                return

    async def _is_over(self, call: Call) -> bool:
        try:
            now = await self._kit.store.get_call(call.owner, call.call_id)
        except StoreDown:
            return False
        return now is None or now.phase is Phase.SETTLED

    async def _finish(self, call: Call, outcome: Outcome) -> None:
        """What the tool brought is kept until the store takes it."""
        while True:
            try:
                await self._kit.desk.finish(call, outcome)
            except StoreDown as error:
                log.warning("the outcome of call %s waits for the store: %s", call.call_id, error)
                await asyncio.sleep(AGAIN_SEC)
            else:
                return


def attached_worker(call: Call) -> str | None:
    """The worker that the caller of this call waits at, where nobody else can ask for its answer."""
    return None if call.request is None else call.request.worker


def is_unwanted(call: Call) -> bool:
    """Whether nobody would miss this call without its caller: it has no request id to be asked for by, and
    nobody has said yes to it."""
    if call.request is not None and call.request.request_id is not None:
        return False
    return call.approval is None or call.approval.answer is None
