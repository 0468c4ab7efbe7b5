"""Calls that a program makes: opened within limits, started by one worker, ended with their callers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase, ProgramRequest, Question
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import ASKER_GONE, CHANGED, UNKNOWN_END
from farhand.core.decide.decision import Decision
from farhand.core.decide.direct import (
    AskerGone,
    LimitReached,
    OpenedQuestion,
    QuestionChanged,
    RequestUsed,
    add_caller,
    cancel_unwanted,
    cancel_with_callers,
    claim_report,
    is_unwanted,
    needs_worker,
    open_direct,
    open_question,
    reported,
)
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import MOVED_ON, Started
from farhand.core.event import ThreadCreated
from farhand.core.outcome import Cancelled, Success, TimedOut
from farhand.core.result import Refused
from farhand.core.run import RunState
from farhand.core.settings import Limits, Settings
from farhand.core.thread import ResultsMessage
from farhand.core.tool import Tool
from tests.unit.core.thread_builder import PAGE, SERVER_TOOL, SETTINGS, TIMEOUTS, Story, asks_for

YES = Answer(approved=True)


def _open(
    story: Story, opening: Opening, *, calls_left: int = 9, settings: Settings = SETTINGS
) -> Call | LimitReached | RequestUsed:
    return story.log.do(
        lambda thread, now: open_direct(
            thread, opening, title="Jobs", now=now, settings=settings, calls_left=calls_left
        )
    )


def _start(story: Story, seen: Call, tool: Tool | None = SERVER_TOOL, worker: str = "w2") -> Call | None:
    return story.log.do(
        lambda thread, now: calls.start_direct(thread, seen, tool, worker, now=now, timeouts=TIMEOUTS)
    )


def _on_server(call_id: str = "call_1", *, approval_id: str | None = None) -> Opening:
    opening = asks_for(call_id, SERVER_TOOL, approval_id=approval_id, direct=True)
    return replace(opening, worker="w1")


def test_the_first_call_of_a_program_creates_its_thread_and_keeps_its_tool() -> None:
    story = Story()
    decision = open_direct(
        story.thread, asks_for("call_1", direct=True), title="Jobs", now=0.0, settings=SETTINGS, calls_left=9
    )
    assert decision.events[0] == ThreadCreated("Jobs")
    assert decision.tools == (PAGE,)
    for call_id in ("call_2", "call_3"):
        opened = _open(story, asks_for(call_id, direct=True))
        assert isinstance(opened, Call)
        assert replace(opened, number=story.call(call_id).number) == story.call(call_id)
    assert sum(isinstance(event, ThreadCreated) for event in story.log.events()) == 1


@pytest.mark.parametrize(
    ("limits", "calls_left", "why"),
    [
        (Limits(open_calls_per_thread=1), 9, "A thread may have 1 open calls at most."),
        (Limits(open_calls_per_tenant=7), 0, "A tenant may have 7 open calls at most."),
    ],
)
def test_a_call_that_has_to_wait_needs_room_and_one_that_runs_at_once_does_not(
    limits: Limits, calls_left: int, why: str
) -> None:
    story, settings = Story(), Settings(limits=limits)
    _open(story, asks_for("call_1", direct=True))
    assert _open(
        story, asks_for("call_2", direct=True), calls_left=calls_left, settings=settings
    ) == LimitReached(why)
    asking = _on_server("call_3", approval_id="apr_3")
    assert _open(story, asking, calls_left=calls_left, settings=settings) == LimitReached(why)
    assert isinstance(_open(story, _on_server("call_4"), calls_left=calls_left, settings=settings), Call)
    assert list(story.thread.calls) == ["call_1", "call_4"]


@pytest.mark.parametrize(
    ("opening", "has_to_wait"),
    [
        (asks_for("call_1", PAGE), True),
        (asks_for("call_1", SERVER_TOOL), False),
        (asks_for("call_1", SERVER_TOOL, approval_id="apr_1"), True),
    ],
)
def test_what_runs_here_without_a_question_waits_for_nobody(opening: Opening, has_to_wait: bool) -> None:
    assert opening.has_to_wait is has_to_wait


def test_a_request_id_stands_for_one_call_of_its_thread() -> None:
    story = Story()
    _open(story, asks_for("call_0", direct=True))
    _open(story, replace(asks_for("call_1", direct=True), request=ProgramRequest("job-1")))
    again = replace(asks_for("call_2", direct=True), request=ProgramRequest("job-1"))
    assert _open(story, again) == RequestUsed(story.call("call_1"))
    other = replace(again, request=ProgramRequest("job-2"))
    assert isinstance(_open(story, other), Call)


def test_the_request_id_of_a_settled_call_is_left_to_the_store_which_knows_whether_it_was_purged() -> None:
    story = Story()
    _open(story, replace(asks_for("call_1", direct=True), request=ProgramRequest("job-1")))
    story.settle("call_1", Success("done"))
    again = replace(asks_for("call_2", direct=True), request=ProgramRequest("job-1"))
    assert isinstance(_open(story, again), Call)


def test_a_worker_starts_what_was_approved_and_its_time_counts_from_the_approval() -> None:
    story = Story()
    _open(story, _on_server(approval_id="apr_1"))
    assert _start(story, story.call("call_1")) is None, "nobody has approved it"
    story.answer("apr_1", YES)
    deadline = story.log.now + TIMEOUTS.server_tool + 1.0
    story.log.now += 5
    seen = story.call("call_1")
    started = _start(story, seen)
    assert started == story.call("call_1")
    assert started is not None
    assert started.take is not None
    assert (started.take.holder, started.deadline) == ("server.w2", deadline)
    assert _start(story, seen, worker="w3") is None, "somebody was faster"
    assert (
        calls.start_direct(
            story.thread, started, SERVER_TOOL, "w3", now=story.log.now, timeouts=TIMEOUTS
        ).not_after
        == deadline
    )


def test_a_call_without_a_deadline_gets_one_when_it_starts() -> None:
    story = Story()
    _open(story, _on_server(approval_id="apr_1"))
    story.answer("apr_1", YES)
    story.thread.calls["call_1"] = replace(story.call("call_1"), deadline=None)
    started = _start(story, story.call("call_1"))
    assert started is not None
    assert started.deadline == story.log.now + TIMEOUTS.server_tool + 1.0


def test_only_direct_calls_of_the_server_are_started_as_such() -> None:
    story = Story()
    page = story.open_direct(asks_for("call_1", direct=True))
    assert _start(story, page) is None
    assert _start(story, replace(page, call_id="call_9")) is None
    story.say()
    story.step(asks_for("call_2", SERVER_TOOL))
    assert _start(story, story.call("call_2")) is None


def test_a_tool_is_not_started_after_its_time_or_when_it_changed() -> None:
    story = Story()
    for number, tool in ((1, None), (2, replace(SERVER_TOOL, description="Another one."))):
        _open(story, _on_server(f"call_{number}"))
        assert _start(story, story.call(f"call_{number}"), tool) is None
        assert story.call(f"call_{number}").outcome == CHANGED
    _open(story, _on_server("call_3"))
    deadline = story.call("call_3").deadline
    assert deadline is not None
    story.log.now = deadline
    late = calls.start_direct(
        story.thread, story.call("call_3"), SERVER_TOOL, "w2", now=deadline, timeouts=TIMEOUTS
    )
    assert late.not_before == deadline
    assert _start(story, story.call("call_3")) is None
    assert isinstance(story.call("call_3").outcome, TimedOut)


def test_a_tool_whose_worker_is_gone_has_an_unknown_end_unless_the_call_has_moved() -> None:
    story = Story()
    _open(story, _on_server())
    _open(story, _on_server("call_2", approval_id="apr_2"))
    seen = story.call("call_1")
    assert not _abandon(story, replace(seen, call_id="call_9"))
    assert not _abandon(story, story.call("call_2"))
    taken_over = _start(story, seen)
    assert taken_over is not None
    assert not _abandon(story, seen)
    assert _abandon(story, taken_over)
    assert story.call("call_1").outcome == UNKNOWN_END


def test_a_call_is_missed_by_nobody_without_request_id_approval_and_run() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_0"))
    _open(story, asks_for("call_1", direct=True))
    _open(story, replace(asks_for("call_2", direct=True), request=ProgramRequest("job-1")))
    _open(story, replace(asks_for("call_3", direct=True), request=ProgramRequest(worker="w1")))
    for number in (4, 5):
        _open(story, _on_server(f"call_{number}", approval_id=f"apr_{number}"))
    story.answer("apr_5", YES)
    unwanted = [call.call_id for call in story.thread.calls.values() if is_unwanted(call)]
    assert unwanted == ["call_1", "call_3", "call_4"]
    attended = [call.call_id for call in story.thread.calls.values() if needs_worker(call)]
    assert attended == ["call_1", "call_3", "call_4", "call_5"]
    ids = ["call_0", "call_2", "call_3", "call_4", "call_5", "call_9"]
    assert story.log.do(lambda thread, _: cancel_unwanted(thread, ids, "nobody asks")) == 2
    ended = [call.call_id for call in story.thread.calls.values() if call.outcome == Cancelled("nobody asks")]
    assert ended == ["call_3", "call_4"]
    assert story.call("call_1").phase is Phase.READY


def test_a_direct_call_is_finished_like_any_other() -> None:
    story = Story()
    _open(story, _on_server())
    assert story.log.do(lambda thread, now: _finish(story, now))
    assert story.call("call_1").outcome == Success("done")


def _abandon(story: Story, seen: Call) -> bool:
    return story.log.do(lambda thread, _: calls.abandon(thread, seen))


def _finish(story: Story, now: float) -> Decision[object]:
    return calls.finish(story.thread, "call_1", Success("done"), now=now)


HOLDER = "server.w1"


def _working() -> Story:
    """A tool is at work in a direct call."""
    story = Story()
    opening = replace(asks_for("call_1", SERVER_TOOL, direct=True), worker="w1")
    story.open_direct(replace(opening, request=ProgramRequest("key=job", is_reported=False)))
    assert story.call("call_1").phase is Phase.TAKEN
    return story


def _question(call_id: str = "call_q", *, key: str = "#1", **input: object) -> Opening:
    return replace(asks_for(call_id, PAGE, direct=True), parent=Question("call_1", key), input=input)


def _ask(
    story: Story,
    opening: Opening,
    *,
    holder: str = HOLDER,
    calls_left: int = 9,
    settings: Settings = SETTINGS,
    fence: int | None = None,
) -> OpenedQuestion:
    return story.log.do(
        lambda thread, now: open_question(
            thread, opening, holder, now=now, settings=settings, calls_left=calls_left, fence=fence
        )
    )


def test_a_question_is_asked_once_and_found_again() -> None:
    story = _working()
    asked = _ask(story, _question())
    assert isinstance(asked, Call)
    assert _ask(story, _question("call_other")) == story.call("call_q")
    assert isinstance(_ask(story, _question("call_third", key="#2")), Call)
    assert _ask(story, _question("call_other", size="L")) == QuestionChanged()


def test_only_whoever_runs_the_tool_may_ask() -> None:
    story = _working()
    assert _ask(story, _question(), holder="server.w2") == AskerGone()
    story.log.do(lambda thread, now: calls.finish(thread, "call_1", Success(1), now=now))
    assert _ask(story, _question()) == AskerGone()


def test_a_tool_whose_time_is_over_asks_nothing_and_the_store_judges_whether_it_is() -> None:
    story = _working()
    deadline = story.call("call_1").deadline
    assert deadline is not None
    in_time = open_question(
        story.thread, _question(), HOLDER, now=story.log.now, settings=SETTINGS, calls_left=9
    )
    assert in_time.not_after == deadline
    story.log.now = deadline
    assert _ask(story, _question()) == AskerGone()
    assert story.call("call_1").deadline == deadline


def test_a_tool_whose_run_was_taken_over_asks_nothing() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL))
    fence = story.run.fence
    assert isinstance(_ask(story, _question(), holder="server", fence=fence), Call)
    assert story.claim(may_repeat=True) is not None
    version = story.thread.version
    for key in ("#1", "#2"):
        late = _ask(story, _question("call_late", key=key), holder="server", fence=fence)
        assert late == AskerGone()
    assert story.thread.version == version
    again = _ask(story, _question("call_again"), holder="server", fence=story.run.fence)
    assert again == story.call("call_q")


def test_a_question_that_was_approved_with_another_input_is_found_again() -> None:
    story = _working()
    question = replace(_question(path="a"), approval_id="apr_1")
    assert isinstance(_ask(story, question), Call)
    story.answer("apr_1", Answer(approved=True, input={"path": "b"}))
    assert story.call("call_q").input == {"path": "b"}
    assert _ask(story, replace(question, call_id="call_other")) == story.call("call_q")
    assert _ask(story, _question("call_other", path="b")) == QuestionChanged()


def test_a_question_takes_room_like_any_call_that_waits() -> None:
    full = _ask(_working(), _question(), calls_left=0)
    assert isinstance(full, LimitReached)
    few = Settings(limits=Limits(open_calls_per_thread=1))
    story = _working()
    assert isinstance(_ask(story, _question(), settings=few), Call)
    assert isinstance(_ask(story, _question("call_2", key="#2"), settings=few), LimitReached)


def test_the_deadline_of_the_tool_is_out_of_reach_while_it_asks_and_its_end_ends_the_question() -> None:
    story = _working()
    before = story.call("call_1").deadline
    _ask(story, _question())
    deadline = story.call("call_1").deadline
    assert before is not None
    assert deadline is not None
    assert deadline > before + SETTINGS.timeouts.park_for
    story.log.now = deadline + 1
    late = story.log.do(lambda thread, now: calls.finish(thread, "call_1", Success(1), now=now))
    assert isinstance(late, Refused)
    assert story.call("call_q").outcome == Cancelled(ASKER_GONE)


def test_one_worker_reports_an_outcome_and_another_only_if_that_one_is_gone() -> None:
    story = _working()
    open_call = story.call("call_1")
    assert claim_report(story.thread, open_call, "w1").answer is None
    assert not reported(story.thread, "call_1").answer
    story.log.do(lambda thread, now: calls.finish(thread, "call_1", Success(1), now=now))
    settled = story.call("call_1")
    assert story.log.do(lambda thread, _: claim_report(thread, settled, "w1")) == settled
    seen = story.call("call_1")
    assert claim_report(story.thread, seen, "w2").answer is None
    assert claim_report(story.thread, settled, "w2", is_lost=True).answer is None
    assert story.log.do(lambda thread, _: claim_report(thread, seen, "w2", is_lost=True)) == seen
    assert story.log.do(lambda thread, _: reported(thread, "call_1"))
    assert not story.call("call_1").is_unreported


# ------------------------------------------------------------------------------------- in a run


def _in_run(call_id: str, *, key: str = "#1", approval_id: str | None = None) -> Opening:
    return replace(asks_for(call_id, PAGE, approval_id=approval_id), parent=Question("call_1", key))


def _ask_in_run(story: Story, opening: Opening) -> OpenedQuestion:
    return _ask(story, opening, holder="server")


def _rest(story: Story, fence: int = 1) -> bool:
    return story.log.do(lambda thread, _: runs.rest(thread, fence))


def _state(story: Story) -> RunState:
    return story.run.state


def test_a_run_waits_once_all_that_its_tools_do_is_ask() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL), asks_for("call_2", SERVER_TOOL))
    _ask_in_run(story, _in_run("call_q"))
    assert _state(story) is RunState.RUNNING, "the other tool works"
    assert not _rest(story)
    story.finish("call_2", Success(2))
    assert _state(story) is RunState.WAITING
    _ask_in_run(story, _in_run("call_r", key="#2"))
    story.settle("call_q", Success("yes"))
    assert _state(story) is RunState.WAITING, "it asks another question still"
    story.settle("call_r", Success("yes"))
    assert _state(story) is RunState.RUNNING


def test_responses_to_a_run_that_asks_end_once_for_each_wait() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL))
    _ask_in_run(story, _in_run("call_q"))
    assert not _rest(story, fence=2), "another claim has it"
    assert _rest(story)
    version = story.thread.version
    assert (story.run.is_kept, story.run.is_parked) == (True, False)
    assert _rest(story)
    assert story.thread.version == version, "said once"
    story.settle("call_q", Success("yes"))
    assert (story.run.is_kept, story.run.state) == (False, RunState.RUNNING)
    assert not _rest(story)
    _ask_in_run(story, _in_run("call_r", key="#2"))
    assert not story.run.is_kept
    assert _rest(story)
    assert story.run.is_kept


def test_a_run_whose_tools_have_ended_does_not_rest_but_parks() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL), asks_for("call_2", PAGE))
    story.finish("call_1", Success(1))
    assert story.run.state is RunState.WAITING
    assert not _rest(story)


def test_a_new_message_ends_a_run_that_asks_with_its_tool_and_its_question() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL))
    _ask_in_run(story, _in_run("call_q"))
    asked = [story.call("call_1"), story.call("call_q")]
    assert story.say("more", "m2", run_id="run_2") == Started("run_2")
    [results] = [each for each in story.thread.messages if isinstance(each, ResultsMessage)]
    assert [each.outcome for each in results.results] == [Cancelled(MOVED_ON)]
    assert all(story.thread.calls.get(call.call_id) is None for call in asked), "no call is left open"


def test_whoever_takes_over_a_run_that_asks_ends_its_responses_again() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL))
    _ask_in_run(story, _in_run("call_q"))
    _rest(story)
    assert story.claim(may_repeat=True) == 2
    assert (story.run.is_kept, story.call("call_q").phase) == (False, Phase.READY)
    assert _rest(story, fence=2)


def test_an_approved_question_waits_as_long_as_a_park_lasts() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL))
    _ask_in_run(story, _in_run("call_q", approval_id="apr_1"))
    story.answer("apr_1", Answer(approved=True))
    assert story.call("call_q").deadline == story.log.now + SETTINGS.timeouts.park_for


def _held_at(worker: str | None, *, call_id: str = "call_1") -> tuple[Story, Call]:
    """A keyed call that ends with its callers at this worker, or does not."""
    story = Story()
    request = ProgramRequest("key=job", worker=worker, is_reported=False)
    opened = _open(story, replace(asks_for(call_id, direct=True), request=request))
    assert isinstance(opened, Call)
    return story, opened


def _attach(story: Story, seen: Call, worker: str, *, ends: bool = True, lost: bool = False) -> str | None:
    """The worker that all callers wait at afterwards."""
    story.log.do(
        lambda thread, now: add_caller(thread, seen, worker, ends_with_caller=ends, is_lost=lost),
    )
    request = story.call("call_1").request
    assert request is not None
    return request.worker


@pytest.mark.parametrize(
    ("at", "worker", "ends", "lost", "after"),
    [
        ("w1", "w1", True, False, "w1"),
        ("w1", "w1", False, False, None),
        ("w1", "w2", True, False, None),
        ("w1", "w2", True, True, "w2"),
        ("w1", "w2", False, True, None),
        (None, "w1", True, False, None),
    ],
    ids=["here", "would leave it open", "elsewhere", "the others are gone", "gone, and left open", "stays"],
)
def test_a_call_ends_with_its_callers_as_long_as_all_of_them_wait_at_one_worker(
    at: str | None, worker: str, ends: bool, lost: bool, after: str | None
) -> None:
    story, call = _held_at(at)
    assert _attach(story, call, worker, ends=ends, lost=lost) == after


def test_a_worker_that_was_found_gone_is_not_the_one_that_has_the_callers_now() -> None:
    story, seen = _held_at("w1")
    assert _attach(story, seen, "w2", lost=True) == "w2"
    assert _attach(story, seen, "w3", lost=True) is None


def test_only_the_worker_that_has_all_callers_cancels_the_call_with_them() -> None:
    story, _ = _held_at("w1")

    def leave(worker: str) -> int:
        return story.log.do(lambda thread, now: cancel_with_callers(thread, "call_1", worker, "left"))

    assert [leave(worker) for worker in ("w2", "w1", "w1")] == [0, 1, 0]
    assert story.call("call_1").outcome == Cancelled("left")
    assert cancel_with_callers(story.thread, "call_9", "w1", "left") == Decision(0)


def test_a_call_that_is_gone_or_settled_has_no_more_callers() -> None:
    story, call = _held_at("w1")
    gone = replace(call, call_id="call_9")
    assert add_caller(story.thread, gone, "w2", ends_with_caller=True, is_lost=False) == Decision(None)
    story.log.do(lambda thread, now: calls.cancel(thread, ["call_1"], "over"))
    settled = add_caller(story.thread, call, "w2", ends_with_caller=True, is_lost=False)
    assert settled == Decision(story.call("call_1"))


def test_whoever_is_free_reports_the_outcome_of_a_call_that_ended_with_its_callers() -> None:
    story, _ = _held_at("w1")
    story.log.do(lambda thread, now: calls.cancel(thread, ["call_1"], "over"))
    ended = story.call("call_1")
    assert ended.is_unreported
    assert story.log.do(lambda thread, now: claim_report(thread, ended, "w2")) == ended
