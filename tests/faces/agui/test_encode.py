"""How the events of a run are encoded in one response, without a server."""

from __future__ import annotations

import json
from typing import get_args

from farhand.core.approval import Approval
from farhand.core.call import Question
from farhand.core.event import (
    CallBegun,
    CallOpened,
    CallSettled,
    Event,
    InputAdded,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Failure, Success
from farhand.core.position import Entry
from farhand.core.principal import LOCAL
from farhand.core.run import Run, RunState, Usage
from farhand.core.tool import Executor
from farhand.faces.agui.encode import AguiEncoder, RunName
from farhand.wire.sse import Parser
from tests.faces.agui.page import Json

RUN = Run(run_id="run_1", owner=LOCAL, thread_id="t1", started_at=0.0)
NAME = RunName("t1", "r1", is_versioned=True)
DONE = RunFinished(RunState.DONE, "end", delivered=True)


def _opened(call_id: str, executor: Executor = Executor.FRONTEND, **more: Json) -> CallOpened:
    return CallOpened(
        call_id=call_id, tool="t", tool_version="v", executor=executor, input={"a": 1}, step=1, **more
    )


def _settled(call_id: str, executor: Executor = Executor.FRONTEND) -> CallSettled:
    return CallSettled(call_id=call_id, tool="t", executor=executor, outcome=Success("ok"), digest="d")


def _entries(*events: Event, after: int = 0) -> list[Entry]:
    return [Entry(seq, event, 0.0) for seq, event in enumerate(events, after + 1)]


def _read(frames: bytes) -> list[Json]:
    return [json.loads(event.data) for event in Parser().feed(frames)]


def _told(encoder: AguiEncoder, *events: Event) -> list[Json]:
    return _read(encoder.encode_events(_entries(*events)))


def test_every_event_of_the_log_has_its_method() -> None:
    assert set(AguiEncoder._METHODS) == set(get_args(Event))


def test_nothing_is_told_while_the_model_writes_an_input() -> None:
    encoder = AguiEncoder(RUN, NAME)
    assert (
        _told(encoder, RunStarted("run_1"), StepStarted(1), CallBegun("c", "t"), InputAdded("c", "{")) == []
    )


def test_a_step_that_comes_again_after_a_crash_is_another_message() -> None:
    encoder = AguiEncoder(RUN, NAME)
    told = _told(
        encoder,
        StepStarted(1),
        TextAdded(0, "Half"),
        StepDiscarded(1),
        StepStarted(1),
        TextAdded(0, "Whole"),
        DONE,
    )
    ids = [each["messageId"] for each in told if each["type"] == "TEXT_MESSAGE_START"]
    assert ids == ["run_1:1", "run_1:1.1"]
    assert [each["type"] for each in told].count("TEXT_MESSAGE_END") == 2


def test_the_usage_of_all_steps_is_told_at_the_end_to_those_who_know_it() -> None:
    events = (StepFinished(1, "calls", Usage(10, 1)), StepFinished(2, "end", Usage(20, 2)), DONE)
    assert _told(AguiEncoder(RUN, NAME), *events)[-1]["usage"] == [{"inputTokens": 30, "outputTokens": 3}]
    assert "usage" not in _told(AguiEncoder(RUN, RunName("t1", "r1")), *events)[-1]


def test_a_pause_that_is_over_does_not_end_the_response() -> None:
    events = (
        StepStarted(1),
        _opened("c"),
        StepFinished(1, "calls"),
        RunParked(),
        _settled("c"),
        RunResumed(),
    )
    encoder = AguiEncoder(RUN, NAME, past=6)
    encoder.encode_events(_entries(*events[:4]))
    assert not encoder.is_paused
    encoder.encode_events(_entries(*events[4:], after=4))
    assert not encoder.is_paused


def test_a_run_that_has_its_last_answer_is_not_paused_though_nobody_claimed_it_yet() -> None:
    encoder = AguiEncoder(RUN, NAME)
    encoder.encode_events(_entries(StepStarted(1), _opened("c"), StepFinished(1, "calls"), RunParked()))
    assert encoder.is_paused
    encoder.encode_events(_entries(_settled("c"), after=4))
    assert not encoder.is_paused


def test_a_result_that_the_client_has_is_not_told_again_and_the_others_are() -> None:
    encoder = AguiEncoder(RUN, NAME, shown_calls=["a", "b"], shown_results=["a"])
    encoder.skip(_entries(StepStarted(1), _opened("a"), _opened("b"), StepFinished(1, "calls"), RunParked()))
    told = _read(encoder.encode_events(_entries(_settled("a"), _settled("b"), DONE, after=5)))
    assert [each["toolCallId"] for each in told if each["type"] == "TOOL_CALL_RESULT"] == ["b"]
    assert not [each for each in told if each["type"] == "TOOL_CALL_START"]


def test_a_call_that_was_answered_before_it_was_shown_is_shown_with_its_result() -> None:
    encoder = AguiEncoder(RUN, NAME)
    encoder.skip(_entries(StepStarted(1), _opened("a"), StepFinished(1, "calls"), RunParked()))
    told = _read(encoder.encode_events(_entries(_settled("a"), after=4)))
    assert [each["type"] for each in told] == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ]


def test_the_words_of_a_tool_that_raised_stay_on_the_server() -> None:
    hidden = CallSettled(
        call_id="s", tool="t", executor=Executor.SERVER, outcome=Failure("secret", "It failed."), digest="d"
    )
    told = _told(
        AguiEncoder(RUN, NAME), StepStarted(1), _opened("s", Executor.SERVER, holder="server"), hidden
    )
    assert "It failed." in told[-1]["content"]
    assert "secret" not in json.dumps(told)


def test_a_question_pauses_a_run_whose_worker_keeps_it_and_its_call_is_never_shown() -> None:
    encoder = AguiEncoder(RUN, NAME)
    asked, kept = _opened("q", parent=Question("s", "1")), RunParked(is_kept=True)
    told = _told(encoder, StepStarted(1), _opened("s", Executor.SERVER, holder="server"), asked, kept)
    assert [each["toolCallId"] for each in told if each["type"] == "TOOL_CALL_START"] == ["s"]
    assert encoder.is_paused
    [end] = _read(encoder.pause({}))
    assert [(each["id"], each["reason"]) for each in end["outcome"]["interrupts"]] == [
        ("q", "input_required")
    ]


def test_a_tool_that_has_its_answer_works_again_though_a_page_has_a_call_open() -> None:
    encoder = AguiEncoder(RUN, NAME)
    tool = _opened("s", Executor.SERVER, holder="server")
    asked, kept = _opened("q", parent=Question("s", "1")), RunParked(is_kept=True)
    encoder.encode_events(_entries(StepStarted(1), tool, _opened("p"), asked, kept))
    assert encoder.is_paused
    encoder.encode_events(_entries(_settled("q"), after=5))
    assert not encoder.is_paused


def test_a_deadline_is_told_only_to_those_who_can_get_past_it() -> None:
    asking = _opened("s", Executor.SERVER, approval=Approval(approval_id="apr_1", digest="d"), deadline=60.0)
    events = (StepStarted(1), asking, StepFinished(1, "calls"), RunParked())
    for name, expected in ((NAME, "1970-01-01T00:01:00.000Z"), (RunName("t1", "r1"), None)):
        encoder = AguiEncoder(RUN, name)
        encoder.encode_events(_entries(*events))
        [end] = _read(encoder.pause({}))
        assert end["outcome"]["interrupts"][0].get("expiresAt") == expected


def test_a_response_that_the_server_cuts_closes_what_is_open() -> None:
    encoder = AguiEncoder(RUN, NAME)
    _told(encoder, StepStarted(1), TextAdded(0, "Half"))
    told = _read(encoder.close(cut=True))
    assert [each["type"] for each in told] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert told[-1]["code"] == "shutting_down"
