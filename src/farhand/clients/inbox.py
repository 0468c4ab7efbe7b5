"""The stream of calls that one client may take.

A call is taken for the client before it is handed out, so that nobody else starts it. What is not answered is
handed out again on the next stream. Subscribe first, then read the record: nothing is missed in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Self, TypeAlias

from msgspec import Struct

from farhand.calls.desk import Desk
from farhand.clients.roster import Roster
from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.result import Accepted
from farhand.store.base import Store
from farhand.store.hub import asked_of

AT_ONCE = 64
"""Calls handed out together: a client that was away for long gets the rest with its next pull."""


class Offered(Struct, frozen=True):
    """To be executed. `again`: another program took it before and may have begun."""

    call: Call
    again: bool = False


class Ended(Struct, frozen=True):
    """A call that was handed out here has its outcome: whatever still works on it may stop."""

    call: Call


class Withdrawn(Struct, frozen=True):
    """Tools of the client that are offered no more, whoever unregistered them: their full names."""

    tools: tuple[str, ...]


class Superseded(Struct, frozen=True):
    """Another stream of the same client has begun; this one ends."""


Item: TypeAlias = Offered | Ended | Withdrawn | Superseded


class Listener(Struct, frozen=True):
    """Who listens. `holder` is the name its calls are taken under: the client's id, or that and a suffix."""

    owner: Owner
    client_id: str
    holder: str

    def is_own(self, holder: str) -> bool:
        """True for the name of any program that listens as this client."""
        return holder == self.client_id or holder.startswith(f"{self.client_id}.")


class Inbox:
    """Use it as a context manager; `next()` gives what there is, oldest first."""

    def __init__(self, store: Store, desk: Desk, listener: Listener, roster: Roster) -> None:
        """`roster` knows what the client offers."""
        self._store = store
        self._desk = desk
        self._listener = listener
        self._roster = roster
        self._client = roster.client(listener.owner, listener.client_id)
        self._watch = store.hub.watch(asked_of(listener.owner, listener.client_id), limit=1000)
        self._given: set[str] = set()
        self._behind = True
        self._superseded = False
        self._over = False

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.__exit__(kind, error, trace)

    def supersede(self) -> None:
        self._superseded = True
        self._watch.wake()

    def rouse(self) -> None:
        """The roster has changed."""
        self._watch.wake()

    def leave(self) -> None:
        """Ends a `next()` that is under way; every later one ends at once."""
        self._over = True
        self._watch.wake()

    async def next(self, seconds: float) -> list[Item] | None:
        """What there is for the client; an empty list when nothing came in time; None at the end."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not self._over:
            if self._superseded:
                self._over = True
                return [Superseded()]
            items = self._withdrawn() or await (self._catch_up() if self._behind else self._hear())
            if items:
                return items
            left = until - loop.time()
            if self._store.hub.closed or left <= 0:
                return None if self._store.hub.closed else []
            if not self._behind and not await self._watch.wait(min(left, self._store.hub.recheck)):
                # nothing was heard: perhaps it was lost, so the record is asked
                self._behind = True
        return None

    def _withdrawn(self) -> list[Item]:
        """Asked of the roster each time: whichever way it heard of a change, none is missed."""
        before = self._client
        after = self._roster.client(self._listener.owner, self._listener.client_id)
        if after is before:
            return []
        self._client = after
        kept = {tool.name for tool in after.tools} if after is not None else set()
        gone = [tool.name for tool in before.tools if tool.name not in kept] if before is not None else []
        return [Withdrawn(tuple(gone))] if gone else []

    async def _catch_up(self) -> list[Item]:
        self._watch.lost = False
        self._watch.news.clear()
        asked = await self._store.client_calls(self._listener.owner, self._listener.client_id)
        fresh = [call for call in asked if _is_executable(call) and call.call_id not in self._given]
        gone = self._given - {call.call_id for call in asked}
        items = [*await self._ended(gone), *await self._offer(fresh[:AT_ONCE])]
        # what others have taken is looked at again in a while, not at once
        self._behind = len(fresh) > AT_ONCE and bool(items)
        return items

    async def _hear(self) -> list[Item]:
        heard: dict[str, Call] = {}
        while self._watch.news:
            call = self._watch.news.pop(0)
            assert isinstance(call, Call), "the topic tells calls"
            heard[call.call_id] = call
        if self._watch.lost:
            self._behind = True
            return []
        over = [call for call in heard.values() if call.phase is Phase.SETTLED]
        fresh = [call for call in heard.values() if _is_executable(call) and call.call_id not in self._given]
        self._behind = len(fresh) > AT_ONCE
        return [*self._let_go(over), *await self._offer(fresh[:AT_ONCE])]

    async def _ended(self, call_ids: Iterable[str]) -> list[Item]:
        found = [await self._store.get_call(self._listener.owner, call_id) for call_id in sorted(call_ids)]
        return self._let_go(call for call in found if call is not None)

    def _let_go(self, calls: Iterable[Call]) -> list[Item]:
        ended = [call for call in calls if call.call_id in self._given]
        self._given.difference_update(call.call_id for call in ended)
        return [Ended(call) for call in ended]

    async def _offer(self, calls: Iterable[Call]) -> list[Item]:
        offers = await asyncio.gather(*(self._take(call) for call in calls))
        return [offer for offer in offers if offer is not None]

    async def _take(self, call: Call) -> Offered | None:
        """None if somebody else executes it, or nobody needs to any more."""
        listener = self._listener
        before = None if call.take is None else call.take.holder
        own = before if before is not None and listener.is_own(before) else None
        receipt = await self._desk.take(listener.owner, call.call_id, listener.holder, instead_of=own)
        if not isinstance(receipt, Accepted):
            return None
        self._given.add(call.call_id)
        return Offered(call, again=before is not None and before != listener.holder)


def _is_executable(call: Call) -> bool:
    return call.phase in (Phase.READY, Phase.TAKEN)
