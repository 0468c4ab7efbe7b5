"""Two workers, one call: in every order of decisions, appends, kills and takeovers the promises hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farhand.core import fold
from farhand.core.approval import Answer
from farhand.core.call import Call
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import CheckedResult, Reply
from farhand.core.decide.decision import Decision
from farhand.core.event import (
    ApprovalAnswered,
    CallSettled,
    CallTaken,
    Event,
    RunFinished,
    RunResumed,
    TextAdded,
)
from farhand.core.outcome import Outcome, Success
from farhand.core.result import Accepted, Conflict, Refused, Repeated, Result
from farhand.core.state import RunProgress, ThreadState
from farhand.core.thread import ResultsMessage
from farhand.core.tool import Tool
from tests.laws.interleavings import EARLY, Act, Actor, Command, Rows, Search, World, events_of, state_of
from tests.unit.core.thread_builder import PAGE, SERVER_TOOL, TIMEOUTS, Story, asks_for

YES, NO = Answer(approved=True), Answer(approved=False)


def test_two_results_at_two_workers_have_one_winner_whom_both_are_told() -> None:
    actors = (
        Actor("one", 0, (_settle("one", Success("a")),)),
        Actor("two", 1, (_settle("two", Success("b")),)),
        Actor("again", 1, (_settle("again", Success("a")),)),
        Actor("clock", 0, (_expire(),)),
    )
    winners = set()
    for world in Search(actors, time_passes=True, kills=True).ends(_begun(PAGE)):
        _check(world)
        call = world.thread.calls["call_1"]
        winners.add(None if call.winner is None else (call.winner.kind, call.winner.digest))
        receipts = [*world.told("one"), *world.told("two"), *world.told("again")]
        assert all(isinstance(each, Accepted | Repeated | Conflict | Refused) for each in receipts)
        losers = [each for each in receipts if isinstance(each, Conflict | Refused)]
        assert all(each.winner == call.winner for each in losers)
        assert not any(Accepted() in world.told(name) for name in world.written_late)
    # each of them wins in some order, so the search did see races
    assert len(winners) >= 3


def test_nothing_is_finished_before_it_is_approved_and_two_answers_have_one_winner() -> None:
    actors = (
        Actor("yes", 0, (_answer("yes", YES),)),
        Actor("no", 1, (_answer("no", NO),)),
        Actor("hand", 1, (_settle("result", Success("a")),)),
        Actor("tab", 0, (_take("tab"),)),
    )
    ends = 0
    for world in Search(actors, time_passes=True, kills=True).ends(_begun(PAGE, gated=True)):
        _check(world)
        answered = [event for event in events_of(world.rows) if isinstance(event, ApprovalAnswered)]
        assert len(answered) <= 1
        accepted = [each for name in ("yes", "no") for each in world.told(name) if each == Accepted()]
        assert len(accepted) == len(answered) or 0 in world.dead
        ends += 1
    assert ends > 10


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_an_approved_server_tool_runs_once_whatever_is_killed(is_idempotent: bool) -> None:
    """The second worker takes the run over at any time, also while the first is alive and slow."""
    actors = (
        Actor("person", 1, (_answer("yes", YES),)),
        Actor("first", 0, _executes(fence=1)),
        Actor("second", 1, (_claim(1, is_idempotent), *_executes(fence=2))),
    )
    ran, unknown = 0, 0
    for world in Search(actors, kills=True).ends(_begun(SERVER_TOOL, gated=True)):
        _check(world)
        call = world.thread.calls["call_1"]
        effects = len(world.effects)
        if not is_idempotent:
            assert effects <= 1
        if call.outcome is not None and isinstance(call.outcome, Success):
            assert effects >= 1
        after_claim = _after_takeover(world)
        assert not any(
            isinstance(each, CallSettled) and each.outcome == Success("by 1") for each in after_claim
        )
        ran += effects > 0
        unknown += call.outcome == calls.UNKNOWN_END
    assert ran > 0
    assert (unknown == 0) == is_idempotent


def test_an_accepted_approval_is_acted_on_by_the_worker_that_is_left() -> None:
    """The worker that accepted the answer sees to it: here the second one, which nothing kills."""
    actors = (
        Actor("person", 1, (_answer("yes", YES), _claim(1, False), *_executes(fence=2))),
        Actor("first", 0, _executes(fence=1)),
    )
    for world in Search(actors, kills=True).ends(_begun(SERVER_TOOL, gated=True)):
        _check(world)
        assert world.told("yes") == [Accepted()]
        outcome = world.thread.calls["call_1"].outcome
        assert outcome is not None
        assert len(world.effects) <= 1
        # nobody doubts how a tool ended that nobody had begun
        was_begun = any(isinstance(event, CallTaken) for event in events_of(world.rows))
        assert was_begun or outcome != calls.UNKNOWN_END


def test_a_worker_that_lost_its_claim_writes_nothing_any_more() -> None:
    written = _act("write", lambda told: _write("late", 1))
    actors = (
        Actor("first", 0, (written, written)),
        Actor("second", 1, (_claim(1, False), _act("write", lambda told: _write("new", 2)))),
    )
    for world in Search(actors, kills=True).ends(_begun(None)):
        _check(world)
        assert TextAdded(0, "late") not in _after_takeover(world)


def test_stopping_a_run_settles_its_call_once_whoever_comes_with_a_result() -> None:
    stop = _act("stop", lambda told: lambda thread, _: runs.stop(thread, "run_1", "stopped"))
    actors = (
        Actor("person", 0, (stop,)),
        Actor("hand", 1, (_settle("result", Success("a")),)),
        Actor("other", 1, (stop,)),
    )
    for world in Search(actors, kills=True).ends(_begun(PAGE)):
        _check(world)
        call = world.thread.calls["call_1"]
        assert (world.told("result") == [Accepted()]) == isinstance(call.outcome, Success)
        assert sum(bool(each) for each in world.told("stop")) <= 1
        events = events_of(world.rows)
        ends = [index for index, event in enumerate(events) if isinstance(event, RunFinished)]
        assert not any(isinstance(event, CallSettled) for index in ends for event in events[index:])


def _twice(add: Callable[..., None]) -> Callable[..., None]:
    def twice(thread: ThreadState, run: RunProgress) -> None:
        known = len(thread.messages)
        add(thread, run)
        thread.messages += thread.messages[known:]

    return twice


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a result is taken although the call is settled": lambda patch: patch.setattr(
        calls, "late_result", lambda call, sent: Accepted()
    ),
    "a result may be written after the deadline": lambda patch: patch.setattr(
        calls.Plan, "require_in_time", lambda plan, call: None
    ),
    "the model is given a result twice": lambda patch: patch.setattr(
        fold, "_add_results", _twice(fold._add_results)
    ),
    "a stale claim starts a tool": lambda patch: patch.setattr(
        calls, "is_claimed", lambda thread, fence: True
    ),
    "a tool in flight is run again": lambda patch: patch.setattr(
        runs, "recovered", lambda thread, _, **more: calls.recovered(thread, lambda call: True, **more)
    ),
    "a takeover keeps the fence": lambda patch: patch.setattr(
        runs, "claim", lambda thread, *_, **__: Decision(2, ())
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_search_would_notice(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)
    # states of the sound rules are not those of the faulty ones
    state_of.cache_clear()
    with pytest.raises(AssertionError):
        _search_all()
    state_of.cache_clear()


def _search_all() -> None:
    test_two_results_at_two_workers_have_one_winner_whom_both_are_told()
    test_an_approved_server_tool_runs_once_whatever_is_killed(is_idempotent=False)
    test_a_worker_that_lost_its_claim_writes_nothing_any_more()


def _after_takeover(world: World) -> list[Event]:
    events = events_of(world.rows)
    takeover = RunResumed(taken_over=True)
    return events[events.index(takeover) :] if takeover in events else []


def _check(world: World) -> None:
    """What holds in every end: one outcome per call, which the model gets once; nothing run or finished
    without approval."""
    settled = [event for event in events_of(world.rows) if isinstance(event, CallSettled)]
    assert len(settled) <= 1
    call = world.thread.calls.get("call_1")
    given = [
        result.outcome
        for message in world.thread.messages
        if isinstance(message, ResultsMessage)
        for result in message.results
    ]
    assert given == [event.outcome for event in settled]
    told = [each for place in world.places for each in place.told if each[0] != "take"]
    accepted = [name for name, answer in told if answer == Accepted()]
    if call is not None and call.approval is not None:
        answer = call.approval.answer
        assert not world.effects or (answer is not None and answer.approved)
        if isinstance(call.outcome, Success):
            assert answer is not None
            assert answer.approved
    else:
        # accepted is told to the one whose result is the outcome
        assert len(accepted) <= len(settled)


# ------------------------------------------------------------------------------------------------ actors


def _begun(tool: Tool | None, *, gated: bool = False) -> Rows:
    story = Story()
    story.log.now = EARLY
    story.say()
    if tool is not None:
        story.step(asks_for("call_1", tool, approval_id="apr_1" if gated else None))
    return tuple(story.log.rows)


def _act(name: str, command: Callable[[dict[str, object]], Command]) -> Act:
    return Act(name, command)


def _settle(name: str, outcome: Outcome) -> Act:
    checked = CheckedResult(Result(call_id="call_1", outcome=outcome), outcome)
    return Act(name, lambda told: lambda thread, now: calls.settle(thread, checked, now=now))


def _answer(name: str, answer: Answer) -> Act:
    reply = Reply("apr_1", answer)
    return Act(
        name, lambda told: lambda thread, now: calls.approve(thread, reply, now=now, timeouts=TIMEOUTS)
    )


def _take(holder: str) -> Act:
    return Act("take", lambda told: lambda thread, now: calls.take(thread, "call_1", holder, now=now))


def _expire() -> Act:
    return Act("expire", lambda told: lambda thread, now: calls.expire(thread, "call_1", now=now))


def _write(text: str, fence: int) -> Command:
    def write(thread: ThreadState, now: float) -> Decision[object]:
        after = 0 if thread.run is None else thread.run.seq
        return runs.write(thread, fence, (TextAdded(0, text),), after=after)

    return write


def _claim(fence: int, may_repeat: bool) -> Act:
    def command(thread: ThreadState, now: float) -> Decision[object]:
        return runs.claim(thread, "run_1", fence, lambda call: may_repeat, now=now, timeouts=TIMEOUTS)

    return Act("claim", lambda told: command, unless=lambda answer: answer is None)


def _executes(fence: int) -> tuple[Act, ...]:
    """Starts the tool if it may, has its effect, and stores its result. A call that the claim restarted runs
    without another start."""

    def start(thread: ThreadState, now: float) -> Decision[object]:
        call = thread.calls["call_1"]
        if _was_restarted(call, thread, fence):
            return Decision(True)
        decision = calls.start(thread, "call_1", SERVER_TOOL, now=now, timeouts=TIMEOUTS, fence=fence)
        return Decision(decision.answer is not None, decision.events)

    def finish(thread: ThreadState, now: float) -> Decision[object]:
        return calls.finish(thread, "call_1", Success(f"by {fence}"), now=now, fence=fence)

    return (
        Act("start", lambda told: start, unless=lambda answer: not answer),
        Act("effect", effect=f"by {fence}"),
        Act("finish", lambda told: finish),
    )


def _was_restarted(call: Call, thread: ThreadState, fence: int) -> bool:
    run = thread.active_run
    return call.phase == "taken" and run is not None and run.fence == fence and fence > 1
