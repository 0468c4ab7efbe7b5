"""The table of moves: what may happen to a call in which phase, and the result."""

from __future__ import annotations

import pytest

from farhand.core.approval import Answer
from farhand.core.call import MOVE_OF, MOVES, Call, Move, Phase, advance, rejected_call
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut, digest
from farhand.core.result import Winner
from farhand.core.tool import Executor
from farhand.errors import Misuse
from tests.requirement import requirement
from tests.unit.core.samples import NOW, a_call, an_asking_call

OUTCOMES: list[Outcome] = [Success(1), Failure("no"), Denied("no"), TimedOut(1.0), Cancelled("stop")]


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("move", Move)
def test_a_move_leads_where_the_table_says_or_nowhere(phase: Phase, move: Move) -> None:
    after = advance(a_call(phase), move)
    expected = MOVES[phase].get(move)
    assert (after.phase if after is not None else None) == expected
    assert after is None or after.version == 2


@requirement("calls:not-before-approval")
def test_nobody_can_finish_what_was_not_approved() -> None:
    assert advance(an_asking_call(), Move.FINISH) is None


@requirement("calls:not-before-approval")
def test_a_call_that_asks_cannot_be_taken() -> None:
    assert advance(an_asking_call(), Move.TAKE) is None


@requirement("calls:one-outcome")
def test_nothing_moves_a_settled_call() -> None:
    assert all(advance(a_call(Phase.SETTLED), move) is None for move in Move)


def test_every_outcome_has_its_move() -> None:
    assert {type(outcome) for outcome in OUTCOMES} == set(MOVE_OF)


@pytest.mark.parametrize("phase", [Phase.READY, Phase.TAKEN])
def test_a_call_that_is_past_asking_cannot_be_denied(phase: Phase) -> None:
    assert advance(a_call(phase), Move.DENY) is None


def test_an_open_call_has_no_winner() -> None:
    assert a_call().winner is None


def test_a_rejected_call_ends_where_it_began() -> None:
    rejected = rejected_call(a_call(), Failure("no such tool"), at=NOW)
    assert rejected.phase is Phase.SETTLED
    assert rejected.version == 1
    assert rejected.winner == Winner("failure", digest(Failure("no such tool")), NOW)
    assert rejected.deadline is None


@pytest.mark.parametrize("approved", ["false", "true", 1, 0, None])
def test_only_true_and_false_are_answers(approved: object) -> None:
    with pytest.raises(Misuse, match="True or False"):
        Answer(approved=approved)  # type: ignore[arg-type]


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
