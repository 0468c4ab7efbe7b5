"""Endpoints of the client-tools wire: register, listen, execute, send results."""

from __future__ import annotations

import asyncio
from functools import partial

from farhand.agent.direct_calls import Overdue
from farhand.agent.service import AgentService
from farhand.clients.inbox import Inbox
from farhand.clients.sessions import ClientSessions
from farhand.core.result import Unknown
from farhand.errors import Malformed
from farhand.faces.base import Face, Media, Parameter, Request, Route
from farhand.faces.client_tools.decode import (
    decode_client_id,
    decode_execute,
    decode_progress,
    decode_registration,
    decode_result,
    decode_stream,
    decode_unregister,
)
from farhand.faces.client_tools.encode import (
    PING,
    encode_all_tools,
    encode_error,
    encode_executed,
    encode_items,
    encode_progress,
    encode_receipt,
    encode_registered,
    encode_tools_of,
    encode_unregistered,
)
from farhand.faces.client_tools.shapes import (
    ClientTool,
    ClientToolProgress,
    ClientToolRefusal,
    ClientToolResult,
    ExecutedTool,
    ExecuteTool,
    RegisteredTools,
    RegisterTools,
    TakenResult,
    UnregisteredTools,
    UnregisterTools,
)
from farhand.wire.address import query

JSON = "application/json"
ERROR = {"type": "object", "properties": {"error": {"type": ["object", "string"]}}, "required": ["error"]}


def client_tools_face(service: AgentService, sessions: ClientSessions) -> Face:
    ends = _Endpoints(service, sessions)
    limits = service.settings.limits
    register, result = limits.register_body, limits.result_body
    client = partial(Route, scope="client")
    post = partial(client, "POST", limit=result, rate="results", gives=bool | TakenResult)
    return Face(
        name="client_tools",
        explain=encode_error,
        # an object, except that one dialect says in a string that a request is unknown
        refusal=Media(JSON, ERROR),
        routes=(
            client(
                "POST",
                "/client-tools/register",
                ends.register,
                limit=register,
                rate="registrations",
                takes=RegisterTools,
                gives=RegisteredTools,
            ),
            client(
                "DELETE",
                "/client-tools/unregister",
                ends.unregister,
                limit=register,
                takes=UnregisterTools,
                gives=UnregisteredTools,
            ),
            client("GET", "/client-tools/tools", ends.all_tools, gives=dict[str, object]),
            client("GET", "/client-tools/tools/{client_id}", ends.tools_of, gives=list[ClientTool]),
            client("GET", "/client-tools/pending", ends.nobody),
            client("GET", "/client-tools/pending/", ends.nobody),
            client(
                "GET",
                "/client-tools/pending/{client_id}",
                ends.pending,
                streams=True,
                parameters=(Parameter("holder", {"type": "string"}),),
            ),
            post("/client-tools/result", ends.result, takes=ClientToolResult),
            post("/client-tools/progress", ends.progress, takes=ClientToolProgress),
            Route(
                "POST",
                "/client-tools/execute",
                ends.execute,
                scope="execute",
                limit=result,
                takes=ExecuteTool,
                gives={200: ExecutedTool, 504: ClientToolRefusal},
            ),
        ),
    )


class _Endpoints:
    def __init__(self, service: AgentService, sessions: ClientSessions) -> None:
        self._service = service
        self._sessions = sessions
        self._settings = service.settings

    async def register(self, request: Request) -> None:
        """Offer tools."""
        registration = decode_registration(await request.json())
        tools = await self._sessions.register(request.owner, registration)
        await request.reply(200, encode_registered(tools))

    async def unregister(self, request: Request) -> None:
        """Withdraw tools."""
        asked = decode_unregister(await request.json())
        gone = await self._sessions.unregister(
            request.owner, asked.client_id, asked.tool_ids, by=asked.holder
        )
        await request.reply(200, encode_unregistered(gone))

    async def tools_of(self, request: Request) -> None:
        """List the tools of one client."""
        client_id = decode_client_id(request.parameter("client_id"))
        found = self._sessions.registry.tools_of(request.owner, client_id)
        await request.reply(200, encode_tools_of(found))

    async def all_tools(self, request: Request) -> None:
        """List the tools of all clients."""
        await request.reply(200, encode_all_tools(self._sessions.registry.tools(request.owner)))

    async def nobody(self, request: Request) -> None:
        raise Malformed("The path does not name a client.", hint="GET /client-tools/pending/{clientID}")

    async def pending(self, request: Request) -> None:
        """Receive the calls for a client, as a stream."""
        stream = decode_stream(request.owner, request.parameter("client_id"), query(request.scope))
        every = self._settings.timeouts.client_ping
        async with self._sessions.listen(stream) as inbox:
            source = _Requests(inbox, ping_every=every)
            await request.stream(source, keep_alive=every)

    async def execute(self, request: Request) -> None:
        """Run one tool."""
        call = decode_execute(await request.json(), request.principal, self._settings.limits)
        called = await request.unless_left(self._service.execute(call))
        if called is not None:
            tool = await self._service.tool_of(called.call if isinstance(called, Overdue) else called)
            await request.reply(*encode_executed(called, tool))

    async def result(self, request: Request) -> None:
        """Submit the result of a call."""
        result, dialect = decode_result(await request.json(), self._settings.limits)
        if not await self._may_answer(request, result.call_id):
            await request.reply(*encode_receipt(Unknown(), dialect))
            return
        receipt = await self._service.desk.settle(request.owner, result)
        await request.reply(*encode_receipt(receipt, dialect))

    async def progress(self, request: Request) -> None:
        """Report that a call is still being worked on."""
        report = decode_progress(await request.json(), request.owner, self._settings.limits)
        await request.reply(*encode_progress(await self._sessions.report(report)))

    async def _may_answer(self, request: Request, call_id: str) -> bool:
        """A credential with the scope `client` alone may answer calls of clients alone."""
        if "answer" in request.principal.scopes:
            return True
        call = await self._service.log.get_call(request.owner, call_id)
        return call is not None and call.client_id is not None


class _Requests:
    """A client's inbox as the body of a response, with a ping at intervals."""

    ended = False

    def __init__(self, inbox: Inbox, *, ping_every: float) -> None:
        self._inbox = inbox
        self._ping_every = ping_every
        self._now = asyncio.get_running_loop().time
        self._ping_at = self._now() + ping_every

    async def next(self, seconds: float) -> bytes | None:
        while True:
            left = self._ping_at - self._now()
            if left <= 0:
                self._ping_at = self._now() + self._ping_every
                return PING
            items = await self._inbox.next(left)
            if items is None:
                return None
            if items:
                return encode_items(items)

    def leave(self) -> None:
        self._inbox.leave()
