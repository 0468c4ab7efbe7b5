"""Who is told when a thread has moved on: subscriptions with bounded queues. Hints; the log is the record.

A subscription that is full forgets what it has and says so: its owner reads the log again. Nobody who
publishes ever waits for a subscriber.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from farhand.core.principal import Owner
from farhand.eventlog.codec import Body

QUEUE = 256

Topic = tuple[Owner, str]
"""A thread."""


class Published(Struct, frozen=True, gc=False):
    """One append that is durable."""

    version: int
    at: float
    body: Body


class Subscription:
    __slots__ = ("_arrived", "_limit", "items", "overflowed")

    def __init__(self, limit: int) -> None:
        self.items: list[Published] = []
        self.overflowed = False
        self._limit = limit
        self._arrived = asyncio.Event()

    def put(self, item: Published) -> None:
        if len(self.items) >= self._limit:
            self.lose()
            return
        self.items.append(item)
        self._arrived.set()

    def lose(self) -> None:
        """Something was published that is not here."""
        self.items.clear()
        self.overflowed = True
        self._arrived.set()

    async def wait(self, seconds: float) -> bool:
        """True as soon as something has arrived; False after this time: whoever waits looks at the log then,
        since a notification may be lost."""
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return False
        self._arrived.clear()
        return True

    def take(self) -> list[Published]:
        items, self.items = self.items, []
        self._arrived.clear()
        return items


class Broker:
    def __init__(self) -> None:
        self._subscriptions: dict[Topic, list[Subscription]] = {}

    @contextmanager
    def subscribe(self, owner: Owner, thread_id: str, *, limit: int = QUEUE) -> Iterator[Subscription]:
        topic = (owner, thread_id)
        subscription = Subscription(limit)
        self._subscriptions.setdefault(topic, []).append(subscription)
        try:
            yield subscription
        finally:
            left = self._subscriptions[topic]
            left.remove(subscription)
            if not left:
                del self._subscriptions[topic]

    def publish(self, owner: Owner, thread_id: str, item: Published) -> None:
        for subscription in self._subscriptions.get((owner, thread_id), ()):
            subscription.put(item)

    def lose(self, owner: Owner, thread_id: str) -> None:
        """Something may have happened that was not published here."""
        for subscription in self._subscriptions.get((owner, thread_id), ()):
            subscription.lose()

    def has_readers(self, owner: Owner, thread_id: str) -> bool:
        return (owner, thread_id) in self._subscriptions
