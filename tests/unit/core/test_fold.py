"""The fold: a thread, its messages, its run and its calls, made from the log alone."""

from __future__ import annotations

from typing import get_args

import pytest

from farhand.core import fold
from farhand.core.approval import Answer
from farhand.core.call import Phase
from farhand.core.decide import runs, threads
from farhand.core.decide.decision import Decision
from farhand.core.event import (
    AnswerDelivered,
    CallBegun,
    CallRejected,
    CallSettled,
    Echo,
    Event,
    InputAdded,
    ModelDelayed,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunResumed,
    StepFinished,
    StepStarted,
    TextAdded,
    ThreadChange,
    ToolAllowed,
)
from farhand.core.fold import SETTLED_KEPT
from farhand.core.outcome import Failure, Success
from farhand.core.run import RunState
from farhand.core.state import ThreadState
from farhand.core.thread import AssistantMessage, Reasoning, ResultsMessage, Text, ToolCallPart, UserMessage
from farhand.core.tool import Executor
from tests.unit.core.thread_builder import PAGE, SERVER_TOOL, Story, asks_for, said
from tests.unit.core.thread_log import ANN


def test_a_thread_without_events_does_not_exist() -> None:
    thread = ThreadState(owner=ANN, thread_id="t1")
    assert not thread.exists
    assert thread.active_run is None
    assert thread.step_calls() == []


def test_the_messages_are_folded_from_the_words_of_the_model() -> None:
    story = Story()
    story.say("hello")
    _write(
        story,
        StepStarted(1),
        ReasoningAdded(0, "hm"),
        ReasoningAdded(0, "m"),
        TextAdded(1, "Good "),
        ModelDelayed("The provider is busy."),
        TextAdded(1, "day"),
        StepFinished(1, "end", echoes=(Echo(0, {"sig": "x"}),)),
        RunFinished(RunState.DONE, "end"),
    )
    assert story.thread.messages == [
        said("hello"),
        AssistantMessage("run_1", 1, (Reasoning("hmm", {"sig": "x"}), Text("Good day"))),
    ]
    assert (story.run.state, story.run.is_delivered, story.run.is_active) == (RunState.DONE, False, False)
    _write(story, AnswerDelivered())
    assert story.run.is_delivered


def test_results_follow_their_step_when_the_last_call_is_settled_in_the_order_of_the_calls() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"), asks_for("call_2"), text="One moment")
    assert story.run.state.value == "waiting"
    story.settle("call_2", Success("b"))
    assert isinstance(story.thread.messages[-1], AssistantMessage)
    story.settle("call_1", Success("a"))
    last = story.thread.messages[-1]
    assert isinstance(last, ResultsMessage)
    assert [each.outcome for each in last.results] == [Success("a"), Success("b")]
    assert story.run.state.value == "running"


def test_the_model_is_told_the_input_that_ran() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", approval_id="apr_1"))
    story.answer("apr_1", Answer(approved=True, input={"n": 2}))
    story.settle("call_1", Success("done"))
    results = story.thread.messages[-1]
    assert isinstance(results, ResultsMessage)
    assert results.results[0].input == {"n": 2}


def test_a_rejected_call_has_its_outcome_at_once_and_the_model_reads_its_input_as_it_wrote_it() -> None:
    story = Story()
    story.say()
    rejected = CallRejected(call_id="call_1", tool="nothing", input="not json", error="no such tool", step=1)
    story.step(rejected)
    message, results = story.thread.messages[-2:]
    assert isinstance(message, AssistantMessage)
    assert isinstance(results, ResultsMessage)
    assert message.tool_calls == (ToolCallPart("call_1", "nothing", "not json"),)
    assert results.results[0].outcome == Failure("no such tool")
    assert story.call("call_1").input == {}


def test_a_stopped_step_without_text_leaves_no_message() -> None:
    story = Story()
    story.say()
    _write(story, ReasoningAdded(0, "hm"), StepFinished(1, "stopped"))
    assert story.thread.messages == [said("hello")]


def test_a_server_tool_keeps_the_run_running() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1", SERVER_TOOL), asks_for("call_2"))
    assert story.run.state is RunState.RUNNING
    assert story.call("call_1").phase is Phase.TAKEN


def test_a_run_that_is_resumed_in_the_middle_of_a_step_does_not_wait() -> None:
    story = Story()
    story.say()
    _write(story, StepStarted(1), TextAdded(0, "a"), RunResumed())
    assert (story.run.state, story.run.fence) == (RunState.RUNNING, 2)


def test_a_call_that_is_settled_after_its_run_has_ended_does_not_start_it_again() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"), asks_for("call_2"))
    _write(story, RunFinished(RunState.STOPPED, "stopped"))
    _write(story, _settled("call_1"))
    assert story.run.state is RunState.STOPPED
    assert isinstance(story.thread.messages[-1], AssistantMessage)


def test_a_call_that_is_settled_while_a_step_is_written_does_not_complete_the_step_before() -> None:
    story = Story()
    story.say()
    story.step(asks_for("call_1"), asks_for("call_2"))
    _write(story, StepStarted(2), _settled("call_1"))
    assert isinstance(story.thread.messages[-1], AssistantMessage)


def test_two_blocks_of_text_around_a_call_keep_their_order() -> None:
    story = Story()
    story.say()
    _write(
        story,
        TextAdded(0, "a"),
        CallBegun("call_1", "open_url"),
        InputAdded("call_1", "{}"),
        TextAdded(2, "b"),
    )
    story.step(asks_for("call_1"))
    [_, message] = story.thread.messages
    assert isinstance(message, AssistantMessage)
    assert [type(part) for part in message.parts] == [Text, ToolCallPart, Text, ToolCallPart]


def test_a_new_run_forgets_settled_calls_and_keeps_open_ones() -> None:
    story = Story()
    direct = story.open_direct(asks_for("call_d", direct=True))
    story.say()
    story.step(asks_for("call_1"))
    story.settle("call_1", Success(1))
    story.step(text="Done", ends=True)
    story.say("more", "m2", run_id="run_2")
    assert list(story.thread.calls) == [direct.call_id]


def test_a_direct_call_is_no_part_of_the_run() -> None:
    story = Story()
    story.say()
    seq = story.run.seq
    story.open_direct(asks_for("call_d", direct=True))
    story.settle("call_d", Success(1))
    assert story.run.seq == seq
    assert story.call("call_d").run_id is None


def test_only_the_last_settled_direct_calls_are_kept() -> None:
    story = Story()
    for number in range(SETTLED_KEPT + 3):
        story.open_direct(asks_for(f"call_{number}", direct=True))
        story.settle(f"call_{number}", Success(number))
    assert len(story.thread.calls) == SETTLED_KEPT
    assert "call_0" not in story.thread.calls


def test_a_direct_call_that_took_long_is_kept_when_it_is_settled_at_last() -> None:
    story = Story()
    story.open_direct(asks_for("call_slow", direct=True))
    for number in range(SETTLED_KEPT + 3):
        story.open_direct(asks_for(f"call_{number}", direct=True))
        story.settle(f"call_{number}", Success(number))
    story.settle("call_slow", Success("at last"))
    assert story.call("call_slow").outcome is not None
    assert len(story.thread.calls) == SETTLED_KEPT


def test_a_run_that_fails_says_why() -> None:
    story = Story()
    story.say()
    failed = RunFailed("broken", "It broke.", delivered=True)
    assert story.log.do(lambda thread, _: runs.fail_run(thread, 1, failed))
    assert (story.run.state, story.run.error) == (RunState.FAILED, "It broke.")
    assert story.thread.active_run is None


def test_a_thread_is_renamed_and_tools_are_allowed_in_it_and_no_more() -> None:
    story = Story()
    assert not story.log.do(lambda thread, _: threads.rename(thread, "No"))
    story.say("hello there")
    assert story.thread.title == "hello there"
    assert story.log.do(lambda thread, _: threads.rename(thread, "Greetings"))
    assert story.thread.title == "Greetings"
    _write(story, ToolAllowed("open_url", PAGE.version), ToolAllowed("other", "v"))
    assert set(story.thread.allowed) == {PAGE.version, "v"}
    assert story.log.do(lambda thread, _: threads.disallow(thread, "open_url"))
    assert set(story.thread.allowed) == {"v"}
    assert not story.log.do(lambda thread, _: threads.disallow(thread, "open_url"))


def test_the_fold_knows_every_event() -> None:
    assert set(fold._FOLD) == set(get_args(Event))


def test_the_events_of_a_run_are_numbered_without_gaps() -> None:
    story = Story()
    story.say()
    story.open_direct(asks_for("call_d", direct=True))
    story.step(asks_for("call_1"), text="One moment")
    story.settle("call_d", Success(0))
    story.settle("call_1", Success(1))
    story.step(text="Done", ends=True)
    of_direct_call = [event for event in story.log.events() if getattr(event, "call_id", "") == "call_d"]
    of_thread = [event for event in story.log.events() if isinstance(event, ThreadChange)]
    assert (len(of_direct_call), len(of_thread)) == (2, 2)
    assert story.run.seq == len(story.log.events()) - 4


def test_an_event_of_a_run_without_a_run_is_a_broken_log() -> None:
    thread = ThreadState(owner=ANN, thread_id="t1")
    with pytest.raises(AssertionError, match="has a run"):
        fold.apply(thread, TextAdded(0, "x"), 0.0)


def test_a_move_that_the_table_does_not_have_is_a_broken_log() -> None:
    story = Story()
    story.open_direct(asks_for("call_1", approval_id="apr_1", direct=True))
    settled = CallSettled(
        call_id="call_1", tool="open_url", executor=Executor.FRONTEND, outcome=Success(1), digest=""
    )
    with pytest.raises(AssertionError, match="from asking by CallSettled"):
        fold.apply(story.thread, settled, 0.0)


def test_user_messages_are_found_by_their_id() -> None:
    story = Story()
    story.say("hello")
    assert isinstance(story.thread.user_message("m1"), UserMessage)
    assert story.thread.user_message("m2") is None


def test_the_record_of_a_run_is_how_readers_and_lists_see_it() -> None:
    story = Story()
    assert story.thread.run_record() is None
    story.say()
    story.step(asks_for("call_1"), asks_for("call_2", SERVER_TOOL))
    run = story.thread.run_record()
    assert run is not None
    assert (run.run_id, run.owner, run.thread_id, run.user_message_id) == ("run_1", ANN, "t1", "m1")
    assert (run.step, run.fence, run.since, run.last_seq) == (1, 1, 0, story.run.seq)
    assert (run.waits, run.state, run.error) == (False, RunState.RUNNING, None)
    story.log.do(lambda thread, _: runs.stop(thread, "run_1", "stopped"))
    ended = story.thread.run_record()
    assert ended is not None
    assert (ended.waits, ended.active, ended.ended_at) == (False, False, story.log.now)


def test_what_the_model_has_written_of_a_step_in_progress_can_be_read() -> None:
    story = Story()
    assert story.thread.unfinished_parts() == ()
    story.say()
    assert story.thread.unfinished_parts() == ()
    _write(
        story,
        ReasoningAdded(0, "hm"),
        TextAdded(1, "a"),
        TextAdded(1, "b"),
        CallBegun("call_1", "open_url"),
    )
    assert story.thread.unfinished_parts() == (Reasoning("hm"), Text("ab"))


def test_a_reasoning_item_without_text_is_kept_where_the_provider_had_it() -> None:
    story = Story()
    story.say()
    _write(story, TextAdded(1, "Hello"), StepFinished(1, "end", echoes=(Echo(0, "sealed"),)))
    assert story.thread.messages[-1] == AssistantMessage("run_1", 1, (Reasoning("", "sealed"), Text("Hello")))


def _settled(call_id: str) -> CallSettled:
    return CallSettled(
        call_id=call_id, tool="open_url", executor=Executor.FRONTEND, outcome=Failure("x"), digest="d"
    )


def _write(story: Story, *events: Event) -> None:
    story.log.do(lambda thread, _: Decision(None, events))
