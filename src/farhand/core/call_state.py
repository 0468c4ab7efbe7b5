"""A call as the fold of its events. Moves only by the table of `call.py`; decides nothing."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from farhand.core.call import (
    MOVE_OF,
    TAKE_LASTS_SEC,
    Call,
    Move,
    Phase,
    ProgramRequest,
    Take,
    advance,
    rejected_call,
)
from farhand.core.event import (
    ApprovalAnswered,
    CallersMoved,
    CallMove,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    OutcomeReported,
    TakeRenewed,
)
from farhand.core.outcome import Failure
from farhand.core.principal import Owner


def opened_call(
    event: CallOpened | CallRejected, owner: Owner, thread_id: str, run_id: str | None, at: float
) -> Call:
    """The call as it starts; a rejected one has its outcome at once."""
    if isinstance(event, CallRejected):
        return _rejected(event, owner, thread_id, run_id, at)
    return Call(
        call_id=event.call_id,
        owner=owner,
        thread_id=thread_id,
        run_id=None if event.is_direct else run_id,
        step=event.step,
        tool=event.tool,
        tool_version=event.tool_version,
        executor=event.executor,
        input=event.input,
        model_call_id=event.model_call_id,
        client_id=event.client_id,
        request=event.request,
        claims=event.claims,
        parent=event.parent,
        card=event.card,
        is_typed=event.is_typed,
        template=event.title,
        untrusted=event.untrusted,
        timeout_sec=event.timeout_sec,
        opened_at=at,
        phase=event.phase,
        deadline=event.deadline,
        approval=event.approval,
        take=None if event.holder is None else Take(event.holder, at + TAKE_LASTS_SEC),
    )


def _rejected(event: CallRejected, owner: Owner, thread_id: str, run_id: str | None, at: float) -> Call:
    call = Call(
        call_id=event.call_id,
        owner=owner,
        thread_id=thread_id,
        run_id=run_id,
        step=event.step,
        tool=event.tool,
        tool_version=event.tool_version,
        executor=event.executor,
        input=event.input if isinstance(event.input, dict) else {},
        model_call_id=event.model_call_id,
        opened_at=at,
        phase=Phase.READY,
    )
    return rejected_call(call, event.failure or Failure(event.error), at=at)


def moved(call: Call, event: CallMove, at: float) -> Call:
    """The call after this event. The table has every move that a decision makes: a log that contradicts it is
    broken."""
    match event:
        case ApprovalAnswered(approval=approval) if approval.answer is not None and approval.answer.approved:
            after = advance(call, Move.APPROVE, approval=approval, input=event.input, deadline=event.deadline)
        case ApprovalAnswered(approval=approval):
            # the denial itself is the call's outcome, in a separate event
            after = replace(call, approval=approval)
        case CallTaken(holder=holder, deadline=deadline):
            free = advance(call, Move.RELEASE, take=None) or call
            until = Take(holder, at + TAKE_LASTS_SEC)
            after = advance(free, Move.TAKE, take=until, deadline=deadline or call.deadline)
        case TakeRenewed(holder=holder, deadline=deadline):
            after = replace(call, take=Take(holder, at + TAKE_LASTS_SEC), deadline=deadline or call.deadline)
        case CallReleased():
            after = advance(call, Move.RELEASE, take=None)
        case CallSettled(outcome=outcome):
            after = advance(
                call,
                MOVE_OF[type(outcome)],
                outcome=outcome,
                digest=event.digest,
                settled_at=at,
                deadline=None,
                take=None,
                title=event.title,
                metadata=event.metadata,
                output_summary=event.summary,
                request=_without_callers(call.request),
                settled_by=event.answered_by,
            )
        case OutcomeReported() | CallersMoved():
            assert call.request is not None, "only calls that programs made have callers, and are reported"
            after = replace(call, request=_moved_request(call.request, event))
        case _:
            assert_never(event)
    assert after is not None, f"the log moves call {call.call_id} from {call.phase} by {type(event).__name__}"
    return after


def _moved_request(request: ProgramRequest, event: OutcomeReported | CallersMoved) -> ProgramRequest:
    if isinstance(event, CallersMoved):
        return replace(request, worker=event.worker)
    return replace(request, worker=event.by, is_reported=event.by is None)


def _without_callers(request: ProgramRequest | None) -> ProgramRequest | None:
    """All waiting callers now have the outcome: any worker may report it."""
    if request is None or request.request_id is None or request.worker is None:
        return request
    return replace(request, worker=None)
