"""Hold, then park: how long a run is kept here, and how it is released.

Because everything is stored before it is shown, holding is only a cache of parking: a crash while holding is
a park.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from farhand.agent.context import AgentContext
from farhand.calls.wait import RunWait, wait_until_answered
from farhand.core.call import Call, Phase
from farhand.core.decide import runs
from farhand.core.run import Run
from farhand.errors import LostClaim
from farhand.eventlog.pubsub import freed_topic


class Rest(Enum):
    """How a run without work waits."""

    HELD = "held"
    """Kept here, to continue in the same streams."""
    PARKED = "parked"
    """Only in the log."""


class Hold(RunWait):
    """How long a run is kept: not at all, or for a while as long as it has readers."""

    __slots__ = ("_broker", "_must_park", "_read_at", "_unread_for", "_until", "is_over", "seconds")

    def __init__(self, context: AgentContext, run_id: str, *, seconds: float) -> None:
        super().__init__(context.log, run_id)
        self.seconds = seconds
        self.is_over = False
        """Responses have ended, though the run is kept here: its tools wait for answers."""
        self._broker = context.log.broker
        self._unread_for = context.settings.timeouts.unread_for
        self._must_park = False
        self._until = self._read_at = 0.0

    def give_up(self) -> None:
        """Parks at the next opportunity: the process is about to stop."""
        self.seconds = 0.0
        self._until = 0.0
        self._must_park = True
        self._broker.publish(freed_topic(self.run_id), None)

    def begin(self, *, at_least: float = 0.0) -> None:
        self.is_over = False
        self._read_at = self._loop.time()
        self._until = self._read_at + (0.0 if self._must_park else max(self.seconds, at_least))

    def seconds_left(self) -> float:
        """Maximum seconds to sleep before asking again; 0 means: park."""
        now = self._loop.time()
        if self._broker.count(self.run_id):
            self._read_at = now
        return max(0.0, min(self._until, self._read_at + self._unread_for) - now)


async def wait_or_park(context: AgentContext, hold: Hold, run: Run, calls: Sequence[Call]) -> Rest | None:
    """How a run waits whose step waits for a person or a far hand; None if that may have changed: look again.

    A held run comes here again, with the same hold, whenever there may be something new.
    """
    if not hold.listens:
        await _begin(context, hold, run, calls)
    if hold.is_stale:
        return None
    if hold.keeps_waiting():
        return Rest.HELD
    return Rest.PARKED if await _park(context, run) else None


async def _begin(context: AgentContext, hold: Hold, run: Run, calls: Sequence[Call]) -> None:
    """Only what a person or a page must answer ends a turn. Calls that registered clients execute are waited
    for first, whichever way the run waits."""
    elsewhere = [call for call in calls if runs_at_client(call)]
    is_old = bool(elsewhere) and hold.seconds <= 0
    if is_old:
        hold.begin(at_least=context.settings.timeouts.hold_for)
        # the other calls may change meanwhile
        await wait_until_answered(context.log, run, elsewhere, seconds_left=hold.seconds_left)
    hold.begin()
    hold.listen(run.owner, run.thread_id)
    hold.is_stale = is_old


def runs_at_client(call: Call) -> bool:
    """Whether a registered client is executing it now."""
    return call.client_id is not None and call.phase in _EXECUTABLE


_EXECUTABLE = (Phase.READY, Phase.TAKEN)


async def _park(context: AgentContext, run: Run) -> bool:
    """Releases the run; False if it can continue after all."""
    parked = await context.log.decide(
        run.owner, run.thread_id, lambda thread, now: runs.park(thread, run.fence)
    )
    if parked == "lost":
        raise LostClaim(f"Run {run.run_id} was taken over.")
    return parked == "parked"
