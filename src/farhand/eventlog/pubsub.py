"""Publish and subscribe inside one process: something about this run, call or thread is new.

What this process writes is published here at once; a shared store also reports what other processes wrote. A
subscriber that cannot keep up loses items, never truth: its `is_stale` flag makes it read the log again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from farhand.clock import SystemClock
from farhand.core.principal import Owner
from farhand.eventlog.timer_wheel import SLOT_SEC, TimerWheel

CLIENT_CALLS = "client-calls"
"""Topic of calls for registered clients, of all owners, when they are opened or change."""

DIRECT_CALLS = "direct-calls"
"""Topic of calls without a run whose server tool may start because a commit of this process approved them."""

STREAM_BEGUN = "stream-begun"
"""Topic of streams of registered clients that started in another process."""

READING = "reading"
"""Topic of other processes' messages about their readers, for `RemoteReaders`."""
LOOK_SEC = 1.0
STORE_RETRY_SEC = 1.0
"""Between two attempts while the store is down."""
ANNOUNCED_SEC = 6.0
"""How long a run counts as read elsewhere after a message; the message is repeated three times in that
time."""
AT_ONCE = 100
"""Runs per notification."""


def freed_topic(run_id: str) -> str:
    """Topic of one held run: published to when it no longer waits for anything."""
    return f"freed:{run_id}"


def resting_topic(run_id: str) -> str:
    """Topic of a run whose tools are running: published to when it only waits for what they ask, when that
    changes, and when another of its tools may start."""
    return f"resting:{run_id}"


def unread_topic(run_id: str) -> str:
    """Topic of a run that has readers: published to when the last one has left, here or in another
    process."""
    return f"unread:{run_id}"


def client_topic(owner: Owner, client_id: str) -> str:
    """Topic of the calls of one registered client."""
    return f"asked:{owner.tenant}\0{owner.subject}\0{client_id}"


def thread_topic(owner: Owner, thread_id: str) -> str:
    """Topic of one thread: nothing is published there, but its subscribers are invalidated when it may have
    changed without this process knowing."""
    return f"thread:{owner.tenant}\0{owner.subject}\0{thread_id}"


def feed_topic(owner: Owner) -> str:
    """Topic of one owner's feed: it has new entries. The item is `FEED_GREW` if another process added them,
    else None."""
    return f"feed:{owner.tenant}\0{owner.subject}"


class Subscriber(Protocol):
    """None of its methods may wait or raise."""

    is_stale: bool
    """There may be something new that was not delivered: read it from the log."""

    def deliver(self, item: object) -> None: ...

    def wake(self) -> None:
        """There is something to read, or the process is about to stop."""
        ...


class Subscription:
    """The items of some topics, for one subscriber. Use it as a context manager."""

    __slots__ = (
        "_broker",
        "_limit",
        "_loop",
        "_sleeper",
        "_slot",
        "_topics",
        "_until",
        "is_stale",
        "items",
    )

    def __init__(self, broker: Broker, topics: tuple[str, ...], limit: int) -> None:
        self.items: list[object] = []
        self.is_stale = False
        self._broker = broker
        self._topics = topics
        self._limit = limit
        self._loop: asyncio.AbstractEventLoop
        self._sleeper: asyncio.Future[bool] | None = None
        self._until = 0.0
        self._slot: int | None = None
        """The slot its timer is set in, for this sleep or an earlier one."""

    def __enter__(self) -> Self:
        self._loop = self._broker.loop
        for topic in self._topics:
            self._broker.add(topic, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for topic in self._topics:
            self._broker.remove(topic, self)
        if self._slot is not None:
            self._broker.timers.drop(self, self._slot)
            self._slot = None

    def deliver(self, item: object) -> None:
        items = self.items
        if len(items) >= self._limit:
            items.clear()
            self.is_stale = True
        items.append(item)
        if self._sleeper is not None:
            self.wake()

    def wake(self) -> None:
        sleeper, self._sleeper = self._sleeper, None
        if sleeper is not None and not sleeper.done():
            sleeper.set_result(bool(self.items))

    def wait(self, seconds: float) -> asyncio.Future[bool]:
        """True as soon as there are items; False when the time is up, which means: check the log.

        Await it at once. It is not a coroutine, since a held stream would keep one for as long as it is open.
        """
        sleeper: asyncio.Future[bool] = self._loop.create_future()
        if self.items:
            sleeper.set_result(True)
            return sleeper
        self._sleeper = sleeper
        self._until = until = self._loop.time() + seconds
        # one timer for many sleeps: items usually come first
        if self._slot is None or self._slot * SLOT_SEC > until + SLOT_SEC:
            self._set_timer()
        return sleeper

    def fire(self, now: float) -> None:
        self._slot = None
        if self._sleeper is None:
            return
        if now < self._until:
            # set for an earlier sleep
            self._set_timer()
        else:
            self.wake()

    def _set_timer(self) -> None:
        if self._slot is not None:
            self._broker.timers.drop(self, self._slot)
        self._slot = self._broker.timers.set(self, self._until)


class SubscribedReader:
    """Reads part of the log, then waits for more. Use it as a context manager."""

    __slots__ = ("_is_left", "_subscription")

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._is_left = False

    def __enter__(self) -> Self:
        self._subscription.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._subscription.__exit__(kind, error, trace)

    def leave(self) -> None:
        """Ends a pending `next()`; every later one ends at once."""
        self._is_left = True
        self._subscription.wake()


class Broker:
    """`recheck` is the number of seconds of silence after which a subscriber checks the log again. Inside one
    process nothing is lost, so that is long; a broker fed from outside invalidates its subscribers when it
    may have missed something. `notify_others` reaches the other processes, if any."""

    def __init__(self, *, recheck: float = 15.0, notify: Callable[[str, str], None] | None = None) -> None:
        self.recheck = recheck
        self.closed = False
        self.notify_others = notify or (lambda topic, item: None)
        self.timers = TimerWheel()
        self.subscribers: dict[str, tuple[Subscriber, ...]] = {}
        """By topic; topics without subscribers are absent."""
        self.is_read_elsewhere: Callable[[str], bool] = lambda run_id: False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop: cached, since looking it up is a system call. A store may be used in several
        loops in turn, never in two at once."""
        if self._loop is None or not self._loop.is_running():
            self._loop = asyncio.get_running_loop()
        return self._loop

    def subscribe(self, *topics: str, limit: int = 256) -> Subscription:
        return Subscription(self, topics, limit)

    def publish(self, topic: str, item: object) -> None:
        for subscriber in self.subscribers.get(topic, ()):
            subscriber.deliver(item)

    def close(self) -> None:
        """Wakes every subscriber so that it leaves: the process is about to stop."""
        self.closed = True
        for subscribers in self.subscribers.values():
            for subscriber in subscribers:
                subscriber.wake()

    def invalidate(self, topic: str) -> None:
        """Something new was not delivered: subscribers have to read the log."""
        for subscriber in self.subscribers.get(topic, ()):
            subscriber.is_stale = True
            subscriber.wake()

    def invalidate_all(self) -> None:
        for topic in list(self.subscribers):
            self.invalidate(topic)

    def has(self, topic: str) -> bool:
        """Whether it has subscribers in this process."""
        return topic in self.subscribers

    def count(self, topic: str) -> int:
        """How many subscribe to it: a run that nobody reads need not be held. All subscribers in other
        processes count as one."""
        return len(self.subscribers.get(topic, ())) + self.is_read_elsewhere(topic)

    def read_here(self) -> list[str]:
        """The runs with readers in this process."""
        return [topic for topic in self.subscribers if topic.startswith("run_")]

    def add(self, topic: str, subscriber: Subscriber) -> None:
        self.subscribers[topic] = (*self.subscribers.get(topic, ()), subscriber)

    def remove(self, topic: str, subscriber: Subscriber) -> None:
        subscribers = self.subscribers[topic]
        if subscribers == (subscriber,):
            del self.subscribers[topic]
            self.publish(unread_topic(topic), None)
        else:
            self.subscribers[topic] = tuple([each for each in subscribers if each is not subscriber])


class RemoteReaders:
    """Which runs are read in other processes, according to them: a run that nobody reads need not be held.

    Each process announces when reading starts and ends, and repeats the full list from time to time. What it
    announced expires unless it is repeated.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._name = SystemClock().fresh("rdr")
        self._until: dict[str, dict[str, float]] = {}
        """For each process: until when its runs count as read."""
        broker.is_read_elsewhere = self.has

    def has(self, run_id: str) -> bool:
        if not self._until:
            return False
        now = _now()
        return any(runs.get(run_id, 0.0) > now for runs in self._until.values())

    def on_message(self, item: str) -> None:
        who, *runs = item.split("\0")
        if who == self._name:
            return
        now = _now()
        if who not in self._until:
            self._forget_gone(now)
        known = self._until.setdefault(who, {})
        for run_id in [run_id for run_id, until in known.items() if until <= now]:
            del known[run_id]
        for name in runs:
            if name.startswith("-"):
                known.pop(name[1:], None)
                self._broker.publish(unread_topic(name[1:]), None)
            else:
                known[name] = now + ANNOUNCED_SEC

    def _forget_gone(self, now: float) -> None:
        """Those whose runs have all expired: a process that starts again has another name."""
        for who in [who for who, runs in self._until.items() if max(runs.values(), default=0.0) <= now]:
            del self._until[who]

    async def serve(self) -> None:
        announced: set[str] = set()
        again = 0
        while True:
            read = set(self._broker.read_here())
            again = (again + 1) % 2
            current = read if again == 0 else read - announced
            self._announce([*current, *(f"-{run_id}" for run_id in announced - read)])
            announced = read
            await asyncio.sleep(LOOK_SEC)

    def _announce(self, runs: list[str]) -> None:
        for start in range(0, len(runs), AT_ONCE):
            self._broker.notify_others(READING, "\0".join([self._name, *runs[start : start + AT_ONCE]]))


def _now() -> float:
    return asyncio.get_running_loop().time()
