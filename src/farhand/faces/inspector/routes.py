"""Endpoints of the Inspector. All of them read, but for one that brings an answer which is there already."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from farhand.agent.farhand import Farhand
from farhand.clients.attendance import Attendance
from farhand.core.call import Call
from farhand.core.outcome import Denied
from farhand.core.principal import Principal
from farhand.core.result import Receipt, Result
from farhand.core.run import Run
from farhand.errors import Malformed, NotAllowed, NotFound
from farhand.faces.base import Face, Request, Route, if_readable
from farhand.faces.inspector.as_test import file_of
from farhand.faces.inspector.decode import decode_limit, decode_search
from farhand.faces.inspector.encode import (
    Around,
    encode_call,
    encode_clients,
    encode_error,
    encode_events,
    encode_feed,
    encode_inbox,
    encode_page,
    encode_receipt,
    encode_run,
    encode_tools,
    may_be_sent_again,
    run_row,
)
from farhand.faces.inspector.listing import Listing
from farhand.faces.inspector.recording import recording_of
from farhand.faces.inspector.shapes import ServerShape, TestShape
from farhand.faces.inspector.wires import Wire
from farhand.wire.address import query
from farhand.wire.json_out import encode

ROOT = "/api/inspect"


@dataclass(frozen=True)
class Surroundings:
    """What only the server knows: how the other faces tell a call, and what it is made of."""

    wires: Sequence[Wire]
    store: str
    version: str


def inspector_face(farhand: Farhand, attendance: Attendance, around: Surroundings) -> Face:
    runs = _Runs(farhand, around)
    rest = _Rest(farhand, attendance, around)
    reads = {
        "": rest.server,
        "/runs": runs.runs,
        "/runs/{run_id}": runs.run,
        "/runs/{run_id}/events": runs.events,
        "/runs/{run_id}/test": runs.test,
        "/calls/{call_id}": runs.call,
        "/events": rest.events,
        "/inbox": rest.inbox,
        "/clients": rest.clients,
        "/tools": rest.tools,
    }
    path = f"{ROOT}/calls/{{call_id}}/again"
    again = Route("POST", path, runs.again, scope="inspect&answer", limit=1024, rate="results")
    routes = [Route("GET", f"{ROOT}{path}", endpoint, scope="inspect") for path, endpoint in reads.items()]
    return Face(name="inspector", explain=encode_error, routes=(*routes, again))


class _Runs:
    def __init__(self, farhand: Farhand, around: Surroundings) -> None:
        self._farhand = farhand
        self._around = around
        self._listing = Listing(farhand)

    async def runs(self, request: Request) -> None:
        search = decode_search(query(request.scope))
        found = await self._listing.find(request.owner, search)
        await request.reply(200, encode_page(found.rows, found.following))

    async def run(self, request: Request) -> None:
        run = await self._run(request)
        calls = await self._farhand.calls(run)
        title = await self._listing.title(run)
        entries = await self._farhand.journal(run)
        now = self._farhand.kit.store.now()
        around = Around(self._farhand.spec.model.name, self._around.store, now)
        row = await asyncio.to_thread(run_row, run, title, calls, now)
        body = await asyncio.to_thread(encode_run, run, row, entries, around)
        await request.reply(200, body)

    async def events(self, request: Request) -> None:
        limit = decode_limit(query(request.scope))
        run = await self._run(request)
        entries = await self._farhand.journal(run)
        await request.reply(200, await asyncio.to_thread(encode_events, run, entries, limit))

    async def test(self, request: Request) -> None:
        """The run as a pytest file."""
        recording = await recording_of(self._farhand, await self._run(request))
        written = await asyncio.to_thread(file_of, recording)
        await request.reply(200, encode(TestShape(written.name, written.text)))

    async def call(self, request: Request) -> None:
        call = await self._call(request)
        run = None if call.run_id is None else await self._farhand.run_of(request.owner, call.run_id)
        entries = [] if run is None else await self._farhand.journal(run)
        # beside the loop: what is masked may be long
        body = await asyncio.to_thread(encode_call, call, run, entries, self._around.wires, _address(request))
        await request.reply(200, body)

    async def again(self, request: Request) -> None:
        """Brings the answer that the call has, as a client does that did not hear the receipt."""
        await request.json()
        call = await self._call(request)
        if not may_be_sent_again(call):
            raise Malformed(
                f"The answer of '{call.tool}' can not be sent again.",
                hint="Only what a far hand or a person sent can be, as long as it is kept as it was sent.",
            )
        await request.reply(200, encode_receipt(await self._bring(request.principal, call)))

    async def _bring(self, principal: Principal, call: Call) -> Receipt:
        owner = principal.owner
        assert call.outcome is not None, "only what has an outcome is sent again"
        approval = call.approval
        if isinstance(call.outcome, Denied) and approval is not None and approval.answer is not None:
            if "approve" not in principal.scopes:
                raise NotAllowed(
                    "This sign-in has no scope 'approve'.", hint="A no is sent again by who may approve."
                )
            return await self._farhand.desk.approve(owner, approval.approval_id, approval.answer)
        return await self._farhand.desk.settle(owner, Result(call_id=call.call_id, outcome=call.outcome))

    async def _run(self, request: Request) -> Run:
        run = await self._farhand.run_of(request.owner, request.parameter("run_id"))
        if run is None:
            raise NotFound("There is no such run.")
        return run

    async def _call(self, request: Request) -> Call:
        call = await self._farhand.call_of(request.owner, request.parameter("call_id"))
        if call is None:
            raise NotFound("There is no such call.")
        return call


class _Rest:
    def __init__(self, farhand: Farhand, attendance: Attendance, around: Surroundings) -> None:
        self._farhand = farhand
        self._attendance = attendance
        self._around = around

    async def server(self, request: Request) -> None:
        principal, around = request.principal, self._around
        shown = ServerShape(
            tenant=principal.tenant,
            subject=principal.subject,
            model=self._farhand.spec.model.name,
            store=around.store,
            version=around.version,
            wires=[wire.name for wire in around.wires],
        )
        await request.reply(200, encode(shown))

    async def events(self, request: Request) -> None:
        """The last that happened to this owner, oldest first."""
        limit = decode_limit(query(request.scope))
        first, last = await self._farhand.feed_span(request.owner)
        page = await self._farhand.news(request.owner, after=max(first - 1, last - limit), limit=limit)
        await request.reply(200, await asyncio.to_thread(encode_feed, page, max(0, last - first + 1)))

    async def inbox(self, request: Request) -> None:
        calls = [call for call in await self._farhand.open_calls(request.owner) if call.blocks]
        titles: dict[str, str] = {}
        for thread_id in {call.thread_id for call in calls}:
            thread = await if_readable(self._farhand.thread(request.owner, thread_id), thread_id)
            titles[thread_id] = "" if thread is None else thread.title
        titled = [(call, titles[call.thread_id]) for call in calls]
        await request.reply(200, await asyncio.to_thread(encode_inbox, titled))

    async def clients(self, request: Request) -> None:
        presence = self._attendance.presence
        away = dict(presence.absent())
        asked = [call.client_id for call in await self._farhand.open_calls(request.owner)]
        clients = [
            (
                client,
                (client.owner, client.client_id) in presence,
                away.get((client.owner, client.client_id)),
                asked.count(client.client_id),
            )
            for client in self._attendance.roster.clients(request.owner)
        ]
        await request.reply(200, encode_clients(clients))

    async def tools(self, request: Request) -> None:
        await request.reply(200, encode_tools(self._farhand.kit.tools(request.owner)))


def _address(request: Request) -> str:
    """As the visitor reached the server, so that a command works from where they are."""
    host = (request.header(b"host") or b"").decode("latin-1")
    return f"{request.scope.get('scheme', 'http')}://{host}{request.scope.get('root_path', '')}"
