from __future__ import annotations

import msgspec
import pytest

from farhand.core.run import Usage
from farhand.models.anthropic.stream import MessageDecoder, decode_event
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
from farhand.models.prompt_encoding import ToolNames
from farhand.models.sse_reader import SseEvent


def start(index: int, **block: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def end(index: int) -> dict[str, object]:
    return {"type": "content_block_stop", "index": index}


def stopped(reason: str | None) -> list[dict[str, object]]:
    ending = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 7, "input_tokens": 5}},
        {"type": "message_stop"},
    ]


def decode_all(answer: MessageDecoder, *events: dict[str, object]) -> list[ModelEvent]:
    decoded = [decode_event(SseEvent(b"x", msgspec.json.encode(event))) for event in events]
    return [said for event in decoded if event is not None for said in answer.decode(event)]


def fresh() -> MessageDecoder:
    return MessageDecoder(ToolNames(["look", "open file"]))


def test_a_call_is_told_by_its_own_name_with_its_input_as_it_was_written() -> None:
    alias = ToolNames(["look", "open file"]).alias("open file")
    assert decode_all(
        fresh(),
        start(0, type="tool_use", id="toolu_1", name=alias, input={}),
        delta(0, "input_json_delta", partial_json='{"path"'),
        delta(0, "input_json_delta", partial_json=': "a"}'),
        end(0),
    ) == [
        CallStart(0, "open file", "toolu_1"),
        InputDelta(0, '{"path"'),
        InputDelta(0, ': "a"}'),
        CallDone(0, '{"path": "a"}'),
    ]


def test_a_thought_is_kept_with_its_seal_and_one_that_was_cut_is_not() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    first = [start(0, **thought), delta(0, "thinking_delta", thinking="hm")]
    sealed = delta(0, "signature_delta", signature="seal")
    echo = {"anthropic": {"type": "thinking", "thinking": "hm", "signature": "seal"}}
    assert decode_all(fresh(), *first, sealed, end(0)) == [ReasoningDelta("hm"), ReasoningDone(echo)]
    assert decode_all(fresh(), *first, end(0)) == [ReasoningDelta("hm")]


def test_a_hidden_thought_is_kept_as_it_is() -> None:
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    assert decode_all(fresh(), start(0, **hidden), end(0)) == [ReasoningDone({"anthropic": hidden})]


def test_the_providers_own_tools_are_kept_with_their_input() -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    written = delta(0, "input_json_delta", partial_json='{"query": "oslo"}')
    decoded = decode_all(fresh(), start(0, **search), written, end(0))
    assert decoded == [ReasoningDone({"anthropic": {**search, "input": {"query": "oslo"}}})]
    cut = delta(0, "input_json_delta", partial_json='{"que')
    assert decode_all(fresh(), start(0, **search), cut, end(0)) == [ReasoningDone({"anthropic": search})]


def test_a_text_with_sources_is_kept_whole_and_two_texts_stay_two() -> None:
    place = {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": "t"}
    place |= {"start_char_index": 0, "end_char_index": 1, "file_id": None}
    decoded = decode_all(
        fresh(),
        start(0, type="text", text="", citations=None),
        delta(0, "text_delta", text="one"),
        end(0),
        start(1, type="text", text="", citations=None),
        delta(1, "citations_delta", citation=place),
        delta(1, "text_delta", text="two"),
        end(1),
    )
    first, second = (event.echo for event in decoded if isinstance(event, ReasoningDone))
    assert first == {"anthropic": {"type": "text", "text": "one", "citations": None}}
    assert second == {"anthropic": {"type": "text", "text": "two", "citations": [place]}}
    assert [event.text for event in decoded if isinstance(event, TextDelta)] == ["one", "two"]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
    ],
)
def test_each_stop_reason_has_its_meaning(reason: str, stop: StopReason) -> None:
    answer = fresh()
    decode_all(answer, *stopped(reason))
    assert answer.stop == Stop(stop, Usage(5, 7))


def test_an_answer_without_its_end_has_no_stop() -> None:
    answer = fresh()
    decode_all(answer, start(0, type="text", text="", citations=None), delta(0, "text_delta", text="On"))
    assert answer.stop is None
    decode_all(answer, {"type": "message_stop"})
    assert answer.stop is None, "the reason is missing"


@pytest.mark.parametrize("pieces", [[], [""], [" ", "\n\n"]], ids=["no piece", "empty", "blanks"])
def test_a_text_without_a_word_is_as_if_it_had_never_been(pieces: list[str]) -> None:
    signed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    events = decode_all(
        fresh(),
        start(0, **signed),
        end(0),
        start(1, type="text", text=""),
        *(delta(1, "text_delta", text=piece) for piece in pieces),
        end(1),
        start(2, **signed),
        end(2),
    )
    assert events == [ReasoningDone({"anthropic": signed})] * 2


def test_a_blank_text_between_two_others_leaves_them_as_they_were() -> None:
    events = decode_all(
        fresh(),
        start(0, type="text", text="", citations=None),
        delta(0, "text_delta", text="One."),
        end(0),
        start(1, type="text", text="\n"),
        end(1),
        start(2, type="text", text=""),
        delta(2, "text_delta", text=" "),
        delta(2, "text_delta", text="Two."),
        delta(2, "text_delta", text=" "),
        end(2),
    )
    assert [event for event in events if isinstance(event, TextDelta)] == [
        TextDelta("One."),
        TextDelta(" Two."),
        TextDelta(" "),
    ]
    (echo,) = (event.echo for event in events if isinstance(event, ReasoningDone))
    assert echo == {"anthropic": {"type": "text", "text": "One.", "citations": None}}


def test_a_text_that_is_there_at_once_is_told() -> None:
    assert decode_all(fresh(), start(0, type="text", text="At once."), end(0)) == [TextDelta("At once.")]


def test_tokens_that_the_cache_took_or_gave_are_tokens_read() -> None:
    cached = {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2000}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "c"}
    usage = {**cached, "output_tokens": 1}
    message: dict[str, object] = {
        **head,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    last = {"output_tokens": 7, "input_tokens": 5, "cache_creation_input_tokens": None}
    ending = {"stop_reason": "end_turn", "stop_sequence": None}
    answer = fresh()
    decode_all(
        answer,
        {"type": "message_start", "message": message},
        {"type": "message_delta", "delta": ending, "usage": last},
        {"type": "message_stop"},
    )
    assert answer.stop == Stop("end", Usage(2105, 7))
