"""One change of one call: before, after, and the events that tell of it. Pure; the desk commits it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from farhand.calls.verdict import settled_event
from farhand.core import call as table
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.event import ApprovalAnswered, Event
from farhand.core.file import refs_in
from farhand.core.outcome import Outcome, Success, digest
from farhand.core.result import Result
from farhand.store.base import AllowTool, BindFiles, SwapCall, Tell, When, Write, WriteRun


class Reply(Struct, frozen=True, gc=False):
    """A person's answer on its way to the call that asked."""

    approval_id: str
    answer: Answer


class Change(Struct, frozen=True, gc=False):
    before: Call
    after: Call
    events: tuple[Event, ...] = ()
    beside: tuple[Write, ...] = ()

    def writes(self, when: When) -> tuple[Write, ...]:
        call, events = self.after, self.events
        if call.phase is Phase.SETTLED:
            events = (*events, settled_event(call))
        swap = SwapCall(self.before, call, when)
        if not events:
            return (swap, *self.beside)
        if call.run_id is None:
            # a call without a run is told to its owner alone
            return (swap, *self.beside, Tell(call.owner, events, call.thread_id))
        return (swap, *self.beside, WriteRun(run_id=call.run_id, events=events))


def finished(call: Call, outcome: Outcome, *, at: float, result: Result | None = None) -> Change | None:
    """Settled with this outcome; the digest is of the result as it was sent, before any check."""
    sent = digest(outcome if result is None else result.outcome)
    after = table.settle(call, outcome, sent=sent, at=at)
    if after is None:
        return None
    if result is not None and (result.title is not None or result.metadata is not None):
        after = replace(after, title=result.title, metadata=result.metadata)
    # files that the result refers to go with the thread from now on
    refs = refs_in(outcome.output) if isinstance(outcome, Success) else ()
    return Change(call, after, beside=(BindFiles(call.owner, call.thread_id, refs),) if refs else ())


def stopped(call: Call, outcome: Outcome, *, at: float) -> Change:
    """Timed out or cancelled: that may happen in every phase but settled."""
    after = table.settle(call, outcome, sent=digest(outcome), at=at)
    assert after is not None, "the table stops every open call"
    return Change(call, after)


def answered(call: Call, answer: Answer, *, at: float, deadline: float | None) -> Change | None:
    if not answer.approved:
        denied = table.deny(call, answer, at=at)
        return None if denied is None else Change(call, denied, (_told(denied, answer),))
    approved = table.approve(call, answer, at=at, deadline=deadline)
    if approved is None:
        return None
    always = answer.scope == "thread"
    allowed = (AllowTool(call.owner, call.thread_id, call.tool_version),) if always else ()
    return Change(call, approved, (_told(approved, answer),), allowed)


def _told(call: Call, answer: Answer) -> ApprovalAnswered:
    return ApprovalAnswered(
        call_id=call.call_id,
        approval_id=call.approval.approval_id if call.approval else "",
        approved=answer.approved,
        reason=answer.reason,
        tool=call.tool,
        executor=call.executor,
        input=call.input,
        deadline=call.deadline,
    )
