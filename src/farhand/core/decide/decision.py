"""The result of a decision: events to append, the answer to the caller, and from and until when it holds; and
the receipts for submissions that come after another one was stored."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.event import Event
from farhand.core.outcome import Cancelled, TimedOut, digest
from farhand.core.result import Conflict, Receipt, Refused, Repeated, Winner
from farhand.core.tool import Tool

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Decision(Struct, Generic[T_co], frozen=True):
    """`answer` goes to the caller of the command, once `events` are durable; without events, once the state
    on which it was decided is durable and known to be the newest.

    `not_after` and `not_before` are judged by the store's own clock when the append is written: an append
    that comes too late or too early changes nothing and is decided again.
    """

    answer: T_co
    events: tuple[Event, ...] = ()
    tools: tuple[Tool, ...] = ()
    """Of the calls that these events open: a call keeps the schema it was opened with."""
    not_after: float | None = None
    not_before: float | None = None

    def extended(self, answer: U, *events: Event, tools: tuple[Tool, ...] = ()) -> Decision[U]:
        """With more events in the same append, and another answer."""
        more, tools = (*self.events, *events), (*self.tools, *tools)
        return Decision(answer, more, tools, self.not_after, self.not_before)


def late_result(call: Call, *, sent: str | None) -> Receipt:
    """For a settled call. `Repeated`: the same result was stored. `Refused`: none was, because the call had
    expired or was cancelled. `Conflict`: something else was stored first: another result, a failure or a
    person's denial. The last two name the winner. `sent` is None for a command that brings no result."""
    winner = call.winner
    assert winner is not None, "only a settled call has a winner"
    if sent is not None and call.digest == sent:
        return Repeated()
    if isinstance(call.outcome, TimedOut):
        return Refused("expired", winner)
    if isinstance(call.outcome, Cancelled):
        return Refused("cancelled", winner)
    return Conflict(winner)


def late_answer(call: Call, answer: Answer) -> Receipt | None:
    """None while the approval waits for an answer. Two answers are the same only if both approve or both
    deny, with the same edit, reason and scope, no matter who gave them."""
    if call.approval is not None and call.approval.answer is not None:
        first = call.approval.answer
        # by digest, since in Python 1, 1.0 and true are equal, but they are three different edits
        if digest(first) == digest(answer):
            return Repeated()
        kind, answered_at = "approved" if first.approved else "denied", call.approval.answered_at
        assert answered_at is not None, "an answer has a time"
        return Conflict(Winner(kind, digest(first), answered_at))
    return late_result(call, sent=None) if call.phase is Phase.SETTLED else None
