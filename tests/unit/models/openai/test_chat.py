"""Quirks of servers that call themselves compatible."""

from __future__ import annotations

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
    TextDelta,
)
from farhand.models.openai.chat import DONE, ChatDecoder, ChatEvent, decode_chunk
from farhand.models.prompt_encoding import ToolNames


def chunk(finish: str | None = None, **delta: object) -> ChatEvent:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return sent({**head, "choices": [choice]})


def sent(chunk: object) -> ChatEvent:
    return decode_chunk(msgspec.json.encode(chunk))


def piece(
    index: int, text: str = "", name: str | None = None, theirs: str | None = None
) -> dict[str, object]:
    return {"index": index, "id": theirs, "function": {"name": name, "arguments": text}}


def decode_all(answer: ChatDecoder, *chunks: ChatEvent) -> list[ModelEvent]:
    return [said for each in chunks for said in answer.decode(each)]


def fresh() -> ChatDecoder:
    return ChatDecoder(ToolNames(["look", "listen"]), "m")


def test_pieces_are_told_apart_by_their_index() -> None:
    answer = fresh()
    decoded = decode_all(
        answer,
        chunk(tool_calls=[piece(0, name="look", theirs="a"), piece(1, name="look", theirs="b")]),
        chunk(tool_calls=[piece(1, "{}")]),
        chunk(tool_calls=[piece(0, '{"at"')]),
        chunk(tool_calls=[piece(0, ":1}")]),
        chunk("tool_calls"),
    )
    assert decoded == [
        CallStart(0, "look", "a"),
        CallStart(1, "look", "b"),
        InputDelta(1, "{}"),
        InputDelta(0, '{"at"'),
        InputDelta(0, ":1}"),
        CallDone(0, '{"at":1}'),
        CallDone(1, "{}"),
    ]
    assert answer.stop == Stop("calls")


def test_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    decoded = decode_all(
        fresh(),
        chunk(tool_calls=[piece(0, "{}", name="look", theirs="a")]),
        chunk(tool_calls=[piece(0, '{"at":1}', name="look", theirs="b")]),
        chunk("tool_calls"),
    )
    assert decoded[-2:] == [CallDone(0, "{}"), CallDone(1, '{"at":1}')]


@pytest.mark.parametrize("theirs", [None, "", "call_0"])
@pytest.mark.parametrize("second", ["look", "listen"])
def test_whole_calls_that_share_index_and_id_are_never_mixed(theirs: str | None, second: str) -> None:
    decoded = decode_all(
        fresh(),
        chunk(tool_calls=[piece(0, '{"at":1}', name="look", theirs=theirs)]),
        chunk(tool_calls=[piece(0, '{"at":2}', name=second, theirs=theirs)]),
        chunk("tool_calls"),
    )
    starts = [event for event in decoded if isinstance(event, CallStart)]
    assert starts == [CallStart(0, "look", theirs or None), CallStart(1, second, theirs or None)]
    assert decoded[-2:] == [CallDone(0, '{"at":1}'), CallDone(1, '{"at":2}')]


def test_another_name_begins_another_call_also_after_an_input_that_is_not_whole() -> None:
    decoded = decode_all(
        fresh(),
        chunk(tool_calls=[piece(0, name="look")]),
        chunk(tool_calls=[piece(0, name="listen")]),
        chunk(tool_calls=[piece(0, '{"to":1}')]),
        chunk("tool_calls"),
    )
    assert decoded[-2:] == [CallDone(0, ""), CallDone(1, '{"to":1}')]


def test_a_name_that_comes_again_with_every_piece_is_the_same_call() -> None:
    pieces = [piece(0, text, name="look", theirs="a") for text in ("", '{"at"', ":1}")]
    decoded = decode_all(fresh(), *(chunk(tool_calls=[each]) for each in pieces), chunk("tool_calls"))
    assert decoded[-1] == CallDone(0, '{"at":1}')
    assert sum(isinstance(event, CallStart) for event in decoded) == 1


def test_an_id_that_comes_again_with_every_piece_is_the_same_call() -> None:
    decoded = decode_all(
        fresh(),
        chunk(tool_calls=[piece(0, "{", name="look", theirs="a")]),
        chunk(tool_calls=[piece(0, "}", theirs="a")]),
        chunk("tool_calls"),
    )
    assert decoded[-1] == CallDone(0, "{}")
    assert sum(isinstance(event, CallStart) for event in decoded) == 1


def test_a_call_begins_when_its_name_is_known() -> None:
    decoded = decode_all(
        fresh(),
        chunk(tool_calls=[piece(0, "{")]),
        chunk(tool_calls=[piece(0, "}", name="look")]),
        chunk("stop"),
    )
    assert decoded == [CallStart(0, "look", None), InputDelta(0, "{"), InputDelta(0, "}"), CallDone(0, "{}")]


def test_a_call_that_never_gets_a_name_is_still_a_call() -> None:
    decoded = decode_all(fresh(), chunk(tool_calls=[piece(0, "{}")]), chunk("tool_calls"))
    assert decoded == [CallStart(0, "", None), InputDelta(0, "{}"), CallDone(0, "{}")]


def test_a_server_that_says_stop_though_it_asks_is_understood() -> None:
    answer = fresh()
    decode_all(answer, chunk(tool_calls=[piece(0, "{}", name="look")]), chunk("stop"))
    assert answer.stop == Stop("calls")


def test_of_an_answer_that_was_cut_the_last_call_is_not_whole() -> None:
    answer = fresh()
    decoded = decode_all(
        answer,
        chunk(tool_calls=[piece(0, "{}", name="look")]),
        chunk(tool_calls=[piece(1, '{"a', name="look")]),
        chunk("length"),
    )
    assert [event for event in decoded if isinstance(event, CallDone)] == [CallDone(0, "{}")]
    assert answer.stop == Stop("length")


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
def test_reasoning_is_heard_under_either_of_its_names_and_marked_to_go_back_under_it(member: str) -> None:
    done = ReasoningDone({"openai-chat": {"model": "m", "member": member}})
    decoded = decode_all(fresh(), chunk(**{member: "hm"}), chunk(**{member: " so"}), chunk(content="Yes."))
    assert decoded == [ReasoningDelta("hm"), ReasoningDelta(" so"), done, TextDelta("Yes.")]
    asked = chunk(tool_calls=[piece(0, "{}", name="look")])
    assert decode_all(fresh(), chunk(**{member: "hm"}), asked)[:2] == [ReasoningDelta("hm"), done]


def test_a_refusal_is_told_and_is_one() -> None:
    answer = fresh()
    assert decode_all(answer, chunk(refusal="No."), chunk("stop")) == [TextDelta("No.")]
    assert answer.stop == Stop("refusal")
    filtered = fresh()
    decode_all(filtered, chunk("content_filter"))
    assert filtered.stop == Stop("refusal")


def test_usage_comes_after_the_end() -> None:
    answer = fresh()
    decode_all(answer, chunk(content="Hi."), chunk("stop"))
    used = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    decode_all(answer, sent({"id": "c", "choices": [], "usage": used}))
    assert answer.stop == Stop("end", Usage(3, 4))


def test_an_answer_without_its_end_has_no_stop() -> None:
    answer = fresh()
    decode_all(answer, chunk(content="On"))
    assert answer.stop is None


def test_what_was_said_before_the_last_word_is_complete_also_without_a_reason() -> None:
    text, call, nothing = fresh(), fresh(), fresh()
    decode_all(text, chunk(content="Yes."), DONE)
    assert text.stop == Stop("end")
    decoded = decode_all(call, chunk(tool_calls=[piece(0, "{}", name="look")]), DONE)
    assert decoded[-1] == CallDone(0, "{}")
    assert call.stop == Stop("calls")
    decode_all(nothing, chunk(role="assistant"), DONE)
    assert nothing.stop is None
