"""A message that arrives with answers: stored with them, and answered after the previous run."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import Question
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import CheckedResult, Reply
from farhand.core.decide.decision import Decision
from farhand.core.decide.direct import open_question
from farhand.core.decide.queued_messages import Next, Queued, accept_with_tools, answer_next
from farhand.core.decide.runs import Known, NotStarted, Started
from farhand.core.event import RunFailed, RunStarted
from farhand.core.outcome import Cancelled, Denied, Outcome, Success
from farhand.core.result import Accepted, Receipt, Repeated, Result
from farhand.core.run import RunState
from farhand.core.state import ThreadState
from farhand.core.thread import Note, ResultsMessage, UserMessage
from farhand.core.tool import Executor, Tool
from tests.unit.core.thread_builder import PROGRAM, SERVER_TOOL, SETTINGS, TIMEOUTS, Story, asks_for, said

YES = Reply("apr_1", Answer(approved=True))
NOTE = Tool(name="note", description="", input_schema={}, executor=Executor.FRONTEND)
NEXT = runs.NewRun("run_2", claims={"plan": "pro"}, request_tools=(NOTE,), alias="second")


def _asking(*more: str) -> Story:
    """A run that is parked for one approval of a server tool, and for calls of the page."""
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL, approval_id="apr_1"), *(asks_for(each) for each in more))
    story.log.do(lambda thread, _: runs.park(thread, story.run.fence))
    return story


def _result(call_id: str, outcome: Outcome) -> CheckedResult:
    return CheckedResult(Result(call_id=call_id, outcome=outcome), outcome)


def _follow(
    story: Story, *items: CheckedResult | Reply, message: UserMessage | None = None, new: runs.NewRun = NEXT
) -> tuple[Next, list[Receipt]]:
    def decide(thread: ThreadState, now: float) -> Decision[tuple[Next, list[Receipt]]]:
        accepted = calls.accept(thread, list(items), now=now, timeouts=TIMEOUTS)
        return answer_next(thread, accepted, message or said("more", "m2"), new)

    return story.log.do(decide)


def _answered() -> Story:
    """The approval is given, the message is queued, and the run continues."""
    story = _asking()
    assert _follow(story, YES) == (Queued("run_2"), [Accepted()])
    assert story.claim() is not None
    return story


def _outcomes(story: Story) -> list[Outcome]:
    messages = [each for each in story.thread.messages if isinstance(each, ResultsMessage)]
    return [each.outcome for each in messages[-1].results]


def _user_messages(story: Story) -> list[str]:
    return [each.message_id for each in story.thread.messages if isinstance(each, UserMessage)]


def test_a_message_beside_an_approval_is_stored_with_it_and_begins_when_the_run_ends() -> None:
    story = _answered()
    assert _user_messages(story) == ["m1"]
    story.start("call_1")
    story.finish("call_1", Success("done"))
    assert story.step(text="Deleted.", ends=True)
    run = story.run
    assert (run.run_id, run.user_message_id) == ("run_2", "m2")
    assert (run.claims, run.alias, run.request_tools) == ({"plan": "pro"}, "second", (NOTE.version,))
    assert run.state is RunState.RUNNING
    assert _user_messages(story) == ["m1", "m2"]
    assert story.thread.queued is None
    assert story.log.read_again() == story.thread


def test_it_begins_also_when_the_run_fails_or_breaks() -> None:
    for end in (runs.fail_run, runs.break_off):
        story = _answered()
        fence = story.run.fence
        assert story.log.do(lambda thread, _: end(thread, fence, RunFailed("model", "no")))  # noqa: B023
        assert story.run.run_id == "run_2"


def test_what_the_run_asks_before_it_is_cancelled() -> None:
    story = _answered()
    story.start("call_1")
    story.finish("call_1", Success("done"))
    story.step(asks_for("call_2", step=2))
    fence = story.run.fence
    assert story.log.do(lambda thread, _: runs.park(thread, fence)) == "lost"
    assert story.run.run_id == "run_2"
    assert [type(each).__name__ for each in story.thread.messages] == [
        "UserMessage",
        "AssistantMessage",
        "ResultsMessage",
        "AssistantMessage",
        "ResultsMessage",
        "UserMessage",
    ]


def test_a_stop_keeps_the_message_and_begins_nothing() -> None:
    story = _answered()
    assert story.log.do(lambda thread, _: runs.stop(thread, "run_1", "stopped by the user"))
    assert story.run.state is RunState.STOPPED
    assert (story.run.run_id, _user_messages(story), story.thread.queued) == ("run_1", ["m1", "m2"], None)
    assert story.log.do(lambda thread, _: runs.begin_again(thread, runs.NewRun("run_3"))) == Started("run_3")
    assert story.run.user_message_id == "m2"


def test_another_message_from_elsewhere_comes_behind_it() -> None:
    story = _answered()
    story.start("call_1")
    story.finish("call_1", Success("done"))
    story.step(asks_for("call_2", step=2))
    assert story.say("third", "m3", run_id="run_3") == Started("run_3")
    assert (_user_messages(story), story.thread.queued) == (["m1", "m2", "m3"], None)


def test_a_run_that_has_ended_is_followed_at_once() -> None:
    story = Story()
    story.say()
    story.step(text="Done.", ends=True)
    assert _follow(story) == (Started("run_2"), [])
    assert story.run.run_id == "run_2"


def test_a_run_that_only_a_page_can_move_on_is_left_at_once() -> None:
    story = _asking("call_2")
    assert _follow(story, Reply("apr_1", Answer(approved=False))) == (Started("run_2"), [Accepted()])
    assert story.run.run_id == "run_2"
    assert _outcomes(story) == [Denied(), Cancelled("the user moved on")]


def test_what_was_approved_runs_though_the_user_moves_on_from_the_rest() -> None:
    story = _asking("call_2")
    assert _follow(story, YES) == (Queued("run_2"), [Accepted()])
    assert story.claim() is not None
    assert story.start("call_1") is not None
    story.finish("call_1", Success("done"))
    assert _outcomes(story) == [Success("done"), Cancelled("the user moved on")]
    story.step(text="Deleted.", ends=True)
    assert story.run.run_id == "run_2"


def test_with_the_last_result_of_the_page_the_run_has_its_turn() -> None:
    story = _asking("call_2")
    told, receipts = _follow(story, YES, _result("call_2", Success("page")))
    assert (told, receipts) == (Queued("run_2"), [Accepted(), Accepted()])


def test_an_approval_for_the_whole_thread_is_one_too() -> None:
    story = _asking()
    always = Reply("apr_1", Answer(approved=True, scope="thread"))
    assert _follow(story, always) == (Queued("run_2"), [Accepted()])
    assert len(story.thread.allowed) == 1


def test_what_a_registered_client_executes_is_waited_for() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL, approval_id="apr_1"), asks_for("call_2", PROGRAM))
    assert _follow(story, YES)[0] == Queued("run_2")


def test_the_same_post_again_is_told_the_same_and_another_message_is_refused() -> None:
    story = _answered()
    version = story.thread.version
    assert _follow(story, YES, new=runs.NewRun("run_9")) == (Queued("run_2"), [Repeated()])
    with_note = UserMessage("m2", (*said("more").parts, Note("the open tab", "prices")))
    assert _follow(story, YES, message=with_note)[0] == Queued("run_2")
    assert _follow(story, YES, message=said("other", "m2"))[0] == NotStarted("different_message")
    assert _follow(story, message=said("third", "m3")) == (NotStarted("busy"), [])
    assert story.thread.version == version


def test_a_message_that_is_answered_already_starts_nothing() -> None:
    story = Story()
    story.say()
    assert _follow(story, message=said("hello", "m1")) == (Known("run_1"), [])
    assert _follow(story, message=said("other", "m1")) == (NotStarted("different_message"), [])
    assert story.run.run_id == "run_1"


def test_tools_are_brought_with_what_is_accepted() -> None:
    story = _asking()

    def decide(thread: ThreadState, now: float) -> Decision[list[Receipt]]:
        accepted = calls.accept(thread, [YES], now=now, timeouts=TIMEOUTS)
        return accept_with_tools(thread, accepted, "run_1", (NOTE,), alias="later")

    assert story.log.do(decide) == [Accepted()]
    assert (story.run.request_tools, story.run.alias) == ((NOTE.version,), "later")


def test_a_later_request_names_the_run_that_follows_too_and_brings_its_tools() -> None:
    """Its client reads on into that run, and may stop it or be asked by it."""
    story = _answered()

    def again(tools: tuple[Tool, ...], alias: str) -> None:
        assert story.log.do(lambda thread, _: runs.change_request_tools(thread, "run_1", tools, alias=alias))

    again((), "later")
    version = story.thread.version
    again((), "later")
    again((), "")
    assert story.thread.version == version
    assert story.log.read_again() == story.thread
    story.start("call_1")
    story.finish("call_1", Success("done"))
    story.step(text="Deleted.", ends=True)
    run = story.run
    assert (run.run_id, run.user_message_id, run.claims) == ("run_2", "m2", {"plan": "pro"})
    assert (run.request_tools, run.alias) == ((), "later")


def test_nothing_else_begins_with_it_or_cuts_it_off() -> None:
    story = _answered()
    story.start("call_1")
    story.finish("call_1", Success("done"))
    story.step(asks_for("call_2", step=2))
    assert story.run.state is RunState.WAITING
    version = story.thread.version
    assert story.say("more", "m2", run_id="run_3") == NotStarted("busy")
    assert story.say("other", "m2", run_id="run_3") == NotStarted("different_message")
    assert story.log.do(lambda thread, _: runs.begin_again(thread, runs.NewRun("run_3"))) == NotStarted(
        "busy"
    )
    assert story.thread.version == version
    story.log.do(lambda thread, _: runs.park(thread, story.run.fence))
    assert (story.run.run_id, _user_messages(story)) == ("run_2", ["m1", "m2"])


def test_what_a_tool_asks_before_it_is_cancelled_with_the_tool() -> None:
    story = _answered()
    taken = story.start("call_1")
    assert taken is not None
    assert taken.take is not None
    holder, fence = taken.take.holder, story.run.fence
    question = replace(asks_for("call_2"), parent=Question("call_1", "1"))
    story.log.do(
        lambda thread, now: open_question(thread, question, holder, now=now, settings=SETTINGS, calls_left=9)
    )
    assert story.log.do(lambda thread, _: runs.rest(thread, fence)) is False
    assert story.run.run_id == "run_2"
    assert _outcomes(story) == [Cancelled("the user moved on")]


def test_a_claim_on_the_run_before_counts_for_nothing_in_the_next() -> None:
    """What its worker still has on its way, or tries again, must not become part of the next answer."""
    story = _answered()
    fence = story.run.fence
    story.start("call_1")
    story.finish("call_1", Success("done"))
    story.step(text="Deleted.", ends=True)
    version = story.thread.version
    assert story.run.fence > fence
    assert story.write(RunStarted("x"), fence=fence, after=0) is None
    assert story.step(text="Deleted.", ends=True, fence=fence) is False
    assert story.thread.version == version
