"""The one wait: until nothing in a run waits for a person or a far hand, or the time is up.

Subscribe first, then read the log; every sleep ends in another check, so a lost notification costs at most
one re-check. A waiter is a record: no task, no coroutine and no timer per waiting call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.state import ThreadState
from farhand.errors import ShuttingDown, StoreDown
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import STORE_RETRY_SEC, freed_topic, thread_topic

log = logging.getLogger("farhand.calls")

JUST_STORED_SEC = 0.5
"""How long a run that was just stored is not checked again."""

Wake = Callable[[str], None]
"""Called with the id of a run that can continue."""


class RunWait:
    """Waits for one run: `listen`, check the thread, then `sleep`; again when woken, until `end`.

    A notification is only a hint: a waiter that is woken reads the thread. Notifications that come while it
    is awake are remembered. Subclasses say how long it keeps waiting.
    """

    __slots__ = ("_log", "_look_at", "_loop", "_sleep_sec", "_slot", "_topics", "_wake", "is_stale", "run_id")

    def __init__(self, eventlog: EventLog, run_id: str) -> None:
        self.run_id = run_id
        self.is_stale = False
        """Whether something may be new since the last check."""
        self._log = eventlog
        self._loop = eventlog.broker.loop
        self._look_at = self._sleep_sec = 0.0
        self._topics: tuple[str, ...] = ()
        self._slot: int | None = None
        self._wake: Wake | None = None

    @property
    def listens(self) -> bool:
        return bool(self._topics)

    def seconds_left(self) -> float:
        """Maximum seconds to sleep before asking again; 0 means: give up."""
        raise NotImplementedError

    def keeps_waiting(self) -> bool:
        """Asked before each sleep."""
        self._sleep_sec = self.seconds_left()
        return self._sleep_sec > 0

    def listen(self, owner: Owner, thread_id: str) -> None:
        """The run was stored a moment ago: the thread is checked only after a while without a
        notification."""
        broker = self._log.broker
        self.is_stale = False
        self._look_at = self._loop.time() + min(JUST_STORED_SEC, broker.recheck)
        # the thread's topic too: it wakes the waiter if the thread may have changed without this process
        # knowing
        self._topics = (freed_topic(self.run_id), thread_topic(owner, thread_id))
        for topic in self._topics:
            broker.add(topic, self)

    def begin_look(self) -> bool:
        """Call it before reading: what is published from now on may be missing from that read. True if the
        store must be asked: nothing was published for a while, and a notification may have been lost."""
        now = self._loop.time()
        is_overdue = now >= self._look_at
        if self.is_stale:
            self.is_stale = False
            self._look_at = now + self._log.broker.recheck
        return is_overdue

    def sleep(self, wake: Wake) -> None:
        """Calls `wake` once, as soon as something may be new."""
        self._wake = wake
        if self.is_stale:
            self.wake()
        elif self._slot is None:
            self._set_timer()

    def end(self) -> None:
        """Stops waiting."""
        broker = self._log.broker
        for topic in self._topics:
            broker.remove(topic, self)
        if self._slot is not None:
            broker.timers.drop(self, self._slot)
        self._topics, self._slot, self._wake = (), None, None

    def deliver(self, item: object) -> None:
        self.is_stale = True
        self.wake()

    def wake(self) -> None:
        wake, self._wake = self._wake, None
        # when the process is about to stop, nothing continues
        if wake is not None and not self._log.broker.closed:
            wake(self.run_id)

    def fire(self, now: float) -> None:
        """Its timer has fired. Usually only the time limit is checked: the log was read a moment ago."""
        self._slot = None
        if self._wake is None:
            return
        self.is_stale = self.is_stale or now >= self._look_at
        if self.is_stale or not self.keeps_waiting():
            self.wake()
        else:
            self._set_timer()

    def _set_timer(self) -> None:
        until = min(self._loop.time() + self._sleep_sec, self._look_at)
        self._slot = self._log.broker.timers.set(self, until)


async def wait_until_answered(
    eventlog: EventLog, run: Run, calls: Sequence[Call], *, seconds_left: Callable[[], float]
) -> bool:
    """True once each of these calls of the run has its outcome, whatever else is open in it, or once the run
    can continue; False when the time limit is reached."""
    broker = eventlog.broker
    with broker.subscribe(*_topics_of(run, calls)) as subscription:
        while True:
            subscription.is_stale = False
            # through the thread: its calls may have been opened before they are durable
            if not await eventlog.read(run.owner, run.thread_id, lambda thread: _waits_for(thread, calls)):
                return True
            seconds = seconds_left()
            if seconds <= 0:
                return False
            # if invalidated during the check, check again at once
            await subscription.wait(0.0 if subscription.is_stale else min(seconds, broker.recheck))
            subscription.items.clear()


async def wait_until_settled(eventlog: EventLog, opened: Call) -> Call | None:
    """Waits for one call without a run to get its outcome; None if it is gone.

    When the process is about to stop, the wait ends and the call does not. While the store is down, the wait
    goes on: an answer may take days, and the caller could not find it again.
    """
    broker, thread = eventlog.broker, thread_topic(opened.owner, opened.thread_id)
    with broker.subscribe(opened.call_id, thread) as subscription:
        while True:
            subscription.is_stale = False
            call, is_known = await _read_call(eventlog, opened.owner, opened.call_id)
            if is_known and (call is None or call.phase is Phase.SETTLED):
                return call
            if broker.closed:
                raise ShuttingDown("The server is shutting down.", hint="Ask again for the call.")
            seconds = broker.recheck if is_known else min(broker.recheck, STORE_RETRY_SEC)
            await subscription.wait(0.0 if subscription.is_stale else seconds)
            subscription.items.clear()


async def _read_call(eventlog: EventLog, owner: Owner, call_id: str) -> tuple[Call | None, bool]:
    """The call, if it exists, and whether the store could be asked."""
    try:
        return await eventlog.get_call(owner, call_id), True
    except StoreDown as error:
        log.debug("cannot check call %s yet: %s", call_id, error)
        return None, False


def _waits_for(thread: ThreadState, calls: Sequence[Call]) -> bool:
    if thread.run is None or thread.run.state is not RunState.WAITING:
        return False
    current = [thread.calls.get(call.call_id) for call in calls]
    return any(call is not None and call.phase is not Phase.SETTLED for call in current)


def _topics_of(run: Run, calls: Sequence[Call]) -> tuple[str, ...]:
    """The thread's topic too: it wakes the waiter if the thread may have changed without this process
    knowing."""
    return (
        freed_topic(run.run_id),
        thread_topic(run.owner, run.thread_id),
        *[call.call_id for call in calls],
    )
