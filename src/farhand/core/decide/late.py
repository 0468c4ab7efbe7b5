"""What somebody is told who comes when the call has moved on."""

from __future__ import annotations

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.outcome import Cancelled, TimedOut, digest
from farhand.core.result import Conflict, Receipt, Refused, Repeated, Winner


def late_result(call: Call, *, sent: str | None) -> Receipt:
    """For a settled call: who sent the same is told that it is there, everybody else who won."""
    winner = call.winner
    assert winner is not None, "only a settled call has a winner"
    if call.digest == sent:
        return Repeated()
    if isinstance(call.outcome, TimedOut):
        return Refused("expired", winner)
    if isinstance(call.outcome, Cancelled):
        return Refused("cancelled", winner)
    return Conflict(winner)


def late_answer(call: Call, answer: Answer) -> Receipt | None:
    """None while the person is still asked. An answer is the same if all of it is: the decision, the edit,
    the reason and the scope, whoever gave it."""
    if call.approval is not None and call.approval.answer is not None:
        given = call.approval.answer
        # by digest, since 1, 1.0 and true are equal to Python and three different edits
        if digest(given) == digest(answer):
            return Repeated()
        kind = "approved" if given.approved else "denied"
        return Conflict(Winner(kind, digest(given), call.approval.answered_at or 0.0))
    return late_result(call, sent=None) if call.phase is Phase.SETTLED else None
