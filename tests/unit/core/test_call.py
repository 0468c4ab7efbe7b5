"""The table of moves: what may happen to a call in which phase, and what it looks like afterwards."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import (
    MOVE_OF,
    MOVES,
    TAKE_LASTS_SEC,
    Call,
    Move,
    Phase,
    Take,
    advance,
    approve,
    deny,
    new_call,
    rejected_call,
    release,
    settle,
    take,
)
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut, digest
from farhand.core.result import Winner
from farhand.core.tool import Executor, digest_of_approval
from farhand.errors import Misuse
from tests.requirement import requirement
from tests.unit.core.samples import NO, NOW, YES, a_call, an_asking_call

OUTCOMES: list[Outcome] = [Success(1), Failure("no"), Denied("no"), TimedOut(1.0), Cancelled("stop")]


@requirement("calls:table")
@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("move", Move)
def test_a_move_leads_where_the_table_says_or_nowhere(phase: Phase, move: Move) -> None:
    after = advance(a_call(phase), move)
    expected = MOVES[phase].get(move)
    assert (after.phase if after is not None else None) == expected
    assert after is None or after.version == 2


@requirement("calls:not-before-approval")
@pytest.mark.parametrize("outcome", [Success(1), Failure("no")])
def test_nobody_can_finish_what_was_not_approved(outcome: Outcome) -> None:
    assert settle(an_asking_call(), outcome, sent="d", at=NOW) is None


@requirement("calls:one-outcome")
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_nothing_moves_a_settled_call(outcome: Outcome) -> None:
    settled = settle(a_call(), Success(1), sent="d", at=NOW)
    assert settled is not None
    assert settle(settled, outcome, sent="e", at=NOW) is None
    assert take(settled, "tab", at=NOW) is None
    assert release(settled) is None
    assert all(advance(settled, move) is None for move in Move)


@requirement("calls:table")
def test_every_outcome_has_its_move() -> None:
    assert {type(outcome) for outcome in OUTCOMES} == set(MOVE_OF)


@pytest.mark.parametrize("phase", [Phase.READY, Phase.TAKEN])
def test_a_call_that_is_past_asking_cannot_be_denied(phase: Phase) -> None:
    assert settle(a_call(phase), Denied(), sent="d", at=NOW) is None


def test_a_settled_call_keeps_outcome_digest_and_time_and_nothing_that_waits() -> None:
    taken = take(a_call(), "tab", at=NOW)
    assert taken is not None
    settled = settle(taken, Success(1), sent="d", at=NOW + 5)
    assert settled is not None
    assert (settled.outcome, settled.digest, settled.settled_at) == (Success(1), "d", NOW + 5)
    assert (settled.deadline, settled.take) == (None, None)
    assert settled.winner == Winner("success", "d", NOW + 5)


def test_an_open_call_has_no_winner() -> None:
    assert a_call().winner is None


def test_a_call_without_approval_begins_ready() -> None:
    assert new_call(replace(a_call(Phase.TAKEN), version=7)) == a_call()


def test_a_call_with_an_open_question_begins_asking() -> None:
    call = replace(an_asking_call(), phase=Phase.READY)
    assert new_call(call).phase is Phase.ASKING


def test_a_call_whose_question_was_answered_before_begins_ready() -> None:
    call = an_asking_call()
    assert call.approval is not None
    allowed = replace(call, approval=replace(call.approval, answer=YES))
    assert new_call(allowed).phase is Phase.READY


def test_a_rejected_call_ends_where_it_began() -> None:
    rejected = rejected_call(a_call(), Failure("no such tool"), at=NOW)
    assert rejected.phase is Phase.SETTLED
    assert rejected.version == 1
    assert rejected.winner == Winner("failure", digest(Failure("no such tool")), NOW)
    assert rejected.deadline is None


def test_a_yes_makes_the_call_ready_with_the_deadline_it_is_given() -> None:
    approved = approve(an_asking_call(), YES, at=NOW + 3, deadline=NOW + 90)
    assert approved is not None
    assert (approved.phase, approved.deadline, approved.version) == (Phase.READY, NOW + 90, 2)
    assert approved.approval is not None
    assert (approved.approval.answer, approved.approval.answered_at) == (YES, NOW + 3)
    assert approved.approval.asked_input is None
    assert approved.approval.digest == digest_of_approval("v1", approved.input)


@requirement("calls:edited-input")
@pytest.mark.parametrize("edit", [{"url": "https://example.com"}, {}, {"url": None}])
def test_an_edited_input_is_what_runs_under_a_digest_of_its_own(edit: dict[str, object]) -> None:
    asked = an_asking_call()
    approved = approve(asked, Answer(approved=True, input=edit), at=NOW, deadline=None)
    assert approved is not None
    assert approved.approval is not None
    assert approved.input == edit
    assert approved.approval.asked_input == asked.input
    assert approved.approval.digest == digest_of_approval("v1", edit)


@requirement("calls:edited-input")
@pytest.mark.parametrize(("asked", "edit"), [(1, True), (1, 1.0), (0, False)])
def test_an_edit_that_only_python_takes_for_equal_is_an_edit(asked: object, edit: object) -> None:
    call = replace(an_asking_call(), input={"n": asked})
    approved = approve(call, Answer(approved=True, input={"n": edit}), at=NOW, deadline=None)
    assert approved is not None
    assert approved.approval is not None
    assert type(approved.input["n"]) is type(edit)
    assert approved.approval.digest == digest_of_approval("v1", {"n": edit})
    assert approved.approval.asked_input == {"n": asked}


def test_an_edit_that_changes_nothing_is_none() -> None:
    asked = an_asking_call()
    approved = approve(asked, Answer(approved=True, input=dict(asked.input)), at=NOW, deadline=None)
    assert approved is not None
    assert approved.approval is not None
    assert approved.approval.asked_input is None


@requirement("calls:approval")
@pytest.mark.parametrize("approved", ["false", "true", 1, 0, None])
def test_only_true_and_false_are_answers(approved: object) -> None:
    with pytest.raises(Misuse, match="True or False"):
        Answer(approved=approved)  # type: ignore[arg-type]


def test_a_no_settles_the_call_as_denied_with_the_reason() -> None:
    denied = deny(an_asking_call(), NO, at=NOW)
    assert denied is not None
    assert denied.outcome == Denied("too dear")
    assert denied.digest == digest(Denied("too dear"))
    assert denied.approval is not None
    assert denied.approval.answer == NO


def test_a_call_that_asks_nobody_can_be_neither_approved_nor_denied() -> None:
    assert approve(a_call(), YES, at=NOW, deadline=None) is None
    assert deny(a_call(), NO, at=NOW) is None


def test_a_take_names_its_holder_and_lasts_a_while() -> None:
    taken = take(a_call(), "tab", at=NOW)
    assert taken is not None
    assert taken.take == Take("tab", NOW + TAKE_LASTS_SEC)
    assert (taken.phase, taken.version, taken.deadline) == (Phase.TAKEN, 2, NOW + 60)


def test_a_taken_call_is_refused_to_another_holder_until_the_take_lapses() -> None:
    taken = take(a_call(), "tab", at=NOW)
    assert taken is not None
    assert take(taken, "phone", at=NOW + TAKE_LASTS_SEC - 0.001) is None
    lapsed = take(taken, "phone", at=NOW + TAKE_LASTS_SEC)
    assert lapsed is not None
    assert lapsed.take == Take("phone", NOW + 2 * TAKE_LASTS_SEC)
    assert lapsed.version == taken.version + 1


def test_a_holder_renews_its_take_by_taking_again() -> None:
    taken = take(a_call(), "tab", at=NOW)
    assert taken is not None
    renewed = take(taken, "tab", at=NOW + 10)
    assert renewed is not None
    assert renewed.take == Take("tab", NOW + 10 + TAKE_LASTS_SEC)
    assert renewed.version == 3


def test_a_take_may_set_the_deadline() -> None:
    taken = take(a_call(), "server", at=NOW, deadline=NOW + 121)
    assert taken is not None
    assert taken.deadline == NOW + 121


@requirement("calls:not-before-approval")
def test_a_call_that_asks_cannot_be_taken() -> None:
    assert take(an_asking_call(), "tab", at=NOW) is None


def test_a_released_call_is_ready_for_anybody() -> None:
    taken = take(a_call(), "tab", at=NOW)
    assert taken is not None
    free = release(taken)
    assert free is not None
    assert (free.phase, free.take) == (Phase.READY, None)
    assert take(free, "phone", at=NOW) is not None


def test_a_ready_call_cannot_be_released() -> None:
    assert release(a_call()) is None


@pytest.mark.parametrize(
    ("phase", "executor", "blocks"),
    [
        (Phase.ASKING, Executor.SERVER, True),
        (Phase.ASKING, Executor.FRONTEND, True),
        (Phase.READY, Executor.SERVER, False),
        (Phase.TAKEN, Executor.SERVER, False),
        (Phase.READY, Executor.FRONTEND, True),
        (Phase.TAKEN, Executor.CLIENT, True),
        (Phase.SETTLED, Executor.CLIENT, False),
        (Phase.SETTLED, Executor.SERVER, False),
    ],
)
def test_a_run_waits_for_persons_and_far_hands_only(phase: Phase, executor: Executor, blocks: bool) -> None:
    call: Call = a_call(phase, executor=executor)
    assert call.blocks is blocks
