"""Hold, then park: how long a run is kept here, and how it lets go.

Because everything is stored before it is shown, holding is only a cache of parking: a crash while holding is
a park.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from farhand.agent.context import AgentContext
from farhand.calls.wait import RunWait, answered
from farhand.core.call import Call, Phase
from farhand.core.decide import runs
from farhand.core.run import Run
from farhand.errors import LostClaim
from farhand.eventlog.pubsub import freed_topic


class Rest(Enum):
    """How a run waits that has nothing to do."""

    HELD = "held"
    """Kept here, to go on in the same streams."""
    PARKED = "parked"
    """Only the log knows it."""


class Hold(RunWait):
    """How long a run is kept: not at all, or for a while as long as somebody reads."""

    __slots__ = ("_broker", "_given_up", "_read_at", "_unread_for", "_until", "is_over", "seconds")

    def __init__(self, context: AgentContext, run_id: str, *, seconds: float) -> None:
        super().__init__(context.log, run_id)
        self.seconds = seconds
        self.is_over = False
        """Responses have ended, though the run is kept here: tools of it ask."""
        self._broker = context.log.broker
        self._unread_for = context.settings.patience.unread_for
        self._given_up = False
        self._until = self._read_at = 0.0

    def give_up(self) -> None:
        """Parks at the next chance: the process is about to stop."""
        self.seconds = 0.0
        self._until = 0.0
        self._given_up = True
        self._broker.publish(freed_topic(self.run_id), None)

    def begin(self, *, at_least: float = 0.0) -> None:
        self.is_over = False
        self._read_at = self._loop.time()
        self._until = self._read_at + (0.0 if self._given_up else max(self.seconds, at_least))

    def left(self) -> float:
        """Seconds to sleep at most before asking again; 0 means: park."""
        now = self._loop.time()
        if self._broker.count(self.run_id):
            self._read_at = now
        return max(0.0, min(self._until, self._read_at + self._unread_for) - now)


async def wait_or_park(context: AgentContext, hold: Hold, run: Run, calls: Sequence[Call]) -> Rest | None:
    """None once there is something to do: nothing of the step waits for a person or a far hand any more, or a
    tool of the server may run; else how the run waits.

    One that is held comes here again, with the same hold, whenever there may be more to say.
    """
    if not hold.listens:
        await _begin(context, hold, run, calls)
    while True:
        now = await hold.settled() if hold.lost else hold.run
        if now is None or now.fence != run.fence or not now.active:
            raise LostClaim(f"Run {run.run_id} was taken over.")
        if not now.waits:
            hold.end()
            return None
        if hold.is_patient():
            return Rest.HELD
        if await _park(context, run):
            return Rest.PARKED
        hold.lost = True


async def _begin(context: AgentContext, hold: Hold, run: Run, calls: Sequence[Call]) -> None:
    """Only what a person or a page must answer ends a turn. What registered clients execute is waited for
    first, whichever way the run waits."""
    elsewhere = [call for call in calls if runs_at_client(call)]
    if elsewhere and hold.seconds <= 0:
        hold.begin(at_least=context.settings.patience.hold_for)
        await answered(context.log, run, elsewhere, patient=hold.left)
        # the others may have moved meanwhile
        hold.lost = True
    hold.begin()
    is_old = hold.lost
    hold.listen(run)
    hold.lost = is_old


def runs_at_client(call: Call) -> bool:
    """Whether a registered client executes it now."""
    return call.client_id is not None and call.phase in _EXECUTABLE


_EXECUTABLE = (Phase.READY, Phase.TAKEN)


async def _park(context: AgentContext, run: Run) -> bool:
    """Lets go of the run; False if it can go on since this very moment."""
    parked = await context.log.decide(
        run.owner, run.thread_id, lambda thread, now: runs.park(thread, run.fence)
    )
    if parked == "lost":
        raise LostClaim(f"Run {run.run_id} was taken over.")
    return parked == "parked"
