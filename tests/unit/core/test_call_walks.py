"""Whatever is tried on a call, in whatever order, what must never happen does not happen."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase, approve, deny, release, settle, take
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.tool import digest_of_approval
from tests.requirement import requirement
from tests.unit.core.samples import NO, NOW, a_call, an_asking_call

Try = Callable[[Call, float], Call | None]

OUTCOMES: list[Outcome] = [
    Success({"n": 1}),
    Failure("broke"),
    Denied("no"),
    TimedOut(5.0),
    Cancelled("stopped"),
]
values: st.SearchStrategy[object] = st.integers(0, 1) | st.booleans()
inputs = st.none() | st.dictionaries(st.sampled_from("ab"), values, max_size=2)


def _approval(input: dict[str, object] | None) -> Try:
    return lambda call, at: approve(call, Answer(approved=True, input=input), at=at, deadline=at + 60)


def _take(holder: str) -> Try:
    return lambda call, at: take(call, holder, at=at)


def _outcome(number: int) -> Try:
    return lambda call, at: settle(call, OUTCOMES[number], sent=f"sent {number}", at=at)


tries = st.one_of(
    inputs.map(_approval),
    st.just(lambda call, at: deny(call, NO, at=at)),
    st.sampled_from(["tab", "phone"]).map(_take),
    st.just(lambda call, at: release(call)),
    st.integers(0, len(OUTCOMES) - 1).map(_outcome),
)
walks = st.lists(st.tuples(tries, st.floats(0, 40)), max_size=30)


def walk(call: Call, steps: list[tuple[Try, float]]) -> list[Call]:
    """Every state the call was in."""
    at, states = NOW, [call]
    for attempt, pause in steps:
        at += pause
        after = attempt(states[-1], at)
        if after is not None:
            states.append(after)
    return states


@requirement("calls:one-outcome")
@given(walks, st.booleans())
def test_every_walk_has_one_outcome_at_most_and_keeps_it(steps: list[tuple[Try, float]], asks: bool) -> None:
    states = walk(an_asking_call() if asks else a_call(), steps)
    settled = [state for state in states if state.phase is Phase.SETTLED]
    assert len(settled) <= 1
    assert all((state.outcome is not None) == (state.phase is Phase.SETTLED) for state in states)
    assert all((state.winner is not None) == (state.phase is Phase.SETTLED) for state in states)


@requirement("calls:table")
@given(walks, st.booleans())
def test_every_change_counts_one_version(steps: list[tuple[Try, float]], asks: bool) -> None:
    states = walk(an_asking_call() if asks else a_call(), steps)
    assert [state.version for state in states] == list(range(1, len(states) + 1))


@requirement("calls:not-before-approval")
@given(walks)
def test_no_walk_takes_or_finishes_what_was_not_approved(steps: list[tuple[Try, float]]) -> None:
    states = walk(an_asking_call(), steps)
    for before, after in pairwise(states):
        if before.phase is Phase.ASKING and after.phase is Phase.SETTLED:
            assert isinstance(after.outcome, Denied | TimedOut | Cancelled)
        if after.phase in {Phase.READY, Phase.TAKEN} or isinstance(after.outcome, Success | Failure):
            assert after.approval is not None
            assert after.approval.answer is not None
            assert after.approval.answer.approved


@requirement("calls:what-was-approved")
@given(walks)
def test_after_a_yes_the_digest_always_names_what_would_run(steps: list[tuple[Try, float]]) -> None:
    for state in walk(an_asking_call(), steps):
        assert state.approval is not None
        assert state.approval.digest == digest_of_approval(state.tool_version, state.input)


@given(walks, st.booleans())
def test_only_a_taken_call_has_a_holder(steps: list[tuple[Try, float]], asks: bool) -> None:
    for state in walk(an_asking_call() if asks else a_call(), steps):
        assert (state.take is not None) == (state.phase is Phase.TAKEN)


@given(walks)
def test_a_settled_call_has_no_deadline(steps: list[tuple[Try, float]]) -> None:
    assert all(state.deadline is None for state in walk(a_call(), steps) if state.phase is Phase.SETTLED)
