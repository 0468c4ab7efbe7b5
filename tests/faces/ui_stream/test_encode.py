"""The encoder of the chat stream, without a server."""

from __future__ import annotations

from typing import get_args

from farhand.core.event import CallBegun, Event, InputAdded, StepStarted, TextAdded
from farhand.core.position import Entry
from farhand.faces.ui_stream.encode import Chunks, UiStreamEncoder
from farhand.wire.sse import parse
from tests.requirement import requirement


@requirement("ui-stream:frames")
def test_every_event_has_its_place_in_the_table() -> None:
    assert set(Chunks._METHODS) == set(get_args(Event))


@requirement("ui-stream:frames")
def test_an_id_stands_on_the_last_frame_of_its_event_whatever_the_text_looks_like() -> None:
    encoder = UiStreamEncoder(Chunks("run_1"), with_ids=True)
    entries = [Entry(1, StepStarted(1), 0.0), Entry(2, TextAdded(0, "data: {}\n\ndata: x"), 0.0)]
    events = list(parse([encoder.encode_events(entries)]))
    assert [each.id for each in events] == ["1.0~1", "1.0~1", "1.0~1", "2.17~1"]
    assert '"delta":"data: {}\\n\\ndata: x"' in events[-1].data


@requirement("ui-stream:frames")
def test_what_a_model_calls_its_tool_is_escaped() -> None:
    encoder = UiStreamEncoder(Chunks("run_1"))
    begun = [Entry(1, CallBegun("call_1", 'a"b\n'), 0.0), Entry(2, InputAdded("call_1", "\ud83d"), 0.0)]
    [_, start, added] = [each.data for each in parse([encoder.encode_events(begun)])]
    assert start == '{"type":"tool-input-start","toolCallId":"call_1","toolName":"a\\"b\\n"}'
    assert added == '{"type":"tool-input-delta","toolCallId":"call_1","inputTextDelta":"\\ud83d"}'
