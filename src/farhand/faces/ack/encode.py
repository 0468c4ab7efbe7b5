"""Encodes receipts for the ack wire."""

from __future__ import annotations

from typing import assert_never

from farhand.core.call import TAKE_LASTS_SEC
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Unknown, Winner
from farhand.errors import FarhandError
from farhand.faces.ack.shapes import AckReply
from farhand.wire.json_writer import encode

AckResponse = tuple[int, bytes]

_OK = (200, encode(AckReply(ok=True)))
_TAKEN = (200, encode(AckReply(ok=True, expires_in_sec=int(TAKE_LASTS_SEC))))
_IGNORED = (200, encode(AckReply(ok=True, ignored=True)))
_UNKNOWN = (404, encode(AckReply(ok=False, reason="unknown")))
_STATUSES = {"failure": "failed", "timed_out": "timeout"}
"""Outcomes that this wire spells differently."""


def encode_receipt(receipt: Receipt) -> AckResponse:
    match receipt:
        case Accepted():
            return _OK
        case Repeated():
            return _IGNORED
        case Conflict(winner=winner):
            reply = AckReply(ok=False, reason="conflict", status=_status(winner), digest=winner.digest)
            return 409, encode(reply)
        case Refused():
            return _refused(receipt)
        case Unknown():
            return _UNKNOWN
    assert_never(receipt)


def encode_take(receipt: Receipt) -> AckResponse:
    """The same receipts; an accepted take also says how long it lasts."""
    return _TAKEN if isinstance(receipt, Accepted) else encode_receipt(receipt)


def encode_error(error: FarhandError, status: int) -> bytes:
    return encode(AckReply(ok=False, reason=error.code, detail=str(error)))


def _refused(refused: Refused) -> AckResponse:
    if refused.reason in ("not_approved", "taken"):
        return 409, encode(AckReply(ok=False, reason=refused.reason))
    assert refused.winner is not None, "an expired or cancelled call has its outcome"
    return 410, encode(AckReply(ok=False, reason=refused.reason, status=_status(refused.winner)))


def _status(winner: Winner) -> str:
    return _STATUSES.get(winner.kind, winner.kind)
