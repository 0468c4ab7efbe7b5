"""Registrations, streams, progress reports and withdrawals of clients.

A withdrawal has two steps. First the registration changes, durably and with an entry in the owner's feed.
Then every open call of the withdrawn tools fails in its own thread; `reaper` finds the calls that a process
left open because it stopped in between. The registry changes after the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from farhand.calls.desk import Desk
from farhand.clients.inbox import ClientStream, Inbox
from farhand.clients.presence import ClientKey, Presence, encode_seat
from farhand.clients.registration import Registration, build_tools, check_registration, full_names
from farhand.clients.registry import ClientRegistry
from farhand.core.client import Client, held_by, with_tools, without_tools
from farhand.core.event import CallProgressed, ClientRegistered, ClientUnregistered
from farhand.core.principal import Owner
from farhand.core.result import Accepted, Receipt
from farhand.core.settings import Settings
from farhand.core.tool import Tool
from farhand.errors import Broken, Malformed, NameTaken, TooMany
from farhand.eventlog.codec import encode_notice
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import STREAM_BEGUN, feed_topic
from farhand.store.base import bounded_wait
from farhand.tools.toolbox import Toolbox

log = logging.getLogger("farhand.clients")

DISCONNECTED = "client disconnected"
UNREGISTERED = "the client unregistered this tool"


class ProgressReport(Struct, frozen=True):
    """`text` may be empty. Without progress it only reports that the client still works on the call."""

    stream: ClientStream
    call_id: str
    text: str = ""
    is_progress: bool = True


class ClientSessions:
    def __init__(
        self, registry: ClientRegistry, desk: Desk, eventlog: EventLog, toolbox: Toolbox, settings: Settings
    ) -> None:
        """No client may take a name from `toolbox`."""
        self.registry = registry
        self.presence = Presence()
        self.settings = settings
        self.has_orphans = asyncio.Event()
        """Set while calls of withdrawn tools may still be open."""
        self._desk = desk
        self._log = eventlog
        self._toolbox = toolbox
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Loads the registrations from before a restart: each client has its grace period to reconnect."""
        for client in await self.registry.load():
            self.presence.miss((client.owner, client.client_id))

    async def find(self, key: ClientKey) -> Client | None:
        """The client as this worker knows it; if it does not, another worker may have just registered it."""
        async with self._changing:
            return await self._find(key)

    async def refresh(self, owner: Owner | None = None) -> list[Client]:
        """Reads the registrations of an owner, or of all owners, again. Not during a change here: what is
        read could be older than the change."""
        async with self._changing:
            return await self.registry.load(owner)

    def grace(self, client: Client) -> float:
        """How long the client may be without a stream before its tools are withdrawn."""
        return client.grace_sec if client.listened else self.settings.timeouts.client_first

    async def register(self, owner: Owner, registration: Registration) -> list[Tool]:
        """Adds these tools to the client; a tool with a known id replaces the old one."""
        check_registration(registration)
        # in a thread: checking a schema may take a while
        tools = await asyncio.to_thread(build_tools, registration, may_ask=self.registry.may_ask)
        self._refuse_shadows(tools)
        async with self._changing:
            known = await self._find((owner, registration.client_id))
            if self._log.streams is not None and (known is None or not known.listened):
                await self._log.streams.expect(owner, registration.client_id)
            await self._put(owner, registration, tools)
        # the grace period of a client that had a stream starts with the loss of it, not with a registration
        if known is None or not known.listened:
            self.presence.miss((owner, registration.client_id))
        self.presence.changed.set()
        log.info("client %s registered %d tools", registration.client_id, len(tools))
        return tools

    async def unregister(
        self, owner: Owner, client_id: str, ids: Sequence[str] | None, *, by: str | None = None
    ) -> list[str]:
        """Withdraws these tools, or all of them for None. Returns the full names of those that were there.

        `by` is the program that leaves: if another program has become this client, nothing is withdrawn.
        """
        async with self._changing:
            client = await self._find((owner, client_id))
            if client is None:
                return []
            everything = [tool.name for tool in client.tools]
            names = everything if ids is None else full_names(client.tools, client_id, ids)
            return await self._withdraw(client, names, UNREGISTERED, by=by) if names else []

    async def dismiss(self, key: ClientKey) -> None:
        """Withdraws the tools of a client that has been away for too long, unless it has just come back."""
        async with self._changing:
            client = await self._find(key)
            if key in self.presence or await self._has_seat(key):
                return
            if client is not None:
                await self._withdraw(client, [tool.name for tool in client.tools], DISCONNECTED)
            self.presence.forget(key)

    @asynccontextmanager
    async def listen(self, stream: ClientStream) -> AsyncIterator[Inbox]:
        """The stream of a client, registered or not yet; an older stream of it ends."""
        key = (stream.owner, stream.client_id)
        with Inbox(self._log, self._desk, stream, self.registry) as inbox:
            self.presence.arrive(key, inbox)
            try:
                await self._take_seat(key, inbox)
                # before it gets a call: the program that was this client before must not withdraw it
                await self._note_listening(stream)
                yield inbox
            finally:
                # at a shutdown all streams end, and no client has left
                if self.presence.leave(key, inbox) and not self._log.broker.closed:
                    self.presence.miss(key)

    async def report(self, report: ProgressReport) -> Receipt:
        """Renews the take, and with progress the deadline; the text goes to the owner's feed alone. Without
        a take, nothing happens and the receipt says why."""
        stream = report.stream
        act = self._desk.renew if report.is_progress else self._desk.take
        receipt = await act(stream.owner, report.call_id, stream.holder)
        if report.text and isinstance(receipt, Accepted):
            call = await self._log.get_call(stream.owner, report.call_id)
            if call is not None:
                request_id = None if call.request is None else call.request.request_id
                notice = CallProgressed(call.call_id, call.tool, report.text, request_id)
                await bounded_wait(self._log.store, self._log.add_notice(call.owner, notice, call.thread_id))
        return receipt

    async def _find(self, key: ClientKey) -> Client | None:
        client = self.registry.client(*key)
        if client is None and self._log.is_shared:
            await self.registry.load(key[0])
            client = self.registry.client(*key)
        return client

    async def _take_seat(self, key: ClientKey, inbox: Inbox) -> None:
        """Announces to all workers that the client's newest stream is here."""
        if self._log.streams is None:
            return
        seat = await self._log.streams.arrive(*key, lease_sec=self.settings.timeouts.lease)
        self.presence.sit(seat, inbox)
        self._log.broker.notify_others(STREAM_BEGUN, encode_seat(seat))

    async def _has_seat(self, key: ClientKey) -> bool:
        return self._log.streams is not None and await self._log.streams.is_here(*key)

    async def _note_listening(self, stream: ClientStream) -> None:
        async with self._changing:
            while (client := await self._find((stream.owner, stream.client_id))) is not None:
                if client.listened and client.holder == stream.holder:
                    return
                listening = replace(held_by(client, stream.holder), listened=True, version=client.version + 1)
                if await self._log.clients.put(listening) == "put":
                    self.registry.keep(listening)
                    return
                await self.registry.load(stream.owner)

    async def _put(self, owner: Owner, registration: Registration, tools: list[Tool]) -> None:
        notice = ClientRegistered(registration.client_id, tuple(tool.name for tool in tools))
        while True:
            here = await self._has_seat((owner, registration.client_id))
            client = self._registered(owner, registration, tools, here=here)
            put = self._log.clients.put(client, encode_notice(notice))
            match await bounded_wait(self._log.store, put):
                case "put":
                    self.registry.keep(client)
                    self._log.broker.publish(feed_topic(owner), None)
                    return
                case "name_taken":
                    raise NameTaken(
                        "Another client has a tool of the same full name.", hint="Nothing was registered."
                    )
                case "moved":
                    await self.registry.load(owner)

    def _registered(
        self, owner: Owner, registration: Registration, tools: list[Tool], *, here: bool
    ) -> Client:
        """The client as it will be stored, one version after the stored one."""
        known = self.registry.client(owner, registration.client_id)
        client = known or self._new_client(owner, registration.client_id)
        if registration.holder not in (None, client.former):
            client = held_by(client, registration.holder)
        here = here or (owner, registration.client_id) in self.presence
        grace = client.grace_sec if registration.grace_sec is None else registration.grace_sec
        merged = with_tools(replace(client, grace_sec=grace, listened=client.listened or here), tools)
        if len(merged.tools) > self.settings.limits.tools_per_client:
            raise Malformed(
                f"A client may have at most {self.settings.limits.tools_per_client} tools.",
                hint="Nothing was registered.",
            )
        return merged

    def _new_client(self, owner: Owner, client_id: str) -> Client:
        limit = self.settings.limits.clients_per_principal
        if self.registry.count(owner) >= limit:
            raise TooMany(
                f"There may be at most {limit} clients.",
                hint="Unregister one that you no longer need.",
                retry_after=60,
            )
        return Client(
            owner=owner,
            client_id=client_id,
            tools=(),
            grace_sec=self.settings.timeouts.client_grace,
            registered_at=self._log.now(),
            version=0,
        )

    def _refuse_shadows(self, tools: list[Tool]) -> None:
        for tool in tools:
            if tool.name in self._toolbox:
                raise NameTaken(
                    f"The server already has a tool '{tool.name}'.", hint="Nothing was registered."
                )

    async def _withdraw(
        self, client: Client, names: Sequence[str], why: str, *, by: str | None = None
    ) -> list[str]:
        """Decides again on the stored registration if another change was faster."""
        while by in (None, client.holder):
            gone = [tool.name for tool in client.tools if tool.name in names]
            after = without_tools(client, gone)
            match await self._store_withdrawal(client, after, gone, why):
                case "moved":
                    await self.registry.load(client.owner)
                    current = self.registry.client(client.owner, client.client_id)
                    if current is None:
                        return []
                    client = current
                case "here":
                    # it has just come back, at another worker
                    return []
                case "put" | "dropped":
                    self._note_withdrawal(after)
                    log.info("withdrew %d tools of client %s: %s", len(gone), client.client_id, why)
                    await self._fail_calls(client, gone, why)
                    return gone
        log.info("client %s keeps its tools: another program has become this client", client.client_id)
        return []

    async def _store_withdrawal(
        self, client: Client, after: Client, gone: list[str], why: str
    ) -> Literal["put", "dropped", "moved", "here"]:
        notice = encode_notice(ClientUnregistered(client.client_id, tuple(gone), why))
        if after.tools:
            put = await self._log.clients.put(after, notice)
            assert put != "name_taken", "fewer tools need no new name"
            return put
        return await self._log.clients.drop(client, notice, if_away=why == DISCONNECTED)

    def _note_withdrawal(self, after: Client) -> None:
        if after.tools:
            self.registry.keep(after)
        else:
            self.registry.forget(after)
            self.presence.forget((after.owner, after.client_id))
        self.presence.wake(after.owner)
        self._log.broker.publish(feed_topic(after.owner), None)

    async def _fail_calls(self, client: Client, gone: list[str], why: str) -> None:
        """The calls are read after the withdrawal is stored, so only those that are being opened at this
        moment are missed."""
        is_done = False
        try:
            asked = await self._log.client_calls(client.owner, client.client_id)
            await self._desk.give_up([call for call in asked if call.tool in gone], why)
            is_done = True
        except Broken as error:
            # the tools are withdrawn in any case, so the request has succeeded
            log.warning("cannot fail the calls of client %s yet: %s", client.client_id, error)
        finally:
            # also if the request was cancelled
            if not is_done:
                self.has_orphans.set()
