from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.errors import ModelFault
from farhand.models.scripted.rules import BadTemplate, fill_templates, parse_template, roots_in, templates_in

SCOPE = {
    "text": "{place}",
    "place": "Oslo",
    "street": "A & B#/%41+",
    "results": [{"output": {"a-b": 1, "list": ["x", 2, True], "deep": [{"n": None}]}}, {"error": "broke"}],
}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("in {place}!", "in Oslo!"),
        ("{results[0].output.a-b}", "1"),
        ("{results[-1].error}", "broke"),
        ("{results[0].output.list}", "x, 2, true"),
        ("{results[0].output.list[1]}", "2"),
        ("{results[0].output.deep}", '[{"n":null}]'),
        ("{results[0].output.deep[0].n}", "null"),
        ("{{place}} {{{place}}}", "{place} {Oslo}"),
        ("{results[7].output|none at all}", "none at all"),
        ("{results[1].output|}", ""),
        ("{place|unused}", "Oslo"),
        ("?q={url:street}&n={url:results[0].output.a-b}", "?q=A%20%26%20B%23%2F%2541%2B&n=1"),
        ("?q={url:who|}", "?q="),
    ],
)
def test_a_path_is_filled_with_what_stands_there(words: str, text: str) -> None:
    assert parse_template(words).text(SCOPE) == text


def test_what_was_filled_in_is_not_filled_again() -> None:
    assert parse_template("{text} and {place}").text(SCOPE) == "{place} and Oslo"


@pytest.mark.parametrize(
    "words",
    [
        "{place.upper}",
        "{place.__class__}",
        "{results.append}",
        "{results[0].keys}",
        "{results[9]}",
        "{place[0]}",
        "{who}",
    ],
)
def test_only_keys_and_numbers_lead_anywhere(words: str) -> None:
    with pytest.raises(ModelFault, match="there is no such value"):
        parse_template(words).text(SCOPE)


@pytest.mark.parametrize(
    "words",
    ["{", "}", "a { b", "{}", "{a b}", "{a.}", "{a[x]}", "{a!r}", "{a:>9}", "{ a }", "{url:}", "{url: a}"],
)
def test_words_that_are_no_template_are_refused_when_they_are_read(words: str) -> None:
    with pytest.raises(BadTemplate):
        parse_template(words)


def test_a_fill_that_stands_alone_keeps_its_type() -> None:
    value = templates_in(
        {"n": "{results[0].output.a-b}", "in": ["{place}", 5, None], "mixed": "n={results[0].output.a-b}"}
    )
    assert fill_templates(value, SCOPE) == {"n": 1, "in": ["Oslo", 5, None], "mixed": "n=1"}
    assert roots_in(value) == {"results", "place"}


@given(st.text())
def test_any_text_survives_when_its_braces_are_doubled(text: str) -> None:
    assert parse_template(text.replace("{", "{{").replace("}", "}}")).text({}) == text


@given(st.text(alphabet="{}[].|a0 "))
def test_any_words_are_a_template_or_are_refused(text: str) -> None:
    with contextlib.suppress(BadTemplate):
        parse_template(text)
