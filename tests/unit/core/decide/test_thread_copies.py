"""A copied thread has the messages before a step, and only the chosen call of the step is opened again."""

from __future__ import annotations

import pytest

from farhand.core.call import Phase
from farhand.core.decide.calls import UNKNOWN_END
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import NewRun
from farhand.core.decide.thread_copies import (
    CopiedCall,
    ThreadCopy,
    begin_copy,
    may_be_repeated,
    messages_before,
)
from farhand.core.event import CallRejected, CallSettled
from farhand.core.outcome import Cancelled, Failure, Outcome, Success, TimedOut, digest
from farhand.core.thread import AssistantMessage, File, Message, Reasoning, ResultsMessage, Text, ToolCallPart
from tests.unit.core.thread_builder import PAGE, SERVER_TOOL, TIMEOUTS, Story, said
from tests.unit.core.thread_log import Log

ASKED = ToolCallPart("call_1", "delete", {"path": "a"}, "toolu_1")


def opening(call_id: str, *, page: bool = False, approval: str | None = None, step: int = 1) -> Opening:
    tool = PAGE if page else SERVER_TOOL
    return Opening(call_id=call_id, tool=tool, input={"path": "a"}, step=step, approval_id=approval)


def told() -> Story:
    """Two steps with a server call each, then the end."""
    story = Story()
    story.say()
    story.step(opening("call_1"), text="One.")
    story.finish("call_1", Success(1))
    story.step(opening("call_2", step=2), opening("call_3", page=True, step=2))
    story.finish("call_2", Success(2))
    story.settle("call_3", Success(3))
    story.step(text="Done.", ends=True)
    return story


def begun(copy: ThreadCopy) -> Log:
    log = Log()
    assert log.do(lambda thread, now: begin_copy(thread, copy, now=now, timeouts=TIMEOUTS))
    return log


@pytest.mark.parametrize(("step", "kept"), [(1, 1), (2, 3), (3, 5), (9, 6)])
def test_a_step_was_asked_for_with_the_messages_before_it(step: int, kept: int) -> None:
    messages = told().thread.messages
    assert messages_before(messages, "run_1", step) == tuple(messages[:kept])


@pytest.mark.parametrize(
    ("step", "call_id", "repeated"),
    [
        (1, None, ["call_1", "call_2"]),
        (2, None, ["call_2"]),
        (3, None, []),
        (1, "call_1", ["call_1", "call_2"]),
        (2, "call_3", []),
    ],
)
def test_finished_server_calls_from_there_on_might_be_repeated(
    step: int, call_id: str | None, repeated: list[str]
) -> None:
    calls = list(told().thread.calls.values())
    assert [call.call_id for call in may_be_repeated(calls, step=step, call_id=call_id)] == repeated


def test_what_asks_a_person_anyway_is_not_among_them() -> None:
    story = Story()
    story.say()
    story.step(opening("call_1", approval="apr_1"), opening("call_2"))
    story.finish("call_2", Failure("no"))
    assert may_be_repeated(list(story.thread.calls.values()), step=1, call_id=None) == []


@pytest.mark.parametrize(
    ("outcome", "is_repeated"),
    [
        (None, True),
        (UNKNOWN_END, True),
        (TimedOut(1), True),
        (Failure("`call_1` did not finish within 1 s; whether it took effect is unknown."), True),
        (Failure("The output of `call_1` is 2 MiB. The tool did run: request less."), True),
        (Cancelled("stopped by the user"), True),
        (Failure("no such file"), False),
    ],
)
def test_a_tool_that_may_have_had_an_effect_might_be_repeated(
    outcome: Outcome | None, *, is_repeated: bool
) -> None:
    story = Story()
    story.say()
    story.step(opening("call_1"), opening("call_2", page=True))
    if outcome is not None:
        story.finish("call_1", outcome)
    calls = list(story.thread.calls.values())
    for call_id in (None, "call_1"):
        repeated = may_be_repeated(calls, step=1, call_id=call_id)
        assert [call.call_id for call in repeated] == ["call_1"] * is_repeated
    # a tool that is still running is opened again together with the other call of its step
    beside = may_be_repeated(calls, step=1, call_id="call_2")
    assert [call.call_id for call in beside] == ["call_1"] * (outcome is None)


def test_a_copy_without_a_step_asks_the_model_next() -> None:
    messages: tuple[Message, ...] = (said("hello"),)
    log = begun(ThreadCopy(title="t", messages=messages, new=NewRun("run_9"), user_message_id="m1"))
    run = log.state.run
    assert run is not None
    assert (run.run_id, run.step, run.user_message_id, log.state.title) == ("run_9", 0, "m1", "t")
    assert log.state.messages == list(messages)
    assert log.state.calls == {}


def test_a_copy_from_a_call_opens_that_call_and_keeps_the_others() -> None:
    parts = (
        Reasoning("Hm.", echo={"id": 1}),
        Text("One."),
        ASKED,
        ToolCallPart("call_2", "open_url", {}),
        Reasoning("", echo={"id": 2}),
        ToolCallPart("call_3", "nothing", "x"),
        File("blob_1", "a", "text/plain", 1),
        ToolCallPart("call_gone", "gone", {}),
    )
    kept = CallSettled(
        call_id="call_b",
        tool="open_url",
        executor=PAGE.executor,
        outcome=Success(2),
        digest=digest(Success(2)),
    )
    copy = ThreadCopy(
        title="t",
        messages=(said("hello"),),
        new=NewRun("run_9", request_tools=(PAGE,)),
        step=AssistantMessage("run_1", 4, parts),
        calls=(
            CopiedCall(copy_of="call_1", opening=opening("call_a")),
            CopiedCall(copy_of="call_2", opening=opening("call_b", page=True), settled=kept),
            CopiedCall(
                copy_of="call_3",
                opening=CallRejected(
                    call_id="call_c", tool="nothing", input="x", error="no such tool", step=1
                ),
            ),
        ),
    )
    log = begun(copy)
    phases = {call.call_id: call.phase for call in log.state.calls.values()}
    assert phases == {"call_a": Phase.TAKEN, "call_b": Phase.SETTLED, "call_c": Phase.SETTLED}
    last = log.state.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.run_id, last.step) == ("run_9", 1)
    assert [asked.call_id for asked in last.tool_calls] == ["call_a", "call_b", "call_c"]
    assert [part.echo for part in last.parts if isinstance(part, Reasoning)] == [{"id": 1}, {"id": 2}]
    assert not any(isinstance(each, ResultsMessage) for each in log.state.messages), "one is still open"


def test_a_thread_that_exists_is_no_place_for_a_copy() -> None:
    story = told()
    copy = ThreadCopy(title="t", messages=(), new=NewRun("run_9"))
    assert begin_copy(story.thread, copy, now=0.0, timeouts=TIMEOUTS).answer is False
