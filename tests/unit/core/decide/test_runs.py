"""One run at a time, one per message, advanced only by its newest claim; and how it ends."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.approval import Answer
from farhand.core.call import Phase
from farhand.core.decide import runs
from farhand.core.decide.calls import CheckedResult, accept
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import Beginning, Known, NotStarted, Started, StepResult
from farhand.core.event import (
    CallSettled,
    Event,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Cancelled, Failure, Success
from farhand.core.result import Accepted, Receipt, Result
from farhand.core.run import RunState
from farhand.core.settings import Limits, Settings
from farhand.core.thread import AssistantMessage, File, Note, ResultsMessage, Text, UserMessage
from farhand.core.tool import Tool
from tests.unit.core.thread_builder import SERVER_TOOL, SETTINGS, Story, asks_for, said


def test_a_message_starts_one_run_and_its_repetition_none() -> None:
    story = Story()
    assert story.say() == Started("run_1")
    version = story.thread.version
    assert story.say(run_id="run_2") == Known("run_1")
    assert story.say("other words", run_id="run_2") == NotStarted("different_message")
    assert story.thread.version == version


def test_a_repeated_message_may_bring_other_notes() -> None:
    story = Story()
    assert story.say() == Started("run_1")
    again = UserMessage("m1", (*said("hello").parts, Note("the open tab", "prices")))
    begun = story.log.do(lambda thread, _: runs.begin(thread, again, runs.NewRun("run_2")))
    assert begun == Known("run_1")


def test_a_message_without_text_is_titled_by_its_files() -> None:
    story = Story()
    message = UserMessage("m1", (File("blob_1", "map.png", "image/png", 3),))
    story.log.do(lambda thread, _: runs.begin(thread, message, runs.NewRun("run_1")))
    assert story.thread.title == "map.png"


def test_a_run_that_works_is_not_interrupted_by_a_message() -> None:
    story = Story()
    story.say()
    assert story.say("more", "m2", run_id="run_2") == NotStarted("busy")
    again = story.log.do(lambda thread, _: runs.begin_again(thread, runs.NewRun("run_2")))
    assert again == NotStarted("busy")


def test_a_run_that_spares_questions_does_not_begin_while_a_person_is_asked() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", approval_id="apr_1"))
    spares = runs.NewRun("run_2", spares_questions=True)
    told = story.log.do(lambda thread, _: runs.begin(thread, said("more", "m2"), spares))
    assert told == NotStarted("asked")
    story.answer("apr_1", Answer(approved=True))
    told = story.log.do(lambda thread, _: runs.begin(thread, said("more", "m2"), spares))
    assert told == Started("run_2")


def test_another_answer_is_refused_once_another_run_has_begun() -> None:
    story = Story()
    new = runs.NewRun("run_9")
    assert story.log.do(lambda thread, _: runs.begin_again(thread, new, after_run="run_1")) == NotStarted(
        "busy"
    )
    story.say()
    story.step(text="One.", ends=True)
    story.say("more", "m2", run_id="run_2")
    story.step(text="Two.", ends=True)
    assert story.log.do(lambda thread, _: runs.begin_again(thread, new, after_run="run_1")) == NotStarted(
        "busy"
    )
    assert story.log.do(lambda thread, _: runs.begin_again(thread, new, after_run="run_2")) == Started(
        "run_9"
    )


def test_a_run_that_waits_is_left_by_a_new_message_with_a_valid_history() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"), asks_for("call_2"))
    story.settle("call_2", Success(2))
    assert story.say("more", "m2", run_id="run_2") == Started("run_2")
    results = story.thread.messages[2]
    assert isinstance(results, ResultsMessage)
    assert [each.outcome for each in results.results] == [Cancelled("the user moved on"), Success(2)]
    assert story.thread.messages[-1] == said("more", "m2")


def test_a_result_that_comes_with_the_next_message_is_stored_in_its_time_and_settles_once() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"), asks_for("call_2"))
    deadline = story.call("call_1").deadline
    assert deadline is not None

    def bring(now: float) -> Decision[tuple[Beginning, list[Receipt]]]:
        result = CheckedResult(Result(call_id="call_1", outcome=Success(1)), Success(1))
        accepted = accept(story.thread, [result], now=now, timeouts=SETTINGS.timeouts)
        return runs.begin_after(story.thread, accepted, said("more", "m2"), runs.NewRun("run_2"))

    late = bring(deadline)
    assert (late.not_after, late.not_before) == (None, deadline)
    in_time = bring(story.log.now)
    assert (in_time.not_after, in_time.not_before) == (deadline, None)
    assert in_time.answer == (Started("run_2"), [Accepted()])
    settled = {event.call_id: event.outcome for event in in_time.events if isinstance(event, CallSettled)}
    assert settled == {"call_1": Success(1), "call_2": Cancelled(runs.MOVED_ON)}


def test_an_edited_message_replaces_everything_from_there_on() -> None:
    story = Story()
    story.say("one")
    story.step(text="answer", ends=True)
    story.say("two", "m2", run_id="run_2")
    story.step(text="answer", ends=True)
    edited = said("one, edited")
    begin = runs.begin(story.thread, edited, runs.NewRun("run_3"), instead_of="m1")
    assert begin.answer == Started("run_3")
    story.log.do(lambda thread, _: begin)
    assert story.thread.messages == [edited]


def test_an_edit_that_changes_nothing_brings_nothing_new() -> None:
    story = Story()
    story.say("one")
    story.step(text="answer", ends=True)
    decision = runs.begin(story.thread, said("one"), runs.NewRun("run_2"), instead_of="m1")
    assert decision.answer == Known("run_1")
    assert decision.events == ()


def test_an_edit_of_a_message_that_is_not_there_changes_nothing() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"))
    decision = runs.begin(story.thread, said("x", "m9"), runs.NewRun("run_2"), instead_of="m9")
    assert decision.answer == NotStarted("no_message")
    assert decision.events == ()


def test_an_answer_is_replaced_by_another_one() -> None:
    story = Story()
    story.say("one")
    story.step(text="answer", ends=True)
    for instead_of in (None, "run_1", "m1"):
        decision = runs.begin_again(story.thread, runs.NewRun("run_2"), instead_of=instead_of)
        assert decision.answer == Started("run_2")
    story.log.do(lambda thread, _: runs.begin_again(thread, runs.NewRun("run_2")))
    assert story.thread.messages == [said("one")]
    missing = runs.begin_again(story.thread, runs.NewRun("run_3"), instead_of="run_9")
    assert missing.answer == NotStarted("no_message")
    assert runs.begin_again(Story().thread, runs.NewRun("run_3")).answer == NotStarted("no_message")


def test_a_stale_claim_changes_nothing() -> None:
    story = Story()
    story.say()
    assert story.claim() == 2
    version = story.thread.version
    assert not story.step(asks_for("call_1"), fence=1)
    assert story.write(TextAdded(0, "x"), fence=1) is None
    assert story.log.do(lambda thread, _: runs.park(thread, 1)) == "lost"
    assert not story.log.do(lambda thread, _: runs.fail_run(thread, 1, RunFailed("x", "y")))
    assert story.claim(fence=1) is None
    assert story.thread.version == version


def test_a_step_cut_by_a_crash_is_discarded_with_the_claim() -> None:
    story = Story()
    story.say()
    story.write(StepStarted(1), TextAdded(0, "Half a"))
    assert story.claim() == 2
    assert [type(event) for event in story.log.events()[-2:]] == [StepDiscarded, RunResumed]
    story.step(text="Whole", ends=True)
    assert story.thread.messages[-1] == AssistantMessage("run_1", 1, (Text("Whole"),))


def test_a_parked_run_is_claimed_when_nothing_is_open_in_it() -> None:
    story = Story()
    story.say()
    assert story.log.do(lambda thread, _: runs.park(thread, 1)) == "can_go_on"
    story.step(asks_for("call_1"))
    assert story.log.do(lambda thread, _: runs.park(thread, 1)) == "parked"
    assert story.run.is_parked
    assert story.claim() is None
    story.settle("call_1", Success(1))
    assert story.claim() == 2
    resumed = story.log.events()[-1]
    assert resumed == RunResumed(taken_over=False)
    assert not story.run.is_parked


def test_stop_settles_open_calls_and_keeps_the_text_of_the_step_in_progress() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", approval_id="apr_1"))
    assert not story.log.do(lambda thread, _: runs.stop(thread, "run_0", "stopped by the user"))
    assert story.log.do(lambda thread, _: runs.stop(thread, "run_1", "stopped by the user"))
    assert story.call("call_1").outcome == Cancelled("stopped by the user")
    assert story.run.state is RunState.STOPPED
    assert not story.log.do(lambda thread, _: runs.stop(thread, "run_1", "again"))

    story = Story()
    story.say()
    story.write(ReasoningAdded(0, "hm"), TextAdded(1, "Half a"))
    assert story.log.do(lambda thread, _: runs.stop(thread, "run_1", "stopped"))
    assert story.thread.messages[-1] == AssistantMessage("run_1", 1, (Text("Half a"),))
    ends = [type(event) for event in story.log.events()[-2:]]
    assert ends == [StepFinished, RunFinished]


def test_a_step_stopped_before_any_text_leaves_no_message() -> None:
    story = Story()
    story.say()
    story.write(StepStarted(1), ReasoningAdded(0, "hm"))
    story.log.do(lambda thread, _: runs.stop(thread, "run_1", "stopped"))
    assert story.thread.messages == [said("hello")]


def test_a_direct_call_outlives_the_runs_of_its_thread() -> None:
    story = Story()
    story.say()
    story.open_direct(asks_for("call_d", direct=True))
    story.log.do(lambda thread, _: runs.stop(thread, "run_1", "stopped"))
    assert story.call("call_d").phase is Phase.READY


def test_what_a_limit_leaves_no_room_for_is_rejected_and_the_model_is_told() -> None:
    limits = Limits(open_calls_per_run=4, open_calls_per_thread=2, open_calls_per_tenant=10)
    for room, words in ((10, "A thread may have 2"), (1, "A tenant may have 10")):
        story = Story()
        story.say()
        asked: tuple[Opening, ...] = (
            asks_for("call_0", SERVER_TOOL),
            *(asks_for(f"call_{n}") for n in range(1, 6)),
        )
        result = StepResult(step=1, stop_reason="calls", calls=asked)
        settings = Settings(limits=limits)
        decision = runs.finish_step(
            story.thread, 1, result, now=story.log.now, settings=settings, calls_left=room
        )
        story.log.append(story.thread.version, decision)
        outcomes = [story.call(f"call_{n}").outcome for n in range(6)]
        rejected = [each.error for each in outcomes if isinstance(each, Failure)]
        assert len(rejected) == 5 - min(room, 2)
        assert words in rejected[0]
        assert ["a step may ask for 4" in each for each in rejected[-3:]] == [False, True, True]
        assert outcomes[0] is None


def test_a_claim_says_whether_words_of_the_worker_before_may_be_lost() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"))
    assert RunResumed(taken_over=True) in _claimed(story)
    story.log.do(lambda thread, _: runs.park(thread, story.run.fence))
    story.settle("call_1", Success(1))
    assert RunResumed(taken_over=False) in _claimed(story)


def _claimed(story: Story) -> tuple[Event, ...]:
    """What a claim of the run as it is would write."""
    run = story.run
    claim = runs.claim(
        story.thread, run.run_id, run.fence, lambda call: False, now=0.0, timeouts=SETTINGS.timeouts
    )
    return claim.events


def test_an_answer_nobody_read_is_delivered_once() -> None:
    story = Story()
    story.say()
    deliver = lambda thread, _: runs.deliver(thread, "run_1")  # noqa: E731
    assert not story.log.do(deliver)
    story.step(text="Done", ends=True)
    assert story.log.do(deliver)
    assert not story.log.do(deliver)


def test_a_paused_turn_of_the_model_is_no_end() -> None:
    story = Story()
    story.say()
    result = replace(StepResult(step=1, stop_reason="pause"), written=(TextAdded(0, "Go on"),))
    decision = runs.finish_step(story.thread, 1, result, now=0.0, settings=SETTINGS, calls_left=1)
    story.log.do(lambda thread, _: decision)
    assert story.run.is_active
    assert story.run.state is RunState.RUNNING


def test_words_that_are_stored_already_are_not_stored_again() -> None:
    story = Story()
    story.say()
    before = story.run.seq
    words = (StepStarted(1), TextAdded(0, "a"))
    assert story.write(*words) == before + 2
    version = story.thread.version
    assert story.write(*words, after=before) == before + 2
    assert story.thread.version == version
    assert story.write(*words, TextAdded(0, "b"), after=before) == before + 3
    assert story.log.events()[-1] == TextAdded(0, "b")


def test_a_step_that_is_stored_already_is_not_stored_again() -> None:
    story = Story()
    story.say()
    result = StepResult(step=1, stop_reason="end", is_last=True, after=story.run.seq)
    finish = lambda thread, now: runs.finish_step(thread, 1, result, now=now, settings=SETTINGS, calls_left=1)  # noqa: E731
    assert story.log.do(finish)
    version = story.thread.version
    assert story.log.do(finish)
    assert story.thread.version == version


def test_nothing_is_added_to_a_log_that_has_gone_back_in_time() -> None:
    """A claim that knows more of its run than the log does is void."""
    story = Story()
    story.say()
    seq, version = story.run.seq, story.thread.version
    assert story.write(TextAdded(0, "b"), after=seq + 1) is None
    failed = RunFailed("broken", "It failed.")
    assert not story.log.do(lambda thread, _: runs.fail_run(thread, 1, failed, after=seq + 1))
    for result in (
        StepResult(step=1, stop_reason="end", after=seq + 1),
        StepResult(step=2, stop_reason="end", after=seq),
    ):
        decision = runs.finish_step(story.thread, 1, result, now=0.0, settings=SETTINGS, calls_left=1)
        assert (decision.answer, decision.events) == (False, ())
    assert story.thread.version == version


def test_no_step_is_added_to_a_run_that_has_ended() -> None:
    story = Story()
    story.say()
    story.log.do(lambda thread, _: runs.stop(thread, "run_1", "stopped"))
    version = story.thread.version
    assert not story.step(asks_for("call_1"))
    assert story.thread.version == version


def test_a_run_that_is_parked_is_parked_when_it_is_asked_again() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"))
    for _ in range(2):
        assert story.log.do(lambda thread, _: runs.park(thread, 1)) == "parked"
    assert sum(isinstance(event, RunParked) for event in story.log.events()) == 1


def test_a_claim_of_a_thread_that_has_moved_since_it_was_looked_at_is_refused() -> None:
    story = Story()
    story.say()
    seen = story.thread.version
    story.write(TextAdded(0, "a"))
    for version, fence in ((seen, None), (story.thread.version, 2)):
        decision = runs.claim(
            story.thread, "run_1", 1, lambda call: False, now=0.0, timeouts=SETTINGS.timeouts, version=version
        )
        assert decision.answer == fence


def test_a_model_that_fails_ends_its_run_behind_what_it_had_written() -> None:
    story = Story()
    story.say()
    seq = story.run.seq
    story.write(TextAdded(0, "Half"))
    failure, written = RunFailed("model", "It failed."), (TextAdded(0, "Half"), TextAdded(0, " a"))
    assert story.log.do(lambda thread, _: runs.fail_run(thread, 1, failure, written=written, after=seq))
    assert story.log.events()[-3:] == [TextAdded(0, "Half"), TextAdded(0, " a"), failure]
    assert story.thread.messages == [said("hello")], "what is half written is in the journal alone"


def test_a_run_that_broke_leaves_a_thread_that_a_model_can_be_asked_with() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"))
    failure = RunFailed("broken", "It broke.")
    assert not story.log.do(lambda thread, _: runs.break_off(thread, 7, failure))
    assert story.log.do(lambda thread, _: runs.break_off(thread, 1, failure))
    assert story.call("call_1").outcome == Cancelled("the run failed")
    assert isinstance(story.thread.messages[-1], ResultsMessage)
    assert story.run.state is RunState.FAILED


def test_a_later_request_may_bring_other_tools_and_another_name() -> None:
    story = Story()
    story.say()
    tools = (SERVER_TOOL,)

    def bring(tools: tuple[Tool, ...], alias: str = "") -> bool:
        return story.log.do(lambda thread, _: runs.change_request_tools(thread, "run_1", tools, alias=alias))

    assert bring(tools, "first")
    run = story.thread.run_record()
    assert run is not None
    assert (run.request_tools, run.alias) == ((SERVER_TOOL.version,), "first")
    version = story.thread.version
    assert bring(tools)
    assert bring(tools, "first")
    assert story.thread.version == version
    assert bring((), "second")
    run = story.thread.run_record()
    assert run is not None
    assert (run.request_tools, run.alias) == ((), "second")
