"""A question of a tool at work: asked by the one who runs it, once, and over when the tool is."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase, ProgramRequest, Question
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import ASKER_GONE
from farhand.core.decide.direct import NoRoom, claim_report, reported
from farhand.core.decide.opening import Opening
from farhand.core.decide.questions import Asked, AskerGone, QuestionChanged, open_question
from farhand.core.decide.runs import MOVED_ON, Started
from farhand.core.outcome import Cancelled, Success
from farhand.core.result import Refused
from farhand.core.run import RunState
from farhand.core.settings import Limits, Settings
from farhand.core.thread import ResultsMessage
from tests.unit.core.story import PAGE, SERVER_TOOL, SETTINGS, Story, asks_for

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
    story: Story, opening: Opening, *, holder: str = HOLDER, room: int = 9, settings: Settings = SETTINGS
) -> Asked:
    return story.log.do(
        lambda thread, now: open_question(thread, opening, holder, now=now, settings=settings, room=room)
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


def test_a_question_takes_room_like_any_call_that_waits() -> None:
    full = _ask(_working(), _question(), room=0)
    assert isinstance(full, NoRoom)
    few = Settings(limits=Limits(open_calls_per_thread=1))
    story = _working()
    assert isinstance(_ask(story, _question(), settings=few), Call)
    assert isinstance(_ask(story, _question("call_2", key="#2"), settings=few), NoRoom)


def test_the_deadline_of_the_tool_is_out_of_reach_while_it_asks_and_its_end_ends_the_question() -> None:
    story = _working()
    before = story.call("call_1").deadline
    _ask(story, _question())
    deadline = story.call("call_1").deadline
    assert before is not None
    assert deadline is not None
    assert deadline > before + SETTINGS.patience.park_for
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


def _ask_in_run(story: Story, opening: Opening) -> Asked:
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
    assert story.call("call_q").deadline == story.log.now + SETTINGS.patience.park_for
