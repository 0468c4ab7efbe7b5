from __future__ import annotations

from typing import Any

import pytest

from farhand.core.run import Usage
from farhand.errors import ModelFault
from farhand.models.backboard.position import AnswerPlace
from farhand.models.backboard.stream import RoundDecoder
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    TextDelta,
)
from farhand.models.prompt_encoding import ToolNames


# Any: an event of Backboard is JSON
def decode_all(answer: RoundDecoder, *events: dict[str, Any]) -> list[ModelEvent]:
    return [said for event in events for said in answer.decode(event)]


def fresh() -> RoundDecoder:
    return RoundDecoder(ToolNames(["look"]), AnswerPlace("A", "T", 3))


def echo(run: str | None) -> ReasoningDone:
    return ReasoningDone({"backboard": {"assistant": "A", "thread": "T", "at": 3, "run": run}})


def test_a_round_that_asks_names_its_run_and_its_calls() -> None:
    answer = fresh()
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    decoded = decode_all(
        answer,
        {"type": "run_started", "run_id": "R"},
        {"type": "content_streaming", "content": "Well"},
        {"type": "tool_submit_required", "run_id": "R", "tool_calls": [call]},
        {"type": "run_ended", "status": None},
    )
    assert decoded == [
        TextDelta("Well"),
        echo("R"),
        CallStart(0, "look", "c1"),
        InputDelta(0, '{"at": 1}'),
        CallDone(0, '{"at": 1}'),
    ]
    assert answer.stop == Stop("calls")


@pytest.mark.parametrize("calls", [{}, {"tool_calls": []}, {"tool_calls": None}])
def test_a_round_that_asks_for_outputs_of_no_call_is_a_fault_not_an_answer(calls: dict[str, object]) -> None:
    answer = fresh()
    with pytest.raises(ModelFault, match="named no call"):
        decode_all(answer, {"type": "tool_submit_required", "run_id": "R", **calls})
    assert answer.stop is None


def test_arguments_that_are_an_object_already_are_written_down() -> None:
    call = {"function": {"name": "look", "arguments": {"at": 1}}}
    decoded = decode_all(fresh(), {"type": "tool_submit_required", "run_id": "R", "tool_calls": [call]})
    assert decoded[-1] == CallDone(0, '{"at": 1}')
    assert decoded[1] == CallStart(0, "look", None)


def test_an_answer_ends_with_what_was_held_back() -> None:
    answer = fresh()
    decoded = decode_all(
        answer,
        {"type": "reasoning_streaming", "content": "h"},
        {"type": "reasoning_streaming", "content": "hm"},
        {"type": "content_streaming", "content": "Y"},
        {"type": "content_streaming", "content": "Yes"},
        {"type": "run_ended", "status": "completed", "input_tokens": 3, "output_tokens": 4},
    )
    assert decoded == [ReasoningDelta("h"), ReasoningDelta("m"), TextDelta("Y"), TextDelta("es"), echo(None)]
    assert answer.stop == Stop("end", Usage(3, 4))


def test_a_cancelled_run_is_a_fault() -> None:
    with pytest.raises(ModelFault, match="Backboard cancelled the run"):
        decode_all(fresh(), {"type": "run_cancelled"})


def test_a_round_without_its_end_has_no_stop() -> None:
    answer = fresh()
    decode_all(answer, {"type": "content_streaming", "content": "On"}, {"type": "something_new"})
    assert answer.stop is None
