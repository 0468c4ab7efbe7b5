"""The one wait: until nothing in a run waits for a person or a far hand, or the time is up.

Subscribe first, then read the record; every sleep ends in another look, so a lost notification costs at
most one re-check. Whoever waits is a record: no task, no coroutine and no timer per waiting call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.errors import ShuttingDown
from farhand.store.base import Store
from farhand.store.hub import freed

JUST_STORED_SEC = 0.5
"""For so long nobody doubts that what was stored a moment ago is how things are."""

Wake = Callable[[str], None]
"""Is told the run that has something to do."""


class Wait:
    """Of one run: `listen`, then look at what is `settled`, then `sleep`; again when woken, until its `end`.

    What is told meanwhile is noted, asleep or not. Whoever derives from it says for how long it is patient.
    """

    __slots__ = (
        "_calls",
        "_look_at",
        "_loop",
        "_nap",
        "_slot",
        "_store",
        "_topic",
        "_wake",
        "listens",
        "lost",
        "run",
        "run_id",
    )

    def __init__(self, store: Store, run_id: str) -> None:
        self.run_id = run_id
        self.listens = False
        self.lost = False
        """Whether something was told that only the record knows."""
        self.run: Run | None = None
        """As it was when something was told of it last."""
        self._store = store
        self._loop = store.hub.loop
        self._calls: list[Call] = []
        self._look_at = self._nap = 0.0
        self._topic = ""
        self._slot: int | None = None
        self._wake: Wake | None = None

    def left(self) -> float:
        """How many seconds to sleep at most before this is asked again; none means: give up."""
        raise NotImplementedError

    def is_patient(self) -> bool:
        """Asked before each sleep."""
        self._nap = self.left()
        return self._nap > 0

    def listen(self, run: Run, calls: list[Call]) -> None:
        """Run and calls are as they were stored a moment ago: the record is looked at only if nothing is
        heard for a while. What is told of the calls is noted in this very list."""
        hub = self._store.hub
        self.run, self._calls, self.lost = run, calls, False
        self._look_at = self._loop.time() + min(JUST_STORED_SEC, hub.recheck)
        self.listens = True
        self._topic = freed(self.run_id)
        hub.add(self._topic, self)
        for call in calls:
            hub.add(call.call_id, self)

    async def settled(self) -> Run | None:
        """The run as it is now: it may wait still, or be gone."""
        assert self.run is not None, "a wait listens before it looks"
        if not self.lost:
            return self.run
        self.lost = False
        self._look_at = self._loop.time() + self._store.hub.recheck
        return await self._store.get_run(self.run.owner, self.run_id)

    def told(self) -> list[Call] | None:
        """The calls, if how they went was told."""
        for call in self._calls:
            if call.blocks:
                return None
        return self._calls

    def sleep(self, wake: Wake) -> None:
        """`wake` is called, once, as soon as there is something to do."""
        self._wake = wake
        if self.lost or (self.run is not None and self.run.blockers == 0):
            self.wake()
        elif self._slot is None:
            self._set_alarm()

    def end(self) -> None:
        """Nobody is waited for any more."""
        if not self.listens:
            return
        hub = self._store.hub
        hub.remove(self._topic, self)
        for call in self._calls:
            hub.remove(call.call_id, self)
        if self._slot is not None:
            hub.alarms.drop(self, self._slot)
        self.listens = False
        self.run, self._calls, self._slot, self._wake = None, [], None, None

    def tell(self, item: object) -> None:
        """What the hub has to say."""
        if isinstance(item, Call):
            # only noted: that nothing is left to wait for is told of the run
            for index, call in enumerate(self._calls):
                if call.call_id == item.call_id:
                    self._calls[index] = item
            return
        if isinstance(item, Run) and self.run is not None and item.last_seq >= self.run.last_seq:
            self.run = item
        else:
            # one that is older was read before what this side has written since
            self.lost = True
        self.wake()

    def wake(self) -> None:
        wake, self._wake = self._wake, None
        # when the process is about to stop, nobody goes on
        if wake is not None and not self._store.hub.closed:
            wake(self.run_id)

    def ring(self, now: float) -> None:
        """The time has come for which an alarm was set. Mostly patience alone is asked again: the record was
        looked at a moment ago."""
        self._slot = None
        if self._wake is None:
            return
        self.lost = self.lost or now >= self._look_at
        if self.lost or not self.is_patient():
            self.wake()
        else:
            self._set_alarm()

    def _set_alarm(self) -> None:
        until = min(self._loop.time() + self._nap, self._look_at)
        self._slot = self._store.hub.alarms.set(self, until)


async def answered(store: Store, run: Run, calls: Sequence[Call], *, patient: Callable[[], float]) -> bool:
    """True once each of these calls of the run has its outcome, whatever else is open in it; False when
    patience is at an end."""
    with store.hub.watch(freed(run.run_id), *(call.call_id for call in calls)) as watch:
        while True:
            now = [await store.get_call(run.owner, call.call_id) for call in calls]
            if not any(call is not None and call.phase is not Phase.SETTLED for call in now):
                return True
            seconds = patient()
            if seconds <= 0:
                return False
            await watch.wait(min(seconds, store.hub.recheck))
            watch.news.clear()


async def settled(store: Store, owner: Owner, call_id: str) -> Call | None:
    """One call that has no run, once it has its outcome; None if it is gone.

    When the process is about to stop, the waiting ends and the call does not.
    """
    with store.hub.watch(call_id) as watch:
        while True:
            call = await store.get_call(owner, call_id)
            if call is None or call.phase is Phase.SETTLED:
                return call
            if store.hub.closed:
                raise ShuttingDown("The server is about to stop.", hint="Ask again for the call.")
            await watch.wait(store.hub.recheck)
            watch.news.clear()
