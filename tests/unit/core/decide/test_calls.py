"""Who may move a call, when, and which receipts latecomers get."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import Phase
from farhand.core.decide import calls
from farhand.core.decide.calls import CHANGED, UNKNOWN_END, CheckedResult, Reply
from farhand.core.event import CallTaken, ToolAllowed
from farhand.core.outcome import Cancelled, Denied, Failure, Success, TimedOut, kind_of
from farhand.core.result import Accepted, Conflict, Refused, Repeated, Result, Unknown
from farhand.core.state import ThreadState
from farhand.core.tool import Schema
from tests.unit.core.thread_builder import PAGE, PROGRAM, SERVER_TOOL, TIMEOUTS, Story, asks_for

YES = Answer(approved=True)
NO = Answer(approved=False, reason="not now")


@pytest.fixture
def story() -> Story:
    """A run that waits for a page, and one approval of a server tool."""
    story = Story()
    story.say()
    story.step(asks_for("call_1"), asks_for("call_2", SERVER_TOOL, approval_id="apr_2"))
    return story


def test_the_first_result_wins_and_everybody_is_told_the_same_winner(story: Story) -> None:
    assert story.settle("call_1", Success("a")) == Accepted()
    assert story.settle("call_1", Success("a")) == Repeated()
    conflict = story.settle("call_1", Success("b"))
    assert isinstance(conflict, Conflict)
    assert conflict.winner == story.call("call_1").winner


def test_a_result_for_an_unknown_call_or_a_server_tool_is_unknown(story: Story) -> None:
    assert story.settle("call_9", Success("a")) == Unknown()
    assert story.settle("call_2", Success("a")) == Unknown()
    assert story.finish("call_9", Success("a")) == Unknown()


def test_a_bad_output_is_a_failure_and_its_retry_is_repeated(story: Story) -> None:
    sent, checked = Success("bad"), Failure("The output does not fit its schema.")
    assert story.settle("call_1", sent, checked=checked) == Accepted()
    assert story.call("call_1").outcome == checked
    assert story.settle("call_1", sent, checked=checked) == Repeated()


def test_a_result_after_the_deadline_settles_the_call_as_timed_out(story: Story) -> None:
    story.log.now = story.call("call_1").deadline or 0.0
    receipt = story.settle("call_1", Success("late"))
    assert isinstance(receipt, Refused)
    assert receipt.reason == "expired"
    assert receipt.winner is not None
    assert receipt.winner.kind == "timed_out"
    assert isinstance(story.call("call_1").outcome, TimedOut)
    assert isinstance(story.settle("call_1", Success("later")), Refused)


def test_an_append_of_a_result_must_come_before_the_deadline(story: Story) -> None:
    checked = CheckedResult(Result(call_id="call_1", outcome=Success(1)), Success(1))
    decision = calls.settle(story.thread, checked, now=story.log.now)
    assert decision.not_after == story.call("call_1").deadline
    assert decision.not_before is None


def test_an_append_of_an_answer_must_come_before_the_deadline_of_its_question(story: Story) -> None:
    asked_until = story.call("call_2").deadline
    assert asked_until is not None
    for answer in (YES, NO):
        reply = Reply("apr_2", answer)
        decision = calls.approve(story.thread, reply, now=story.log.now, timeouts=TIMEOUTS)
        assert (decision.not_after, decision.not_before) == (asked_until, None)


def test_an_approval_for_once_allows_nothing_else(story: Story) -> None:
    reply = Reply("apr_2", YES)
    decision = calls.approve(story.thread, reply, now=story.log.now, timeouts=TIMEOUTS)
    assert not any(isinstance(event, ToolAllowed) for event in decision.events)


def test_an_append_of_a_time_out_must_come_after_the_deadline(story: Story) -> None:
    deadline = story.call("call_1").deadline
    assert deadline is not None
    decision = calls.expire(story.thread, "call_1", now=deadline)
    assert decision.not_before == deadline
    checked = CheckedResult(Result(call_id="call_1", outcome=Success(1)), Success(1))
    assert calls.settle(story.thread, checked, now=deadline).not_before == deadline


def test_a_call_that_timed_out_says_how_long_the_person_or_its_tool_had() -> None:
    story = Story()
    story.say()
    tool = replace(PAGE, approval_timeout_sec=3_600.0)
    timed = [
        replace(asks_for(f"call_{name}", tool, approval_id=f"apr_{name}"), timeout_sec=timeout_sec)
        for name, timeout_sec in (("asked", 5.0), ("timed", 5.0), ("untimed", None))
    ]
    story.step(*timed)
    story.log.now += 600.0
    for approval_id in ("apr_timed", "apr_untimed"):
        story.answer(approval_id, YES)
    untimed = story.call("call_untimed").deadline
    assert untimed is not None
    expected = {"asked": 3_600.0, "timed": 5.0, "untimed": untimed - story.log.now}
    story.log.now += TIMEOUTS.park_for
    for name, seconds in expected.items():
        call_id = f"call_{name}"
        assert _expire(story, call_id)
        assert story.call(call_id).outcome == TimedOut(seconds)


def _expire(story: Story, call_id: str) -> bool:
    return story.log.do(lambda thread, now: calls.expire(thread, call_id, now=now))


def test_nothing_expires_before_its_time_or_twice(story: Story) -> None:
    assert not _expire(story, "call_1")
    assert not _expire(story, "call_9")
    story.log.now += TIMEOUTS.park_for
    assert _expire(story, "call_1")
    assert not _expire(story, "call_1")


def test_what_is_not_approved_cannot_be_finished_by_any_path(story: Story) -> None:
    assert story.start("call_2") is None
    assert story.finish("call_2", Success("done")) == Refused("not_approved")
    gated = Story()
    gated.say()
    gated.step(asks_for("call_1", approval_id="apr_1"))
    assert gated.settle("call_1", Success("done")) == Refused("not_approved")
    assert _take(gated, "call_1", "tab") == Refused("not_approved")


def test_an_approved_server_tool_is_started_once(story: Story) -> None:
    assert story.answer("apr_2", YES) == Accepted()
    started = story.start("call_2", fence=1)
    assert started is not None
    assert started == story.call("call_2")
    assert started.deadline == story.log.now + TIMEOUTS.server_tool + 1.0
    assert story.start("call_2", fence=1) is None
    assert story.finish("call_2", Success("done")) == Accepted()
    assert story.finish("call_2", Success("done")) == Repeated()


def test_a_worker_that_lost_the_run_starts_nothing(story: Story) -> None:
    story.answer("apr_2", YES)
    assert story.start("call_2", fence=7) is None
    assert story.call("call_2").phase is Phase.READY


def test_a_worker_that_lost_the_run_finishes_nothing_that_the_next_one_runs_again(story: Story) -> None:
    story.answer("apr_2", YES)
    assert story.start("call_2", fence=1) is not None
    assert story.claim(may_repeat=True) == 2
    assert story.finish("call_2", Success("old"), fence=1) == Refused("taken")
    assert story.call("call_2").phase is Phase.TAKEN
    assert story.finish("call_2", Success("new"), fence=2) == Accepted()
    assert story.call("call_2").outcome == Success("new")


@pytest.mark.parametrize("tool", [None, replace(SERVER_TOOL, description="Another one.")])
def test_a_tool_that_changed_since_its_approval_is_not_run(story: Story, tool: object) -> None:
    story.answer("apr_2", YES)
    assert story.start("call_2", tool) is None  # type: ignore[arg-type]
    assert story.call("call_2").outcome == CHANGED


def test_an_input_that_is_not_the_approved_one_is_not_run(story: Story) -> None:
    story.answer("apr_2", YES)
    call = story.call("call_2")
    story.thread.calls["call_2"] = replace(call, input={"n": 1.0})
    assert story.start("call_2") is None
    assert story.call("call_2").outcome == CHANGED


def test_an_input_that_changed_between_question_and_yes_is_not_run(story: Story) -> None:
    story.thread.calls["call_2"] = replace(story.call("call_2"), input={"n": 1.0})
    story.answer("apr_2", YES)
    assert story.start("call_2") is None
    assert story.call("call_2").outcome == CHANGED


def test_an_edited_input_is_what_runs_and_both_are_kept(story: Story) -> None:
    assert story.answer("apr_2", Answer(approved=True, input={"n": 2})) == Accepted()
    call = story.call("call_2")
    assert call.input == {"n": 2}
    assert call.approval is not None
    assert call.approval.asked_input == {"n": 1}
    assert calls.is_as_approved(call)


@pytest.mark.parametrize("edit", [True, 1.0])
def test_an_edit_that_only_python_takes_for_equal_is_an_edit(story: Story, edit: object) -> None:
    assert story.answer("apr_2", Answer(approved=True, input={"n": edit})) == Accepted()
    call = story.call("call_2")
    assert type(call.input["n"]) is type(edit)
    assert call.approval is not None
    assert call.approval.asked_input == {"n": 1}
    assert story.start("call_2") is not None


def test_an_edit_that_changes_nothing_is_none(story: Story) -> None:
    story.answer("apr_2", Answer(approved=True, input={"n": 1}))
    approval = story.call("call_2").approval
    assert approval is not None
    assert approval.asked_input is None


def test_an_answer_is_given_once(story: Story) -> None:
    assert story.answer("apr_2", NO) == Accepted()
    assert story.call("call_2").outcome == Denied("not now")
    assert story.answer("apr_2", NO) == Repeated()
    conflict = story.answer("apr_2", YES)
    assert isinstance(conflict, Conflict)
    assert conflict.winner.kind == "denied"
    assert story.answer("apr_9", YES) == Unknown()


def test_an_answer_after_the_deadline_of_the_question_is_refused(story: Story) -> None:
    story.log.now += TIMEOUTS.park_for
    receipt = story.answer("apr_2", YES)
    assert isinstance(receipt, Refused)
    assert receipt.reason == "expired"
    assert isinstance(story.answer("apr_2", YES), Refused)


def test_always_in_this_thread_allows_the_next_call_of_this_version(story: Story) -> None:
    story.answer("apr_2", Answer(approved=True, scope="thread"))
    opened = story.open_direct(asks_for("call_3", SERVER_TOOL, approval_id="apr_3", direct=True))
    assert opened.phase is Phase.TAKEN
    changed = replace(SERVER_TOOL, description="Another one.")
    opened = story.open_direct(asks_for("call_4", changed, approval_id="apr_4", direct=True))
    assert opened.phase is Phase.ASKING


def test_approval_and_result_of_one_message_are_accepted_together() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", approval_id="apr_1"), asks_for("call_2"))
    brought = (
        Reply("apr_1", YES),
        CheckedResult(Result(call_id="call_1", outcome=Success(1)), Success(1)),
        CheckedResult(Result(call_id="call_2", outcome=Success(2)), Success(2)),
    )
    version = story.thread.version
    receipts = story.log.do(lambda thread, now: calls.accept(thread, brought, now=now, timeouts=TIMEOUTS))
    assert receipts == [Accepted(), Accepted(), Accepted()]
    assert story.thread.version == version + 1


def test_what_one_message_brings_must_be_stored_before_the_earliest_of_its_deadlines() -> None:
    story = Story()
    story.say()
    hurried = replace(asks_for("call_1"), timeout_sec=5.0)
    story.step(hurried, asks_for("call_2"))
    first, second = story.call("call_1").deadline, story.call("call_2").deadline
    assert first is not None
    assert second is not None
    assert first < second
    results = [
        CheckedResult(Result(call_id=each, outcome=Success(1)), Success(1)) for each in ("call_1", "call_2")
    ]
    for brought in (results, results[::-1]):
        decision = calls.accept(story.thread, brought, now=story.log.now, timeouts=TIMEOUTS)
        assert decision.answer == [Accepted(), Accepted()]
        assert decision.not_after == first


def test_a_held_run_has_less_time_after_an_approval_than_a_parked_one() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", approval_id="apr_1"))
    story.answer("apr_1", YES)
    assert story.call("call_1").deadline == story.log.now + TIMEOUTS.held_call
    direct = story.open_direct(asks_for("call_2", approval_id="apr_2", direct=True))
    story.answer("apr_2", YES)
    assert story.call(direct.call_id).deadline == story.log.now + TIMEOUTS.park_for


def test_a_take_is_renewed_by_its_holder_and_lapses_for_others(story: Story) -> None:
    assert _take(story, "call_1", "tab") == Accepted()
    assert _take(story, "call_1", "phone") == Refused("taken")
    assert _take(story, "call_1", "tab") == Accepted()
    assert _take(story, "call_1", "phone", instead_of="tab") == Accepted()
    story.log.now += 30
    assert _take(story, "call_1", "tab") == Accepted()
    assert story.settle("call_1", Success("by anybody")) == Accepted()
    assert isinstance(_take(story, "call_1", "tab"), Conflict)
    assert _take(story, "call_2", "tab") == Unknown()


def test_a_taken_call_is_given_back_by_its_holder_alone(story: Story) -> None:
    assert _release(story, "call_1", "tab") == Refused("taken")
    _take(story, "call_1", "tab")
    assert _release(story, "call_1", "phone") == Refused("taken")
    assert _release(story, "call_1", "tab") == Accepted()
    assert story.call("call_1").phase is Phase.READY
    assert _release(story, "call_9", "tab") == Unknown()


def test_take_and_release_find_an_overdue_call_expired(story: Story) -> None:
    other = Story()
    other.say()
    other.step(asks_for("call_1"))
    _take(story, "call_1", "tab")
    story.log.now = other.log.now = story.log.now + TIMEOUTS.park_for
    assert isinstance(_release(story, "call_1", "tab"), Refused)
    assert isinstance(_take(other, "call_1", "tab"), Refused)
    for each in (story, other):
        assert isinstance(each.call("call_1").outcome, TimedOut)
        assert isinstance(_release(each, "call_1", "tab"), Refused)


def test_a_server_tool_that_returns_too_late_is_timed_out(story: Story) -> None:
    story.answer("apr_2", YES)
    story.start("call_2")
    story.log.now += TIMEOUTS.server_tool + 1.0
    assert isinstance(story.finish("call_2", Success("late")), Refused)
    assert isinstance(story.call("call_2").outcome, TimedOut)


def test_a_tool_that_was_running_at_a_crash_is_repeated_only_if_it_may_be() -> None:
    for may_repeat, outcome in ((False, UNKNOWN_END), (True, None)):
        story = Story()
        story.say()
        story.step(asks_for("call_1", SERVER_TOOL), asks_for("call_2"))
        story.log.now += 1000
        assert story.claim(may_repeat=may_repeat) == 2
        assert story.call("call_1").outcome == outcome
        assert story.call("call_2").outcome is None
        restarted = [event for event in story.log.events() if isinstance(event, CallTaken)]
        assert len(restarted) == may_repeat


def test_cancelled_and_abandoned_calls_are_settled_once(story: Story) -> None:
    story.open_direct(asks_for("call_3", PROGRAM, direct=True))
    ids = {"call_1", "call_2", "call_3", "call_9"}
    assert story.log.do(lambda thread, _: calls.give_up(thread, ids, "client disconnected")) == 3
    assert story.call("call_3").outcome == Failure("client disconnected")
    assert story.call("call_2").outcome == Cancelled("client disconnected")
    assert story.log.do(lambda thread, _: calls.cancel(thread, ids, "stopped")) == 0
    receipt = story.answer("apr_2", YES)
    assert isinstance(receipt, Refused)
    assert receipt.reason == "cancelled"


def test_deadlines_are_fixed_when_a_call_becomes_ready() -> None:
    story = Story()
    now = story.log.now
    page = story.open_direct(asks_for("call_1", PAGE, direct=True))
    program = story.open_direct(asks_for("call_2", PROGRAM, direct=True))
    declared = story.open_direct(replace(asks_for("call_3", PAGE, direct=True), timeout_sec=7.0))
    held = story.open_direct(replace(asks_for("call_4", PAGE, direct=True), is_held=True))
    asking = story.open_direct(asks_for("call_5", SERVER_TOOL, approval_id="apr_5", direct=True))
    short = replace(SERVER_TOOL, approval_timeout_sec=9.0)
    asking_short = story.open_direct(asks_for("call_6", short, approval_id="apr_6", direct=True))
    deadlines = [
        (each.deadline or 0.0) - now for each in (page, program, declared, held, asking, asking_short)
    ]
    park, client, hold = TIMEOUTS.park_for, TIMEOUTS.client_call, TIMEOUTS.held_call
    assert deadlines == [park, client, 7.0, hold, park, 9.0]
    assert kind_of(TimedOut()) == "timed_out"


@pytest.mark.parametrize("card", ["text", "form", "file", "photo", "color", "rating", None])
def test_a_held_call_that_takes_longer_than_a_press_has_five_minutes(card: str | None) -> None:
    story = Story()
    tool = replace(PAGE, card=card)
    now = story.log.now
    held = story.open_direct(replace(asks_for("call_1", tool, direct=True), is_held=True))
    declared = replace(asks_for("call_2", tool, direct=True), is_held=True, timeout_sec=9.0)
    parked = story.open_direct(asks_for("call_3", tool, direct=True))
    assert [(each.deadline or 0.0) - now for each in (held, story.open_direct(declared), parked)] == [
        300.0,
        9.0,
        TIMEOUTS.park_for,
    ]


@pytest.mark.parametrize("card", ["confirm", "select", "location", "clipboard", "open_page"])
def test_a_held_call_that_a_press_answers_has_a_minute(card: str) -> None:
    story = Story()
    held = story.open_direct(replace(asks_for("call_1", replace(PAGE, card=card), direct=True), is_held=True))
    assert (held.deadline or 0.0) - story.log.now == 60.0


@pytest.mark.parametrize(("output", "seconds"), [({"type": "string"}, 300.0), ({"enum": ["S", "M"]}, 60.0)])
def test_the_time_of_an_approved_call_fits_the_card_that_is_guessed(output: Schema, seconds: float) -> None:
    story = Story()
    tool = replace(PAGE, card=None, output_schema=output)
    story.say()
    story.step(asks_for("call_1", tool, approval_id="apr_1"))
    story.log.now += 5
    story.answer("apr_1", YES)
    assert (story.call("call_1").deadline or 0.0) - story.log.now == seconds


def test_a_client_that_reports_progress_has_its_time_again_within_bounds() -> None:
    story = Story()
    now = story.log.now
    story.open_direct(replace(asks_for("call_1", PROGRAM, direct=True), timeout_sec=20.0))
    story.open_direct(asks_for("call_2", PROGRAM, approval_id="apr_2", direct=True))
    story.open_direct(asks_for("call_3", PAGE, direct=True))
    story.log.now += 15
    story.answer("apr_2", YES)
    assert [_renew(story, f"call_{number}") for number in (1, 2, 3, 9)] == [Accepted()] * 3 + [Unknown()]
    deadlines = [story.call(f"call_{number}").deadline for number in (1, 2, 3)]
    assert deadlines == [now + 35, now + 15 + TIMEOUTS.client_call, now + TIMEOUTS.park_for]
    for _ in range(12):
        story.log.now += 15
        _renew(story, "call_1")
    assert story.call("call_1").deadline == now + 200
    assert story.call("call_1").outcome is None
    story.log.now = now + 200
    assert isinstance(_renew(story, "call_1"), Refused)


def test_without_a_run_the_time_of_an_approved_server_tool_counts_from_the_approval() -> None:
    story = Story()
    story.open_direct(asks_for("call_1", SERVER_TOOL, approval_id="apr_1", direct=True))
    story.log.now += 5
    story.answer("apr_1", YES)
    assert story.call("call_1").deadline == story.log.now + TIMEOUTS.server_tool + 1.0


def _renew(story: Story, call_id: str) -> object:
    return story.log.do(lambda thread, now: calls.renew(thread, call_id, "desk", now=now, timeouts=TIMEOUTS))


def _take(story: Story, call_id: str, holder: str, *, instead_of: str | None = None) -> object:
    return story.log.do(
        lambda thread, now: calls.take(thread, call_id, holder, now=now, instead_of=instead_of)
    )


def _release(story: Story, call_id: str, holder: str) -> object:
    def release(thread: ThreadState, now: float) -> object:
        return calls.release(thread, call_id, holder, now=now)

    return story.log.do(release)  # type: ignore[arg-type]
