"""Frames out, events in, by the rules of the WHATWG standard."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farhand.errors import Misuse, TooLarge
from farhand.wire.sse import DONE, KEEP_ALIVE, Event, Parser, frame, frames, parse

fuzz = settings(max_examples=150, deadline=None)
lines = st.lists(
    st.sampled_from(["\n", "\r", "\r\n", "data:", "id: 1", ":", " ", "event: x", "\0", "a", "é"])
)
text = st.one_of(st.text(st.characters(codec="utf-8"), max_size=20), lines.map("".join))
one_line = text.map(lambda value: value.translate({ord("\n"): None, ord("\r"): None, 0: None}))


def with_line_feeds(value: str) -> str:
    return value.replace("\r\n", "\n").replace("\r", "\n")


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(stream)) for place in places} | {len(stream)})
    starts = [0, *ends[:-1]]
    return [stream[start:end] for start, end in zip(starts, ends, strict=True)]


def test_a_frame_is_one_data_line_and_a_blank_one() -> None:
    assert frame(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert frame("é") == "data: é\n\n".encode()


def test_event_and_id_stand_before_the_data() -> None:
    assert frame("x", event="tool", id="7.0") == b"event: tool\nid: 7.0\ndata: x\n\n"
    assert frame("x", id="") == b"id: \ndata: x\n\n"


@pytest.mark.parametrize("data", ["a\nb\n\nc", "a\r\nb\r\n\r\nc", "a\rb\r\rc"])
def test_every_kind_of_line_break_starts_a_new_data_line(data: str) -> None:
    assert frame(data) == b"data: a\ndata: b\ndata: \ndata: c\n\n"


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\0", "x\n\ndata: forged\n\n"])
def test_an_event_name_or_id_that_would_break_out_is_refused(value: str) -> None:
    with pytest.raises(Misuse, match="event"):
        frame("x", event=value)
    with pytest.raises(Misuse, match="id"):
        frame("x", id=value)


def test_halves_of_a_character_that_meet_are_joined_and_lone_ones_are_marked() -> None:
    assert frame("\ud83d\ude00 \ud83d") == "data: \U0001f600 \ufffd\n\n".encode()


def test_events_of_one_line_are_framed_together_and_the_last_has_the_id() -> None:
    assert frames([]) == b""
    assert frames([b"1", b"2"]) == frame(b"1") + frame(b"2")
    assert frames([b"1", b"2"], b"7.0") == frame(b"1") + frame(b"2", id="7.0")
    assert frames([b"1"], b"7.0") == frame(b"1", id="7.0")


def test_a_comment_tells_the_reader_nothing() -> None:
    assert list(parse([KEEP_ALIVE, frame("x")])) == [Event("message", "x", "")]


def test_the_end_marker_is_an_event_of_its_own() -> None:
    assert list(parse([DONE])) == [Event("message", "[DONE]", "")]


@pytest.mark.slow
@fuzz
@given(st.lists(st.tuples(text, st.none() | one_line, st.none() | one_line), max_size=4))
def test_what_was_framed_is_read_back_and_nothing_more(
    events: list[tuple[str, str | None, str | None]],
) -> None:
    stream = b"".join(frame(data, event=name, id=place) for data, name, place in events)
    last = ""
    expected = []
    for data, name, place in events:
        last = last if place is None else place
        expected.append(Event(name or "message", with_line_feeds(data), last))
    assert list(parse([stream])) == expected


@fuzz
@given(lines.map("".join), st.lists(st.integers(0, 60)))
def test_it_does_not_matter_where_the_chunks_were_cut(stream: str, places: list[int]) -> None:
    raw = stream.encode()
    assert list(parse(cut(raw, places))) == list(parse([raw]))


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_the_example_of_the_standard_is_read_with_any_line_end(end: bytes) -> None:
    stream = (
        b"\xef\xbb\xbf: a comment\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n\n"
        b"data\n\ndata\ndata\n\ndata:"
    )
    assert list(parse([stream.replace(b"\n", end)])) == [
        Event("message", "first", "1"),
        Event("message", "second", ""),
        Event("message", " third", ""),
        Event("message", "", ""),
        Event("message", "\n", ""),
    ]


def test_only_the_first_byte_order_mark_is_skipped() -> None:
    assert list(parse([b"\xef", b"\xbb", b"\xbfdata: a\n\xef\xbb\xbfdata: b\n\n"])) == [
        Event("message", "a", "")
    ]


def test_an_event_without_data_is_not_delivered_and_its_name_forgotten() -> None:
    assert list(parse([b"event: x\n\ndata: a\n\n"])) == [Event("message", "a", "")]


def test_an_id_stays_until_the_next_and_one_with_nul_is_ignored() -> None:
    stream = [frame("a", id="1"), frame("b"), b"id: 2\0\ndata: c\n\n"]
    assert [event.id for event in parse(stream)] == ["1", "1", "1"]


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert list(parse([b"data: \xff\n\n"])) == [Event("message", "\ufffd", "")]


def test_other_fields_are_ignored() -> None:
    assert Parser().feed(b"retry: 3000\nunknown: 1\n\n") == []


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 100, b"data: x\n" * 20])
def test_an_endless_event_is_refused(stream: bytes) -> None:
    parser = Parser(max_event=80)
    with pytest.raises(TooLarge, match="80 bytes"):
        parser.feed(stream)


def test_comments_and_many_small_events_never_become_too_large() -> None:
    parser = Parser(max_event=80)
    assert parser.feed(b": still here\n" * 1000 + b"data: a\n\n" * 1000) == [Event("message", "a", "")] * 1000
    assert parser.feed(b"") == []
