"""The server derives in the same way as the page whether a press answers a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from farhand.core.card import PRESSED_CARDS, is_answered_by_a_press
from farhand.core.tool import Executor, Tool

GUESSED = json.loads(Path(__file__).parents[2].joinpath("guessed_cards.json").read_text())


@pytest.mark.parametrize("guessed", GUESSED, ids=lambda guessed: guessed["name"])
def test_a_tool_that_names_no_card_is_judged_by_the_card_that_pages_guess(guessed: dict[str, Any]) -> None:
    assert is_answered_by_a_press(_tool(guessed)) == (guessed["card"] in PRESSED_CARDS)


@pytest.mark.parametrize("guessed", GUESSED[:1])
def test_a_card_that_the_tool_names_is_not_guessed(guessed: dict[str, Any]) -> None:
    named = [_tool(guessed, card=card) for card in ("text", "rating", "clipboard")]
    assert [is_answered_by_a_press(tool) for tool in named] == [False, False, True]


def _tool(guessed: dict[str, Any], card: str | None = None) -> Tool:
    return Tool(
        name="ask",
        description=guessed["description"],
        input_schema=guessed["inputSchema"],
        output_schema=guessed["outputSchema"],
        executor=Executor.FRONTEND,
        card=card,
    )
