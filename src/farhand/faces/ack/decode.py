"""Decodes requests of the ack wire."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from farhand.agent.turns import check_text_size
from farhand.core.approval import Answer
from farhand.core.decide.calls import Reply
from farhand.core.outcome import Failure, Success
from farhand.core.result import Result
from farhand.core.settings import Limits
from farhand.errors import Malformed
from farhand.faces.ack.shapes import Ack, ApproveRequest, TakeRequest
from farhand.wire.json_reader import read_as


class DecodedAck(Struct, frozen=True):
    """A result, and whether an output that does not match the schema leaves its call open."""

    result: Result
    only_if_fits: bool


def decode_ack(body: bytes, limits: Limits) -> DecodedAck:
    ack = read_as(body, Ack)
    return DecodedAck(_result(ack, limits), ack.only_if_fits)


def _result(ack: Ack, limits: Limits) -> Result:
    if ack.requested_at is not None:
        _check_time(ack.requested_at)
    if ack.status == "success":
        return Result(call_id=ack.tool_call_id, outcome=Success(ack.output))
    # a client cannot extend a deadline: a timeout that it reports is a failure like any other
    result = Result(call_id=ack.tool_call_id, outcome=Failure(ack.error_text or ack.status))
    check_text_size(result, limits)
    return result


def decode_take(body: bytes) -> TakeRequest:
    take = read_as(body, TakeRequest)
    if not 1 <= len(take.client_id) <= 128:
        raise Malformed("clientId must have 1 to 128 characters.")
    return take


def decode_approval(body: bytes, limits: Limits) -> Reply:
    request = read_as(body, ApproveRequest)
    answer = Answer(
        approved=request.approved, reason=request.reason or "", input=request.input, scope=request.scope
    )
    reply = Reply(request.approval_id, answer)
    check_text_size(reply, limits)
    return reply


def _check_time(text: str) -> None:
    """Informational only, but a bad value means a bad client."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise Malformed("requestedAt is not an ISO 8601 time.") from None
