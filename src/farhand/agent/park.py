"""Hold, then park: how long a run is kept here, and how it lets go and comes back.

Because everything is stored before it is shown, holding is only a cache of parking: a crash while holding is
a park.
"""

from __future__ import annotations

from enum import Enum

from farhand.agent.journal import RunLog
from farhand.agent.kit import Kit
from farhand.calls.wait import Wait, answered
from farhand.core.call import Call, Phase
from farhand.core.event import (
    CallBegun,
    Event,
    InputAdded,
    ModelDelayed,
    ReasoningAdded,
    RunParked,
    RunResumed,
    StepDiscarded,
    StepStarted,
    TextAdded,
)
from farhand.core.run import Run, RunState
from farhand.errors import LostClaim
from farhand.store.base import ClaimRun, Commit, Committed, ParkRun, Stale, WriteRun
from farhand.store.hub import freed


class Rest(Enum):
    """How a run waits that has nothing to do."""

    HELD = "held"
    """Kept here, to go on in the same streams."""
    PARKED = "parked"
    """Only the store knows it."""


class Hold(Wait):
    """How long a run is kept: not at all, or for a while as long as somebody reads."""

    __slots__ = ("_given_up", "_read_at", "_unread_for", "_until", "seconds")

    def __init__(self, kit: Kit, run_id: str, *, seconds: float) -> None:
        super().__init__(kit.store, run_id)
        self.seconds = seconds
        self._unread_for = kit.settings.patience.unread_for
        self._given_up = False
        self._until = self._read_at = 0.0

    def give_up(self) -> None:
        """Parks at the next chance: the process is about to stop."""
        self.seconds = 0.0
        self._until = 0.0
        self._given_up = True
        self._store.hub.tell(freed(self.run_id), None)

    def begin(self, *, at_least: float = 0.0) -> None:
        self._read_at = self._loop.time()
        self._until = self._read_at + (0.0 if self._given_up else max(self.seconds, at_least))

    def left(self) -> float:
        """Seconds to sleep at most before asking again; 0 means: park."""
        now = self._loop.time()
        if self._store.hub.watched(self.run_id):
            self._read_at = now
        return max(0.0, min(self._until, self._read_at + self._unread_for) - now)


async def wait_or_park(kit: Kit, log: RunLog, hold: Hold, calls: list[Call]) -> list[Call] | Rest:
    """These calls as they are when every question of the step is answered; else how the run waits for them.

    One that is held comes here again, with the same hold, whenever there may be more to say.
    """
    if not hold.listens:
        await _begin(kit, log, hold, calls)
    while True:
        run = await hold.settled() if hold.lost else hold.run
        if run is None or run.fence != log.run.fence:
            raise LostClaim(f"Run {log.run.run_id} was taken over.")
        if run.blockers == 0:
            answers = hold.told()
            hold.end()
            log.seen(run)
            # what was heard may say that they moved, and not how
            return answers or await kit.store.calls_of(run.owner, run.run_id, calls[0].step)
        if hold.is_patient():
            return Rest.HELD
        if await park(kit, log):
            return Rest.PARKED
        hold.lost = True


async def _begin(kit: Kit, log: RunLog, hold: Hold, calls: list[Call]) -> None:
    """Only what a person or a page must answer ends a turn. What registered clients execute is waited for
    first, whichever way the run waits."""
    elsewhere = [call for call in calls if call.client_id is not None and call.phase in _EXECUTABLE]
    if (hold.seconds > 0 or elsewhere) and log.run.state is not RunState.WAITING:
        await log.write(change=WriteRun(run_id=log.run.run_id, state=RunState.WAITING))
    if elsewhere and hold.seconds <= 0:
        hold.begin(at_least=kit.settings.patience.hold_for)
        await answered(kit.store, log.run, elsewhere, patient=hold.left)
    hold.begin()
    hold.listen(log.run, calls)


_EXECUTABLE = (Phase.READY, Phase.TAKEN)


async def park(kit: Kit, log: RunLog) -> bool:
    """Lets go of the run; False if its last answer came in this very moment."""
    commit = await kit.store.commit(ParkRun(log.run.run_id, log.run.fence, RunParked()))
    match commit:
        case Committed():
            return True
        case Stale(why="nothing_open"):
            return False
        case Stale(why=why):
            raise LostClaim(f"Run {log.run.run_id} was taken over ({why}).")


async def resume(kit: Kit, stray: Run, *, held_here: bool = False) -> Run | None:
    """Claims a run that nobody advances; None if somebody was faster or it has ended.

    `held_here` says that the claim on the run is this process's own, from before.
    """
    run: Run | None = stray
    while run is not None and run.fence == stray.fence:
        commit = await _claim(kit, run, by_force=held_here)
        if isinstance(commit, Committed):
            return commit.runs[stray.run_id]
        if commit.why != "grown":
            return None
        # an answer came in between: the claim is for what is there now
        run = await kit.store.get_run(stray.owner, stray.run_id)
    return None


async def _claim(kit: Kit, run: Run, *, by_force: bool) -> Commit:
    """A step that a crash cut in mid-word is closed with the claim, for those who saw it, and asked again.

    Only the run as it was looked at is claimed: one that another worker has advanced since may be cut where
    it was whole, and what that worker said and did not store is marked by nothing but the takeover.
    """
    cut = not run.parked and isinstance(await _last_word(kit, run), _SPOKEN)
    resumed = RunResumed(taken_over=not run.parked)
    told = (StepDiscarded(run.step + 1), resumed) if cut else (resumed,)
    claim = ClaimRun(run.run_id, kit.lease_sec, by_force=by_force, seen=run)
    return await kit.store.commit(claim, WriteRun(run_id=run.run_id, events=told))


async def _last_word(kit: Kit, run: Run) -> Event | None:
    """What the journal ends with, but for claims that came to nothing."""
    for after in range(run.last_seq - 1, -1, -1):
        [entry] = await kit.store.events(run.owner, run.run_id, after=after, limit=1)
        if not isinstance(entry.event, RunResumed):
            return entry.event
    return None


_SPOKEN = (StepStarted, ModelDelayed, TextAdded, ReasoningAdded, CallBegun, InputAdded)
