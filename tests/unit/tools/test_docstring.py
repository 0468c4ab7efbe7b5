"""Google-style docstrings are parsed, and invisible characters are removed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.errors import BadTool
from farhand.tools.docstring import LONGEST_DESCRIPTION, clean_text, parse_docstring
from tests.requirement import requirement


def documented(text: str | None) -> Callable[..., object]:
    def function() -> None:
        """Replaced below."""

    function.__doc__ = text
    return function


@requirement("tools:schema")
def test_summary_description_parameters_and_result_are_read() -> None:
    doc = parse_docstring(
        documented("""Open a page beside the chat.

        It stays open
        until it is closed.

        Args:
            url: The address,
                http or https.
            focus (bool, optional): Whether it gets the keyboard.

        Returns:
            url and viewKey of the page.

        Raises:
            ValueError: Never shown to a model.
        """),
        "open_url",
    )
    assert doc.description == (
        "Open a page beside the chat.\n\nIt stays open\nuntil it is closed.\n\n"
        "Returns: url and viewKey of the page."
    )
    assert doc.parameters == {
        "url": "The address,\nhttp or https.",
        "focus": "Whether it gets the keyboard.",
    }
    assert doc.returns == "url and viewKey of the page."


@requirement("tools:schema")
def test_a_single_line_is_enough_for_a_function_without_parameters() -> None:
    doc = parse_docstring(documented("Say what time it is."), "now")
    assert (doc.description, doc.parameters, doc.returns) == ("Say what time it is.", {}, None)


@requirement("tools:schema")
@pytest.mark.parametrize(
    "text", ['"yes" or "no"', 'JSON string: {"hex": "#RRGGBB"}', "dict: url and viewKey"]
)
def test_what_comes_back_is_kept_as_it_was_written(text: str) -> None:
    assert parse_docstring(documented(f"Ask.\n\nReturns:\n    {text}\n"), "ask").returns == text


@requirement("tools:schema")
def test_an_empty_returns_counts_as_none_and_attributes_are_not_arguments() -> None:
    doc = parse_docstring(documented("Do it.\n\nAttributes:\n    x: Not an argument.\n\nReturns:\n"), "do")
    assert (doc.parameters, doc.returns) == ({}, None)


@pytest.mark.parametrize("text", [None, "", "   \n  ", "\x00\u202e"])
def test_no_docstring_is_refused(text: str | None) -> None:
    with pytest.raises(BadTool, match=r"Tool `f` has no docstring. Describe what it does"):
        parse_docstring(documented(text), "f")


@pytest.mark.parametrize("text", ["Do it.\n\nArgs:\n    no colon here\n", "Do it.\n\nArgs:\n"])
def test_a_docstring_that_is_not_google_style_is_refused(text: str) -> None:
    with pytest.raises(BadTool, match=r"The docstring of tool `f` cannot be read: .* Write a summary first"):
        parse_docstring(documented(text), "f")


def test_characters_that_hide_something_are_removed() -> None:
    hidden = "\x00\x1b\x7f\x85\u061c\u200e\u202e\u2066\U000e0041\U000e007f\ud800"
    assert clean_text(f"  Open\r\n{hidden}\ta page. 👩‍💻 ", "it") == "Open\n\ta page. 👩‍💻"


def test_a_description_that_is_too_long_is_refused() -> None:
    assert clean_text("x" * LONGEST_DESCRIPTION, "it") == "x" * LONGEST_DESCRIPTION
    with pytest.raises(BadTool, match="The description of tool `f` has 4097 characters"):
        parse_docstring(documented("x" * (LONGEST_DESCRIPTION + 1)), "f")
    with pytest.raises(BadTool, match="The description of parameter `x` of tool `f` has 4097 characters"):
        parse_docstring(documented(f"Do it.\n\nArgs:\n    x: {'x' * 4_097}\n"), "f")


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_whatever_is_cleaned_can_be_encoded_and_is_clean(text: str) -> None:
    once = clean_text(text, "it")
    once.encode()
    assert clean_text(once, "it") == once
