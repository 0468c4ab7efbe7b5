"""Endpoints of the client-tools wire: register, listen, execute, bring results."""

from __future__ import annotations

import asyncio

from farhand.agent.direct import Overdue
from farhand.agent.farhand import Farhand
from farhand.clients.attendance import Attendance
from farhand.clients.inbox import Inbox
from farhand.core.result import Unknown
from farhand.errors import Malformed
from farhand.faces.base import Face, Request, Route
from farhand.faces.client_tools.decode import (
    decode_client_id,
    decode_execute,
    decode_listener,
    decode_progress,
    decode_registration,
    decode_result,
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
from farhand.wire.address import query

HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


def client_tools_face(farhand: Farhand, attendance: Attendance) -> Face:
    ends = _Endpoints(farhand, attendance)
    limits = farhand.settings.limits
    register, result = limits.register_body, limits.result_body
    return Face(
        name="client_tools",
        explain=encode_error,
        routes=(
            Route(
                "POST",
                "/client-tools/register",
                ends.register,
                scope="client",
                limit=register,
                rate="registrations",
            ),
            Route("DELETE", "/client-tools/unregister", ends.unregister, scope="client", limit=register),
            Route("GET", "/client-tools/tools", ends.all_tools, scope="client"),
            Route("GET", "/client-tools/tools/{client_id}", ends.tools_of, scope="client"),
            Route("GET", "/client-tools/pending", ends.nobody, scope="client"),
            Route("GET", "/client-tools/pending/", ends.nobody, scope="client"),
            Route("GET", "/client-tools/pending/{client_id}", ends.pending, scope="client", streams=True),
            Route("POST", "/client-tools/execute", ends.execute, scope="execute", limit=result),
            Route("POST", "/client-tools/result", ends.result, scope="client", limit=result, rate="results"),
            Route(
                "POST", "/client-tools/progress", ends.progress, scope="client", limit=result, rate="results"
            ),
        ),
    )


class _Endpoints:
    def __init__(self, farhand: Farhand, attendance: Attendance) -> None:
        self._farhand = farhand
        self._attendance = attendance
        self._settings = farhand.settings

    async def register(self, request: Request) -> None:
        registration = decode_registration(await request.json())
        tools = await self._attendance.register(request.owner, registration)
        await request.reply(200, encode_registered(tools))

    async def unregister(self, request: Request) -> None:
        wish = decode_unregister(await request.json())
        gone = await self._attendance.unregister(request.owner, wish.client_id, wish.tool_ids, by=wish.holder)
        await request.reply(200, encode_unregistered(gone))

    async def tools_of(self, request: Request) -> None:
        client_id = decode_client_id(request.parameter("client_id"))
        found = self._attendance.roster.tools_of(request.owner, client_id)
        await request.reply(200, encode_tools_of(found))

    async def all_tools(self, request: Request) -> None:
        await request.reply(200, encode_all_tools(self._attendance.roster.tools(request.owner)))

    async def nobody(self, request: Request) -> None:
        raise Malformed("The path names no client.", hint="GET /client-tools/pending/{clientID}")

    async def pending(self, request: Request) -> None:
        listener = decode_listener(request.owner, request.parameter("client_id"), query(request.scope))
        every = self._settings.patience.client_ping
        async with self._attendance.listen(listener) as inbox:
            source = _Requests(inbox, ping_every=every)
            await request.stream(source, headers=HEADERS, keep_alive=every)

    async def execute(self, request: Request) -> None:
        wish = decode_execute(await request.json(), request.owner, self._settings.limits)
        called = await request.unless_left(self._farhand.execute(wish))
        if called is not None:
            tool = await self._farhand.tool_of(called.call if isinstance(called, Overdue) else called)
            await request.reply(*encode_executed(called, tool))

    async def result(self, request: Request) -> None:
        result, dialect = decode_result(await request.json(), self._settings.limits)
        if not await self._may_answer(request, result.call_id):
            await request.reply(*encode_receipt(Unknown(), dialect))
            return
        receipt = await self._farhand.desk.settle(request.owner, result)
        await request.reply(*encode_receipt(receipt, dialect))

    async def progress(self, request: Request) -> None:
        report = decode_progress(await request.json(), request.owner, self._settings.limits)
        await request.reply(*encode_progress(await self._attendance.progress.note(report)))

    async def _may_answer(self, request: Request, call_id: str) -> bool:
        """A sign-in that may only be a client answers for clients alone."""
        if "answer" in request.principal.scopes:
            return True
        call = await self._farhand.call_of(request.owner, call_id)
        return call is not None and call.client_id is not None


class _Requests:
    """A client's inbox as the body of a response, with a ping every so many seconds."""

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
