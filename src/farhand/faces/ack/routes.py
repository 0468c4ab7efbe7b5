"""Endpoints of the ack wire: a result, a take, an approval."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from farhand.agent.service import AgentService
from farhand.core.principal import name_in
from farhand.faces.ack.decode import decode_ack, decode_approval, decode_take
from farhand.faces.ack.encode import encode_error, encode_receipt, encode_take
from farhand.faces.ack.shapes import Ack, AckReply, ApproveRequest, TakeRequest
from farhand.faces.base import Face, Request, Route


def ack_face(service: AgentService) -> Face:
    endpoints = _Endpoints(service)
    result = Route(
        "POST",
        "",
        endpoints.result,
        scope="answer",
        limit=service.settings.limits.result_body,
        rate="results",
        takes=Ack,
        gives=AckReply,
    )
    return Face(
        name="ack",
        explain=encode_error,
        refusal=AckReply,
        routes=(
            replace(result, path="/api/tools/ack"),
            # the older spelling of the same path
            replace(result, path="/ai/tools/ack", name="old_result", deprecated=True),
            replace(result, path="/api/tools/take", endpoint=endpoints.take, takes=TakeRequest),
            replace(
                result,
                path="/api/tools/approve",
                endpoint=endpoints.approve,
                scope="approve",
                takes=ApproveRequest,
            ),
        ),
    )


class _Endpoints:
    def __init__(self, service: AgentService) -> None:
        self._desk = service.desk
        self._limits = service.settings.limits

    async def result(self, request: Request) -> None:
        """Submit the result of a call."""
        delivered = decode_ack(await request.json(), self._limits)
        settle = self._desk.settle_if_it_fits if delivered.only_if_fits else self._desk.settle
        result = structs.replace(delivered.result, by=name_in(request.principal.claims))
        receipt = await settle(request.owner, result)
        await request.reply(*encode_receipt(receipt))

    async def take(self, request: Request) -> None:
        """Claim a call before executing it."""
        take = decode_take(await request.json())
        receipt = await self._desk.take(request.owner, take.tool_call_id, take.client_id)
        await request.reply(*encode_take(receipt))

    async def approve(self, request: Request) -> None:
        """Approve or deny a call."""
        reply = decode_approval(await request.json(), self._limits)
        principal = request.principal
        receipt = await self._desk.approve(
            principal.owner, reply.approval_id, reply.answer, by=principal.claims
        )
        await request.reply(*encode_receipt(receipt))
