"""Keeps runs going in this process: starts them, brings parked ones back, picks up those a crash left behind.

A run that waits parked is not here at all: only the store knows it. One that is held is a record of its work,
without a task: it gets one when there may be something to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from farhand.agent import loop
from farhand.agent.direct_executor import DirectExecutor
from farhand.agent.endings import break_off, break_off_by_force
from farhand.agent.execute import recover
from farhand.agent.handover import ask_holder, hear_others, together
from farhand.agent.journal import RunLog
from farhand.agent.kit import Kit
from farhand.agent.leases import Leases
from farhand.agent.membership import Membership
from farhand.agent.park import Hold, Rest, resume
from farhand.agent.works import Works
from farhand.calls.deadlines import Deadlines
from farhand.core.event import RunFailed
from farhand.core.run import Run
from farhand.core.thread import Message
from farhand.errors import LostClaim, StoreDown
from farhand.store.base import Committed, WriteRun
from farhand.store.hub import WAKE, freed

log = logging.getLogger("farhand.runs")

T = TypeVar("T")

SWEEP_SEC = 1.0
FIRST_REMOVAL_SEC = 60.0
REMOVAL_SEC = 3600.0
PAGE = 500
RESERVE_SEC = 2.0
"""For so long other workers leave alone what this one has found; if it dies, they find it then."""
AT_ONCE = 16


class Worker:
    def __init__(self, kit: Kit, deadlines: Deadlines, membership: Membership) -> None:
        self.direct = DirectExecutor(kit, membership)
        """Runs the server tools of calls that have no run."""
        self._kit = kit
        self._membership = membership
        self._deadlines = deadlines
        self._preferred: dict[str, float] = {}
        self._orphans: dict[str, RunLog] = {}
        """Claimed here, advanced by nobody since the store was away; the pens have what is not stored yet."""
        self._leases = Leases(kit.store, kit.settings.patience)
        # one for all runs: each look at the method would make another
        self._is_sure = self._leases.is_sure
        self._works = Works(self._leases, self._advance, kit.quotas.at_work)
        self._left_alone: set[str] = set()
        """Neither to be advanced nor to be ended: a record of theirs makes no sense to this version."""
        self._group: asyncio.TaskGroup | None = None
        self._stopping = asyncio.Event()
        self._recovered = asyncio.Event()
        self._is_away = False
        """Whether it was said that the store is away."""

    async def serve(self, ready: asyncio.Event) -> None:
        """Until `stop()`: the watch over wakes, deadlines and strays, and every run of this process."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._works.open(group)
                self.direct.open(group)
                await self._serve(group, ready)
        finally:
            self._works.close()
        if self._kit.store.is_shared:
            await self._unless_store_is_down(self._leases.hand_over(self._works.unfinished))
            await self._unless_store_is_down(self._membership.leave())

    @property
    def name(self) -> str:
        """Under which it is known to other workers."""
        return self._membership.name

    def launch(self, run: Run, *, hold_for: float, said: list[Message] | None = None) -> None:
        """Advances a run that is claimed for this process, in a task of its own. `said` is all that there is
        in its thread, if that is known."""
        hold = Hold(self._kit, run.run_id, seconds=0.0 if self._stopping.is_set() else hold_for)
        work = loop.Work(self._kit, self._pen(run), hold, said or [], is_read=said is not None)
        self._works.begin(work)

    def launch_if_stored(self, run: Run) -> None:
        """For a run whose beginning nobody waited for: stored or not, it is not left half begun."""
        assert self._group is not None, "a worker launches runs while it serves"
        self._group.create_task(self._launch_once_known(run))

    async def _launch_once_known(self, run: Run) -> None:
        """Asks until the store says it: nobody looks for a run before its lease is over."""
        while not await self._unless_store_is_down(self._launch_if_stored(run)):
            if self.stopped:
                return
            await asyncio.sleep(SWEEP_SEC)

    async def _launch_if_stored(self, run: Run) -> None:
        # behind the beginning in the store's queue, so it is known by now
        commit = await self._kit.store.commit(WriteRun(run_id=run.run_id, fence=run.fence))
        if isinstance(commit, Committed):
            self.launch(commit.runs[run.run_id], hold_for=run.hold_for)

    async def uninterrupted(self, work: Coroutine[None, None, T]) -> T:
        """Lets the work come to its end although whoever waits for it may be gone by then.

        What is half done would stay so: a run that is stored and that nobody advances.
        """
        assert self._group is not None, "a worker works while it serves"
        ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._group.create_task(_settle(work, ended))
        return await asyncio.shield(ended)

    def prefer(self, run_id: str, *, hold_for: float) -> None:
        """When the run is brought back from its park, it holds for so long at its next pause."""
        self._preferred[run_id] = hold_for

    def forget(self, run_id: str) -> None:
        """Nothing brought the run back after all."""
        self._preferred.pop(run_id, None)

    async def let_go(self, run: Run) -> bool:
        """Ends the work on the run, here or in whichever process it is. True if all that was said is stored
        then; False if readers may have heard what never will be."""
        self._preferred.pop(run.run_id, None)
        orphan = self._orphans.get(run.run_id)
        if orphan is not None and await orphan.saved():
            return True
        if run.run_id in self._works:
            return await self._works.let_go(run.run_id)
        return await ask_holder(self._kit.store, run)

    async def drain(self, seconds: float) -> None:
        """Parks what is held and lets what works come to its end, for so long."""
        await asyncio.gather(self._works.drain(seconds), self.direct.drain(seconds))

    def stop(self) -> None:
        self._stopping.set()

    @property
    def stopped(self) -> bool:
        """Somebody asked for it."""
        return self._stopping.is_set()

    async def sweep(self) -> int:
        """Picks up every run that nobody advances though it could go on; how many those were."""
        taken = await self._adopt_orphans()
        while strays := await self._find_strays():
            back = 0
            for start in range(0, len(strays), AT_ONCE):
                some = strays[start : start + AT_ONCE]
                back += sum(await asyncio.gather(*(self._bring_back(stray) for stray in some)))
            taken += back
            if back == 0:
                break
        return taken

    async def _serve(self, group: asyncio.TaskGroup, ready: asyncio.Event) -> None:
        watches = (
            self._watch_deadlines,
            self._wake_parked,
            self.direct.start_approved,
            self._pick_up_strays,
            self._keep_leases,
            self._hear_others,
            self._remove_old,
        )
        # before anything is opened or run under its name
        await self._unless_store_is_down(self._membership.renew())
        chores = [group.create_task(_again_if_broken(watch)) for watch in watches]
        # what a crash left behind is claimed before anybody reads it: a replay leaves out what it cut
        await self._recovered.wait()
        ready.set()
        await self._stopping.wait()
        self._works.end()
        self.direct.end()
        for chore in chores:
            chore.cancel()

    async def _find_strays(self) -> list[Run]:
        """Some that this worker does not know yet, if there are any behind those that it does."""
        skip = set(self._left_alone)
        while found := await self._kit.store.stray_runs(limit=PAGE, skip=skip, reserve_sec=RESERVE_SEC):
            strays = [run for run in found if run.run_id not in self._works]
            if strays:
                return strays
            skip.update(run.run_id for run in found)
        return []

    async def _bring_back(self, stray: Run, *, held_here: bool = False) -> bool:
        """The guard around one run's return: what is wrong with it is its own affair, but for the store."""
        try:
            return await self._resume(stray, held_here=held_here)
        except StoreDown:
            raise
        except Exception:
            log.exception("run %s cannot be resumed", stray.run_id)
            await self._give_up(stray, break_off_by_force(self._kit, stray, _BROKEN))
            return False

    async def _resume(self, stray: Run, *, held_here: bool) -> bool:
        run = await resume(self._kit, stray, held_here=held_here)
        if run is None:
            return False
        try:
            run = await recover(self._kit, run)
        except StoreDown:
            self._orphans[run.run_id] = self._pen(run)
            raise
        hold_for = self._preferred.pop(run.run_id, run.hold_for)
        self.launch(run, hold_for=hold_for)
        return True

    async def _adopt_orphans(self) -> int:
        """Goes on with runs that were dropped while the store was away."""
        adopted = 0
        for run_id in list(self._orphans):
            pen = self._orphans.pop(run_id)
            try:
                # what readers have heard is stored before the run says anything else
                adopted += await pen.saved() and await self._bring_back(pen.run, held_here=True)
            except StoreDown:
                self._orphans.setdefault(run_id, pen)
                raise
            except Exception:
                log.exception("run %s cannot be taken up again", run_id)
                await self._give_up(pen.run, break_off(self._kit, pen.run, _BROKEN))
        return adopted

    async def _wake_parked(self) -> None:
        hub = self._kit.store.hub
        with hub.watch(WAKE, limit=100_000) as watch:
            # a closed hub lets nobody sleep, and what could go on is left to the next process
            while not hub.closed:
                await watch.wait(hub.recheck)
                while watch.news:
                    # together, so that their claims share a transaction; in slices, so that others get a turn
                    woken = watch.news[:AT_ONCE]
                    del watch.news[:AT_ONCE]
                    back = (self._bring_back(run) for run in woken if isinstance(run, Run))
                    await self._unless_store_is_down(asyncio.gather(*back))

    async def _watch_deadlines(self) -> None:
        # a tool that a crash left in flight is told as unknown, not as late
        await self._recovered.wait()
        await self._deadlines.run(self._kit.desk)

    async def _pick_up_strays(self) -> None:
        while True:
            # of what others left behind somebody else may be faster: nobody has to wait for all of it
            is_there = await self._unless_store_is_down(self._sweep_all())
            self._is_away = not is_there
            if is_there or self._kit.store.is_shared:
                self._recovered.set()
            await asyncio.sleep(SWEEP_SEC)

    async def _sweep_all(self) -> None:
        await self.sweep()
        await self.direct.sweep()

    async def _keep_leases(self) -> None:
        """Renews what is held; stops what others have taken."""
        while True:
            await asyncio.sleep(min(self._leases.pause_sec, REMOVAL_SEC))
            if self._kit.store.is_shared:
                await self._unless_store_is_down(self._renew())

    async def _renew(self) -> None:
        await self._membership.renew()
        lost = await self._leases.renew()
        for run_id in lost:
            log.warning("run %s was taken over by another worker", run_id)
        await together(lost, self._works.let_go)

    async def _hear_others(self) -> None:
        await hear_others(self._kit.store, let_go=self._let_go_for_another, check=self._check_claim)

    async def _let_go_for_another(self, run_id: str) -> None:
        if run_id in self._works and await self._works.let_go(run_id):
            self._kit.store.hub.tell_others(freed(run_id), run_id)

    async def _check_claim(self, run_id: str) -> None:
        """Another process took a run: if it is one of ours, the work on it here is in vain."""
        work = self._works.get(run_id)
        if work is None:
            return
        now = await self._kit.store.get_run(work.log.run.owner, run_id)
        if now is None or now.fence != work.log.run.fence:
            await self._works.let_go(run_id)

    async def _remove_old(self) -> None:
        """Now and then, what has been kept for long enough; not at once, when a server has just started."""
        store, keep = self._kit.store, self._kit.settings.patience.keep_settled
        await asyncio.sleep(FIRST_REMOVAL_SEC)
        while True:
            await self._unless_store_is_down(store.purge(settled_before=store.now() - keep))
            await asyncio.sleep(REMOVAL_SEC)

    async def _unless_store_is_down(self, work: Awaitable[object]) -> bool:
        try:
            await work
        except StoreDown as error:
            # nothing is lost: the next sweep finds it in the store
            self._say_away("the store is away: %s", error)
            return False
        return True

    def _say_away(self, said: str, *about: object) -> None:
        """The first of it aloud, until the sweep finds the store again."""
        log.log(logging.DEBUG if self._is_away else logging.WARNING, said, *about)
        self._is_away = True

    async def _advance(self, work: loop.Work) -> None:
        """The outermost guard of a run: whatever breaks in it ends this run and no other."""
        pen, rest = work.log, None
        run_id = pen.run.run_id
        try:
            rest = await loop.run(work)
        except LostClaim as error:
            log.info("%s", error)
        except StoreDown as error:
            self._say_away("run %s waits for the store: %s", run_id, error)
            self._orphans[run_id] = pen
        except Exception:
            log.exception(
                "run %s of thread %s broke",
                run_id,
                pen.run.thread_id,
                extra={"run_id": run_id, "thread_id": pen.run.thread_id},
            )
            await pen.close()
            ended = self._give_up(pen.run, break_off(self._kit, pen.run, _BROKEN))
            if not await self._unless_store_is_down(ended):
                self._orphans[run_id] = pen
        finally:
            if rest is not Rest.HELD or not self._works.hold(work):
                await self._leave(work)

    async def _leave(self, work: loop.Work) -> None:
        if not work.log.run.active:
            # of a parked run, this may be the wish of an answer that is just coming in
            self._preferred.pop(work.hold.run_id, None)
        try:
            await work.log.close()
        finally:
            # whoever wants the run may ask again while the last words are being stored
            self._works.drop(work)

    async def _give_up(self, run: Run, ending: Awaitable[bool]) -> None:
        """For a run that broke: it ends. One that cannot even end is said once and never looked at again."""
        try:
            await ending
        except StoreDown:
            raise
        except Exception:
            log.exception("run %s cannot be ended and is left alone", run.run_id)
            self._left_alone.add(run.run_id)

    def _pen(self, run: Run) -> RunLog:
        assert self._group is not None, "a worker writes while it serves"
        return RunLog(self._kit.store, run, self._group, is_sure=self._is_sure)


async def _again_if_broken(watch: Callable[[], Awaitable[None]]) -> None:
    """Whatever was not foreseen in a watch must neither end it nor the runs beside it."""
    while True:
        try:
            return await watch()
        except Exception:
            log.exception("a background task crashed; restarting it")
            await asyncio.sleep(SWEEP_SEC)


_BROKEN = RunFailed(
    "broken", "The server could not finish this answer. Send the message again; its log has the details."
)


async def _settle(work: Coroutine[None, None, T], ended: asyncio.Future[T]) -> None:
    try:
        ended.set_result(await work)
    except asyncio.CancelledError:
        ended.cancel()
        raise
    # handed on to whoever waits, whatever it is
    except Exception as error:  # noqa: BLE001
        ended.set_exception(error)
        # nobody may be left to hear it
        ended.exception()
