"""Endpoints of the ack wire: a result, a take, an answer to an approval."""

from __future__ import annotations

from farhand.agent.farhand import Farhand
from farhand.faces.ack.decode import decode_approval, decode_result, decode_take
from farhand.faces.ack.encode import encode_error, encode_receipt, encode_take
from farhand.faces.base import Endpoint, Face, Request, Route


def ack_face(farhand: Farhand) -> Face:
    endpoints = _Endpoints(farhand)
    limit = farhand.settings.limits.result_body
    return Face(
        name="ack",
        explain=encode_error,
        routes=(
            _post("/api/tools/ack", endpoints.result, "answer", limit),
            # the older spelling of the same path
            _post("/ai/tools/ack", endpoints.result, "answer", limit),
            _post("/api/tools/take", endpoints.take, "answer", limit),
            _post("/api/tools/approve", endpoints.approval, "approve", limit),
        ),
    )


def _post(path: str, endpoint: Endpoint, scope: str, limit: int) -> Route:
    return Route("POST", path, endpoint, scope=scope, limit=limit, rate="results")


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
        reply = decode_approval(await request.json(), self._limits)
        receipt = await self._desk.approve(request.owner, reply.approval_id, reply.answer)
        await request.reply(*encode_receipt(receipt))
