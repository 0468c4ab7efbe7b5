from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import pytest

from farhand.core.run import Usage
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    StopReason,
    TextDelta,
)
from farhand.models.error_messages import AnswerFailed
from farhand.models.openai.responses import ResponseDecoder, decode_event
from farhand.models.prompt_encoding import ToolNames

PLACE = {"item_id": "i", "output_index": 0}
# Any: an event of the stream is JSON
Json: TypeAlias = dict[str, Any]
CALL: Json = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": ""}


def event(kind: str, **fields: object) -> Json:
    return {"type": f"response.{kind}", "sequence_number": 1, **fields}


def item(kind: str, **fields: object) -> Json:
    return event(f"output_item.{kind}", output_index=0, item=fields)


def ended(status: str, **fields: object) -> Json:
    response: Json = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": [],
        "tools": [],
    }
    response |= {"parallel_tool_calls": True, "tool_choice": "auto", "status": status, **fields}
    return event(status, response=response)


def decode_all(answer: ResponseDecoder, *events: Json) -> list[ModelEvent]:
    decoded = [decode_event(msgspec.json.encode(each)) for each in events]
    return [said for each in decoded if each is not None for said in answer.decode(each)]


def fresh() -> ResponseDecoder:
    return ResponseDecoder(ToolNames(["look"]))


def test_a_call_is_answered_by_its_call_id_not_by_the_items_id() -> None:
    answer = fresh()
    decoded = decode_all(
        answer,
        item("added", **CALL),
        event("function_call_arguments.delta", delta="{}", **PLACE),
        item("done", **{**CALL, "arguments": "{}", "status": "completed"}),
        ended("completed"),
    )
    assert decoded == [CallStart(0, "look", "call_1"), InputDelta(0, "{}"), CallDone(0, "{}")]
    assert answer.stop == Stop("calls")


def test_a_call_that_comes_all_at_once_is_heard_too() -> None:
    assert decode_all(fresh(), item("done", **{**CALL, "arguments": "{}"})) == [
        CallStart(0, "look", "call_1"),
        CallDone(0, "{}"),
    ]


def test_a_call_that_was_cut_is_not_whole() -> None:
    answer = fresh()
    cut = item("done", **{**CALL, "arguments": '{"a', "status": "incomplete"})
    why = {"incomplete_details": {"reason": "max_output_tokens"}}
    assert decode_all(answer, item("added", **CALL), cut, ended("incomplete", **why)) == [
        CallStart(0, "look", "call_1")
    ]
    assert answer.stop == Stop("length")


def test_reasoning_is_kept_if_it_has_its_content() -> None:
    thought: Json = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    decoded = decode_all(
        fresh(),
        event("reasoning_summary_part.added", summary_index=0, part=thought["summary"][0], **PLACE),
        event("reasoning_summary_text.delta", summary_index=0, delta="hm", **PLACE),
        event("reasoning_summary_part.added", summary_index=1, part=thought["summary"][0], **PLACE),
        event("reasoning_summary_text.delta", summary_index=1, delta="so", **PLACE),
        item("done", **thought, encrypted_content="xyz"),
        item("done", **thought),
    )
    assert decoded == [
        ReasoningDelta("hm"),
        ReasoningDelta("\n\n"),
        ReasoningDelta("so"),
        ReasoningDone({"openai": {**thought, "encrypted_content": "xyz"}}),
    ]


def test_the_phase_of_a_text_is_kept() -> None:
    message = {"type": "message", "id": "m", "role": "assistant", "content": [], "status": "completed"}
    decoded = decode_all(
        fresh(),
        event("output_text.delta", delta="First", content_index=0, logprobs=[], **PLACE),
        item("done", **message, phase="commentary"),
        item("done", **message),
    )
    assert decoded == [
        TextDelta("First"),
        ReasoningDone({"openai": {"type": "phase", "phase": "commentary"}}),
    ]


def test_items_of_openais_own_tools_are_kept() -> None:
    search: Json = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    search["action"] = {"type": "search", "query": "oslo"}
    assert decode_all(fresh(), item("done", **search)) == [ReasoningDone({"openai": search})]


@pytest.mark.parametrize(
    ("why", "reason"), [("content_filter", "refusal"), ("max_messages", "other"), (None, "other")]
)
def test_each_incomplete_answer_has_its_reason(why: str | None, reason: StopReason) -> None:
    answer = fresh()
    decode_all(answer, ended("incomplete", incomplete_details={"reason": why} if why else None))
    assert answer.stop == Stop(reason)


def test_a_refusal_is_told_and_is_one() -> None:
    answer = fresh()
    refused = event("refusal.delta", delta="No.", content_index=0, **PLACE)
    assert decode_all(answer, refused, ended("completed")) == [TextDelta("No.")]
    assert answer.stop == Stop("refusal")


def test_usage_is_told_at_the_end() -> None:
    answer = fresh()
    used: Json = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    used["input_tokens_details"] = {"cached_tokens": 0, "cache_write_tokens": 0}
    used["output_tokens_details"] = {"reasoning_tokens": 0}
    decode_all(answer, ended("completed", usage=used))
    assert answer.stop == Stop("end", Usage(3, 4))


def test_a_response_that_failed_raises_its_words() -> None:
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    with pytest.raises(AnswerFailed, match="slow down") as failed:
        decode_all(fresh(), ended("failed", error=error))
    assert failed.value.code == "rate_limit_exceeded"
    with pytest.raises(AnswerFailed, match="the response failed"):
        decode_all(fresh(), ended("failed"))
