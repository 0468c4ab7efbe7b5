"""Calls that a program makes: opened within limits, started by one worker, ended with their callers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase, ProgramRequest
from farhand.core.decide import calls
from farhand.core.decide.calls import CHANGED, UNKNOWN_END
from farhand.core.decide.decision import Decision
from farhand.core.decide.direct import (
    NoRoom,
    RequestUsed,
    add_caller,
    cancel_unwanted,
    cancel_with_callers,
    claim_report,
    is_unwanted,
    open_direct,
)
from farhand.core.decide.opening import Opening
from farhand.core.event import ThreadCreated
from farhand.core.outcome import Cancelled, Success, TimedOut
from farhand.core.settings import Limits, Settings
from farhand.core.tool import Tool
from tests.unit.core.story import PAGE, PATIENCE, SERVER_TOOL, SETTINGS, Story, asks_for

YES = Answer(approved=True)


def _open(
    story: Story, opening: Opening, *, room: int = 9, settings: Settings = SETTINGS
) -> Call | NoRoom | RequestUsed:
    return story.log.do(
        lambda thread, now: open_direct(thread, opening, title="Jobs", now=now, settings=settings, room=room)
    )


def _start(story: Story, seen: Call, tool: Tool | None = SERVER_TOOL, worker: str = "w2") -> Call | None:
    return story.log.do(
        lambda thread, now: calls.start_direct(thread, seen, tool, worker, now=now, patience=PATIENCE)
    )


def _on_server(call_id: str = "call_1", *, approval_id: str | None = None) -> Opening:
    opening = asks_for(call_id, SERVER_TOOL, approval_id=approval_id, direct=True)
    return replace(opening, worker="w1")


def test_the_first_call_of_a_program_creates_its_thread_and_keeps_its_tool() -> None:
    story = Story()
    decision = open_direct(
        story.thread, asks_for("call_1", direct=True), title="Jobs", now=0.0, settings=SETTINGS, room=9
    )
    assert decision.events[0] == ThreadCreated("Jobs")
    assert decision.tools == (PAGE,)
    for call_id in ("call_2", "call_3"):
        opened = _open(story, asks_for(call_id, direct=True))
        assert isinstance(opened, Call)
        assert replace(opened, number=story.call(call_id).number) == story.call(call_id)
    assert sum(isinstance(event, ThreadCreated) for event in story.log.events()) == 1


@pytest.mark.parametrize(
    ("limits", "room", "why"),
    [
        (Limits(open_calls_per_thread=1), 9, "A thread may have 1 open calls at most."),
        (Limits(open_calls_per_tenant=7), 0, "A tenant may have 7 open calls at most."),
    ],
)
def test_a_call_that_has_to_wait_needs_room_and_one_that_runs_at_once_does_not(
    limits: Limits, room: int, why: str
) -> None:
    story, settings = Story(), Settings(limits=limits)
    _open(story, asks_for("call_1", direct=True))
    assert _open(story, asks_for("call_2", direct=True), room=room, settings=settings) == NoRoom(why)
    asking = _on_server("call_3", approval_id="apr_3")
    assert _open(story, asking, room=room, settings=settings) == NoRoom(why)
    assert isinstance(_open(story, _on_server("call_4"), room=room, settings=settings), Call)
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


def test_a_worker_starts_what_was_approved_and_its_time_counts_from_the_yes() -> None:
    story = Story()
    _open(story, _on_server(approval_id="apr_1"))
    assert _start(story, story.call("call_1")) is None, "nobody has approved it"
    story.answer("apr_1", YES)
    deadline = story.log.now + PATIENCE.server_tool + 1.0
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
            story.thread, started, SERVER_TOOL, "w3", now=story.log.now, patience=PATIENCE
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
    assert started.deadline == story.log.now + PATIENCE.server_tool + 1.0


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
        story.thread, story.call("call_3"), SERVER_TOOL, "w2", now=deadline, patience=PATIENCE
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
