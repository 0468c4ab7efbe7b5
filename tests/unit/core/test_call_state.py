"""A call as the fold of its events: the effect of each event."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.core.call import TAKE_LASTS_SEC, Call, Phase, Take
from farhand.core.call_state import moved, opened_call
from farhand.core.event import (
    ApprovalAnswered,
    CallMove,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    TakeRenewed,
)
from farhand.core.outcome import Denied, Failure, Outcome, Success
from farhand.core.result import Winner
from farhand.core.tool import Executor
from tests.unit.core.samples import NO, NOW, OWNER, YES, a_call, an_asking_call


def _answered(call: Call, *, approved: bool, deadline: float | None = None) -> ApprovalAnswered:
    assert call.approval is not None
    answer = YES if approved else NO
    return ApprovalAnswered(
        call_id=call.call_id,
        tool=call.tool,
        executor=call.executor,
        approval=replace(call.approval, answer=answer, answered_at=NOW),
        input={"url": "https://example.com"},
        deadline=deadline,
    )


def _settled(outcome: Outcome) -> CallSettled:
    return CallSettled(
        call_id="call_1",
        tool="open_url",
        executor=Executor.FRONTEND,
        outcome=outcome,
        digest="d",
        title="Report",
        metadata={"w": 3},
    )


def test_an_approval_makes_the_call_ready_with_the_input_and_the_deadline_it_was_given() -> None:
    asking = an_asking_call()
    event = _answered(asking, approved=True, deadline=NOW + 90)
    approved = moved(asking, event, NOW + 3)
    assert (approved.phase, approved.deadline, approved.version) == (Phase.READY, NOW + 90, 2)
    assert (approved.input, approved.approval) == (event.input, event.approval)


def test_a_denial_is_kept_with_the_question_and_the_refusal_is_the_outcome() -> None:
    asking = an_asking_call()
    answered = moved(asking, _answered(asking, approved=False), NOW)
    assert (answered.phase, answered.input) == (Phase.ASKING, asking.input)
    denied = moved(answered, _settled(Denied("too dear")), NOW)
    assert denied.outcome == Denied("too dear")
    assert denied.approval is not None
    assert denied.approval.answer == NO


def test_a_take_names_its_holder_and_lasts_a_while() -> None:
    taken = moved(a_call(), CallTaken("call_1", "tab"), NOW)
    assert taken.take == Take("tab", NOW + TAKE_LASTS_SEC)
    assert (taken.phase, taken.deadline) == (Phase.TAKEN, NOW + 60)
    assert moved(a_call(), CallTaken("call_1", "server", NOW + 121), NOW).deadline == NOW + 121


def test_a_taken_call_that_another_takes_is_that_ones() -> None:
    taken = moved(a_call(), CallTaken("call_1", "tab"), NOW)
    again = moved(taken, CallTaken("call_1", "phone"), NOW + 30)
    assert again.take == Take("phone", NOW + 30 + TAKE_LASTS_SEC)
    assert again.version > taken.version


def test_a_renewed_take_lasts_from_then_on_and_may_move_the_deadline() -> None:
    taken = moved(a_call(), CallTaken("call_1", "tab"), NOW)
    renewed = moved(taken, TakeRenewed("call_1", "tab"), NOW + 10)
    assert renewed.take == Take("tab", NOW + 10 + TAKE_LASTS_SEC)
    assert renewed.deadline == taken.deadline
    assert moved(taken, TakeRenewed("call_1", "tab", NOW + 99), NOW).deadline == NOW + 99


def test_a_released_call_is_ready_for_anybody() -> None:
    taken = moved(a_call(), CallTaken("call_1", "tab"), NOW)
    free = moved(taken, CallReleased("call_1"), NOW)
    assert (free.phase, free.take) == (Phase.READY, None)


def test_a_settled_call_keeps_what_came_with_its_result_and_nothing_that_waits() -> None:
    taken = moved(a_call(), CallTaken("call_1", "tab"), NOW)
    settled = moved(taken, _settled(Success(1)), NOW + 5)
    assert (settled.outcome, settled.title, settled.metadata) == (Success(1), "Report", {"w": 3})
    assert settled.winner == Winner("success", "d", NOW + 5)
    assert (settled.deadline, settled.take) == (None, None)


@pytest.mark.parametrize(
    ("call", "event"),
    [
        (an_asking_call(), _settled(Success(1))),
        (an_asking_call(), CallTaken("call_1", "tab")),
        (a_call(), CallReleased("call_1")),
        (a_call(Phase.SETTLED), _settled(Success(1))),
        (a_call(), _settled(Denied())),
    ],
)
def test_a_log_with_a_move_that_the_table_lacks_is_broken(call: Call, event: CallMove) -> None:
    with pytest.raises(AssertionError, match=f"from {call.phase} by {type(event).__name__}"):
        moved(call, event, NOW)


@pytest.mark.parametrize("is_direct", [False, True])
def test_a_call_belongs_to_the_run_unless_a_program_made_it(is_direct: bool) -> None:
    event = CallOpened(
        call_id="call_1",
        tool="open_url",
        tool_version="v1",
        executor=Executor.SERVER,
        input={},
        is_direct=is_direct,
        holder="server",
    )
    call = opened_call(event, OWNER, "t", "run_1", NOW)
    assert call.run_id == (None if is_direct else "run_1")
    assert call.take == Take("server", NOW + TAKE_LASTS_SEC)


@pytest.mark.parametrize(
    ("failure", "outcome"), [(None, Failure("No.")), (Failure("No such tool: x"), Failure("No such tool: x"))]
)
def test_a_rejected_call_has_its_outcome_from_the_start(failure: Failure | None, outcome: Failure) -> None:
    event = CallRejected(call_id="call_1", tool="x", input={"a": 1}, error="No.", failure=failure)
    call = opened_call(event, OWNER, "t", "run_1", NOW)
    assert (call.phase, call.outcome, call.input) == (Phase.SETTLED, outcome, {"a": 1})
