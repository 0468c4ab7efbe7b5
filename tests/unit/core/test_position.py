"""Positions in the record, and bookmarks that name a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.event import CallTaken, Event, InputAdded, ReasoningAdded, TextAdded
from farhand.core.position import START, Bookmark, Entry, Position, mark_of, parse_bookmark, parse_position
from tests.requirement import requirement


@requirement("streams:position")
@given(st.integers(0, 10**15 - 1), st.integers(0, 10**15 - 1))
def test_a_position_is_read_as_it_was_written(seq: int, offset: int) -> None:
    assert parse_position(str(Position(seq, offset))) == Position(seq, offset)


def test_a_position_may_leave_out_the_characters() -> None:
    assert parse_position("7") == Position(7, 0)
    assert parse_position("7.3") == Position(7, 3)


@requirement("streams:position")
@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ".",
            "7.",
            ".7",
            "-1",
            "+1",
            "1.-1",
            "1.+1",
            " 1",
            "1 ",
            "1.2.3",
            "1.2.3.4",
            "1,5",
            "x",
            "1.x",
            "0x1",
            "1_0",
        ),
        *("٣", "1.٣", "²", "1.²", "1" * 16, "1." + "1" * 16, "1\n", "1.5\n"),
    ],
)
def test_anything_else_is_no_position(text: str) -> None:
    assert parse_position(text) is None


@given(st.text(max_size=8))
def test_no_text_breaks_the_reading_of_a_position(text: str) -> None:
    found = parse_position(text)
    assert found is None or found >= START


def test_a_bookmark_is_in_the_run_that_it_names() -> None:
    run_id = "run_" + "5f0c2a9e" * 4
    marked = parse_bookmark(f"31.12~{mark_of(run_id)}")
    assert marked == Bookmark(Position(31, 12), "5f0c2a9e")
    assert marked.is_in(run_id)
    assert not marked.is_in("run_" + "0" * 32)


def test_a_bookmark_without_a_mark_is_in_any_run() -> None:
    plain = parse_bookmark("31.12")
    assert plain == Bookmark(Position(31, 12))
    assert plain.is_in("run_" + "0" * 32)


@pytest.mark.parametrize(
    "text", ["~", "~5f0c2a9e", "3~", "3.0~a~b", "3.0~123456789", "3.0~a b", "x~5f0c2a9e"]
)
def test_what_is_no_bookmark_is_not_taken_for_one(text: str) -> None:
    assert parse_bookmark(text) is None


def test_a_reader_that_has_an_event_stands_behind_it() -> None:
    assert Entry(4, CallTaken("call_1", "tab"), 0.0).end == Position(4)


@pytest.mark.parametrize(
    "event", [TextAdded(0, "howdy"), ReasoningAdded(0, "howdy"), InputAdded("c", "howdy")]
)
def test_a_reader_that_has_a_piece_of_a_delta_stands_behind_its_last_character(event: Event) -> None:
    assert Entry(4, event, 0.0, offset=3).end == Position(4, 8)
