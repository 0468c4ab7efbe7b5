"""Positions in a journal, and deltas that are joined."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.event import (
    START,
    Bookmark,
    CallTaken,
    Delta,
    Entry,
    Event,
    InputAdded,
    Position,
    ReasoningAdded,
    RunFinished,
    StepFinished,
    TextAdded,
    join,
    mark_of,
    parse_bookmark,
    parse_position,
)
from farhand.core.run import RunState, Usage
from tests.requirement import requirement


@requirement("streams:position")
@given(st.integers(0, 10**15 - 1), st.integers(0, 10**15 - 1))
def test_a_position_is_read_as_it_was_written(seq: int, offset: int) -> None:
    assert parse_position(str(Position(seq, offset))) == Position(seq, offset)


def test_a_position_may_leave_out_the_characters() -> None:
    assert parse_position("7") == Position(7, 0)
    assert parse_position(str(Position(7, 3, 5))) == Position(7, 3, 5)


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
            "1.2.0",
            "1.2.03",
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


@requirement("ui-stream:marks")
def test_a_bookmark_is_in_the_run_that_it_names() -> None:
    run_id = "run_" + "5f0c2a9e" * 4
    marked = parse_bookmark(f"31.12.26~{mark_of(run_id)}")
    assert marked == Bookmark(Position(31, 12, 26), "5f0c2a9e")
    assert marked.is_in(run_id)
    assert not marked.is_in("run_" + "0" * 32)


@requirement("ui-stream:marks")
def test_a_bookmark_without_a_mark_is_in_any_run() -> None:
    plain = parse_bookmark("31.12")
    assert plain == Bookmark(Position(31, 12))
    assert plain.is_in("run_" + "0" * 32)


@requirement("ui-stream:marks")
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


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        (TextAdded(0, "a"), TextAdded(0, "b"), TextAdded(0, "ab")),
        (TextAdded(0, "a"), TextAdded(1, "b"), None),
        (ReasoningAdded(2, "a"), ReasoningAdded(2, "b"), ReasoningAdded(2, "ab")),
        (ReasoningAdded(0, "a"), TextAdded(0, "b"), None),
        (InputAdded("c", "a"), InputAdded("c", "b"), InputAdded("c", "ab")),
        (InputAdded("c", "a"), InputAdded("d", "b"), None),
    ],
)
def test_deltas_of_one_block_are_joined_and_others_are_not(
    first: Delta, second: Delta, joined: Delta | None
) -> None:
    assert join(first, second) == joined


def test_an_event_is_read_from_json_as_it_was_written() -> None:
    events: list[Event] = [
        StepFinished(1, "end", Usage(3, 4)),
        RunFinished(RunState.STOPPED, "stopped by the user"),
        TextAdded(0, "ü"),
    ]
    assert [msgspec.json.decode(msgspec.json.encode(event), type=Event) for event in events] == events
