"""A question of a tool at work: asked by the one who runs it, once, and over when the tool is."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.call import Call, Phase, ProgramRequest, Question
from farhand.core.decide import calls
from farhand.core.decide.calls import ASKER_GONE
from farhand.core.decide.direct import NoRoom, claim_report, reported
from farhand.core.decide.opening import Opening
from farhand.core.decide.questions import Asked, AskerGone, QuestionChanged, open_question
from farhand.core.outcome import Cancelled, Success
from farhand.core.result import Refused
from farhand.core.settings import Limits, Settings
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
