"""An agent's branding is checked when the agent is created."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from farhand import Agent, ScriptedModel
from farhand.agent.branding import MOST_LOGO, Branding, LogoFile, Starter
from farhand.errors import BadSetting
from tests.requirement import requirement


# Any: the options of an agent, also wrong ones
def shown(**options: Any) -> Branding:
    return Agent(ScriptedModel(["Hello."]), **options).spec.branding


@requirement("pages:own-agent")
def test_an_agent_says_its_title_welcome_and_starters() -> None:
    given = shown(
        title="Lamp\ndesk",
        welcome="Ask me.",
        starters=["What is new?", ("Weather", "What is the weather in Oslo?"), ("A", "B", "C")],
    )
    assert (given.title, given.welcome, given.logo, given.is_demo) == ("Lamp desk", "Ask me.", None, False)
    assert given.starters == (
        Starter("What is new?", "What is new?"),
        Starter("Weather", "What is the weather in Oslo?"),
        Starter("A", "B", "C"),
    )


def test_a_long_starter_has_a_short_title() -> None:
    [starter] = shown(starters=["word " * 100]).starters
    assert len(starter.title) <= 80
    assert starter.title.endswith("word…")
    assert starter.prompt == "word " * 100


def test_without_options_nothing_is_shown() -> None:
    assert shown() == Branding()


@requirement("pages:own-agent")
def test_a_logo_is_an_address_or_a_file_that_is_read_at_once(tmp_path: Path) -> None:
    image = tmp_path / "logo.SVG"
    image.write_bytes(b"<svg/>")
    assert shown(logo="https://example.org/a.png").logo == "https://example.org/a.png"
    assert shown(logo=image).logo == LogoFile("image/svg+xml", b"<svg/>")
    assert shown(logo=str(image)).logo == LogoFile("image/svg+xml", b"<svg/>")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"title": ""}, "title must be a string"),
        ({"title": 3}, "title must be a string, not 3"),
        ({"title": "x" * 81}, "title has at most 80 characters, not 81"),
        ({"welcome": " "}, "welcome must be a string"),
        ({"starters": "What?"}, "starters must be a list of strings"),
        ({"starters": 3}, "starters must be a list of strings"),
        ({"starters": [""]}, "A starter needs a prompt to send"),
        ({"starters": ["x" * 2_001]}, "A starter has at most 2000 characters"),
        ({"starters": [("a", "b", "c", "d")]}, "A starter must be a string, or a pair"),
        ({"starters": [3]}, "A starter must be a string, or a pair"),
        ({"starters": [("", "b")]}, "a line of a starter must be a string"),
        ({"starters": ["x"] * 13}, "a page shows at most 12"),
        ({"logo": "ftp://example.org/a.png"}, "logo must be a URL that starts with https://"),
        ({"logo": 3}, "logo must be a URL or the path of a file"),
        ({"logo": "logo.txt"}, "is not an image type that pages can show"),
        ({"logo": "/nowhere/logo.png"}, "cannot be read"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_the_reason(options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(says)):
        shown(**options)


def test_a_logo_that_is_too_large_is_refused(tmp_path: Path) -> None:
    image = tmp_path / "logo.png"
    image.write_bytes(b"x" * (MOST_LOGO + 1))
    with pytest.raises(BadSetting, match="it may have 1 to"):
        shown(logo=image)
