"""Sessions, reaper and desk for registered clients on an event log, without HTTP, with shortcuts for the
tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from farhand.calls.desk import Desk
from farhand.clients.inbox import ClientStream, Inbox, InboxItem
from farhand.clients.reaper import ClientReaper
from farhand.clients.registration import Registration, ToolOffer
from farhand.clients.registry import ClientRegistry, ClientTools
from farhand.clients.sessions import ClientSessions
from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.decide.direct import open_direct
from farhand.core.decide.opening import Opening
from farhand.core.principal import Owner
from farhand.core.settings import Settings, Timeouts
from farhand.eventlog.log import EventLog
from farhand.store.base import Store
from farhand.testing import FakeClock
from farhand.tools.toolbox import Toolbox

ANN = Owner("acme", "ann")
BOB = Owner("acme", "bob")
SOON = Settings(timeouts=Timeouts(client_grace=0.05, client_first=0.05))
PATIENT = Settings(timeouts=Timeouts(client_grace=600, client_first=600))
"""For tests in which no client may be missed, however long they take."""
PATIENCE_SEC = 20.0
"""Bounds every wait of a test; what is waited for comes at once."""


class Office:
    def __init__(
        self, store: Store, clock: FakeClock, rules: ClientTools | None = None, *, settings: Settings = SOON
    ) -> None:
        self.store = store
        self.clock = clock
        self.log = EventLog(store)
        self.registry = ClientRegistry(self.log, rules)
        self.desk = Desk(self.log, settings.timeouts)
        self.sessions = ClientSessions(self.registry, self.desk, self.log, Toolbox(), settings)
        self.reaper = ClientReaper(self.sessions, self.desk, self.log)

    async def register(
        self, client_id: str, *tools: str, owner: Owner = ANN, holder: str | None = None
    ) -> None:
        offers = tuple(ToolOffer(tool, f"Can {tool}.", {}) for tool in tools)
        await self.sessions.register(owner, Registration(client_id, offers, holder=holder))

    async def ask(
        self, name: str, owner: Owner = ANN, *, needs_approval: bool = False, thread_id: str = "t1"
    ) -> Call:
        """Opens a call of this tool."""
        tool = self.registry.get(owner, name)
        assert tool is not None
        opening = Opening(
            call_id=self.clock.fresh("call"),
            tool=tool,
            input={},
            is_direct=True,
            timeout_sec=100,
            approval_id=self.clock.fresh("apr") if needs_approval else None,
        )
        return await self.log.decide(
            owner,
            thread_id,
            lambda thread, now: open_direct(
                thread, opening, title="", now=now, settings=SOON, calls_left=100
            ),
            then=lambda thread, _: thread.calls[opening.call_id],
        )

    def inbox(self, client_id: str = "notes", holder: str | None = None) -> Inbox:
        listener = ClientStream(ANN, client_id, holder or client_id)
        return Inbox(self.log, self.desk, listener, self.registry)

    async def stored(self, call: Call) -> Call:
        found = await self.log.get_call(call.owner, call.call_id)
        assert found is not None
        return found

    async def ended(self, call: Call) -> Call:
        """The call once it has its outcome."""

        async def is_over() -> bool:
            return (await self.stored(call)).outcome is not None

        await comes_true(is_over)
        return await self.stored(call)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """With its background work."""
        await self.reaper.open()
        try:
            yield
        finally:
            await self.reaper.close()

    async def clients(self) -> list[Client]:
        return await self.store.clients.all()


def names(items: list[InboxItem] | None) -> list[str]:
    return [type(item).__name__ for item in items or ()]


async def comes_true(question: Callable[[], Awaitable[bool]]) -> None:
    """For facts that no event tells of: asks again and again, within bounds."""
    for _ in range(int(PATIENCE_SEC / 0.005)):
        if await question():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come true")
