"""The stream of calls for one client.

A call is taken for the client before it is sent, so that nobody else starts it. A call without a result is
sent again on the next stream. The inbox subscribes first and reads the store then, so that nothing is missed
in between. Calls that another process opens are found in the store once the owner's feed has grown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from farhand.calls.desk import Desk
from farhand.clients.registry import ClientRegistry
from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.result import Accepted
from farhand.errors import StoreDown, Unreadable
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import STORE_RETRY_SEC, SubscribedReader, client_topic, feed_topic
from farhand.store.base import FEED_GREW

log = logging.getLogger("farhand.clients")

CALLS_PER_PULL = 64
"""A client that was away for long gets the rest with its next pull."""


class OfferedCall(Struct, frozen=True):
    """To be executed. `again`: another program had taken the call and may have begun to execute it."""

    call: Call
    again: bool = False


class EndedCall(Struct, frozen=True):
    """A call that was sent here has an outcome: work on it may stop."""

    call: Call


class WithdrawnTools(Struct, frozen=True):
    """The full names of tools that the client no longer offers, no matter who unregistered them."""

    tools: tuple[str, ...]


class StreamReplaced(Struct, frozen=True):
    """A newer stream of the same client has begun; this one ends."""


InboxItem: TypeAlias = OfferedCall | EndedCall | WithdrawnTools | StreamReplaced


class ClientStream(Struct, frozen=True):
    """Which client listens. `holder` takes its calls: the client's id, or that id and a suffix."""

    owner: Owner
    client_id: str
    holder: str

    def is_own(self, holder: str) -> bool:
        """True for the holder of any program that listens as this client."""
        return holder == self.client_id or holder.startswith(f"{self.client_id}.")


class Inbox(SubscribedReader):
    """A context manager; `next()` returns what there is, oldest first."""

    def __init__(
        self, eventlog: EventLog, desk: Desk, stream: ClientStream, registry: ClientRegistry
    ) -> None:
        """`registry` has the tools of the client."""
        super().__init__(eventlog.broker.subscribe(*_topics(eventlog, stream), limit=1000))
        self._log = eventlog
        self._desk = desk
        self._stream = stream
        self._registry = registry
        self._client = registry.client(stream.owner, stream.client_id)
        self._sent: set[str] = set()
        self._unreadable: set[str] = set()
        """Calls of threads that cannot be read: nobody can take them."""
        self._behind = True
        self._is_store_down = False
        """The last look failed, or a take was not confirmed. The stream stays open: its program could not
        begin another one now."""
        self._superseded = False

    def supersede(self) -> None:
        self._superseded = True
        self._subscription.wake()

    def wake(self) -> None:
        """Called when the registry has changed."""
        self._subscription.wake()

    async def next(self, seconds: float) -> list[InboxItem] | None:
        """New items for the client; an empty list when none came in time; None at the end."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not self._is_left:
            if self._superseded:
                self._is_left = True
                return [StreamReplaced()]
            items = self._withdrawn() or await self._look()
            if items:
                return items
            left = until - loop.time()
            if self._log.broker.closed or left <= 0:
                return None if self._log.broker.closed else []
            pause = STORE_RETRY_SEC if self._is_store_down else self._log.broker.recheck
            if self._behind and not self._is_store_down:
                continue
            if not await self._subscription.wait(min(left, pause)):
                # a notification may have been lost, so the store is read
                self._behind = True
        return None

    async def _look(self) -> list[InboxItem]:
        self._is_store_down = False
        try:
            items = await (self._catch_up() if self._behind else self._read_news())
        except StoreDown as error:
            log.debug("cannot read an inbox yet: %s", error)
            items, self._is_store_down = [], True
        self._behind = self._behind or self._is_store_down
        return items

    def _withdrawn(self) -> list[InboxItem]:
        """Compared with the registry each time, so that no change is missed."""
        before = self._client
        after = self._registry.client(self._stream.owner, self._stream.client_id)
        if after is before:
            return []
        self._client = after
        kept = {tool.name for tool in after.tools} if after is not None else set()
        gone = [tool.name for tool in before.tools if tool.name not in kept] if before is not None else []
        return [WithdrawnTools(tuple(gone))] if gone else []

    async def _catch_up(self) -> list[InboxItem]:
        self._subscription.is_stale = False
        self._subscription.items.clear()
        asked = await self._log.client_calls(self._stream.owner, self._stream.client_id)
        fresh = [call for call in asked if self._is_fresh(call)]
        gone = self._sent - {call.call_id for call in asked}
        items = [*await self._find_ended(gone), *await self._offer(fresh[:CALLS_PER_PULL])]
        # calls that others have taken are checked again later, not at once
        self._behind = len(fresh) > CALLS_PER_PULL and bool(items)
        return items

    async def _read_news(self) -> list[InboxItem]:
        calls: dict[str, Call] = {}
        feed_grew = False
        while self._subscription.items:
            item = self._subscription.items.pop(0)
            if isinstance(item, Call):
                calls[item.call_id] = item
            elif item == FEED_GREW:
                feed_grew = True
        if self._subscription.is_stale or feed_grew:
            self._behind = True
            return []
        over = [call for call in calls.values() if call.phase is Phase.SETTLED]
        fresh = [call for call in calls.values() if self._is_fresh(call)]
        self._behind = len(fresh) > CALLS_PER_PULL
        return [*self._end(over), *await self._offer(fresh[:CALLS_PER_PULL])]

    def _is_fresh(self, call: Call) -> bool:
        is_known = call.call_id in self._sent or call.call_id in self._unreadable
        return call.phase in (Phase.READY, Phase.TAKEN) and not is_known

    async def _find_ended(self, call_ids: Iterable[str]) -> list[InboxItem]:
        found = [await self._log.get_call(self._stream.owner, call_id) for call_id in sorted(call_ids)]
        return self._end(call for call in found if call is not None)

    def _end(self, calls: Iterable[Call]) -> list[InboxItem]:
        ended = [call for call in calls if call.call_id in self._sent]
        self._sent.difference_update(call.call_id for call in ended)
        return [EndedCall(call) for call in ended]

    async def _offer(self, calls: Iterable[Call]) -> list[InboxItem]:
        offers = await asyncio.gather(*(self._take(call) for call in calls))
        return [offer for offer in offers if offer is not None]

    async def _take(self, call: Call) -> OfferedCall | None:
        """None if somebody else executes it, if it is settled, if its thread cannot be read, or if the store
        did not confirm it: then the next look takes it again."""
        stream = self._stream
        before = None if call.take is None else call.take.holder
        own = before if before is not None and stream.is_own(before) else None
        try:
            receipt = await self._desk.take(stream.owner, call.call_id, stream.holder, instead_of=own)
        except StoreDown as error:
            log.debug("cannot take call %s yet: %s", call.call_id, error)
            self._is_store_down = True
            return None
        except Unreadable as error:
            log.warning("cannot offer call %s to its client: %s", call.call_id, error)
            self._unreadable.add(call.call_id)
            return None
        if not isinstance(receipt, Accepted):
            return None
        self._sent.add(call.call_id)
        return OfferedCall(call, again=before is not None and before != stream.holder)


def _topics(eventlog: EventLog, stream: ClientStream) -> tuple[str, ...]:
    asked = client_topic(stream.owner, stream.client_id)
    # a thread that is not cached here publishes none of its calls, but the feed grows
    return (asked, feed_topic(stream.owner)) if eventlog.is_shared else (asked,)
