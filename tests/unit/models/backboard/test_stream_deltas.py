from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.models.backboard.stream import DeltaText


def new_text(pieces: list[str]) -> str:
    fresh = DeltaText()
    return "".join([*map(fresh.feed, pieces), fresh.rest()])


@pytest.mark.parametrize(
    "pieces",
    [
        ["Hello", ", ", "world"],
        ["ha", "ha", "haha", " no"],
        ["a", "ab", "b"],
        ["one"],
        ["a", "", "a", "b"],
        [],
    ],
)
def test_deltas_are_told_as_they_are(pieces: list[str]) -> None:
    assert new_text(pieces) == "".join(pieces)


@given(st.lists(st.text(min_size=1, max_size=5), max_size=8))
def test_of_whole_texts_only_what_is_new_is_told(pieces: list[str]) -> None:
    assert new_text(list(accumulate(pieces))) == "".join(pieces)


def test_a_whole_text_that_comes_again_tells_nothing_new() -> None:
    assert new_text(["He", "Hell", "Hello", "Hello", "Hello!"]) == "Hello!"


def test_nothing_is_held_back_once_it_is_clear() -> None:
    fresh = DeltaText()
    assert [fresh.feed(piece) for piece in ("He", "Hell", "Hello", "Hello!")] == ["He", "", "llo", "!"]
