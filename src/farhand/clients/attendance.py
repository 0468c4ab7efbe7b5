"""Who comes and who leaves: registrations, streams, farewells.

What a farewell means is written in one transaction: the tools are withdrawn and what was asked of them fails.
The roster is told after the store has it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from farhand.calls.desk import Desk
from farhand.clients.inbox import Inbox, Listener
from farhand.clients.presence import Key, Presence, told_of
from farhand.clients.progress import Progress
from farhand.clients.registration import Registration, check_registration, named_in, tools_of
from farhand.clients.roster import Roster
from farhand.core.client import Client, held_by, with_tools, without_tools
from farhand.core.event import ClientRegistered, ClientUnregistered
from farhand.core.principal import Owner
from farhand.core.settings import Settings
from farhand.core.tool import Tool
from farhand.errors import Malformed, NameTaken, TooMany
from farhand.store.base import Commit, Committed, DropClient, PutClient, Store, Tell
from farhand.store.hub import STREAM_BEGUN
from farhand.store.soon import soon
from farhand.tools.toolbox import Toolbox

log = logging.getLogger("farhand.clients")

DISCONNECTED = "client disconnected"
UNREGISTERED = "the client unregistered this tool"


class Attendance:
    def __init__(
        self, roster: Roster, desk: Desk, store: Store, toolbox: Toolbox, settings: Settings
    ) -> None:
        """`toolbox` has the names that no client may take."""
        self.roster = roster
        self.presence = Presence()
        self.progress = Progress(desk, store)
        self.settings = settings
        self._desk = desk
        self._store = store
        self._toolbox = toolbox
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Knows again who was registered before a restart: each of them has its grace to come back."""
        for client in await self.roster.load():
            self.presence.miss((client.owner, client.client_id))

    async def find(self, key: Key) -> Client | None:
        """The client as it is known here; if it is not, another worker may have registered it just now."""
        client = self.roster.client(*key)
        if client is None and self._store.is_shared:
            await self.roster.load(key[0])
            client = self.roster.client(*key)
        return client

    async def is_offered(self, owner: Owner, tool: str) -> bool:
        """Whether somebody offers this tool now, also at another worker."""
        if not self.roster.is_client_tool(owner, tool) and self._store.is_shared:
            await self.roster.load(owner)
        return self.roster.is_client_tool(owner, tool)

    def grace(self, client: Client) -> float:
        """How long it may be without a stream before its tools leave."""
        return client.grace_sec if client.listened else self.settings.patience.client_first

    async def register(self, owner: Owner, registration: Registration) -> list[Tool]:
        """Offers these tools from now on; those of the same id are replaced, the others stay."""
        check_registration(registration)
        # beside the loop: a schema may take a while to be weighed
        tools = await asyncio.to_thread(tools_of, registration, may_ask=self.roster.may_ask)
        self._refuse_shadows(tools)
        async with self._changing:
            known = await self.find((owner, registration.client_id))
            if self._store.streams is not None and (known is None or not known.listened):
                await self._store.streams.expect(owner, registration.client_id)
            await self._put(owner, registration, tools)
        # one that had a stream has its grace from the loss of it, however often it registers
        if known is None or not known.listened:
            self.presence.miss((owner, registration.client_id))
        self.presence.changed.set()
        log.info("client %s registered %d tools", registration.client_id, len(tools))
        return tools

    async def unregister(
        self, owner: Owner, client_id: str, ids: Sequence[str] | None, *, by: str | None = None
    ) -> list[str]:
        """Withdraws these tools, or all for None. The full names of those that were there.

        `by` is the program that leaves: once another one is this client, it has nothing to withdraw.
        """
        async with self._changing:
            client = await self.find((owner, client_id))
            if client is None:
                return []
            everything = [tool.name for tool in client.tools]
            names = everything if ids is None else named_in(client.tools, client_id, ids)
            return await self._withdraw(client, names, UNREGISTERED, by=by) if names else []

    async def dismiss(self, key: Key) -> None:
        """Says farewell to a client that has been away for too long, unless it came back this moment."""
        async with self._changing:
            client = await self.find(key)
            if key in self.presence or await self._is_elsewhere(key):
                return
            if client is not None:
                await self._withdraw(client, [tool.name for tool in client.tools], DISCONNECTED)
            self.presence.forget(key)

    @asynccontextmanager
    async def listen(self, listener: Listener) -> AsyncIterator[Inbox]:
        """The stream of a client, registered or not yet; one that it had before ends."""
        key = (listener.owner, listener.client_id)
        with Inbox(self._store, self._desk, listener, self.roster) as inbox:
            self.presence.arrive(key, inbox)
            try:
                await self._sit(key, inbox)
                # before it is handed anything: what it is asked can't leave with the program before it
                await self._note_listening(listener)
                yield inbox
            finally:
                # at a shutdown all streams end, and nobody has left
                if self.presence.leave(key, inbox) and not self._store.hub.closed:
                    self.presence.miss(key)

    async def _sit(self, key: Key, inbox: Inbox) -> None:
        """From now on every worker knows that the client's newest stream is here."""
        if self._store.streams is None:
            return
        seat = await self._store.streams.arrive(*key, lease_sec=self.settings.patience.lease)
        self.presence.sit(seat, inbox)
        self._store.hub.tell_others(STREAM_BEGUN, told_of(seat))

    async def _is_elsewhere(self, key: Key) -> bool:
        return self._store.streams is not None and await self._store.streams.is_here(*key)

    async def _note_listening(self, listener: Listener) -> None:
        async with self._changing:
            while (client := await self.find((listener.owner, listener.client_id))) is not None:
                if client.listened and client.holder == listener.holder:
                    return
                heard = replace(held_by(client, listener.holder), listened=True, version=client.version + 1)
                if isinstance(await self._store.commit(PutClient(heard)), Committed):
                    self.roster.keep(heard)
                    return
                await self.roster.load(listener.owner)

    async def _put(self, owner: Owner, registration: Registration, tools: list[Tool]) -> None:
        came = ClientRegistered(registration.client_id, tuple(tool.name for tool in tools))
        while True:
            here = await self._is_elsewhere((owner, registration.client_id))
            client = self._registered(owner, registration, tools, here=here)
            commit = await soon(self._store, self._store.commit(PutClient(client), Tell(owner, (came,))))
            if isinstance(commit, Committed):
                self.roster.keep(client)
                return
            if commit.why == "exists":
                raise NameTaken(
                    "Another client has a tool of the same full name.", hint="Nothing was registered."
                )
            await self.roster.load()

    def _registered(
        self, owner: Owner, registration: Registration, tools: list[Tool], *, here: bool
    ) -> Client:
        """The client as it will be; `version` is one more than what is stored."""
        known = self.roster.client(owner, registration.client_id)
        client = known or self._newcomer(owner, registration.client_id)
        if registration.holder not in (None, client.former):
            client = held_by(client, registration.holder)
        here = here or (owner, registration.client_id) in self.presence
        grace = client.grace_sec if registration.grace_sec is None else registration.grace_sec
        merged = with_tools(replace(client, grace_sec=grace, listened=client.listened or here), tools)
        if len(merged.tools) > self.settings.limits.tools_per_client:
            raise Malformed(
                f"A client may have {self.settings.limits.tools_per_client} tools at most.",
                hint="Nothing was registered.",
            )
        return merged

    def _newcomer(self, owner: Owner, client_id: str) -> Client:
        limit = self.settings.limits.clients_per_principal
        if self.roster.count(owner) >= limit:
            raise TooMany(
                f"There may be {limit} clients at most.",
                hint="Unregister one that is not needed.",
                retry_after=60,
            )
        return Client(
            owner=owner,
            client_id=client_id,
            tools=(),
            grace_sec=self.settings.patience.client_grace,
            registered_at=self._store.now(),
            version=0,
        )

    def _refuse_shadows(self, tools: list[Tool]) -> None:
        for tool in tools:
            if tool.name in self._toolbox:
                raise NameTaken(
                    f"The server has a tool '{tool.name}' of its own.", hint="Nothing was registered."
                )

    async def _withdraw(
        self, client: Client, names: Sequence[str], why: str, *, by: str | None = None
    ) -> list[str]:
        """Tries again with what there is now if a result, or another change, was faster."""
        while by in (None, client.holder):
            gone = [tool.name for tool in client.tools if tool.name in names]
            after = without_tools(client, gone)
            commit = await self._write_farewell(client, after, gone, why)
            if isinstance(commit, Committed):
                self._see_off(after)
                log.info("%d tools of client %s left: %s", len(gone), client.client_id, why)
                return gone
            if commit.why == "held":
                # it came back this moment, at another worker
                return []
            if isinstance(commit.write, PutClient | DropClient):
                await self.roster.load(client.owner)
                now = self.roster.client(client.owner, client.client_id)
                if now is None:
                    return []
                client = now
        log.info("client %s keeps its tools: another program is it now", client.client_id)
        return []

    def _see_off(self, after: Client) -> None:
        if after.tools:
            self.roster.keep(after)
        else:
            self.roster.forget(after)
            self.presence.forget((after.owner, after.client_id))
        self.presence.rouse(after.owner)

    async def _write_farewell(self, client: Client, after: Client, gone: list[str], why: str) -> Commit:
        asked = await self._store.client_calls(client.owner, client.client_id)
        calls = [call for call in asked if call.tool in gone]
        left = PutClient(after) if after.tools else DropClient(client, if_away=why == DISCONNECTED)
        told = ClientUnregistered(client.client_id, tuple(gone), why)
        return await self._desk.give_up(calls, why, left, Tell(client.owner, (told,)))
