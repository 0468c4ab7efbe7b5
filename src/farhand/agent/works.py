"""The runs that this process has: what each needs to go on, and a task for those that have something to do.

One that is held is its record alone. It gets a task when there may be more to do, and loses it with that.
Must not know how a run is advanced, nor what it needs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine

from farhand.agent.handover import LET_GO_SEC
from farhand.agent.leases import Leases
from farhand.agent.loop import Work
from farhand.agent.quotas import Key
from farhand.core.run import Run


class Works:
    def __init__(
        self, leases: Leases, advance: Callable[[Work], Coroutine[None, None, None]], at_work: Counter[Key]
    ) -> None:
        """`advance` takes one as far as it can go, and says then that it is to `hold` it or to `drop` it.
        `at_work` counts those that have something to do, by tenant and by subject."""
        self.unfinished: list[Run] = []
        """Cut off by the end of this process: others may have them at once."""
        self._leases = leases
        self._advance = advance
        # one for all who sleep: each look at the method would make another
        self._wake = self._go_on
        self._works: dict[str, Work] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._is_ending = False
        self._at_work = at_work

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._works

    def __len__(self) -> int:
        return len(self._works)

    def get(self, run_id: str) -> Work | None:
        return self._works.get(run_id)

    def open(self, group: asyncio.TaskGroup) -> None:
        self._group = group

    def begin(self, work: Work) -> None:
        """Advances a run that is claimed for this process, in a task of its own."""
        run = work.log.run
        self._leases.hold(run)
        self._works[run.run_id] = work
        self._go_on(run.run_id)

    def hold(self, work: Work) -> bool:
        """Keeps it without a task until there may be something to do; False if it is not to be kept."""
        run_id = work.hold.run_id
        if self._is_ending or self._works.get(run_id) is not work:
            return False
        self._forget_task(work)
        work.hold.sleep(self._wake)
        return True

    def drop(self, work: Work) -> None:
        """Nobody works on the run here any more."""
        run = work.log.run
        if work.hold.listens:
            work.hold.end()
        if self._works.get(run.run_id) is not work:
            return
        del self._works[run.run_id]
        if run.run_id in self._tasks:
            self._forget_task(work)
        self._leases.drop(run)
        if self._is_ending and run.active:
            self.unfinished.append(run)

    async def let_go(self, run_id: str) -> bool:
        """Ends the work on the run; True if all that was said is stored then."""
        work, task = self._works.get(run_id), self._tasks.get(run_id)
        if work is None:
            return True
        if task is not None:
            task.cancel()
            # a tool that will not be cancelled must not hold up whoever wants its run to end
            await asyncio.wait([task], timeout=LET_GO_SEC)
        if task is None or task.done():
            # held, or cancelled before it had begun
            self.drop(work)
        return work.log.is_stored

    async def drain(self, seconds: float) -> None:
        """Parks what is held and lets what works come to its end, for so long."""
        for work in list(self._works.values()):
            work.hold.give_up()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=seconds)

    def end(self) -> None:
        """Drops what is held and cancels the rest, each of which is dropped when its task ends."""
        self._is_ending = True
        self._drop_all([work for run_id, work in self._works.items() if run_id not in self._tasks])
        for task in self._tasks.values():
            task.cancel()

    def close(self) -> None:
        """When no task is left: drops those whose tasks were cancelled before they had begun."""
        self._is_ending = True
        self._drop_all(list(self._works.values()))

    def _go_on(self, run_id: str) -> None:
        assert self._group is not None, "runs are advanced while a worker serves"
        work = self._works[run_id]
        self._tasks[run_id] = self._group.create_task(self._advance(work))
        owner = work.log.run.owner
        self._at_work[owner.tenant, owner.subject] += 1
        self._at_work[owner.tenant, None] += 1

    def _forget_task(self, work: Work) -> None:
        run = work.log.run
        del self._tasks[run.run_id]
        for key in ((run.owner.tenant, run.owner.subject), (run.owner.tenant, None)):
            self._at_work[key] -= 1
            if not self._at_work[key]:
                del self._at_work[key]

    def _drop_all(self, works: list[Work]) -> None:
        for work in works:
            self.drop(work)
