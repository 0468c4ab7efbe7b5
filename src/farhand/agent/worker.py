"""Keeps runs going in this process: starts them, resumes parked ones, picks up those that a crash left
behind.

A run that this process claims is advanced here as soon as the claim is durable: the log reports it, no matter
which code made the claim. A parked run is not here at all, only in the log. A held run is a record without a
task: it gets one when there may be work to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from farhand.agent import loop
from farhand.agent.active_runs import ActiveRuns
from farhand.agent.context import AgentContext
from farhand.agent.direct_executor import DirectExecutor
from farhand.agent.execute import may_repeat
from farhand.agent.ownership import RETRY_SEC, Membership, Ownership
from farhand.agent.park import Hold, Rest
from farhand.calls.deadlines import Deadlines
from farhand.core.call import Phase
from farhand.core.decide import runs
from farhand.core.event import Event, RunFailed
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.state import ThreadState
from farhand.core.tool import Executor
from farhand.errors import LostClaim, StoreDown
from farhand.eventlog.writer import RunWriter
from farhand.store.base import FoundThread
from farhand.supervisor import supervise

log = logging.getLogger("farhand.runs")

T = TypeVar("T")

SWEEP_SEC = 1.0
FIRST_REMOVAL_SEC = 60.0
REMOVAL_SEC = 3600.0
SWEEP_PAGE_SIZE = 500
RESERVE_SEC = 2.0
"""How long other workers ignore what this one has found; if it dies, they find it afterwards."""
AT_ONCE = 64
MAX_PREFERRED = 10_000
"""Runs whose answer was stored here and that are not resumed yet, with a hold time of their own."""


class Worker:
    def __init__(
        self, context: AgentContext, deadlines: Deadlines, membership: Membership, ownership: Ownership
    ) -> None:
        self.direct = DirectExecutor(context, membership)
        """Runs the server tools of calls that have no run."""
        self._context = context
        self._membership = membership
        self._ownership = ownership
        self._deadlines = deadlines
        self._preferred: dict[str, float] = {}
        """How long runs are held when they are resumed here: the most recent ones."""
        self._interrupted: dict[tuple[Owner, str], set[tuple[str, int]]] = {}
        """Threads whose run was claimed here and is not advanced because the store failed, with every claim
        of this process that the log may have, by run and fence."""
        self._active = ActiveRuns(self._advance, context.quotas)
        self._unreadable: set[str] = set()
        """Runs that are neither advanced nor ended, because this version cannot read one of their records."""
        self._group: asyncio.TaskGroup | None = None
        self._resuming: set[asyncio.Task[bool]] = set()
        self._stopping = asyncio.Event()
        self._recovered = asyncio.Event()
        self._is_store_down = False
        """Whether it was logged that the store is down."""
        self._must_check_leases = False
        """Whether this worker may hold the lease of a run that it does not advance: where a database has gone
        back in time, runs that have ended here are active again."""
        context.log.on_run = self._follow
        context.log.on_unconfirmed = self._resume_later
        context.log.is_active = self._active.__contains__

    async def serve(self, ready: asyncio.Event) -> None:
        """Runs until `stop()`: the background tasks, and every run of this process."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._active.open(group)
                self.direct.open(group)
                try:
                    await self._serve(group, ready)
                except BaseException:
                    # from now on the group accepts no tasks, while the log may still report runs
                    self._group = None
                    self._end()
                    raise
        finally:
            # what the log reports from now on is left to the next process
            self._group = None
            self._active.close()
        await self._context.tick.close()
        if self._context.log.is_shared:
            await self._unless_store_is_down(self._ownership.hand_over())

    @property
    def name(self) -> str:
        """The name by which other workers know it."""
        return self._membership.name

    async def uninterrupted(self, task: Coroutine[None, None, T]) -> T:
        """Lets the work finish even if its caller is gone by then."""
        assert self._group is not None, "a worker works while it serves"
        ended: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._group.create_task(_settle(task, ended))
        return await asyncio.shield(ended)

    def prefer(self, run_id: str, *, hold_for: float) -> None:
        """If the run continues after its responses have ended, it is held for this long at its next pause."""
        active = self._active.get(run_id)
        if active is not None and active.hold.is_over:
            active.hold.seconds = hold_for
        else:
            self._preferred[run_id] = hold_for
            if len(self._preferred) > MAX_PREFERRED:
                # another worker resumes most of the runs that are still here
                del self._preferred[next(iter(self._preferred))]

    def forget(self, run_id: str) -> None:
        """Nothing resumed the run after all."""
        self._preferred.pop(run_id, None)

    def flush(self, run_id: str) -> None:
        """Stores the text that the model of this run has written so far, before any later decision: a stop
        keeps it."""
        active = self._active.get(run_id)
        if active is not None and active.writer.has_words:
            # the writer handles its result
            _ = active.writer.flush()

    async def drain(self, seconds: float) -> None:
        """Parks held runs and gives active ones this many seconds to finish."""
        await asyncio.gather(self._active.drain(seconds), self.direct.drain(seconds))

    def stop(self) -> None:
        self._stopping.set()

    @property
    def stopped(self) -> bool:
        """Whether a stop was requested."""
        return self._stopping.is_set()

    async def sweep(self) -> int:
        """Picks up every run that could continue and that no worker advances; returns how many there were."""
        taken = await self._resume_interrupted() + await self._resume_all(self._find_abandoned)
        if self._must_check_leases:
            taken += await self._resume_all(self._find_own_leases)
        return taken

    async def _resume_all(self, find: Callable[[], Awaitable[list[FoundThread]]]) -> int:
        taken = 0
        while abandoned := await find():
            back = 0
            for start in range(0, len(abandoned), AT_ONCE):
                some = abandoned[start : start + AT_ONCE]
                back += sum(await asyncio.gather(*(self._resume_abandoned(thread) for thread in some)))
            taken += back
            if back == 0:
                break
        return taken

    # ------------------------------------------------------------------------------------ what the log says

    # the log passes both by position
    def _follow(self, run: Run, is_own: bool) -> None:  # noqa: FBT001
        """A run started, parked, resumed or ended, or can continue. A run that was claimed here is advanced
        here, and a parked run that can continue because of what was appended here is claimed."""
        active = self._active.get(run.run_id)
        if active is not None and (run.fence > active.run.fence or run.state is RunState.STOPPED):
            if not is_own:
                log.info("run %s was taken over", run.run_id)
            self._active.let_go(run.run_id)
            active = None
        if not is_own or not run.active:
            return
        if run.parked and not run.waits:
            self._resume(run)
        elif not run.parked and active is None:
            self._launch(run)

    def _resume(self, run: Run) -> None:
        if self._group is None or self._stopping.is_set() or self._context.log.broker.closed:
            # the next process finds it
            return
        task = self._group.create_task(self._unless_store_is_down(self._resume_run(run)))
        self._resuming.add(task)
        task.add_done_callback(self._resuming.discard)

    def _resume_later(self, key: tuple[Owner, str], run: Run | None) -> None:
        """The store did not confirm what was decided here: check the log when it is back."""
        if run is not None:
            self._active.let_go(run.run_id)
        self._note_interrupted(key, run)

    def _note_interrupted(self, key: tuple[Owner, str], run: Run | None) -> None:
        claims = self._interrupted.setdefault(key, set())
        if run is not None:
            claims.add((run.run_id, run.fence))

    def _launch(self, run: Run) -> None:
        if self._group is None or self._stopping.is_set():
            # the next process finds it
            return
        hold_for = self._preferred.pop(run.run_id, run.hold_for)
        hold = Hold(self._context, run.run_id, seconds=hold_for)
        writer = RunWriter(self._context.tick, run, self._append)
        self._active.begin(loop.ActiveRun(self._context, run, hold, writer))

    def _append(self, run: Run, written: tuple[Event, ...], after: int) -> asyncio.Future[int | None]:
        return self._context.log.submit(
            run.owner,
            run.thread_id,
            lambda thread, now: runs.write(thread, run.fence, written, after=after),
        )

    # --------------------------------------------------------------------------------------- background tasks

    async def _serve(self, group: asyncio.TaskGroup, ready: asyncio.Event) -> None:
        watches = (
            self._watch_deadlines,
            self.direct.start_approved,
            self._sweep_periodically,
            self._keep_leases,
            self._remove_old,
            *((self._context.log.serve,) if self._context.log.is_shared else ()),
        )
        # before anything is opened or run under its name
        await self._unless_store_is_down(self._ownership.renew())
        tasks = [group.create_task(supervise(watch, log, pause_sec=SWEEP_SEC)) for watch in watches]
        # what a crash left behind is claimed before anything reads it: a replay leaves out what the crash cut
        # short
        await self._recovered.wait()
        ready.set()
        await self._stopping.wait()
        self._end()
        for task in (*tasks, *self._resuming):
            task.cancel()

    def _end(self) -> None:
        """Ends what is being advanced."""
        self._active.end()
        self.direct.end()

    async def _find_abandoned(self) -> list[FoundThread]:
        """Runs without a worker that this one does not know yet, looking past those that it does."""
        skip = set(self._unreadable)
        store = self._context.log.store
        trusts_leases = self._membership.trusts_leases
        # without other processes to exclude, a run that was interrupted by the store is found again at once;
        # and a reservation would keep the worker of an expired lease from renewing it
        reserve_sec = RESERVE_SEC if store.is_shared and trusts_leases else 0.0
        while found := await store.claimable(limit=SWEEP_PAGE_SIZE, skip=skip, reserve_sec=reserve_sec):
            abandoned = [
                each
                for each in found
                if (each.row.run_id or "") not in self._active
                and (trusts_leases or each.row.is_parked or each.is_handed_over)
            ]
            if abandoned:
                return abandoned
            skip.update(each.row.run_id or "" for each in found)
        return []

    async def _find_own_leases(self) -> list[FoundThread]:
        """Threads whose lease this worker renews though it does not advance their runs. Not those of others:
        after an outage, they need a moment to renew theirs."""
        skip = {*self._unreadable, *self._active.run_ids()}
        store = self._context.log.store
        self._must_check_leases, found = False, None
        try:
            found = await store.claimable(limit=SWEEP_PAGE_SIZE, skip=skip, worker=self.name)
        finally:
            # until none are left: one that changes meanwhile is not claimed
            self._must_check_leases = self._must_check_leases or found != []
        return found

    async def _resume_abandoned(self, thread: FoundThread) -> bool:
        """Claims a run that no worker advances, as it was found, or not at all."""
        try:
            run = await self._context.log.last_run(thread.owner, thread.thread_id)
        except StoreDown:
            raise
        except Exception:
            log.exception("run %s cannot be resumed", thread.row.run_id)
            self._unreadable.add(thread.row.run_id or "")
            return False
        if run is None or run.run_id != thread.row.run_id or run.run_id in self._active:
            return False
        return await self._resume_run(run, version=None if run.parked else thread.version)

    async def _resume_run(self, run: Run, *, version: int | None = None) -> bool:
        """Resumes one run: an error is confined to that run, except for errors of the store."""
        try:
            return await self._claim(run, version)
        except StoreDown:
            raise
        except Exception:
            log.exception("run %s cannot be resumed", run.run_id)
            await self._give_up(run)
            return False

    async def _repeatable(self, run: Run) -> set[str]:
        """Calls whose tools may have been in flight and may be run again."""
        # a parked run is claimed in the append of its last answer, which is not durable yet
        calls = await self._context.log.read_uncommitted(run.owner, run.thread_id, ThreadState.step_calls)
        in_flight = [call for call in calls if call.phase is Phase.TAKEN and call.executor is Executor.SERVER]
        return {call.call_id for call in in_flight if await may_repeat(self._context, call)}

    async def _claim(self, run: Run, version: int | None) -> bool:
        """True if the run is claimed for this process, which then advances it (`_follow`)."""
        context = self._context
        repeatable = await self._repeatable(run)
        fence = await context.log.decide(
            run.owner,
            run.thread_id,
            lambda thread, now: runs.claim(
                thread,
                run.run_id,
                run.fence,
                lambda call: call.call_id in repeatable,
                now=now,
                timeouts=context.settings.timeouts,
                version=version,
            ),
        )
        return fence is not None

    async def _resume_interrupted(self) -> int:
        """Continues runs that were dropped while the store was down."""
        resumed = 0
        for key in list(self._interrupted):
            claims = self._interrupted.pop(key)
            try:
                run = await self._context.log.last_run(*key)
                if run is not None and run.active and self._is_own(run, claims):
                    resumed += await self._resume_run(run)
            except StoreDown:
                # a claim that was tried just now may have been stored as well
                self._interrupted.setdefault(key, set()).update(claims)
                raise
        return resumed

    def _is_own(self, run: Run, claims: set[tuple[str, int]]) -> bool:
        """Whether no task advances it, in this process or, as far as this one knows, in another."""
        if run.run_id in self._active:
            return False
        return not self._context.log.is_shared or (run.run_id, run.fence) in claims

    async def _watch_deadlines(self) -> None:
        # a tool that a crash left in flight gets an unknown outcome, not a late one
        await self._recovered.wait()
        await self._deadlines.run(self._context.desk)

    async def _sweep_periodically(self) -> None:
        # stale once hints may have been lost, as they are when another database takes over
        with self._context.log.broker.subscribe("leases") as leases:
            while True:
                self._must_check_leases = self._must_check_leases or leases.is_stale
                leases.is_stale = False
                # another worker may be faster; nobody has to wait for all of them
                is_there = await self._unless_store_is_down(self._sweep_all())
                self._is_store_down = not is_there
                if is_there or self._context.log.is_shared:
                    self._recovered.set()
                await asyncio.sleep(SWEEP_SEC)

    async def _sweep_all(self) -> None:
        await self.sweep()
        await self.direct.sweep()

    async def _keep_leases(self) -> None:
        if not self._context.log.is_shared:
            return
        pause = self._ownership.pause_sec
        while True:
            await asyncio.sleep(pause)
            is_renewed = await self._unless_store_is_down(self._ownership.renew())
            # when the store is back, the other workers do not wait for long
            pause = self._ownership.pause_sec if is_renewed else min(self._ownership.pause_sec, RETRY_SEC)

    async def _remove_old(self) -> None:
        """Removes, now and then, what has been kept for long enough; not right after a start."""
        eventlog, keep = self._context.log, self._context.settings.timeouts.keep_settled
        await asyncio.sleep(FIRST_REMOVAL_SEC)
        while True:
            await self._unless_store_is_down(eventlog.purge(before=eventlog.now() - keep))
            await asyncio.sleep(REMOVAL_SEC)

    async def _unless_store_is_down(self, active: Awaitable[object]) -> bool:
        try:
            await active
        except StoreDown as error:
            # nothing is lost: the next sweep finds it in the store
            self._log_store_down("the store is down: %s", error)
            return False
        return True

    def _log_store_down(self, message: str, *args: object) -> None:
        """Logs the first failure only, until a sweep finds the store again."""
        log.log(logging.DEBUG if self._is_store_down else logging.WARNING, message, *args)
        self._is_store_down = True

    # -------------------------------------------------------------------------------------------- one run

    async def _advance(self, active: loop.ActiveRun) -> None:
        """The outermost guard of a run: any error in it ends this run and no other."""
        rest = None
        try:
            rest = await loop.run(active)
        except LostClaim as error:
            log.info("%s", error)
            if self._context.log.is_shared:
                # or no other worker has claimed it, and the log has gone back in time
                self._must_check_leases = True
            else:
                # no other worker can have claimed it: the next sweep checks in the log whether it has ended
                self._note_interrupted((active.run.owner, active.run.thread_id), None)
        except StoreDown as error:
            self._log_store_down("run %s interrupted, store unavailable: %s", active.run.run_id, error)
            self._note_interrupted((active.run.owner, active.run.thread_id), active.run)
        except Exception:
            log.exception(
                "run %s of thread %s failed unexpectedly",
                active.run.run_id,
                active.run.thread_id,
                extra={"run_id": active.run.run_id, "thread_id": active.run.thread_id},
            )
            await self._break_off(active.run)
        finally:
            if rest is not Rest.HELD or not self._active.hold(active):
                self._leave(active, rest)

    async def _break_off(self, run: Run) -> None:
        if not await self._unless_store_is_down(self._give_up(run)):
            self._note_interrupted((run.owner, run.thread_id), run)

    def _leave(self, active: loop.ActiveRun, rest: Rest | None) -> None:
        if rest is not Rest.PARKED:
            # for a parked run, this may be the hold time of an answer that is being stored right now
            self._preferred.pop(active.run.run_id, None)
        self._active.drop(active)

    async def _give_up(self, run: Run) -> None:
        """Ends a run that failed. A run that cannot even be ended is logged once and never looked at
        again."""
        try:
            await self._context.log.decide(
                run.owner, run.thread_id, lambda thread, now: runs.break_off(thread, run.fence, _BROKEN)
            )
        except StoreDown:
            raise
        except Exception:
            log.exception("run %s cannot be ended and is left alone", run.run_id)
            self._unreadable.add(run.run_id)


_BROKEN = RunFailed(
    "broken", "The server could not finish this answer. Send the message again; its log has the details."
)


async def _settle(task: Coroutine[None, None, T], ended: asyncio.Future[T]) -> None:
    try:
        ended.set_result(await task)
    except asyncio.CancelledError:
        ended.cancel()
        raise
    # any error is passed to the waiter
    except Exception as error:  # noqa: BLE001
        ended.set_exception(error)
        # nobody may be waiting for it any more
        ended.exception()
