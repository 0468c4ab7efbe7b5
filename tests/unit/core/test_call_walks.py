"""Random sequences of moves on a call never break its rules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.decide import calls
from farhand.core.decide.calls import CheckedResult, Reply
from farhand.core.decide.decision import Decision
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.result import Result
from farhand.core.state import ThreadState
from farhand.core.tool import digest_of_approval
from tests.requirement import requirement
from tests.unit.core.samples import NO
from tests.unit.core.thread_builder import TIMEOUTS, Story, asks_for

Try = Callable[[ThreadState, float], Decision[object]]

OUTCOMES: list[Outcome] = [Success({"n": 1}), Failure("broke")]
values: st.SearchStrategy[object] = st.integers(0, 1) | st.booleans()
inputs = st.none() | st.dictionaries(st.sampled_from("ab"), values, max_size=2)


def _answer(answer: Answer) -> Try:
    reply = Reply("apr_1", answer)
    return lambda thread, now: calls.approve(thread, reply, now=now, timeouts=TIMEOUTS)


def _take(holder: str) -> Try:
    return lambda thread, now: calls.take(thread, "call_1", holder, now=now)


def _settle(outcome: Outcome) -> Try:
    checked = CheckedResult(Result(call_id="call_1", outcome=outcome), outcome)
    return lambda thread, now: calls.settle(thread, checked, now=now)


def _edit(input: dict[str, object] | None) -> Try:
    return _answer(Answer(approved=True, input=input))


def _release(thread: ThreadState, now: float) -> Decision[object]:
    return calls.release(thread, "call_1", "tab", now=now)


def _expire(thread: ThreadState, now: float) -> Decision[object]:
    return calls.expire(thread, "call_1", now=now)


def _cancel(thread: ThreadState, now: float) -> Decision[object]:
    return calls.cancel(thread, ["call_1"], "stopped")


tries = st.one_of(
    inputs.map(_edit),
    st.just(_answer(NO)),
    st.sampled_from(["tab", "phone"]).map(_take),
    st.sampled_from([_release, _expire, _cancel]),
    st.sampled_from(OUTCOMES).map(_settle),
)
walks = st.lists(st.tuples(tries, st.sampled_from([0.0, 1.0, 30.0, 400_000.0])), max_size=30)


def walk(steps: list[tuple[Try, float]], *, asks: bool) -> list[Call]:
    """Every state the call was in."""
    story = Story()
    opening = asks_for("call_1", approval_id="apr_1" if asks else None, direct=True)
    states = [story.open_direct(opening)]
    for attempt, pause in steps:
        story.log.now += pause
        story.log.do(attempt)
        if story.call("call_1") != states[-1]:
            states.append(story.call("call_1"))
    return states


@requirement("calls:one-outcome")
@given(walks, st.booleans())
def test_every_walk_has_one_outcome_at_most_and_keeps_it(steps: list[tuple[Try, float]], asks: bool) -> None:
    states = walk(steps, asks=asks)
    settled = [state for state in states if state.phase is Phase.SETTLED]
    assert len(settled) <= 1
    assert all((state.outcome is not None) == (state.phase is Phase.SETTLED) for state in states)
    assert all((state.winner is not None) == (state.phase is Phase.SETTLED) for state in states)


@requirement("calls:not-before-approval")
@given(walks)
def test_no_walk_takes_or_finishes_what_was_not_approved(steps: list[tuple[Try, float]]) -> None:
    states = walk(steps, asks=True)
    for before, after in pairwise(states):
        if before.phase is Phase.ASKING and after.phase is Phase.SETTLED:
            assert isinstance(after.outcome, Denied | TimedOut | Cancelled)
        if after.phase in {Phase.READY, Phase.TAKEN} or isinstance(after.outcome, Success | Failure):
            assert after.approval is not None
            assert after.approval.answer is not None
            assert after.approval.answer.approved


@requirement("calls:what-was-approved")
@given(walks)
def test_after_an_approval_the_digest_always_names_what_would_run(steps: list[tuple[Try, float]]) -> None:
    for state in walk(steps, asks=True):
        assert state.approval is not None
        assert state.approval.digest == digest_of_approval(state.tool_version, state.input)


@given(walks, st.booleans())
def test_only_a_taken_call_has_a_holder(steps: list[tuple[Try, float]], asks: bool) -> None:
    for state in walk(steps, asks=asks):
        assert (state.take is not None) == (state.phase is Phase.TAKEN)


@given(walks)
def test_a_settled_call_has_no_deadline(steps: list[tuple[Try, float]]) -> None:
    assert all(state.deadline is None for state in walk(steps, asks=False) if state.phase is Phase.SETTLED)
