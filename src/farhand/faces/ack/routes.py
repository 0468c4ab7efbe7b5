"""Endpoints of the ack wire: a result, a take, an answer to an approval."""

from __future__ import annotations

from farhand.agent.farhand import Farhand
from farhand.faces.ack.decode import decode_approval, decode_result, decode_take
from farhand.faces.ack.encode import encode_error, encode_receipt, encode_take
from farhand.faces.base import Face, Request, Route


def ack_face(farhand: Farhand) -> Face:
    endpoints = _Endpoints(farhand)
    limit = farhand.settings.limits.result_body
    return Face(
        name="ack",
        explain=encode_error,
        routes=(
            Route("POST", "/api/tools/ack", endpoints.result, scope="answer", limit=limit),
            # the older spelling of the same path
            Route("POST", "/ai/tools/ack", endpoints.result, scope="answer", limit=limit),
            Route("POST", "/api/tools/take", endpoints.take, scope="answer", limit=limit),
            Route("POST", "/api/tools/approve", endpoints.approval, scope="approve", limit=limit),
        ),
    )


class _Endpoints:
    def __init__(self, farhand: Farhand) -> None:
        self._desk = farhand.desk
        self._limits = farhand.settings.limits

    async def result(self, request: Request) -> None:
        result = decode_result(await request.json(), self._limits)
        receipt = await self._desk.settle(request.owner, result)
        await request.reply(*encode_receipt(receipt))

    async def take(self, request: Request) -> None:
        take = decode_take(await request.json())
        receipt = await self._desk.take(request.owner, take.tool_call_id, take.client_id)
        await request.reply(*encode_take(receipt))

    async def approval(self, request: Request) -> None:
        reply = decode_approval(await request.json())
        receipt = await self._desk.approve(request.owner, reply.approval_id, reply.answer)
        await request.reply(*encode_receipt(receipt))
