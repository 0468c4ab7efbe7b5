from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.models import sse_reader
from farhand.models.sse_reader import SseEvent, SseReader
from farhand.wire.sse import parse

STREAM = (
    b": a comment\n\n"
    b'event: delta\ndata: {"text": "w\xc3\xb6rd"}\n\n'
    b"data: first\ndata:second\ndata\ndata:  third\n\n"
    b"id: 7\nretry: 100\n\n"
    b"unknown: field\ndata: [DONE]\n\n"
    b"event: error\n\n"
    b"\n\n"
    b"data: a\xe2\x80\xa8b\x0bc\x1cd\xc2\x85e\n\n"
)
EVENTS = [
    SseEvent(b"delta", b'{"text": "w\xc3\xb6rd"}'),
    SseEvent(b"", b"first\nsecond\n\n third"),
    SseEvent(b"", b"[DONE]"),
    SseEvent(b"error", b""),
    SseEvent(b"", b"a\xe2\x80\xa8b\x0bc\x1cd\xc2\x85e"),
]
by_line_end = pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])


def read(*chunks: bytes) -> list[SseEvent]:
    reader = SseReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


@by_line_end
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a byte order mark"])
def test_events_are_the_same_wherever_the_stream_is_cut(line_end: bytes, mark: bytes) -> None:
    stream = mark + STREAM.replace(b"\n", line_end)
    assert read(stream) == EVENTS
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == EVENTS
    for first, second in itertools.combinations_with_replacement(range(len(stream) + 1), 2):
        assert read(stream[:first], stream[first:second], stream[second:]) == EVENTS, (first, second)


@by_line_end
def test_an_event_is_there_with_its_blank_line_and_not_before(line_end: bytes) -> None:
    reader = SseReader()
    assert reader.feed(b"data: word" + line_end) == []
    assert reader.feed(line_end) == [SseEvent(b"", b"word")]
    assert reader.end() is None


@pytest.mark.parametrize("rest", [b"data: word", b"data: word\n", b"data: word\r"])
def test_the_event_that_a_stream_ends_within_is_told_apart(rest: bytes) -> None:
    reader = SseReader()
    assert reader.feed(b"data: whole\n\n" + rest) == [SseEvent(b"", b"whole")]
    assert reader.end() == SseEvent(b"", b"word")
    assert reader.end() is None


def test_a_name_holds_for_one_event() -> None:
    assert read(b"event: a\ndata: 1\n\ndata: 2\n\n") == [SseEvent(b"a", b"1"), SseEvent(b"", b"2")]


def test_a_byte_order_mark_counts_at_the_start_alone() -> None:
    assert read(b"data: 1\n\n\xef\xbb\xbfdata: 2\n\ndata: 3\n\n") == [
        SseEvent(b"", b"1"),
        SseEvent(b"", b"3"),
    ]


@pytest.mark.parametrize("endless", [b"data: " + b"x" * 100, b"data: x\n" * 20, b"data: x\n:" * 20])
def test_an_event_that_never_ends_is_refused(endless: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_reader, "MAX_EVENT", 80)
    reader = SseReader()
    assert len(reader.feed(b"data: a\n\n" * 100)) == 100
    with pytest.raises(ValueError, match="80 bytes"):
        reader.feed(endless)


def test_comments_that_keep_a_stream_open_add_up_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_reader, "MAX_EVENT", 80)
    reader = SseReader()
    for _ in range(100):
        assert reader.feed(b": still here\n\n") == []


LINES = st.sampled_from(["data: x", "data:y", "data", ":c", "event: e", "event:", "", "", "id: 1", "dat: z"])


@given(
    lines=st.lists(LINES),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"])),
    cuts=st.sets(st.integers(0, 200)),
)
def test_what_our_own_clients_read_is_what_is_read_here(
    lines: list[str], ends: list[str], cuts: set[int]
) -> None:
    stream = "".join(map("".join, itertools.zip_longest(lines, ends[: len(lines)], fillvalue="\n"))).encode()
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(places)]
    read_here = [(event.name.decode() or "message", event.data.decode()) for event in read(*chunks)]
    assert [each for each in read_here if each[1]] == [
        (each.event, each.data) for each in parse([stream]) if each.data
    ]
