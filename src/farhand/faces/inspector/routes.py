"""Endpoints of the Inspector. They only read, except for two: one sends an existing answer again, one begins
a new run on a copy of a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from farhand.agent.service import AgentService
from farhand.clients.sessions import ClientSessions
from farhand.core.call import Call
from farhand.core.outcome import Denied
from farhand.core.position import Entry
from farhand.core.principal import Principal
from farhand.core.result import Receipt, Result
from farhand.core.run import Run
from farhand.core.thread import text_of
from farhand.errors import Malformed, NotAllowed, NotFound
from farhand.faces.base import CHOSEN_ID, PAGE_SIZE, Endpoint, Face, Parameter, Request, Route, waiting_calls
from farhand.faces.inspector.call_timeline import Mark, marks_of, observed_calls
from farhand.faces.inspector.decode import (
    LONGEST_SEARCH,
    MOST_EVENTS,
    STATES,
    decode_limit,
    decode_rerun,
    decode_search,
)
from farhand.faces.inspector.encode import (
    RecordedRun,
    WireEncoder,
    encode_call,
    encode_clients,
    encode_events,
    encode_feed,
    encode_inbox,
    encode_page,
    encode_receipt,
    encode_rerun,
    encode_run,
    encode_tools,
    may_be_sent_again,
    run_row,
)
from farhand.faces.inspector.run_search import RunSearch
from farhand.faces.inspector.shapes import (
    InspectedCall,
    InspectedClients,
    InspectedEvents,
    InspectedInbox,
    InspectedReceipt,
    InspectedRerun,
    InspectedRun,
    InspectedRuns,
    InspectedServer,
    InspectedTest,
    InspectedTools,
    RerunBody,
)
from farhand.wire.address import base_url, query
from farhand.wire.json_writer import encode

ROOT = "/api/inspect"
LAST = (Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MOST_EVENTS}),)
SEARCH = (
    PAGE_SIZE,
    Parameter("after", CHOSEN_ID),
    Parameter("state", {"enum": list(STATES)}),
    Parameter("search", {"type": "string", "maxLength": LONGEST_SEARCH}),
)


@dataclass(frozen=True)
class ServerDetails:
    """What only the server knows: how the other faces encode a call, its store and its version."""

    wires: Sequence[WireEncoder]
    store: str
    version: str
    write_test: Callable[[AgentService, Run], Awaitable[InspectedTest]]
    """Writes a run as a test that replays it."""
    prices: Mapping[str, tuple[float, float]]
    """Dollars for a million tokens in and out, by model."""


def inspector_face(service: AgentService, sessions: ClientSessions, details: ServerDetails) -> Face:
    endpoints = _Endpoints(service, sessions, details)
    reads: list[tuple[str, Endpoint, object, tuple[Parameter, ...]]] = [
        ("", endpoints.server, InspectedServer, ()),
        ("/runs", endpoints.runs, InspectedRuns, SEARCH),
        ("/runs/{run_id}", endpoints.run, InspectedRun, ()),
        ("/runs/{run_id}/events", endpoints.events_of, InspectedEvents, LAST),
        ("/runs/{run_id}/test", endpoints.test, InspectedTest, ()),
        ("/calls/{call_id}", endpoints.call, InspectedCall, ()),
        ("/events", endpoints.events, InspectedEvents, LAST),
        ("/inbox", endpoints.inbox, InspectedInbox, ()),
        ("/clients", endpoints.clients, InspectedClients, ()),
        ("/tools", endpoints.tools, InspectedTools, ()),
    ]
    again = Route(
        "POST",
        f"{ROOT}/calls/{{call_id}}/again",
        endpoints.again,
        scope="inspect&answer",
        limit=1024,
        rate="results",
        takes=dict[str, object],
        gives=InspectedReceipt,
    )
    anew = Route(
        "POST",
        f"{ROOT}/runs/{{run_id}}/rerun",
        endpoints.rerun,
        scope="inspect&chat",
        limit=300 * 1024,
        takes=RerunBody,
        gives=InspectedRerun,
    )
    routes = [
        Route("GET", f"{ROOT}{path}", endpoint, scope="inspect", gives=shape, parameters=parameters)
        for path, endpoint, shape, parameters in reads
    ]
    return Face(name="inspector", routes=(*routes, again, anew))


class _Endpoints:
    def __init__(self, service: AgentService, sessions: ClientSessions, details: ServerDetails) -> None:
        self._service = service
        self._sessions = sessions
        self._details = details
        self._listing = RunSearch(service)

    async def runs(self, request: Request) -> None:
        """List runs, newest first."""
        search = decode_search(query(request.scope))
        found = await self._listing.find(request.owner, search)
        await request.reply(200, encode_page(found.rows, found.following))

    async def run(self, request: Request) -> None:
        """Read one run, as a waterfall."""
        run = await self._run(request)
        calls = await self._service.calls(run)
        title = await self._listing.title(run)
        asked = await self._service.answered_by(run)
        entries = await self._service.log.entries(run)
        model, details = self._service.spec.model.name, self._details
        row = await asyncio.to_thread(run_row, run, title, calls, self._service.log.now())
        marks = self._marks(run, entries, calls)
        prompt = None if asked is None else text_of(asked)
        recorded = RecordedRun(run=run, row=row, entries=entries, marks=marks, prompt=prompt)
        body = await asyncio.to_thread(
            encode_run, recorded, model=model, store=details.store, prices=details.prices
        )
        await request.reply(200, body)

    def _marks(self, run: Run, entries: Sequence[Entry], calls: Sequence[Call]) -> list[Mark]:
        seen = self._service.observations
        if seen is None:
            return marks_of(entries, (), {})
        answers = {call_id: seen.of(*names) for call_id, names in observed_calls(calls).items()}
        return marks_of(entries, seen.of(run.run_id), answers)

    async def rerun(self, request: Request) -> None:
        """Begin a new run on a copy of the chat, from a step or a call of this run."""
        asked = decode_rerun(await request.json())
        run = await self._run(request)
        rerun = await self._service.rerun(run, asked, request.principal.claims)
        await request.reply(200, encode_rerun(rerun))

    async def events_of(self, request: Request) -> None:
        """Read the last events of a run."""
        limit = decode_limit(query(request.scope))
        run = await self._run(request)
        entries = await self._service.log.entries(run)
        await request.reply(200, await asyncio.to_thread(encode_events, run, entries, limit))

    async def test(self, request: Request) -> None:
        """Read a run as a pytest file."""
        written = await self._details.write_test(self._service, await self._run(request))
        await request.reply(200, encode(written))

    async def call(self, request: Request) -> None:
        """Read everything about one call."""
        call = await self._call(request)
        run = None if call.run_id is None else await self._service.log.get_run(request.owner, call.run_id)
        entries = [] if run is None else await self._service.log.entries(run)
        marks = [] if run is None else self._marks(run, entries, [call])
        # in a thread: redacting may take long
        body = await asyncio.to_thread(
            encode_call, call, run, entries, self._details.wires, base_url(request.scope), marks
        )
        await request.reply(200, body)

    async def again(self, request: Request) -> None:
        """Send the answer of a call again, as a client does that did not receive the receipt."""
        await request.json()
        call = await self._call(request)
        if not may_be_sent_again(call):
            raise Malformed(
                f"The answer of '{call.tool}' cannot be sent again.",
                hint="Only answers of clients and people can, as long as they are kept as they were sent.",
            )
        await request.reply(200, encode_receipt(await self._send_again(request.principal, call)))

    async def _send_again(self, principal: Principal, call: Call) -> Receipt:
        owner = principal.owner
        assert call.outcome is not None, "only what has an outcome is sent again"
        approval = call.approval
        if isinstance(call.outcome, Denied) and approval is not None and approval.answer is not None:
            if "approve" not in principal.scopes:
                raise NotAllowed(
                    "This credential has no scope 'approve'.",
                    hint="Sending a denial again needs the permission to approve.",
                )
            return await self._service.desk.approve(
                owner, approval.approval_id, approval.answer, by=principal.claims
            )
        return await self._service.desk.settle(owner, Result(call_id=call.call_id, outcome=call.outcome))

    async def server(self, request: Request) -> None:
        """Who makes the request, and to which server."""
        principal, details = request.principal, self._details
        shown = InspectedServer(
            tenant=principal.tenant,
            subject=principal.subject,
            model=self._service.spec.model.name,
            store=details.store,
            version=details.version,
            wires=[wire.name for wire in details.wires],
        )
        await request.reply(200, encode(shown))

    async def events(self, request: Request) -> None:
        """Read the last events of this owner, oldest first."""
        limit = decode_limit(query(request.scope))
        first, last = await self._service.log.feed_span(request.owner)
        page = await self._service.log.feed(request.owner, after=max(first - 1, last - limit), limit=limit)
        await request.reply(200, await asyncio.to_thread(encode_feed, page, max(0, last - first + 1)))

    async def inbox(self, request: Request) -> None:
        """List the calls that wait for somebody."""
        calls = await waiting_calls(self._service, request.owner)
        await request.reply(200, await asyncio.to_thread(encode_inbox, calls))

    async def clients(self, request: Request) -> None:
        """List the registered clients."""
        presence = self._sessions.presence
        away = dict(presence.absent())
        asked = [call.client_id for call in await self._service.log.open_calls(request.owner)]
        clients = [
            (
                client,
                (client.owner, client.client_id) in presence,
                away.get((client.owner, client.client_id)),
                asked.count(client.client_id),
            )
            for client in self._sessions.registry.clients(request.owner)
        ]
        await request.reply(200, encode_clients(clients))

    async def tools(self, request: Request) -> None:
        """List the tools."""
        await request.reply(200, encode_tools(await self._service.tools(request.principal)))

    async def _run(self, request: Request) -> Run:
        run = await self._service.log.get_run(request.owner, request.parameter("run_id"))
        if run is None:
            raise NotFound("There is no such run.")
        return run

    async def _call(self, request: Request) -> Call:
        call = await self._service.log.get_call(request.owner, request.parameter("call_id"))
        if call is None:
            raise NotFound("There is no such call.")
        return call
