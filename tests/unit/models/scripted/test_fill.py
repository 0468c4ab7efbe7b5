from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.errors import ModelFault
from farhand.models.scripted.fill import BadTemplate, filled, roots_in, template, templates_in
from tests.requirement import requirement

SCOPE = {
    "text": "{place}",
    "place": "Oslo",
    "results": [{"output": {"a-b": 1, "list": ["x", 2, True], "deep": [{"n": None}]}}, {"error": "broke"}],
}


@requirement("scripted:fills")
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
    ],
)
def test_a_path_is_filled_with_what_stands_there(words: str, text: str) -> None:
    assert template(words).text(SCOPE) == text


@requirement("scripted:fills")
def test_what_was_filled_in_is_not_filled_again() -> None:
    assert template("{text} and {place}").text(SCOPE) == "{place} and Oslo"


@requirement("scripted:fills")
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
    with pytest.raises(ModelFault, match="nothing at that place"):
        template(words).text(SCOPE)


@pytest.mark.parametrize(
    "words", ["{", "}", "a { b", "{}", "{a b}", "{a.}", "{a[x]}", "{a!r}", "{a:>9}", "{ a }"]
)
def test_words_that_are_no_template_are_refused_when_they_are_read(words: str) -> None:
    with pytest.raises(BadTemplate):
        template(words)


@requirement("scripted:fills")
def test_a_fill_that_stands_alone_keeps_its_type() -> None:
    value = templates_in(
        {"n": "{results[0].output.a-b}", "in": ["{place}", 5, None], "mixed": "n={results[0].output.a-b}"}
    )
    assert filled(value, SCOPE) == {"n": 1, "in": ["Oslo", 5, None], "mixed": "n=1"}
    assert roots_in(value) == {"results", "place"}


@given(st.text())
def test_any_text_survives_when_its_braces_are_doubled(text: str) -> None:
    assert template(text.replace("{", "{{").replace("}", "}}")).text({}) == text


@given(st.text(alphabet="{}[].|a0 "))
def test_any_words_are_a_template_or_are_refused(text: str) -> None:
    with contextlib.suppress(BadTemplate):
        template(text)
