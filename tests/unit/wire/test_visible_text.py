"""What a reader cannot see becomes a mark, on the command line as in the cards."""

from __future__ import annotations

import json
import time
import unicodedata
from typing import TypedDict

import pytest

from farhand.wire.visible_text import MARKED, pieces_of, visible_text
from tests.process import ROOT
from tests.requirement import requirement


class Hostile(TypedDict):
    name: str
    text: str
    pieces: list[list[object]]


HOSTILE: list[Hostile] = json.loads((ROOT / "tests/hostile_strings.json").read_text())


@requirement("approval:readable")
@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case["name"])
def test_a_hostile_text_is_spelled_as_the_cards_spell_it(case: Hostile) -> None:
    assert [list(piece) for piece in pieces_of(case["text"])] == case["pieces"]


@pytest.mark.slow
@requirement("approval:readable")
def test_every_invisible_character_of_unicode_is_marked() -> None:
    # signs before a number are of the kind of invisible ones, but are drawn
    drawn = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    hidden = [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in {"Cc", "Cf", "Zl", "Zp", "Zs", "Cs", "Co"}
        and code not in drawn
        and chr(code) != " "
    ]
    plain = [
        code for code in hidden if chr(code) not in "\t\n" and not any(a <= code <= b for a, b in MARKED)
    ]
    assert [hex(code) for code in plain] == []


@requirement("approval:readable")
def test_on_a_line_nothing_is_left_that_a_terminal_would_obey() -> None:
    for case in HOSTILE:
        line = visible_text(case["text"], at_most=10_000)
        assert "\n" not in line
        assert not any(unicodedata.category(char) in {"Cc", "Zl", "Zp", "Cs", "Co"} for char in line)


@requirement("approval:readable")
def test_a_long_text_is_cut_at_its_end_and_says_by_how_much() -> None:
    assert visible_text("x" * 20, at_most=20) == "x" * 20
    assert visible_text("x" * 2_000, at_most=400) == "x" * 400 + "… ⟦1,600 characters more⟧"
    secret = "/home/ada/secrets" + "\n" * 120 + "notes.txt"
    assert visible_text(secret, at_most=10) == "/home/ada/… ⟦136 characters more⟧"
    assert visible_text(secret, at_most=20) == "/home/ada/secrets⟦⏎ ×120⟧… ⟦9 characters more⟧"


@requirement("approval:readable")
@pytest.mark.parametrize("text", ["\u0336" * 200_000, "a\u200b" * 100_000, "\n " * 100_000, "x" * 400_000])
@pytest.mark.slow
def test_a_large_text_is_read_in_time_that_grows_with_its_length(text: str) -> None:
    began = time.process_time()
    visible_text(text, at_most=400)
    # of the processor, however busy it is: about 1 s; work that grows with the square would take hours
    assert time.process_time() - began < 60
