"""Hints: something about this run or call has changed, go and look.

What this process writes is told here at once; a store that others share tells what they wrote, too. A watcher
that cannot keep up loses news, never truth: it is told so (`lost`) and reads the store again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from farhand.core.call import Phase
from farhand.core.principal import Owner
from farhand.core.tool import Executor
from farhand.store.alarms import SLOT_SEC, Alarms
from farhand.store.elsewhere import Elsewhere
from farhand.store.told import Told

FREED, FEED = "freed:", "feed:"
"""How topics begin that tell whose they are."""

WAKE = "wake"
"""Topic of runs that are parked with nothing left to wait for."""


def freed(run_id: str) -> str:
    """Topic of one held run: told when nothing is left to wait for."""
    return FREED + run_id


def run_that_is_free(topic: str) -> str | None:
    """The run whose topic that is; None for any other topic."""
    return topic.removeprefix(FREED) if topic.startswith(FREED) else None


CLIENT_CALLS = "client-calls"
"""Topic of calls that were opened for registered clients, or moved, of all owners."""


DIRECT_CALLS = "direct-calls"
"""Topic of calls without a run whose server tool may start, since a commit of this process approved them."""


RUN_TAKEN = "run-taken"
"""Topic of runs that another process took by force: their ids."""

LET_GO = "let-go"
"""Topic of runs that another process is about to take: whoever holds one stores what was said and stops."""

CLIENTS_CHANGED = "clients-changed"
"""Topic of owners whose registrations another process has changed."""

STREAM_BEGUN = "stream-begun"
"""Topic of streams of registered clients that began in another process."""


def asked_of(owner: Owner, client_id: str) -> str:
    """Topic of the calls of one registered client."""
    return f"asked:{owner.tenant}\0{owner.subject}\0{client_id}"


def feed_of(owner: Owner) -> str:
    """Topic of one owner's feed: told that there is more of it."""
    return f"{FEED}{owner.tenant}\0{owner.subject}"


def is_feed(topic: str) -> bool:
    return topic.startswith(FEED)


class Listener(Protocol):
    """Whoever listens to a topic: none of these may wait or raise."""

    lost: bool
    """Something is new that was not told: the record has it."""

    def tell(self, item: object) -> None: ...

    def wake(self) -> None:
        """There is something to look at, or to go for."""
        ...


class Watch:
    """News of some topics, for one watcher. Use it as a context manager."""

    __slots__ = (
        "_hub",
        "_limit",
        "_loop",
        "_sleeper",
        "_slot",
        "_topics",
        "_until",
        "lost",
        "news",
    )

    def __init__(self, hub: Hub, topics: tuple[str, ...], limit: int) -> None:
        self.news: list[object] = []
        self.lost = False
        self._hub = hub
        self._topics = topics
        self._limit = limit
        self._loop: asyncio.AbstractEventLoop
        self._sleeper: asyncio.Future[bool] | None = None
        self._until = 0.0
        self._slot: int | None = None
        """Where its alarm is set, for this sleep or an earlier one."""

    def __enter__(self) -> Self:
        self._loop = self._hub.loop
        for topic in self._topics:
            self._hub.add(topic, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for topic in self._topics:
            self._hub.remove(topic, self)
        if self._slot is not None:
            self._hub.alarms.drop(self, self._slot)
            self._slot = None

    def tell(self, item: object) -> None:
        news = self.news
        if len(news) >= self._limit:
            news.clear()
            self.lost = True
        news.append(item)
        if self._sleeper is not None:
            self.wake()

    def wake(self) -> None:
        sleeper, self._sleeper = self._sleeper, None
        if sleeper is not None and not sleeper.done():
            sleeper.set_result(bool(self.news))

    def wait(self, seconds: float) -> asyncio.Future[bool]:
        """True as soon as there is news; False when the time is up, which means: look at the record.

        To be awaited at once; no coroutine, since a held stream would keep it for as long as it is open.
        """
        sleeper: asyncio.Future[bool] = self._loop.create_future()
        if self.news:
            sleeper.set_result(True)
            return sleeper
        self._sleeper = sleeper
        self._until = until = self._loop.time() + seconds
        # one for many sleeps: news mostly come first
        if self._slot is None or self._slot * SLOT_SEC > until + SLOT_SEC:
            self._set_alarm()
        return sleeper

    def ring(self, now: float) -> None:
        """The time has come for which an alarm was set."""
        self._slot = None
        if self._sleeper is None:
            return
        if now < self._until:
            # it was set for an earlier sleep
            self._set_alarm()
        else:
            self.wake()

    def _set_alarm(self) -> None:
        if self._slot is not None:
            self._hub.alarms.drop(self, self._slot)
        self._slot = self._hub.alarms.set(self, self._until)


class Hub:
    """`recheck`: after how many seconds of silence the record is looked at again. Inside one process nothing
    is lost, so that is long; a hub that is fed from outside shakes its watchers when it may have missed
    something. `aside` tells the other processes, where there are any."""

    def __init__(self, *, recheck: float = 15.0, aside: Callable[[str, str], None] | None = None) -> None:
        self.recheck = recheck
        self.closed = False
        self.tell_others = aside or (lambda topic, item: None)
        self.alarms = Alarms()
        self.watches: dict[str, tuple[Listener, ...]] = {}
        """Who listens, by topic; a topic without anybody is not there."""
        self.elsewhere = Elsewhere()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The one that runs now, where everybody is told: kept, since asking for it is a call to the system.
        A store may be used in one after the other, never in two at once."""
        if self._loop is None or not self._loop.is_running():
            self._loop = asyncio.get_running_loop()
        return self._loop

    def watch(self, *topics: str, limit: int = 256) -> Watch:
        return Watch(self, topics, limit)

    def tell(self, topic: str, item: object) -> None:
        for watch in self.watches.get(topic, ()):
            watch.tell(item)

    def close(self) -> None:
        """Wakes every watcher, to go: the process is about to stop."""
        self.closed = True
        for watches in self.watches.values():
            for watch in watches:
                watch.wake()

    def shake(self, topic: str) -> None:
        """What is new is not at hand: watchers have to look at the record."""
        for watch in self.watches.get(topic, ()):
            watch.lost = True
            watch.wake()

    def shake_all(self) -> None:
        for topic in list(self.watches):
            self.shake(topic)

    def has(self, topic: str) -> bool:
        """Whether somebody watches it in this process."""
        return topic in self.watches

    def watched(self, topic: str) -> int:
        """How many are watching: a held run that nobody reads need not be held. All those in other processes
        count as one."""
        return len(self.watches.get(topic, ())) + self.elsewhere.has(topic)

    def read_here(self) -> list[str]:
        """The runs that somebody reads in this process."""
        return [topic for topic in self.watches if topic.startswith("run_")]

    def add(self, topic: str, watch: Listener) -> None:
        self.watches[topic] = (*self.watches.get(topic, ()), watch)

    def remove(self, topic: str, watch: Listener) -> None:
        watches = self.watches[topic]
        if watches == (watch,):
            del self.watches[topic]
        else:
            self.watches[topic] = tuple([each for each in watches if each is not watch])


def tell_commit(hub: Hub, told: Told) -> None:
    """What every backend tells after a commit. Nobody listens to most of it."""
    for topic, item in _news_of(told):
        if topic in hub.watches:
            hub.tell(topic, item)


def _news_of(told: Told) -> list[tuple[str, object]]:
    """New events, moved calls, runs that could go on, feeds that grew, by their topics."""
    news: list[tuple[str, object]] = []
    for run_id, run in told.runs.items():
        if run.blockers == 0:
            # first, so that what the run says next may leave together with what is told after it
            news.append((WAKE if run.parked else FREED + run_id, run))
    news += told.entries.items()
    for call in told.calls:
        news.append((call.call_id, call))
        if call.run_id is None and call.phase is Phase.READY and call.executor is Executor.SERVER:
            news.append((DIRECT_CALLS, call))
        if call.client_id is not None:
            news += ((asked_of(call.owner, call.client_id), call), (CLIENT_CALLS, call))
    for owner in told.feeds:
        news.append((feed_of(owner), None))
    return news
