"""The runs of this process: the context of each, and a task for each that has work to do.

A held run is only its record. It gets a task when there may be work, and loses it afterwards. Must not know
how a run is advanced, nor what it needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from farhand.agent.loop import ActiveRun
from farhand.agent.quotas import Quotas

LOOK_SEC = 0.05
"""Before a shutdown: how often to check whether the remaining tools only wait for answers."""


class ActiveRuns:
    def __init__(self, advance: Callable[[ActiveRun], Coroutine[None, None, None]], quotas: Quotas) -> None:
        """`advance` takes a run as far as it can go, then calls `hold` or `drop`. `quotas` counts the runs
        that have work to do."""
        self._advance = advance
        # one bound method for all sleepers: each attribute access would create another
        self._wake = self._go_on
        self._active: dict[str, ActiveRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._is_ending = False
        self._quotas = quotas

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._active

    def __len__(self) -> int:
        return len(self._active)

    def run_ids(self) -> list[str]:
        return list(self._active)

    def get(self, run_id: str) -> ActiveRun | None:
        return self._active.get(run_id)

    def open(self, group: asyncio.TaskGroup) -> None:
        self._group = group

    def begin(self, active: ActiveRun) -> None:
        """Advances a run that this process has claimed, in its own task."""
        before = self._active.get(active.run.run_id)
        if before is not None:
            self.let_go(before.run.run_id)
        self._active[active.run.run_id] = active
        self._go_on(active.run.run_id)

    def hold(self, active: ActiveRun) -> bool:
        """Keeps it without a task until there may be work to do; False if it must not be kept."""
        run_id = active.hold.run_id
        if self._is_ending or self._active.get(run_id) is not active:
            return False
        self._forget_task(active)
        active.hold.sleep(self._wake)
        return True

    def drop(self, active: ActiveRun) -> None:
        """No task advances the run here any more."""
        run_id = active.run.run_id
        if active.hold.listens:
            active.hold.end()
        if self._active.get(run_id) is not active:
            return
        del self._active[run_id]
        if run_id in self._tasks:
            self._forget_task(active)

    def let_go(self, run_id: str) -> None:
        """Ends the work on the run: another claim exists, or it was stopped."""
        active, task = self._active.get(run_id), self._tasks.get(run_id)
        if active is None:
            return
        self.drop(active)
        if task is not None:
            task.cancel()

    async def drain(self, seconds: float) -> None:
        """Parks held runs and gives active ones this many seconds to finish. A run whose tools only wait for
        answers is not waited for once its responses have ended: a person may take days."""
        for active in list(self._active.values()):
            active.hold.give_up()
        until = asyncio.get_running_loop().time() + seconds
        while self._is_working() and (left := until - asyncio.get_running_loop().time()) > 0:
            tasks = list(self._tasks.values())
            await asyncio.wait(tasks, timeout=min(left, LOOK_SEC), return_when=asyncio.FIRST_COMPLETED)

    def _is_working(self) -> bool:
        if self._quotas.at_work:
            return True
        return not all(self._active[run_id].hold.is_over for run_id in self._tasks)

    def end(self) -> None:
        """Drops held runs and cancels the rest; each of those is dropped when its task ends."""
        self._is_ending = True
        self._drop_all([active for run_id, active in self._active.items() if run_id not in self._tasks])
        for task in self._tasks.values():
            task.cancel()

    def close(self) -> None:
        """Called when no task is left: drops the runs whose tasks were cancelled before they started."""
        self._is_ending = True
        self._drop_all(list(self._active.values()))

    def _go_on(self, run_id: str) -> None:
        assert self._group is not None, "runs are advanced while a worker serves"
        active = self._active[run_id]
        self._tasks[run_id] = self._group.create_task(self._advance(active))
        self._quotas.begin(active.run)

    def _forget_task(self, active: ActiveRun) -> None:
        del self._tasks[active.run.run_id]
        self._quotas.end(active.run)

    def _drop_all(self, active_runs: list[ActiveRun]) -> None:
        for active in active_runs:
            self.drop(active)
