"""What a result or an answer is told when the call has moved on without it. Pure."""

from __future__ import annotations

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.event import CallSettled
from farhand.core.outcome import Cancelled, Failure, TimedOut, digest
from farhand.core.result import Conflict, Receipt, Refused, Repeated, Winner


def late_result(call: Call, *, sent: str) -> Receipt:
    """For a settled call: all are told the same winner."""
    winner = call.winner
    assert winner is not None, "only a settled call has been missed"
    if call.digest == sent:
        return Repeated()
    if isinstance(call.outcome, TimedOut):
        return Refused("expired", winner)
    if isinstance(call.outcome, Cancelled):
        return Refused("cancelled", winner)
    return Conflict(winner)


def late_answer(call: Call, answer: Answer) -> Receipt | None:
    """None while the person is still asked."""
    if call.approval is not None and call.approval.answer is not None:
        given = call.approval.answer
        # by digest, since 1, 1.0 and true are equal to Python and three different edits
        if digest(given) == digest(answer):
            return Repeated()
        kind = "approved" if given.approved else "denied"
        return Conflict(Winner(kind, digest(given), call.approval.answered_at or 0.0))
    return late_result(call, sent="") if call.phase is Phase.SETTLED else None


def settled_event(call: Call) -> CallSettled:
    return CallSettled(
        call_id=call.call_id,
        tool=call.tool,
        executor=call.executor,
        outcome=call.outcome or Failure("no outcome"),
        digest=call.digest or "",
    )
