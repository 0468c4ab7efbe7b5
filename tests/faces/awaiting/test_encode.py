"""Events of a run as frames of a response."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.approval import Answer, Approval
from farhand.core.event import (
    ApprovalAnswered,
    CallBegun,
    CallRejected,
    Event,
    InputAdded,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Denied, Failure, Outcome, Success, TimedOut
from farhand.core.position import Bookmark, Entry, Position, parse_bookmark
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.faces.awaiting.shapes import Format
from farhand.wire import sse
from tests.faces.awaiting.client import Json, attributes_of, between
from tests.faces.awaiting.journal import CALL, OTHER, datas_of, encoder, frames_of, journal, opened, settled
from tests.requirement import requirement

DONE_EVENT = RunFinished(RunState.DONE, "end")

TALK = journal(
    RunStarted("run_1"),
    StepStarted(1),
    ReasoningAdded(0, "Let me see."),
    TextAdded(1, "I will ask\nyou: <meta_init"),
    TextAdded(1, " and more"),
    TextAdded(2, "A second block <"),
    CallBegun(CALL, "user_confirm"),
    InputAdded(CALL, '{"message": "Sure?"}'),
    opened(input={"message": "Sure?"}),
    StepFinished(1, "calls"),
    RunParked(),
)


@requirement("awaiting:xml")
def test_text_and_thinking_are_streamed_inside_an_open_tag() -> None:
    entries = journal(
        ReasoningAdded(0, "hm"), TextAdded(1, "Hel"), TextAdded(1, "lo"), StepFinished(1, "end")
    )
    assert datas_of(encoder(), entries) == [
        "<content-block-thinking>",
        "hm",
        "</content-block-thinking><content-block-text>",
        "Hel",
        "lo",
        "</content-block-text>",
    ]


@requirement("awaiting:xml")
def test_two_texts_of_one_step_are_two_blocks() -> None:
    datas = datas_of(encoder(), journal(TextAdded(0, "one"), TextAdded(1, "two")))
    assert "".join(datas) == "<content-block-text>one</content-block-text><content-block-text>two"


@requirement("awaiting:xml")
def test_a_call_is_one_tag_with_its_arguments() -> None:
    [tag] = datas_of(encoder(), journal(opened(input={"message": 'a "b" <c> é'})))
    assert tag.endswith('"></content-block-tool_call>')
    assert attributes_of(tag) == {"id": CALL, "name": "user_confirm", "arguments": {"message": 'a "b" <c> é'}}


@requirement("awaiting:xml")
@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Success("yes"), "yes"),
        (Success({"b": 1, "a": [None]}), '{"a":[null],"b":1}'),
        (Failure("no camera"), '{"status":"failed","errorText":"no camera"}'),
        (TimedOut(3), '{"status":"timeout"}'),
        (Denied("not now"), "The user denied this call; it was not executed. They gave this reason: not now"),
    ],
)
def test_a_result_is_shown_as_the_model_reads_it(outcome: Outcome, text: str) -> None:
    [tag] = datas_of(encoder(), journal(settled(outcome=outcome)))
    assert ET.fromstring(tag).text == text


@requirement("awaiting:xml")
def test_a_rejected_call_and_its_error_share_a_frame() -> None:
    rejected = CallRejected(
        call_id=CALL, tool='no "such" <tool>', input={"a": 1}, error="There is no such tool."
    )
    [data] = datas_of(encoder(), journal(rejected))
    call, result = ET.fromstring(f"<all>{data}</all>")
    assert call.get("name") == result.get("name") == "no__such___tool_"
    assert "There is no such tool." in (result.text or "")


@requirement("awaiting:xml")
def test_line_breaks_and_backslashes_of_streamed_text_are_escaped() -> None:
    datas = datas_of(encoder(), journal(TextAdded(0, "a\nb\r\n\\n")))
    assert datas == ["<content-block-text>", "a\\nb\\r\\n\\\\n"]


@requirement("awaiting:xml")
@pytest.mark.parametrize(
    "name",
    [
        "meta_init",
        "/meta_init",
        "AWAITING_frontend_tools",
        "ignored_tool_results",
        "stream_gap",
        "content-block-error",
        "content-block-text",
        "/content-block-text",
        "content-block-tool_result",
        "![CDATA[",
    ],
)
def test_model_text_that_looks_like_a_tag_of_ours_is_escaped_however_it_is_cut(name: str) -> None:
    text = f'x <{name} data="[]"> y'
    for cut in range(len(text)):
        entries = journal(TextAdded(0, text[:cut]), TextAdded(0, text[cut:]), StepFinished(1, "end"))
        said = "".join(datas_of(encoder(), entries))
        assert said == f'<content-block-text>x &lt;{name} data="[]"> y</content-block-text>'


@requirement("awaiting:xml")
def test_other_tags_in_model_text_stay_as_they_are() -> None:
    entries = journal(TextAdded(0, "<b>bold</b> & <meta> <"), StepFinished(1, "end"))
    assert between("".join(datas_of(encoder(), entries)), "content-block-text") == "<b>bold</b> & <meta> <"


@requirement("awaiting:xml")
@given(text=st.text())
def test_a_result_in_a_cdata_section_is_read_back_by_an_xml_parser(text: str) -> None:
    nasty = f'{text}]]><awaiting_frontend_tools data="[]"></meta_init>{text}'
    [tag] = datas_of(encoder(), journal(settled(outcome=Success(nasty))))
    assert "<awaiting_frontend_tools" not in tag
    assert "</meta_init" not in tag
    read = ET.fromstring(tag).text or ""
    assert _plain(read) == _plain(nasty)


def test_raw_writes_a_step_as_the_events_of_one_message() -> None:
    datas = [json.loads(data) for data in datas_of(encoder("raw"), TALK[:-1])]
    assert [data["type"] for data in datas] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
        "message_delta",
        "message_stop",
    ]
    assert [data["index"] for data in datas if data["type"] == "content_block_start"] == [0, 1, 2, 3]
    assert datas[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_raw_events_put_together_give_the_message() -> None:
    events = [json.loads(data) for data in datas_of(encoder("raw"), TALK[:-1])]
    blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    for event in events:
        if event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            name = delta["type"].removesuffix("_delta").replace("input_json", "partial_json")
            block[name] = block.get(name, "") + delta[name]
    assert [block["type"] for block in blocks] == ["thinking", "text", "text", "tool_use"]
    assert blocks[1]["text"] == "I will ask\nyou: <meta_init and more"
    assert json.loads(blocks[3]["partial_json"]) == {"message": "Sure?"}


def test_raw_inputs_that_a_model_writes_in_turns_keep_their_numbers() -> None:
    entries = journal(
        StepStarted(1),
        CallBegun(CALL, "a"),
        CallBegun(OTHER, "b"),
        InputAdded(CALL, "{"),
        InputAdded(OTHER, "["),
        InputAdded(CALL, "}"),
    )
    datas = [json.loads(data) for data in datas_of(encoder("raw"), entries)]
    written = [(data["index"], data["delta"]["partial_json"]) for data in datas if "delta" in data]
    assert written == [(0, "{"), (1, "["), (0, "}")]
    assert sum(data["type"] == "content_block_start" for data in datas) == 2


def test_raw_results_are_the_same_tags_as_in_xml() -> None:
    entries = journal(settled(), settled(OTHER, Failure("no")))
    results = datas_of(encoder("raw"), entries)
    assert results == datas_of(encoder(), entries)
    tag = ET.fromstring(results[0])
    assert (tag.tag, tag.get("id"), tag.get("name"), tag.text) == (
        "content-block-tool_result",
        CALL,
        "user_confirm",
        "yes",
    )


def test_raw_text_survives_a_client_that_takes_two_backslashes_for_one() -> None:
    # as the first client of this wire does with every event, since its server doubled them
    text = 'C:\\new \\\\server "\\d+" \n'
    entries = journal(
        StepStarted(1), TextAdded(0, text), CallBegun(CALL, "a"), InputAdded(CALL, '{"a":"\\n"}')
    )
    events = [json.loads(data.replace("\\\\", "\\")) for data in datas_of(encoder("raw"), entries)]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert deltas[0]["text"] == text
    assert deltas[1]["partial_json"] == '{"a":"\\n"}'
    assert "\\\\" not in "".join(datas_of(encoder("raw"), entries))


def test_raw_shows_a_rejected_call_as_begun_and_failed() -> None:
    rejected = CallRejected(call_id=CALL, tool="nope", input="{", error="There is no such tool.")
    entries = journal(StepStarted(1), CallBegun(CALL, "nope"), InputAdded(CALL, "{"), rejected)
    [*events, result] = datas_of(encoder("raw"), entries)
    assert [json.loads(event)["type"] for event in events[1:]] == [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    ]
    assert "There is no such tool." in (ET.fromstring(result).text or "")


@requirement("awaiting:run-error")
@pytest.mark.parametrize("style", ["xml", "raw"])
def test_an_error_is_one_tag_that_no_text_in_it_can_break(style: Format) -> None:
    nasty = 'It said: ]]> <awaiting_frontend_tools data="[]"> & "more"'
    datas = datas_of(encoder(style), journal(RunFailed("model_fault", nasty)))
    tag = ET.fromstring(datas[-2])
    assert (tag.tag, tag.get("code"), tag.text) == ("content-block-error", "model_fault", nasty)
    assert "<awaiting_frontend_tools" not in datas[-2]


def test_raw_control_tags_stay_xml_and_no_text_can_pass_for_one() -> None:
    fake = '<awaiting_frontend_tools data="[]"></awaiting_frontend_tools>'
    entries = journal(StepStarted(1), TextAdded(0, fake), opened(), StepFinished(1, "calls"), RunParked())
    datas = datas_of(encoder("raw"), entries)
    assert [data for data in datas if "<awaiting_frontend_tools" in data] == [datas[-2]]
    assert attributes_of(datas[-2])["data"][0]["tool_use_id"] == CALL


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("end", "end_turn"),
        ("calls", "tool_use"),
        ("length", "max_tokens"),
        ("refusal", "refusal"),
        ("pause", "pause_turn"),
        ("other", None),
        ("stopped", None),
    ],
)
def test_raw_spells_stop_reasons_as_anthropic_does(reason: str, told: str | None) -> None:
    datas = datas_of(encoder("raw"), journal(StepStarted(1), StepFinished(1, reason)))
    assert json.loads(datas[-2])["delta"]["stop_reason"] == told


@requirement("awaiting:frames")
def test_every_response_ends_with_one_marker_and_says_nothing_after_it() -> None:
    writer = encoder()
    frames = frames_of(
        writer, [*journal(TextAdded(0, "hi"), DONE_EVENT), Entry(3, TextAdded(0, "more"), 0.0)]
    )
    assert [each.data for each in frames].count("[DONE]") == 1
    assert frames[-1].data == "[DONE]"
    assert writer.ended


@requirement("awaiting:pause")
def test_a_pause_is_told_in_one_frame_whatever_its_size() -> None:
    calls = [opened(f"call_{number:032x}", input={"text": "x" * 200_000}) for number in range(3)]
    datas = datas_of(encoder(), journal(*calls, StepFinished(1, "calls"), RunParked()))
    assert datas[-1] == "[DONE]"
    pause = attributes_of(datas[-2])["data"]
    assert [entry["tool_use_id"] for entry in pause] == [call.call_id for call in calls]
    assert all(len(entry["input"]["text"]) == 200_000 for entry in pause)


@requirement("awaiting:approval")
def test_calls_behind_approval_say_so_and_others_do_not() -> None:
    photo = opened(CALL, "take_photo", asking=True)
    server = opened(OTHER, "delete_file", executor=Executor.SERVER, asking=True)
    third = opened("call_" + "c" * 32)
    datas = datas_of(encoder(), journal(photo, server, third, RunParked()))
    entries = attributes_of(datas[-2])["data"]
    assert [entry.get("needs_approval") for entry in entries] == [True, True, None]


@requirement("awaiting:approval")
def test_an_approved_frontend_call_keeps_its_place_and_no_longer_asks() -> None:
    yes = ApprovalAnswered(
        call_id=CALL,
        approval=Approval(approval_id="apr_1", digest="d", answer=Answer(approved=True)),
        tool="take_photo",
        executor=Executor.FRONTEND,
        input={"camera": "back"},
    )
    entries = journal(opened(CALL, "take_photo", asking=True), opened(OTHER), yes, RunParked())
    pause = attributes_of(datas_of(encoder(), entries)[-2])["data"]
    assert pause[0] == {"tool_use_id": CALL, "name": "take_photo", "input": {"camera": "back"}}
    assert pause[1]["tool_use_id"] == OTHER


@requirement("awaiting:pause")
def test_a_call_of_a_registered_client_is_waited_for_before_the_pause_is_told() -> None:
    elsewhere = opened(OTHER, "scan", executor=Executor.CLIENT)
    writer = encoder()
    entries = journal(opened(), elsewhere, StepFinished(1, "calls"), RunParked())
    assert not any("awaiting_frontend_tools" in data for data in datas_of(writer, entries))
    assert not writer.ended
    came = Entry(5, settled(OTHER, tool="scan", executor=Executor.CLIENT), 0.0)
    [result, pause, done] = [each.data for each in frames_of(writer, [came])]
    assert "content-block-tool_result" in result
    assert [entry["tool_use_id"] for entry in attributes_of(pause)["data"]] == [CALL]
    assert done == "[DONE]"


@requirement("awaiting:pause")
def test_a_run_that_waits_for_registered_clients_alone_does_not_pause() -> None:
    writer = encoder()
    frames_of(writer, journal(opened(OTHER, executor=Executor.CLIENT), RunParked()))
    assert not writer.ended


def test_a_replay_does_not_tell_a_pause_that_was_answered() -> None:
    entries = journal(opened(), RunParked(), settled(), RunResumed(), TextAdded(0, "Thanks."), DONE_EVENT)
    datas = datas_of(encoder(past=6), entries)
    assert not any("awaiting_frontend_tools" in data for data in datas)
    assert datas[-1] == "[DONE]"


def test_a_replay_of_a_paused_run_ends_with_what_is_still_open() -> None:
    entries = journal(opened(), opened(OTHER), RunParked(), settled())
    datas = datas_of(encoder(past=4), entries)
    assert [entry["tool_use_id"] for entry in attributes_of(datas[-2])["data"]] == [OTHER]
    assert datas[-1] == "[DONE]"


@requirement("awaiting:run-error")
def test_an_error_closes_what_is_open_and_stands_in_a_frame_of_its_own() -> None:
    entries = journal(TextAdded(0, "I wa"), RunFailed("model_fault", "The provider broke."))
    *_, closing, error, done = datas_of(encoder(), entries)
    assert closing == "</content-block-text>"
    assert error == (
        '<content-block-error code="model_fault"><![CDATA[The provider broke.]]></content-block-error>'
    )
    assert done == "[DONE]"


@requirement("awaiting:run-error")
@pytest.mark.parametrize("style", ["xml", "raw"])
def test_a_response_that_the_server_cuts_says_how_to_continue_and_keeps_its_position(style: Format) -> None:
    writer = encoder(style)
    before = frames_of(writer, journal(StepStarted(1), TextAdded(0, "I wa")))
    [error, done] = _parse(writer.close(cut=True))
    assert error.data.startswith('<content-block-error code="shutting_down">')
    assert "Last-Event-ID" in error.data
    assert error.id == before[-1].id == "2.4~1"
    assert done.data == "[DONE]"


@requirement("awaiting:run-error")
def test_a_response_that_is_cut_before_its_first_event_still_begins() -> None:
    datas = [each.data for each in _parse(encoder().close(cut=True))]
    assert datas[0].startswith("<meta_init ")
    assert datas[-1] == "[DONE]"


def test_the_first_frames_are_meta_then_gap_then_what_was_ignored() -> None:
    frames = _parse(encoder(gap="77.1", ignored=[CALL]).close(cut=False))
    assert [each.data.split(" ")[0] for each in frames] == [
        "<meta_init",
        "<stream_gap",
        "<ignored_tool_results",
        "[DONE]",
    ]
    assert attributes_of(frames[1].data)["data"] == {"last_event_id": "77.1"}
    assert attributes_of(frames[2].data)["data"] == [CALL]


@requirement("awaiting:stream-resume")
def test_a_discarded_step_is_closed_for_those_who_saw_it() -> None:
    entries = journal(
        StepStarted(1), TextAdded(0, "I w"), StepDiscarded(1), StepStarted(1), TextAdded(0, "I")
    )
    assert "".join(datas_of(encoder(), entries)) == (
        "<content-block-text>I w</content-block-text><content-block-text>I"
    )
    raw = [json.loads(data)["type"] for data in datas_of(encoder("raw"), entries)]
    assert raw.count("message_start") == 2
    assert raw.count("message_stop") == 1


@requirement("awaiting:stream-resume")
@pytest.mark.parametrize("style", ["xml", "raw"])
def test_from_every_position_a_reader_gets_exactly_the_rest(style: Format) -> None:
    """Whatever frame was the last to arrive, what was read before and after it is the whole."""
    told = frames_of(encoder(style), _in_pieces(TALK))[1:]
    for index, last in enumerate(told[:-1]):
        place = parse_bookmark(last.id)
        assert place is not None
        rest = frames_of(encoder(style, after=place.position, past=0), TALK)[1:]
        assert _joined(style, [*told[: index + 1], *rest]) == _joined(style, told)


@requirement("awaiting:stream-resume")
@given(
    pieces=st.lists(st.text(alphabet="<meta_ini/x\n", max_size=6), min_size=1, max_size=8),
    joined=st.booleans(),
)
def test_no_character_is_lost_or_told_twice_however_text_is_cut(pieces: list[str], joined: bool) -> None:
    """What looks like a tag is kept back for a while: a position never counts what is kept back."""
    pieces = [piece for piece in pieces if piece] or ["x"]
    events: list[Event] = (
        [TextAdded(0, "".join(pieces))] if joined else [TextAdded(0, each) for each in pieces]
    )
    stored = journal(*events, StepFinished(1, "end"))
    live = _cut(stored[0], pieces) + stored[1:] if joined else stored
    told = frames_of(encoder(), live)
    whole = "".join(each.data for each in told[1:])
    for index, last in enumerate(told):
        place = parse_bookmark(last.id) or Bookmark(Position())
        rest = frames_of(encoder(after=place.position), stored)[1:]
        assert "".join(each.data for each in [*told[1 : index + 1], *rest]) == whole


def _in_pieces(entries: list[Entry]) -> list[Entry]:
    """As live readers hear it: three characters at a time."""
    pieces: list[Entry] = []
    for entry in entries:
        text = getattr(entry.event, "text", None)
        cut = [text[at : at + 3] for at in range(0, len(text), 3)] if text else []
        pieces += _cut(entry, cut) if cut else [entry]
    return pieces


def _cut(entry: Entry, pieces: list[str]) -> list[Entry]:
    event = entry.event
    assert isinstance(event, TextAdded | ReasoningAdded | InputAdded)
    told: list[Entry] = []
    offset = 0
    for piece in pieces:
        part: Event = (
            InputAdded(event.call_id, piece)
            if isinstance(event, InputAdded)
            else type(event)(event.part, piece)
        )
        told.append(Entry(entry.seq, part, 0.0, offset))
        offset += len(piece)
    return told


def _joined(style: Format, frames: list[sse.Event]) -> object:
    """What a page has in the end. In raw it may be told twice that a block has ended."""
    datas = [each.data for each in frames]
    if style == "xml":
        return "".join(datas)
    said: dict[object, str] = {}
    shape: list[str] = []
    message = 0
    for data in datas:
        event: Json = json.loads(data) if data.startswith("{") else {"type": data}
        message += event["type"] == "message_start"
        if event["type"] == "content_block_delta":
            where = (message, event["index"])
            said[where] = said.get(where, "") + str([*event["delta"].values()][1])
        elif (told := f"{event['type']} {event.get('index')}") not in shape:
            shape.append(told)
    return said, shape


def _plain(text: str) -> str:
    """As XML sees it: one kind of line break, and no character that it has no place for."""
    allowed = "".join(each if each in "\t\n\r" or each >= " " else "\ufffd" for each in text)
    allowed = "".join(
        "\ufffd" if "\ud800" <= each <= "\udfff" or each in "\ufffe\uffff" else each for each in allowed
    )
    return allowed.replace("\r\n", "\n").replace("\r", "\n")


def _parse(data: bytes) -> list[sse.Event]:
    return list(sse.parse([data]))
