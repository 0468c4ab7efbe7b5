"""What went wrong before a stream opened, in this wire's words."""

from __future__ import annotations

from collections.abc import Sequence

from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Unknown, Winner
from farhand.errors import FarhandError, ResultMismatch
from farhand.faces.awaiting.shapes import Fault, Late, Mismatch, Refusal
from farhand.wire.json_out import encode


def encode_error(error: FarhandError, status: int) -> bytes:
    detail = None
    if isinstance(error, ResultMismatch):
        detail = Mismatch(sorted(error.expected), error.missing, error.unexpected, error.doubled)
    return encode(Refusal(Fault(error.code, str(error), detail)))


def encode_refusal(call_ids: Sequence[str], receipts: Sequence[Receipt]) -> tuple[int, bytes]:
    """Nothing of the post was accepted: the status and the truth about every entry."""
    late = [_late(*each) for each in zip(call_ids, receipts, strict=True)]
    codes = {each.code for each in late}
    code = next(code for code in _REFUSALS if code in codes)
    status, message = _REFUSALS[code]
    return status, encode(Refusal(Fault(code, message, late)))


_REFUSALS = {
    "not_approved": (
        409,
        'A call waits for a yes or no: send "approved": true or false with its result. Nothing was applied.',
    ),
    "conflict": (409, "The call has another result already, and keeps it."),
    "repeated": (409, "These results were taken before; the run went on with them. Follow it on its stream."),
    "expired": (410, "The call's time was up before this result came; the run went on without it."),
    "cancelled": (410, "The call was cancelled before this result came."),
    "unknown": (404, "There is no such call."),
}
"""By how much they say: a post is refused for the first of these that holds for one of its entries."""


def _late(call_id: str, receipt: Receipt) -> Late:
    match receipt:
        case Repeated():
            return Late(call_id, "repeated")
        case Conflict(winner=winner):
            return _of_winner(call_id, "conflict", winner)
        case Refused(reason=reason, winner=winner):
            return _of_winner(call_id, reason, winner)
        case Unknown() | Accepted():
            return Late(call_id, "unknown")


def _of_winner(call_id: str, code: str, winner: Winner | None) -> Late:
    if winner is None:
        return Late(call_id, code)
    return Late(call_id, code, winner.kind, winner.digest)
